"""Events put into nds documents: at most so many each, and never two of one object."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from lxml import etree

from eventlog import __version__
from eventlog.core.change import Change, check_decoded, position_text, row_events
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.grouped_warnings import unchanged_updates
from eventlog.core.tables import Tables
from eventlog.core.xmlparser import parse
from eventlog.formats.neutral import refuse
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings

_SOURCE = (
    '<nds dtdversion="4.0"><source>'
    f'<product version="{__version__}">eventlog</product><contact>eventlog</contact></source>'
)
HEAD = f"{_SOURCE}<input>"
TAIL = "</input></nds>"
HEARTBEAT = f'{HEAD}<status level="success" type="heartbeat"/>{TAIL}'


def document(events: Iterable[str]) -> str:
    """Return one document of these events, on one line."""
    return HEAD + "".join(events) + TAIL


def write(changes: Iterable[Change], tables: Tables, settings: XdsSettings) -> Iterator[bytes | Refused]:
    """Yield the documents of changes, each on lines of its own, and Refused for what XDS cannot express."""
    events = EventWriter(tables, settings)
    batch: dict[Hashable, str] = {}
    tally = unchanged_updates()
    for number, change in enumerate(changes, 1):
        try:
            written = [
                (events.write(event, name), events.object(event))
                for event, name in events_with_ids(change, number)
            ]
        except EventlogError as fault:
            yield refuse(change, fault)
            continue
        if not any(text for text, _ in written):
            tally.add(change.table, position_text(change), None)
        for text, named in written:
            if len(batch) >= settings.batch_size or named in batch:
                yield finish(document(batch.values()), settings)
                batch.clear()
            if text:
                batch[named] = text
    if batch:
        yield finish(document(batch.values()), settings)
    yield from tally.warnings()


def indent(text: str | bytes) -> str:
    """Return the document as people like to read it."""
    root = parse(text.encode() if isinstance(text, str) else text)
    etree.indent(root)
    return etree.tostring(root, encoding="unicode")


def events_with_ids(change: Change, number: int) -> Iterator[tuple[Change, str]]:
    """Yield the events of a change, each under its name: the log's own, else table and position."""
    check_decoded(change)
    for part, event in enumerate(row_events(change), 1):
        name = change.fact("event_id")
        if not isinstance(name, str):
            table = change.table if change.schema is None else f"{change.schema}.{change.table}"
            name = f"{table}:{number if change.position is None else change.position}"
        yield event, name if part == 1 else f"{name}.{part}"


def finish(text: str, settings: XdsSettings) -> bytes:
    """Return the bytes of a document, indented if that is set, and with an end of line."""
    return (indent(text) if settings.pretty else text).encode() + b"\n"
