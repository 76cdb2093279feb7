"""The record of what happened: batches with their documents, events and rows, and notices.

A batch is a JSON list of documents, each a name and its events. Events whose ids follow from their rows are
recorded together; one that was cut or tried before, or whose id does not follow, is a list of its own. Each
has the digest of the text that leaves (`core/text_digest`). The names next to documents are those below.
A notice has its facts in columns. Its sentence is made where it is shown.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import Misuse
from eventlog.core.text_digest import SIZE
from eventlog.fold import Fate, event_id
from eventlog.sql.connect import keepable
from eventlog.sql.log import record_checks
from eventlog.sql.log.row_tries import RowTries, Try
from eventlog.sql.queries import Queries
from eventlog.xds.answers import Level, Status

if TYPE_CHECKING:
    from eventlog.fold.event_table import EventTable, Ints, OutgoingEvent

# Names of documents without events: a fate, and the reason.
LOOPBACK: Final = f"{Fate.LOOPBACK}: done by the driver's own user"
NO_EVENT: Final = f"{Fate.NO_EFFECT}: no value of it could leave, or its object was gone"
_BATCHES = 50  # of one statement
BACKLOG: Final = "backlog"  # of rows that Spark has put on record
BACKLOG_SUM: Final = "backlog sum"  # of the documents that Spark made of such rows
# Names of what a batch has on record next to its documents.
REFUSED: Final = "refused"  # rows that no event could be made of
WARNED: Final = "warned"  # rows whose event was answered with a warning
CUT_SHORT: Final = "cut short"  # cut events, each with the part from which on it has none any more
UNANSWERED: Final = "unanswered"  # a mark: the documents may have left, and no answer to them came
_MARK: Final = f'["{UNANSWERED}",[]]]'  # at the end of a batch

WorstAnswer = Callable[[str], Status]  # the worst answer so far to an event that was cut
Recorded = list[object] | dict[str, object]  # one event, or many
Range = tuple[int, int]  # of rows, both ends included


# Raised before anything of the batch is judged, shown or sent: exit code 2.
class DamagedBatch(Misuse):
    """batch {0} of {1} is damaged: {2}; put its content back from a backup of the database"""


class RecordedEvent(NamedTuple):
    """An event on record: what is needed of it after a crash; its content is read anew."""

    run_id: str
    rows: tuple[int, ...]
    max_changes: int  # after how many values the event was cut, whatever the setting is now
    part: int = 1
    has_more_parts: bool = False  # further parts of a cut event follow
    tries: int = 0
    worst: Status = Status(Level.SUCCESS)  # of the parts before this one
    digest: bytes = b""  # of the text that leaves; empty if it is not on record


class RecordedRow(NamedTuple):
    """A row as a batch has it: with its event, or only with the name of a document that has no events."""

    document: str  # the reason if the row has no event
    event: RecordedEvent | None
    settled_at: datetime | None
    has_answer: bool  # False: the document may have left, and no answer came
    batch: int = 0  # its number


class BacklogSum(NamedTuple):
    """The record of all documents of a backlog together."""

    rows: int  # that the backlog had
    documents: int
    digests: int  # the sum of their numbers, modulo 2^64

    @classmethod
    def of(cls, rows: int, documents: int, digests: int) -> BacklogSum:
        """Return a sum of digests, which are numbers of eight bytes."""
        return cls(rows, documents, digests % (1 << 8 * SIZE))


class RecordedEntry(NamedTuple):
    """The rows that a batch has together."""

    name: str  # of the document; the reason if the rows have no event
    rows: Sequence[int]
    sizes: Sequence[int]  # of the rows of each event; empty: no event has them
    digests: bytes  # of the events, empty if they are not on record
    log: str = ""  # in the event-ids, which follow from the rows
    event: RecordedEvent | None = None  # that is recorded alone


Named = Sequence[tuple[str, Sequence[Any]]]  # names, each with its entries as JSON has them


class BatchContent(NamedTuple):
    """The content of a batch by what it is. On disk all of it is one list of names with their entries."""

    documents: Named = ()
    refused: Sequence[Any] = ()  # rows that no event could be made of
    reasons: Named = ()  # of rows without an event, each with the rows
    warned: Sequence[Any] = ()  # rows whose event was answered with a warning
    cut_short: Sequence[Any] = ()  # cut events that became shorter, each with the first part it lacks
    backlog_sums: Sequence[Any] = ()  # of the documents of backlogs
    is_unanswered: bool = False  # the documents may have left, and no answer to them came

    @classmethod
    def read(cls, text: str) -> BatchContent:
        """Return the content of a text. Raise ValueError if it is none."""
        content: dict[str, Any] = {"documents": [], "reasons": []}
        begun = set[str]()  # events whose later parts have no rows of their own
        for name, entries in record_checks.check_named(json.loads(text)):
            if name == UNANSWERED and not entries:
                content["is_unanswered"] = True
            elif name in _NAMED_FIELDS:
                field, check = _NAMED_FIELDS[name]
                check(name, entries)
                content[field] = entries
            elif entries and isinstance(entries[0], dict) and entries[0].get("sizes") == []:
                record_checks.check_rows(name, entries)
                content["reasons"].append((name, entries))
            else:
                record_checks.check_events(name, entries, begun)
                content["documents"].append((name, entries))
        return cls(**content)

    def write(self) -> str:
        """Return the text of the content."""
        named = [*self.documents]
        if self.refused:
            named.append((REFUSED, self.refused))
        named += self.reasons
        if self.warned:
            named.append((WARNED, self.warned))
        if self.cut_short:
            named.append((CUT_SHORT, self.cut_short))
        if self.backlog_sums:
            named.append((BACKLOG_SUM, self.backlog_sums))
        if self.is_unanswered:
            named.append((UNANSWERED, ()))
        return json.dumps(named, separators=(",", ":"))

    def entries(self) -> Iterator[RecordedEntry]:
        """Yield what is recorded together.

        No event has the rows if there are no sizes. Then the name is why, or what is on record of them.
        """
        rows_of: dict[str, tuple[int, ...]] = {}
        rows = [(REFUSED, self.refused), *self.reasons, (WARNED, self.warned)]
        for name, recorded in chain(self.documents, rows):
            for entry in recorded:
                if isinstance(entry, dict):
                    rows_together = [*_rows(entry)]
                    digests, log = read_digests(entry.get("digests", "")), entry.get("log", "")
                    yield RecordedEntry(name, rows_together, _sizes(entry, rows_together), digests, log)
                else:
                    event = _with_rows(_read_event(*entry), rows_of)
                    yield RecordedEntry(name, event.rows, (len(event.rows),), event.digest, event=event)


_NAMED_FIELDS: Final[Mapping[str, tuple[str, Callable[[str, Iterable[Any]], None]]]] = {
    REFUSED: ("refused", record_checks.check_rows),
    WARNED: ("warned", record_checks.check_rows),
    CUT_SHORT: ("cut_short", record_checks.check_parts),
    BACKLOG_SUM: ("backlog_sums", record_checks.check_sums),
}  # the fields that are no documents, by their names on disk, with their checks


class RecordedBatch(NamedTuple):
    """A batch on record: about to leave, or settled."""

    number: int
    epoch: int
    settled_at: datetime | None  # when its rows were finished, None before
    content: str
    table: str = ""  # that has the batch, for people

    def read(self) -> BatchContent:
        """Return what the batch has on record. Raise DamagedBatch if that cannot be."""
        try:
            return BatchContent.read(self.content)
        except (ValueError, RecursionError) as fault:
            raise DamagedBatch(self.number, self.table, fault) from None

    def documents(self) -> list[tuple[str, list[RecordedEvent]]]:
        """Return the recorded documents, by their names."""
        return _read_documents(self.read())

    def refused(self) -> list[int]:
        """Return the rows that no event could be made of."""
        return [*_rows_of(self.read().refused)]

    def warned(self) -> list[int]:
        """Return the rows whose event was answered with a warning."""
        return [*_rows_of(self.read().warned)]

    @property
    def is_unanswered(self) -> bool:
        """Return whether the documents may have left, and no answer to them came."""
        return self.content.endswith(_MARK)  # which reads nothing

    def rows(self) -> Iterator[tuple[int, RecordedRow]]:
        """Yield each row with what the batch has of it."""
        content = self.read()
        facts = self.settled_at, not content.is_unanswered, self.number
        for reason, entries in content.reasons:
            yield from ((row, RecordedRow(reason, None, *facts)) for row in _rows_of(entries))
        for document, events in _read_documents(content):
            for event in events:
                yield from ((row, RecordedRow(document, event, *facts)) for row in event.rows)

    def backlog_rows(self) -> Iterable[int] | None:
        """Return the rows if a backlog put them on record; None for a publisher's batch."""
        reasons = self.read().reasons
        return _rows_of(reasons[0][1]) if [name for name, _ in reasons] == [BACKLOG] else None


def _read_documents(content: BatchContent) -> list[tuple[str, list[RecordedEvent]]]:
    """Return the documents of a batch, each with its events one by one."""
    rows_of: dict[str, tuple[int, ...]] = {}  # by events that were cut
    return [
        (name, [_with_rows(event, rows_of) for event in _read_events(entries)])
        for name, entries in content.documents
    ]


def _rows_of(entries: Iterable[Mapping[str, Any]]) -> Iterable[int]:
    return chain.from_iterable(map(_rows, entries))


class NoticeKind(StrEnum):
    """The kinds of notices."""

    AUDIT = "audit"  # its result
    CAPTURE_OFF = "capture off"  # a session writes without being logged
    COMPARE = "compare"  # the state of a table begins
    GAP = "gap"  # the log may lack changes of a table from before
    GAP_CLOSED = "gap closed"  # what a table has was compared, and logged where it differed
    PASSED = "pass"  # a poll passed the brake on deletes
    PAUSE = "pause"
    PUBLISH = "publish"  # these tables and columns, from now on
    PURGE = "purge"
    REDRIVE = "redrive"
    RESUME = "resume"  # of the publisher, or of a table that the brake on deletes stopped
    RESYNC = "resync"
    SKIP = "skip"
    START = "start"  # a publisher leads, at once
    STOP = "stop"  # it leads no longer
    TAKEOVER = "takeover"  # a publisher leads, after it was on standby
    RETRY = "retry"  # a waiting event is sent again at once


class Notice(NamedTuple):
    """A line that must not be lost: what was done to the log, to which rows, and by whom."""

    kind: str
    table_name: str | None = None  # of the only table
    table_key: str | None = None  # of the only object
    first_id: int | None = None
    last_id: int | None = None
    row_count: int | None = None
    record_ids: tuple[int, ...] = ()  # if rows are listed
    event_id: str | None = None  # of the only event
    answer: str | None = None  # the letters that the rows had
    who: str | None = None  # the person
    words: str | None = None
    at: datetime | None = None  # this and the following facts are the database's
    username: str | None = None
    session_id: int | None = None  # in which capture was switched off

    @property
    def person(self) -> str:
        """Return who did it: the database's user if no person is on record."""
        return self.who or str(self.username)


class LogRecord:
    """The one reader of what happened, in a transaction, which writes notices, too."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def remembered(self) -> list[RecordedBatch]:
        """Return the batches that were about to leave when a leader stopped, oldest first."""
        return [*self._batches("remembered")]

    def settled_with(self, ids: Iterable[int]) -> Iterator[RecordedBatch]:
        """Yield the settled batches that may have some of these rows, oldest first."""
        for chunk in self._queries.chunks(ids):
            yield from self._batches("settled_with", ids=chunk)

    def settled_last(self, before: int = MAX_RECORD_ID) -> Iterator[RecordedBatch]:
        """Yield the batches that were settled last, before that one, newest first, each read alone."""
        while batch := next(self._batches("settled_last", before=before, most=1), None):
            yield batch
            before = batch.number

    def journal(self) -> Iterator[tuple[RecordedBatch, datetime]]:
        """Yield all batches, oldest first, and when each was put on record.

        Raise DamagedBatch if a number comes twice, as without its primary key.
        """
        after = -1
        while rows := self._run("journal", after=after, most=_BATCHES).all():
            for number, epoch, settled_at, content, at in rows:
                batch = RecordedBatch(number, epoch, settled_at, content, self._table)
                if batch.number <= after:
                    raise DamagedBatch(batch.number, self._table, "it is there twice")
                yield batch, at
                after = batch.number

    def note(self, notice: Notice) -> None:
        """Leave a notice, in characters that the database can store."""
        ids = json.dumps(notice.record_ids) if notice.record_ids else None
        who, words = (text and keepable(self._connection, text) for text in (notice.who, notice.words))
        self._run("note", **notice._asdict() | {"record_ids": ids, "who": who, "words": words})

    def notices(self, limit: int = MAX_RECORD_ID) -> list[Notice]:
        """Return the latest notices, newest first."""
        return self._notices("1 = 1", most=limit)

    def notices_of(self, kind: NoticeKind, limit: int = MAX_RECORD_ID) -> list[Notice]:
        """Return the latest notices of a kind, newest first."""
        return self._notices(self._queries.piece("of_kind"), kind=kind, most=limit)

    def skips_of(self, ids: Iterable[int]) -> dict[int, Notice]:
        """Return the notices of skips by the rows among these that were skipped; the last one counts."""
        wanted_ids = {*ids}
        skips = [notice for notice in self.notices_about(wanted_ids) if notice.kind == NoticeKind.SKIP]
        return {
            row: notice for notice in reversed(skips) for row in wanted_ids.intersection(notice.record_ids)
        }

    def has_skips(self) -> bool:
        """Return whether any rows were skipped."""
        return bool(self._notices(self._queries.piece("of_skips"), most=1))

    def notices_about(self, ids: Iterable[int]) -> list[Notice]:
        """Return the notices that list some of these rows, newest first."""
        wanted_ids, about = {*ids}, self._queries.piece("about_rows")
        return [
            notice
            for chunk in self._queries.chunks(wanted_ids)
            for notice in self._notices(about, ids=chunk, most=MAX_RECORD_ID)
            if wanted_ids.intersection(notice.record_ids)
        ]

    def tries_of(self, ids: Iterable[int]) -> dict[int, list[Try]]:
        """Return the tries of these rows that are on record, oldest first; a first success is none."""
        return self.row_tries().of(ids)

    def row_tries(self) -> RowTries:
        """Return the tries of rows."""
        return RowTries(self._connection, self._queries)

    def failure_reasons(self) -> dict[int, str]:
        """Return why rows failed."""
        return {int(row): str(reason) for row, reason in self._run("failure_reasons")}

    def rows_refused_last(self) -> set[int]:
        """Return the rows whose last try on record the receiver refused."""
        return {int(row) for (row,) in self._run("refused_last")}

    def rows_tried(self) -> set[int]:
        """Return the rows that have tries on record."""
        return {int(row) for (row,) in self._run("rows_tried")}

    def waiting_rows(self) -> Iterator[int]:
        """Yield the rows of the events that wait."""
        for *_, record_ids in self._run("every_retry"):
            yield from json.loads(record_ids)

    def _batches(self, name: str, **values: Any) -> Iterator[RecordedBatch]:
        return (
            RecordedBatch(number, epoch, settled_at, content, self._table)
            for number, epoch, settled_at, content in self._run(name, **values)
        )

    @property
    def _table(self) -> str:
        return self._queries.log.companion_name("batch")

    def _notices(self, condition: str, **values: Any) -> list[Notice]:
        rows = self._run("notices", {"conditions": condition}, **values)
        notices = (Notice(*row) for row in rows)
        return [notice._replace(record_ids=_listed(notice.record_ids)) for notice in notices]

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: Any) -> Any:
        return self._queries.run(self._connection, name, holes, **values)


def _listed(ids: object) -> tuple[int, ...]:
    return tuple(json.loads(str(ids))) if ids else ()


def record_events(events: EventTable, first: int, last: int, worst: WorstAnswer) -> list[Recorded]:
    """Return what is recorded of consecutive events."""
    recorded: list[Recorded] = []
    for begin, end, is_plain in plain_stretches(events, first, last):
        if not is_plain or end - begin == 1:
            for at, event in enumerate(events.at(range(begin, end)), begin):
                recorded.append(_record_event(event, _written(events, at, at + 1), worst(event.run_id)))
        else:
            common = {"log": events.log, "max_changes": events.max_changes}
            facts = {"digests": _written(events, begin, end), **_record_sizes(events.sizes[begin:end])}
            recorded.append({**common, **facts, **record_rows(events.rows_of(slice(begin, end)))})
    return recorded


def _record_sizes(sizes: Ints) -> dict[str, object]:
    """Return how many rows each event has: one number if all have as many."""
    return {"each": int(sizes[0])} if (sizes == sizes[0]).all() else {"sizes": sizes.tolist()}


def _sizes(recorded: Mapping[str, Any], rows: Sequence[int]) -> Sequence[int]:
    """Return how many rows each event has; nothing if the rows have no event."""
    if "each" in recorded:
        return [recorded["each"]] * (len(rows) // recorded["each"])
    sizes: Sequence[int] = recorded["sizes"]
    return sizes


def _written(events: EventTable, begin: int, end: int) -> str:
    """Return the digests of consecutive events in Base64."""
    digests = events.digests[SIZE * begin : SIZE * end]
    return b2a_base64(digests, newline=False).rstrip(b"=").decode()


def read_digests(written: str) -> bytes:
    """Return digests from their Base64."""
    return a2b_base64(written + "==")


def plain_stretches(events: EventTable, first: int, last: int) -> list[tuple[int, int, bool]]:
    """Return ranges of events, and whether they are plain: whole, never tried, with the ids of their rows."""
    if events.recorded is not None or last - first == 1:
        return [(first, last, events.recorded is None and bool(events.part_counts[first] == 1))]
    is_plain = events.part_counts[first:last] == 1
    edges = [0, *((is_plain[1:] != is_plain[:-1]).nonzero()[0] + 1).tolist(), last - first]
    return [(first + begin, first + end, bool(is_plain[begin])) for begin, end in pairwise(edges)]


def _record_event(event: OutgoingEvent, digest: str, worst: Status) -> list[object]:
    recorded: list[object] = [event.run_id, event.rows, event.max_changes, digest]
    if event.parts == 1 and not event.tries:
        return recorded
    recorded += [event.part, event.part < event.parts, event.tries]
    return recorded if worst.level is Level.SUCCESS else [*recorded, worst.level.name, worst.text]


def record_rows(rows: Ints) -> dict[str, object]:
    """Return rows as ranges of neighbours: the first row of each, and their number."""
    breaks = [0, *((rows[1:] - rows[:-1] != 1).nonzero()[0] + 1).tolist(), len(rows)]
    if 4 * len(breaks) > len(rows):
        return {"rows": rows.tolist()}
    return {"ranges": [number for low, high in pairwise(breaks) for number in (int(rows[low]), high - low)]}


def write_batch(documents: Iterable[tuple[str, Sequence[Recorded]]]) -> str:
    """Return the content of a batch; the rows of a cut event are recorded with its first part alone."""
    return BatchContent(_each_once(documents)).write()


def _each_once(documents: Iterable[tuple[str, Sequence[Recorded]]]) -> Named:
    """Return documents in which only the first part of a cut event has its rows."""
    listed = set[object]()
    return [(name, [_once(event, listed) for event in events]) for name, events in documents]


def _once(event: Recorded, listed: set[object]) -> Recorded:
    """Return what is recorded without its rows, if an earlier part of the event has them."""
    if isinstance(event, dict):
        return event
    run_id, _, *parameters = event
    if run_id in listed:
        return [run_id, (), *parameters]
    listed.add(run_id)
    return event


def ranges_of(ids: Iterable[int]) -> list[Range]:
    """Return the ranges that ids make, ascending."""
    ordered = sorted(set(ids))
    if ordered and ordered[-1] - ordered[0] == len(ordered) - 1:  # as most do
        return [(ordered[0], ordered[-1])]
    breaks = [place for place, (first, second) in enumerate(pairwise(ordered), 1) if second != first + 1]
    return [
        (ordered[low], ordered[high - 1]) for low, high in pairwise([0, *breaks, len(ordered)]) if ordered
    ]


def write_rows(
    rows_by_reason: Mapping[str, Sequence[int]],
    refused: Sequence[int] = (),
    warned: Sequence[int] = (),
    cut_short: Sequence[RecordedEvent] = (),
) -> tuple[str, Range]:
    """Return the content of a batch of rows and shortened events, and the range of all its rows."""
    ids_of_events = [event.rows for event in cut_short]
    rows = [row for ids in (*rows_by_reason.values(), refused, warned, *ids_of_events) for row in ids]
    content = BatchContent(
        refused=[_rows_of_reason(REFUSED, refused)] if refused else (),
        reasons=[(reason, [_rows_of_reason(reason, ids)]) for reason, ids in rows_by_reason.items()],
        warned=[_rows_of_reason(WARNED, warned)] if warned else (),
        cut_short=[(event.run_id, event.part) for event in cut_short],
    )
    return content.write(), (min(rows), max(rows))


def write_remnant(
    batch: RecordedBatch,
    departed: Mapping[str, Sequence[RecordedEvent]],
    recorded_anew: frozenset[bytes],
    *,
    is_answered: bool,
) -> tuple[str, Range] | None:
    """Return the content of a batch of those documents of another one that left and stay on record. What is
    recorded anew under the same digests is left out. Return None if nothing remains.

    If no answer came, the documents are marked.
    """
    documents = {
        name: events
        for name, events in departed.items()
        if not recorded_anew.issuperset(event.digest for event in events)
    }
    if not documents:
        return None
    rows_of = {event.run_id: event.rows for events in documents.values() for event in events}
    named: list[tuple[str, list[Recorded]]] = [
        (name, [_with_own_rows(entry, rows_of) for entry in entries])
        for name, entries in batch.read().documents
        if name in documents
    ]
    rows = list(chain.from_iterable(rows_of.values()))
    content = BatchContent(_each_once(named), is_unanswered=not is_answered)
    return content.write(), (min(rows), max(rows))


def _with_own_rows(entry: Any, rows_of: Mapping[str, Sequence[int]]) -> Recorded:
    """Return what is recorded of events with their rows, which may be with an earlier part."""
    if isinstance(entry, dict):
        return entry
    run_id, _, *facts = entry
    return [run_id, rows_of[run_id], *facts]


def _rows_of_reason(name: str, ids: Sequence[int]) -> dict[str, object]:
    ranges = [number for low, high in ranges_of(ids) for number in (low, high - low + 1)]
    return {"log": name, "max_changes": 0, "sizes": [], "ranges": ranges}


def write_backlog(rows: Ints) -> str:
    """Return the content of a batch of rows that a backlog puts on record."""
    recorded = {"log": BACKLOG, "max_changes": 0, "sizes": []} | record_rows(rows)
    return json.dumps([[BACKLOG, [recorded]]])


def write_backlog_sum(total: BacklogSum) -> str:
    """Return the content of a batch of what is on record of a backlog's documents."""
    return json.dumps([[BACKLOG_SUM, [total]]])


def still_to_go(
    documents: Iterable[tuple[str, Sequence[RecordedEvent]]], out: Container[str]
) -> list[RecordedEvent]:
    """Return the events of recorded documents that are not out yet, each once; a cut event begins with its
    next part.
    """
    unsent: dict[str, RecordedEvent] = {}
    for name, event in ((name, event) for name, events in documents for event in events):
        if name not in out:
            unsent.setdefault(event.run_id, event)
        elif event.has_more_parts:
            unsent[event.run_id] = event._replace(part=event.part + 1)
        else:
            unsent.pop(event.run_id, None)
    return list(unsent.values())


def _with_rows(event: RecordedEvent, rows_of: dict[str, tuple[int, ...]]) -> RecordedEvent:
    """Return the event with its rows, which may be recorded with an earlier part."""
    if not event.rows:
        return event._replace(rows=rows_of[event.run_id])
    if event.has_more_parts:
        rows_of[event.run_id] = event.rows
    return event


def _rows(recorded: Mapping[str, Any]) -> Iterable[int]:
    if "rows" in recorded:
        rows: Iterable[int] = recorded["rows"]
        return rows
    firsts, sizes = recorded["ranges"][::2], recorded["ranges"][1::2]
    return chain.from_iterable(range(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _read_events(recorded: Any) -> Iterator[RecordedEvent]:
    """Yield the events of a document, in which an entry is one event or many of one log."""
    for entry in recorded:
        if isinstance(entry, list):
            yield _read_event(*entry)
            continue
        record_ids, digests = [*_rows(entry)], read_digests(entry.get("digests", ""))
        rows = iter(record_ids)
        for at, size in enumerate(_sizes(entry, record_ids)):
            own_rows, digest = tuple(islice(rows, size)), digests[SIZE * at : SIZE * at + SIZE]
            name = event_id(entry["log"], own_rows)
            yield RecordedEvent(name, own_rows, entry["max_changes"], digest=digest)


_DEFAULTS: Final[tuple[Any, ...]] = (
    1,
    False,
    0,
    "SUCCESS",
    "",
)  # part, further parts, tries, answer


def _read_event(run_id: str, rows: list[int], max_changes: int, *facts: Any) -> RecordedEvent:
    """Return an event that is a list of its own; an early 0.1.0 has no digest."""
    digest = facts[0] if facts and isinstance(facts[0], str) else ""
    parts = facts[1:] if digest else facts
    part, has_more_parts, tries, level, text = (*parts, *_DEFAULTS[len(parts) :])
    worst = Status(Level[level], None, text)
    return RecordedEvent(
        run_id, tuple(rows), max_changes, part, has_more_parts, tries, worst, read_digests(digest)
    )
