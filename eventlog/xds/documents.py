"""Events put into nds documents: at most so many each, and never two of one object."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from hashlib import blake2b
from operator import itemgetter

from lxml import etree

from eventlog import __version__
from eventlog.core.change import EVENT_PART, KEY_DIGEST, Change, Op, check_decoded, position_text, row_events
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.grouped_warnings import GroupedWarnings, unchanged_updates
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
    tally = unchanged_updates()
    yield from write_events(changes, EventWriter(tables, settings), settings, tally)
    yield from tally.warnings()


def write_events(
    changes: Iterable[Change],
    events: EventWriter,
    settings: XdsSettings,
    tally: GroupedWarnings,
    first: int = 1,
) -> Iterator[bytes | Refused]:
    """Yield the documents of changes, numbered from `first` on; the tally counts those without an event."""
    batch: dict[Hashable, str] = {}
    for number, change in enumerate(changes, first):
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


def indent(text: str | bytes) -> str:
    """Return the document as people like to read it."""
    root = parse(text.encode() if isinstance(text, str) else text)
    etree.indent(root)
    return etree.tostring(root, encoding="unicode")


def events_with_ids(change: Change, number: int) -> Iterator[tuple[Change, str]]:
    """Yield the events of a change, each under its event-id; `number` is the change's place in the run."""
    check_decoded(change)
    event_id = _event_id(change, number)
    for part, event in enumerate(row_events(change), 1):
        yield event, event_id if part == 1 else f"{event_id}.{part}"


def _event_id(change: Change, number: int) -> str:
    """Return the log's own id, else the table and the position, or the digest of a row of a full load.

    Only a change that has no position gets its place in the run.
    """
    facts = dict(change.extra) if change.extra else {}
    event_id = facts.get("event_id")
    if isinstance(event_id, str):
        return event_id
    table = change.table if change.schema is None else f"{change.schema}.{change.table}"
    if change.op is Op.SNAPSHOT:
        names_and_values = (*zip(*sorted(change.fields, key=itemgetter(0)), strict=True),)[::2]
        return f"{table}:{_digest((change.key, names_and_values), 16)}"
    position = number if change.position is None else change.position
    part = facts.get(EVENT_PART)
    if part is None:
        return f"{table}:{position}"
    return f"{table}:{position}.{_digest(change.key, 8) if part == KEY_DIGEST else part}"


def _digest(content: object, size: int) -> str:
    """Return a digest of so many bytes of names and values; 1, 1.0, true and "1" have different ones."""
    return blake2b(ascii(content).encode(), digest_size=size).hexdigest()


def finish(text: str, settings: XdsSettings) -> bytes:
    """Return the bytes of a document, indented if that is set, and with an end of line."""
    return (indent(text) if settings.pretty else text).encode() + b"\n"
