"""What is to be read and written, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from eventlog.core import settings
from eventlog.core.errors import Misuse
from eventlog.core.formats import Format
from eventlog.core.tables import Tables
from eventlog.files.inputs import Input, inputs_of
from eventlog.files.limits import Limits
from eventlog.files.stores import KeyedStore
from eventlog.formats import format_named
from eventlog.sources.place_settings import KafkaSettings

POLL_INTERVAL = 5.0  # seconds


@dataclass(frozen=True)
class Job:
    """A job: what is read and written, and how."""

    source_format: str
    target_format: str
    inputs: tuple[str, ...] = ("-",)
    output: str = "-"
    container: str | None = None  # of the inputs whose names do not show it
    output_container: str | None = None
    tables: Tables = field(default_factory=Tables)
    current: tuple[tuple[str, str], ...] = ()  # tables and the files of their current rows
    options: Mapping[str, Any] = field(default_factory=dict)  # settings by name
    expand_truncate: bool = False
    url: str | None = None  # of the database where the source or the target is
    state: Path | None = None  # the file that remembers how far a source was delivered
    cases: Path | None = None  # the folder of cases for a policy simulator, which are written instead
    clock: str = ""  # the time of rows without one

    @property
    def source(self) -> Format:
        """The format that is read."""
        return format_named(self.source_format)

    @property
    def target(self) -> Format:
        """The format that is written."""
        return format_named(self.target_format)

    @property
    def passes(self) -> int:
        """The number of times that the bytes of inputs are reported: a log is read, folded, written."""
        return 3 if self.source.folded else 1

    @property
    def place(self) -> str:
        """The kind of place, other than files, where one side is."""
        return "kafka" if self.options.get("kafka") else "url" if self.url else ""

    @property
    def names(self) -> tuple[str, ...]:
        """The tables that the inputs name, where they are in a database."""
        return () if self.inputs == ("-",) else self.inputs

    @property
    def limits(self) -> Limits:
        """Return the limits on what an input may contain."""
        return settings.build(Limits, self.options)

    @property
    def poll_interval(self) -> float:
        """The seconds between two rounds of a source that is followed."""
        return float(self.options.get("polling_interval") or POLL_INTERVAL)

    @property
    def files_read(self) -> list[str | Path]:
        """The files that are read: inputs and current rows."""
        current = [name for _, name in self.current]
        return [*current] if self.place else [*self.inputs, *current]

    @cached_property
    def files(self) -> tuple[Input, ...]:
        """The inputs with their containers, where they are files."""
        return inputs_of(self.inputs, self.source.shape, self.container)

    @cached_property
    def settings(self) -> SettingsByName:
        """The settings, with the time of rows without one."""
        return SettingsByName(self.options, self.clock)


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


def only_stream(source_format: str, names: Sequence[str]) -> str:
    """Return the only stream of a job; raise Misuse if there are several, because they share no order."""
    if len(names) > 1:
        raise Misuse(
            f"{source_format}: a run reads one stream, and there are {len(names)}: run once for each, or"
            " convert files one after the other with --order as-is"
        )
    return names[0]


def service_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are no values: a place on disk and, where one is named, a schema registry."""
    if not options.get("schema_registry"):
        return {"store": partial(KeyedStore, 0)}
    from eventlog.http_client import authorization
    from eventlog.sources.schema_registry import Registry, RegistryAccess

    kafka = settings.build(KafkaSettings, options)
    access = RegistryAccess(authorization(*kafka.registry_identity), kafka.registry_ca, kafka.registry_cert)
    registry = Registry(kafka.schema_registry, access=access)
    return {"store": partial(KeyedStore, 0), "schema_of": registry.schema_of, "register": registry.register}
