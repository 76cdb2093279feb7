"""The laws of delivery: what must hold between a log, what was delivered of it, and the tables.

They are a second reading of the specification: nothing here is shared with the fold or with the cycle that
sends. `breaches` judges one object at a time, from its rows, its deliveries in the order in which they
came, and its present row if that is known.
"""

from __future__ import annotations

import enum
import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

_EVENT_ID = re.compile(  # of several rows, with a digest of them, or of one; a later part has a number
    r"(?P<run>.*:(?P<first>\d{1,19})-(?P<last>\d{1,19}):[0-9a-f]{8}|.*:(?P<only>\d{1,19}))(?:\.\d{1,9})?"
)
_LEVEL_OF_LETTER = {"S": "success", "W": "warning", "E": "error", "F": "fatal"}
_ANSWERED = frozenset(_LEVEL_OF_LETTER.values())
_WORST_FIRST = ("fatal", "error", "retry", "", "warning", "success")
_TAKEN = ("success", "warning")
_BOTH, _MODIFY = ("add", "modify"), ("modify",)
# What rows of each type may become; an insert that was cut goes on as modify.
OPERATIONS = dict(enumerate((_BOTH, _MODIFY, _MODIFY, ("delete",), _BOTH, _MODIFY, _BOTH, _MODIFY), 1))
_MOST_UNCERTAIN = 8  # rows inside an event; more are not tried in all combinations


class Law(enum.StrEnum):
    """A promise; the value is the promise in words."""

    ACCOUNTED = "every row is accounted for"
    EXPLAINED = "nothing was delivered that no row explains"
    ONE_CONTENT = "an event-id has one content"
    IN_ORDER = "the events of an object come in the order of their rows"
    ANSWERED = "a row has the letter of the answer to its document"
    SAME_STATE = "the documents make what the table has"


class AuditedRow(NamedTuple):
    """A row of the log, as far as the laws need it."""

    record_id: int
    letter: str
    event_type: int
    column: str | None = None
    is_silent: bool = False  # its column is of the key or withheld, or its two values are equal
    is_loopback: bool = False
    reason: str | None = None  # why it failed or was skipped, as the log has it
    is_remembered: bool = False  # the log has it on record as on its way, or as waiting


class FieldChange(NamedTuple):
    """A step of an event on one attribute."""

    attribute: str
    removes_all: bool
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Arrival(NamedTuple):
    """An event as the receiver has it."""

    place: int  # in the order of arrival
    where: str  # for people
    event_id: str
    operation: str
    content: object  # equal for equal events
    level: str = "success"  # of its answer; empty if there was none
    is_late: bool = False  # it may have come after the log was read
    changes: Sequence[FieldChange] = ()


class Breach(NamedTuple):
    """A place where a law does not hold."""

    law: Law
    object: str
    record_id: int  # the row, or the first row of the event
    words: str


State = Mapping[str, frozenset[str]]


class Present(NamedTuple):
    """The present row of an object; None if the table lacks it."""

    state: State | None
    attributes: frozenset[str] = frozenset()  # that are read, and may have no value


class _Run(NamedTuple):
    """The deliveries of one event, with its parts and repeats."""

    name: str
    first: int
    last: int
    deliveries: list[Arrival]


def breaches(
    name: str,
    rows: Sequence[AuditedRow],
    deliveries: Sequence[Arrival],
    *,
    present: Present | None = None,
    is_purged: bool = False,
) -> Iterator[Breach]:
    """Yield where the laws do not hold for an object, whose rows are in the order of their ids.

    With `is_purged` finished rows and older documents may be gone.
    """
    row_by_id = {row.record_id: row for row in rows}
    runs, nameless = _runs(deliveries)
    for delivery in nameless:
        yield Breach(Law.EXPLAINED, name, 0, f"{delivery.where}: {delivery.event_id!r} names no rows")
    run_by_row: dict[int, _Run] = {}  # the last one, because a redrive may make other events of rows
    for run in sorted(runs.values(), key=lambda run: run.deliveries[-1].place):
        run_rows = _rows_of(run, rows, runs)
        run_by_row.update((row.record_id, run) for row in run_rows or ())
        if run_rows is not None:
            yield from _contents(name, run, run_rows)
            continue
        is_new = run.last not in row_by_id and all(delivery.is_late for delivery in run.deliveries)
        if not is_new and not is_purged:
            yield _unexplained(name, run, row_by_id)
    yield from _order(name, runs.values(), row_by_id)
    lives = _lives(rows, present)
    for life in lives:
        yield from _wrong_letters(name, life, run_by_row)
        if not is_purged:
            yield from _unaccounted(name, life, run_by_row)
    if present is not None and not any(_is_unsettled(row) for row in rows):
        yield from _differences(name, deliveries, present)


def events_of_rows(rows: Sequence[AuditedRow], deliveries: Sequence[Arrival]) -> dict[int, list[str]]:
    """Return the events that contain each row, by its id."""
    runs, _ = _runs(deliveries)
    names: dict[int, list[str]] = {}
    for run in runs.values():
        for row in _rows_of(run, rows, runs) or ():
            names.setdefault(row.record_id, []).append(run.name)
    return names


def _runs(deliveries: Iterable[Arrival]) -> tuple[dict[str, _Run], list[Arrival]]:
    """Return the events that were delivered, and the deliveries whose event-ids are none."""
    runs: dict[str, _Run] = {}
    nameless: list[Arrival] = []
    for delivery in deliveries:
        parsed = _EVENT_ID.fullmatch(delivery.event_id)
        if parsed is None:
            nameless.append(delivery)
            continue
        first, last = int(parsed["first"] or parsed["only"]), int(parsed["last"] or parsed["only"])
        runs.setdefault(parsed["run"], _Run(parsed["run"], first, last, [])).deliveries.append(delivery)
    return runs, nameless


def event_name(log: str, record_ids: Sequence[int]) -> str:
    """Return the event-id of an event of these rows, as the specification has it."""
    if len(record_ids) == 1:
        return f"{log}:{record_ids[0]}"
    digest = hashlib.sha256(",".join(map(str, record_ids)).encode()).hexdigest()[:8]
    return f"{log}:{record_ids[0]}-{record_ids[-1]}:{digest}"


def _rows_of(run: _Run, rows: Sequence[AuditedRow], runs: Container[str]) -> list[AuditedRow] | None:
    """Return the rows that an event's id names; None if the log has no such rows."""
    ends = bisect_left(rows, run.first, key=_id_of), bisect_right(rows, run.last, key=_id_of)
    between = list(rows[slice(*ends)])
    if run.first == run.last:
        return between or None
    if len(between) < 2:
        return None
    log = run.name.rpartition(f":{run.first}-")[0]
    first, *inner, last = between
    without_single_events = [row for row in inner if f"{log}:{row.record_id}" not in runs]
    choices: Iterator[Sequence[AuditedRow]] = iter((inner, without_single_events))
    if len(inner) <= _MOST_UNCERTAIN:
        choices = chain(choices, *(combinations(inner, count) for count in range(len(inner))))
    for choice in choices:
        chosen = [first, *choice, last]
        if event_name(log, [row.record_id for row in chosen]) == run.name:
            return chosen
    return None


def _id_of(row: AuditedRow) -> int:
    return row.record_id


def _unexplained(name: str, run: _Run, row_by_id: Mapping[int, AuditedRow]) -> Breach:
    """Return the breach of an event whose rows the log does not have."""
    where = run.deliveries[0].where
    missing = [row for row in (run.first, run.last) if row not in row_by_id]
    if missing:
        words = f"{where}: event {run.name} names row {missing[0]}, which the log does not have for {name}"
        return Breach(Law.EXPLAINED, name, missing[0], words)
    words = f"{where}: a row of event {run.name} is gone, or belongs to another object"
    return Breach(Law.EXPLAINED, name, run.first, words)


def _contents(name: str, run: _Run, rows: Sequence[AuditedRow]) -> Iterator[Breach]:
    """Yield an operation that no row of the event has, and a second content of one event-id."""
    operations = {operation for row in rows for operation in OPERATIONS.get(row.event_type, ())}
    # A repeat brings what is read back as it is by then, and nothing of a row that was skipped meanwhile.
    may_change = any(row.event_type > 4 or (row.letter == "W" and row.reason is not None) for row in rows)
    first_by_id: dict[str, Arrival] = {}
    for delivery in run.deliveries:
        if delivery.operation not in operations:
            types = ", ".join(sorted({str(row.event_type) for row in rows}))
            words = f"{delivery.where}: {delivery.operation} {delivery.event_id}, of rows of type {types}"
            yield Breach(Law.EXPLAINED, name, run.first, words)
        first = first_by_id.setdefault(delivery.event_id, delivery)
        if delivery.level in ("error", "fatal"):  # if it is redriven, it is read back
            del first_by_id[delivery.event_id]
        if first.operation != delivery.operation or (first.content != delivery.content and not may_change):
            words = f"{delivery.event_id} has another content in {delivery.where} than in {first.where}"
            yield Breach(Law.ONE_CONTENT, name, run.first, words)


def _order(name: str, runs: Iterable[_Run], row_by_id: Mapping[int, AuditedRow]) -> Iterator[Breach]:
    """Yield an event all of whose rows are before those of an event that came before it.

    An event that was refused and redriven comes later, and a value of a child table may commit late.
    """
    highest: _Run | None = None
    for run in runs:
        column = row_by_id[run.first].column if run.first in row_by_id else None
        refused = any(delivery.level in ("error", "fatal") for delivery in run.deliveries)
        if refused or (column is not None and "." in column):
            continue
        if highest is not None and run.last < highest.first:
            words = (
                f"{run.deliveries[0].where}: {run.name} came after {highest.name},"
                f" which is in {highest.deliveries[0].where}"
            )
            yield Breach(Law.IN_ORDER, name, run.first, words)
        elif highest is None or run.first > highest.first:
            highest = run


class _Life(NamedTuple):
    """The rows of an object up to a delete."""

    rows: Sequence[AuditedRow]
    is_gone: bool  # the object was deleted after it, or is not in the table

    @property
    def reading(self) -> Sequence[AuditedRow]:
        """Return the rows that are read back."""
        return [row for row in self.rows if row.event_type > 4]


def _lives(rows: Iterable[AuditedRow], present: Present | None) -> list[_Life]:
    """Return the lives of an object, in their order."""
    lives: list[list[AuditedRow]] = [[]]
    for row in rows:
        lives[-1].append(row)
        if row.event_type == 4 and not row.is_loopback:
            lives.append([])
    is_absent = present is not None and present.state is None
    return [_Life(life, is_absent or life is not lives[-1]) for life in lives]


def _wrong_letters(name: str, life: _Life, run_by_row: Mapping[int, _Run]) -> Iterator[Breach]:
    """Yield rows whose letters do not fit the last answers to their documents."""
    for row in life.rows:
        run = run_by_row.get(row.record_id)
        if run is None or row.reason is not None or row.letter not in ("N", *_LEVEL_OF_LETTER):
            continue
        last_by_id = {delivery.event_id: delivery for delivery in run.deliveries}
        is_open = any(delivery.level not in _ANSWERED for delivery in last_by_id.values())
        last_by_id |= {  # a repeat without an answer takes nothing back
            delivery.event_id: delivery for delivery in run.deliveries if delivery.level in _ANSWERED
        }
        worst = min(last_by_id.values(), key=lambda delivery: _WORST_FIRST.index(delivery.level))
        if row.letter == "N":
            fits = row.is_remembered or is_open or any(late.is_late for late in run.deliveries)
        elif worst.level not in _TAKEN and row.letter == "S":  # its object was gone when it was to go again
            fits = life.is_gone and any(run.first <= of.record_id <= run.last for of in life.reading)
        else:
            fits = _LEVEL_OF_LETTER[row.letter] == worst.level
        if not fits:
            answer = f"was answered {worst.level or 'nothing'} in {worst.where} ({worst.event_id})"
            yield Breach(Law.ANSWERED, name, row.record_id, f"it is {row.letter}, and {answer}")


def _unaccounted(name: str, life: _Life, run_by_row: Mapping[int, _Run]) -> Iterator[Breach]:
    """Yield finished rows that have neither a document nor a reason to have none."""
    reading = life.reading
    for row in life.rows:
        if row.record_id in run_by_row or row.letter not in _LEVEL_OF_LETTER or row.reason is not None:
            continue
        if row.letter != "S":
            words = f"it is {row.letter}, and the log has no reason for it"
            yield Breach(Law.ACCOUNTED, name, row.record_id, words)
            continue
        readers = [reader for reader in reading if _reads(reader, row)]
        is_without_effect = life.is_gone and row.event_type != 4 and (row.event_type > 4 or readers)
        is_read_back = row.event_type == 1 and any(reader.record_id in run_by_row for reader in readers)
        if not (row.is_silent or row.is_loopback or is_without_effect or is_read_back):
            words = "it is S, and no document contains it"
            yield Breach(Law.ACCOUNTED, name, row.record_id, words)


def _reads(reader: AuditedRow, row: AuditedRow) -> bool:
    """Return whether a query-back row reads the value that another row of its life has."""
    return reader.event_type in (5, 6) or reader.column == row.column


def _is_unsettled(row: AuditedRow) -> bool:
    return row.letter in ("N", "E", "F") or row.is_remembered or row.reason is not None


def replay(deliveries: Iterable[Arrival]) -> tuple[State | None, bool] | None:
    """Return what documents make of an object: its attributes, and whether they are all that it has.

    It is None if no document names the object, and the state is None if it is deleted.
    """
    state: dict[str, frozenset[str]] | None = {}
    is_whole, is_named = False, False
    for delivery in deliveries:
        if delivery.level not in _TAKEN:
            continue
        is_named = True
        if delivery.operation == "delete":
            state, is_whole = None, True
            continue
        if delivery.operation == "add":
            state, is_whole = {}, True
        state = {} if state is None else state
        for change in delivery.changes:
            before = frozenset[str]() if change.removes_all else state.get(change.attribute, frozenset())
            state[change.attribute] = before - set(change.removed) | set(change.added)
    return (state, is_whole) if is_named else None


def _differences(name: str, deliveries: Sequence[Arrival], present: Present) -> Iterator[Breach]:
    """Yield a difference between what documents make of an object and its present row."""
    replayed = replay(deliveries)
    if replayed is None or any(delivery.is_late for delivery in deliveries):
        return
    state, is_whole = replayed
    parsed = _EVENT_ID.fullmatch(deliveries[-1].event_id)
    record_id = int(parsed["last"] or parsed["only"]) if parsed else 0
    if (state is None) != (present.state is None):
        words = "the documents delete it, and the table has it"
        if present.state is None:
            words = "the documents leave it, and the table does not have it"
        yield Breach(Law.SAME_STATE, name, record_id, words)
    elif state is not None and present.state is not None:
        attributes = set(state)  # those of a child table are known if a document has them
        if is_whole:
            attributes |= {name for name in present.state if "." not in name}
        for attribute in sorted(attributes & (present.attributes | present.state.keys())):
            if state.get(attribute, frozenset()) != present.state.get(attribute, frozenset()):
                words = f"attribute {attribute} is not what the table has"
                yield Breach(Law.SAME_STATE, name, record_id, words)
                return
