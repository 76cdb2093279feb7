"""A set of settings by name, and what they name that is no value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core import settings
from eventlog.files.stores import SortedItems, SpoolFile


@dataclass(frozen=True)
class SettingsByName:
    """A set of settings by name, from which each part takes those that it declares."""

    options: Mapping[str, Any]
    clock: str = ""  # the time of rows without one

    @cached_property
    def complete(self) -> dict[str, Any]:
        """The settings with those that are no values."""
        now = {"now": self.clock} if self.clock else {}
        options = now | {name: value for name, value in self.options.items() if value is not None}
        return options | service_options(options)

    def __call__(self, of: type) -> Any:
        """Return the settings that a class declares."""
        return settings.build(of, self.complete)


def service_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are no values: places on disk and, where one is named, a schema registry."""
    on_disk: dict[str, Any] = {"spool": SpoolFile, "open_sorter": SortedItems}
    if not options.get("schema_registry"):
        return on_disk
    from eventlog.clients.http_client import authorization
    from eventlog.transfer.sources.schema_registry import Registry, RegistryAccess

    kafka = settings.build(KafkaSettings, options)
    access = RegistryAccess(authorization(*kafka.registry_identity), kafka.registry_ca, kafka.registry_cert)
    registry = Registry(kafka.schema_registry, access=access)
    return {**on_disk, "schema_of": registry.schema_of, "register": registry.register}
