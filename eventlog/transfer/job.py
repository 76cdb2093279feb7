"""What is to be read and written, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.transfer.connectors import Endpoint, connector_of
from eventlog.transfer.format_registry import format_named
from eventlog.transfer.settings_by_name import SettingsByName


@dataclass(frozen=True)
class Job:
    """A job: what is read and written, and how. `source` and `target` are its two ends."""

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

    @cached_property
    def source(self) -> Endpoint:
        """The end that is read."""
        form = format_named(self.source_format)
        topics = self.options.get("kafka")
        writes_topics = connector_of(self.target_format, "kafka").parts is not None
        if topics and self.inputs != ("-",):  # they are files
            if not writes_topics and connector_of(form.name, "kafka").reads(topics):
                raise Misuse("--kafka reads topics: name no INPUTS with it")
            topics = None
        folder = self.inputs[0] if len(self.inputs) == 1 else None
        addresses = {"kafka": topics, "url": self.url, "folder": folder}
        reading = (
            name for name, address in addresses.items() if connector_of(form.name, name).reads(address)
        )
        place = next(reading, "")
        names = () if place and self.inputs == ("-",) else self.inputs
        return Endpoint(form, names, self.tables, self.settings, self.container, place, self.url)

    @cached_property
    def target(self) -> Endpoint:
        """The end that is written: it is at the place that is named, unless the source is there."""
        source_place = self.source.place
        named = "kafka" if self.options.get("kafka") else "url" if self.url else ""
        place = named if named != source_place else "cases" if self.cases else ""
        return Endpoint(
            format_named(self.target_format),
            (str(self.cases) if place == "cases" else self.output,),
            self.tables,
            self.settings,
            self.output_container,
            place,
            self.url,
            read=(*(() if source_place else self.inputs), *(name for _, name in self.current)),
        )

    @property
    def passes(self) -> int:
        """The number of times that the bytes of inputs are reported: a log is read, folded, written."""
        return 3 if format_named(self.source_format).folded else 1

    @cached_property
    def settings(self) -> SettingsByName:
        """The settings, with the time of rows without one."""
        return SettingsByName(self.options, self.clock)
