"""Where documents go. A new sink is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from eventlog.core.errors import Misuse
from eventlog.core.settings import build

if TYPE_CHECKING:
    from eventlog.core.tables import Tables
    from eventlog.sinks.sink import Flaw, Sink, SinkKind, Speedup

SINKS = {
    "stdout": "eventlog.sinks.stdout",
    "files": "eventlog.sinks.files",
    "http": "eventlog.sinks.http",
    "command": "eventlog.sinks.command",
    "kafka": "eventlog.sinks.kafka",
}


def sink_kind(name: str) -> SinkKind:
    """Return the sink of that name; its module is imported when it is asked for."""
    if name not in SINKS:
        raise Misuse(f"unknown sink {name!r}; known are {', '.join(SINKS)}")
    kind: SinkKind = import_module(SINKS[name]).KIND
    return kind


def check_sink(name: str, values: Mapping[str, Any]) -> None:
    """Raise why the sink could not open: a setting, a package, a file or a program. Nothing is sent."""
    kind = sink_kind(name)
    kind.check(build(kind.settings, values))


def flaws_of(name: str, values: Mapping[str, Any], tables: Tables) -> Iterable[Flaw]:
    """Return what should be mended about the sink of that name, which can be opened, for these tables."""
    kind = sink_kind(name)
    return kind.flaws(build(kind.settings, values), tables)


def sink_remedy(name: str, values: Mapping[str, Any], fault: str) -> str:
    """Return what to do if the sink of that name takes nothing, by the fault of its last reply."""
    kind = sink_kind(name)
    return kind.remedy(build(kind.settings, values), fault)


def speedups_of(name: str, values: Mapping[str, Any], batch_size: int) -> Iterable[Speedup]:
    """Return which settings would make the sink of that name faster, with so many events in a document."""
    kind = sink_kind(name)
    return kind.speedups(build(kind.settings, values), batch_size)


def open_sink(name: str, values: Mapping[str, Any]) -> Sink:
    """Return the sink of that name with its settings."""
    kind = sink_kind(name)
    return kind.open(build(kind.settings, values))
