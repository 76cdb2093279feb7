"""The settings of a job: those that were given, and those that its surroundings fill."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from eventlog.core import settings
from eventlog.files.keyed_store import KeyedStore
from eventlog.jobs.job import Job
from eventlog.sources.kafka_settings import KafkaSettings


def complete_options(job: Job, clock: str) -> dict[str, Any]:
    """Return the settings that were given, and those that the job's surroundings fill."""
    options = {"now": clock} | {name: value for name, value in job.options.items() if value is not None}
    return options | service_options(options)


def service_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are no values: a place on disk and, where one is named, a schema registry."""
    if not options.get("schema_registry"):
        return {"store": partial(KeyedStore, 0)}
    from eventlog.sinks.secured import authorization
    from eventlog.sources.schema_registry import Registry, RegistryAccess

    kafka = settings.build(KafkaSettings, options)
    access = RegistryAccess(authorization(*kafka.registry_identity), kafka.registry_ca, kafka.registry_cert)
    registry = Registry(kafka.schema_registry, access=access)
    return {"store": partial(KeyedStore, 0), "schema_of": registry.schema_of, "register": registry.register}
