"""A second reading of the specification: what must hold between a log, what was delivered, and the tables.

Nothing here is shared with the fold or with the cycle that sends. `breaches` judges one object at a time,
from its rows, its deliveries in the order in which they came, and its present row if that is known.
"""

from __future__ import annotations

import enum
import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, chain, combinations
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from tests.laws.judge.event_steps import ValueStep

# The record_ids of an event's first and last row, with a digest of all; a later part has a number.
_EVENT_ID = re.compile(
    r"(?P<run>(?P<log>.*?):(?P<first>\d{1,19})(?:-(?P<last>\d{1,19}):[0-9a-f]{8})?)(?:\.\d+)?"
)
_LEVEL_OF_LETTER = {"N": "", "S": "success", "W": "warning", "E": "error", "F": "fatal"}
_ANSWERS = ("success", "warning", "error", "fatal")
_WORST_FIRST = ("fatal", "error", "retry", "", "warning", "success")
_TAKEN, _REFUSED = _ANSWERS[:2], _ANSWERS[2:]
_BOTH, _MODIFY = ("add", "modify"), ("modify",)
# What rows of each type may become; an insert that was cut goes on as modify.
OPERATIONS = dict(enumerate((_BOTH, _MODIFY, _MODIFY, ("delete",), _BOTH, _MODIFY, _BOTH, _MODIFY), 1))
_MOST_UNCERTAIN = 12  # rows inside an event; more are not tried in all combinations


class Law(enum.StrEnum):
    """A promise; the value is the promise in words."""

    ACCOUNTED = "every row is accounted for"
    EXPLAINED = "nothing was delivered that no row explains"
    CONTENT = "an event contains what its rows contain; of what was read back only column and type are judged"
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
    old_value: str | None = None
    new_value: str | None = None
    is_silent: bool = False  # its column is of the key or withheld, or its two values are equal
    is_loopback: bool = False
    time: str | None = None
    reason: str | None = None  # why it failed or was skipped, as the log has it
    is_redriven: bool = False  # it may have been sent again, after later rows
    is_remembered: bool = False  # the log has it on record as on its way, or as waiting
    has_no_event: bool = False  # the log has it on record as a row without an event


class Arrival(NamedTuple):
    """An event as the receiver has it."""

    place: int  # in the order of arrival
    where: str  # for people
    event_id: str
    operation: str
    content: object  # equal for equal events
    level: str = "success"  # of its answer; empty if there was none
    is_late: bool = False  # it may have come after the log was read
    at: str = ""  # when it came, where the receiver keeps that
    text: bytes | None = None  # if contents are judged
    steps: Sequence[ValueStep] = ()
    class_name: str = ""


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
    is_all_key: bool = False  # its table has no column outside the key


class RecordedRows(NamedTuple):
    """An event as the log has it on record."""

    rows: Sequence[int]
    since: int = 0  # when it was put on record first, in microseconds since 1970
    until: int = 0  # when its rows were finished last
    has_more_parts: bool = False  # it was cut


class Run(NamedTuple):
    """The deliveries of one event, with its parts and repeats."""

    name: str
    log: str
    first: int
    last: int
    deliveries: list[Arrival]

    def part_of(self, delivery: Arrival) -> int:
        """Return the number of a part of the event."""
        return int(delivery.event_id[len(self.name) + 1 :] or 1)


class Answered(NamedTuple):
    """The answers to an event, as the letters of its rows follow from them."""

    run: Run
    worst: Arrival
    is_open: bool  # an answer is missing, or may be late
    taken: Set[str]  # the levels that fit, too, if a row of the event had no effect
    shorter: Set[str]  # and those that fit if the event had fewer parts
    read_columns: Set[str | None]  # by its rows; None is all of them

    def reads(self, row: AuditedRow) -> bool:
        """Return whether another row of the event reads back the value of an insert's row."""
        return row.event_type == 1 and not self.read_columns.isdisjoint((None, row.column))

    def why_wrong(self, row: AuditedRow, *, is_excused: bool, may_be_shorter: bool) -> str:
        """Return why the letter of a row does not fit the last answers; empty if it does.

        An event that waited, or failed, may find its object gone when it is to go again, or one of its rows
        skipped. Then it is a success, or has the warning that another part got. So is a value of an insert
        that a later row reads back, at once. The answer to a part may be lost in a crash. If the object
        changed then, the event may have fewer parts, and end with the answers to those before.
        """
        if row.letter == "N":
            fits = row.is_remembered or self.is_open
        else:
            levels = {self.worst.level}.union(
                self.taken if is_excused else (), self.shorter if may_be_shorter else ()
            )
            fits = _LEVEL_OF_LETTER[row.letter] in levels
        worst = self.worst
        answer = f"was answered {worst.level or 'nothing'} in {worst.where} ({worst.event_id})"
        return "" if fits else answer


WhyWrong = Callable[[Run, Sequence[AuditedRow]], str]


def breaches(
    name: str,
    rows: Sequence[AuditedRow],
    deliveries: Sequence[Arrival],
    *,
    present: Present | None = None,
    is_purged: bool = False,
    is_compared: bool = False,
    recorded: Mapping[str, RecordedRows] = MappingProxyType({}),
    redriven_rows: Container[int] = (),
    log: str = "",
    why_wrong: WhyWrong | None = None,
) -> Iterator[Breach]:
    """Yield where the laws do not hold for an object, whose rows are in the order of their ids.

    `recorded` are the events that the log has on record; the rows of others follow from their names.
    `redriven_rows` may be gone from the log.
    `why_wrong` returns what is wrong with the contents of an event. With `is_purged` finished rows and older
    documents may be gone. With `is_compared` an object may have been gone for a while without a row, before
    its last rows.
    """
    row_by_id = {row.record_id: row for row in rows}
    runs = _runs(deliveries)
    for delivery in deliveries:
        if not _EVENT_ID.fullmatch(delivery.event_id):
            yield Breach(Law.EXPLAINED, name, 0, f"{delivery.where}: {delivery.event_id!r} names no rows")
    answered_by_row: dict[int, Answered] = {}  # the last one, because a redrive may make other events of rows
    refused_rows, redriven = set[int](), set[str]()  # events of refused rows come when they are redriven
    for run in sorted(runs.values(), key=lambda run: run.deliveries[-1].place):
        record = recorded.get(run.name)
        run_rows = _rows_of(run, rows, runs) if record is None else _rows_on_record(record, row_by_id)
        if log and run.log != log:
            words = f"{run.deliveries[0].where}: event {run.name} is of another log than {log}"
            yield Breach(Law.EXPLAINED, name, run.first, words)
        if run_rows:
            answered_by_row |= dict.fromkeys((row.record_id for row in run_rows), _answered(run, run_rows))
        ids = [row.record_id for row in run_rows or ()] or [run.first, run.last]  # if its rows are gone
        if any(delivery.level in _REFUSED for delivery in run.deliveries):
            refused_rows.update(ids)
            redriven.add(run.name)
        elif any(number in refused_rows or number in redriven_rows for number in ids):
            redriven.add(run.name)
        if any(_is_skipped(row) for row in run_rows or ()):  # the others go anew
            refused_rows.update(ids)
        if run_rows is not None:
            yield from _contents(name, run, run_rows)
            words = why_wrong(run, run_rows) if why_wrong is not None else ""
            if words:
                yield Breach(Law.CONTENT, name, run.first, words)
            continue
        is_new = run.last not in row_by_id and all(delivery.is_late for delivery in run.deliveries)
        if not is_new and not is_purged:
            first = next((end for end in (run.first, run.last) if end not in row_by_id), run.first)
            words = f"event {run.name} names a row that the log does not have for {name}"
            yield Breach(Law.EXPLAINED, name, first, f"{run.deliveries[0].where}: {words}")
    in_place = (run for run in runs.values() if run.name not in redriven)
    yield from _order(name, in_place, row_by_id, recorded)
    for row in rows:
        if row.letter not in _LEVEL_OF_LETTER:
            words = f"it is {row.letter!r}, which no publisher writes, so it is not judged"
            yield Breach(Law.ANSWERED, name, row.record_id, words)
    inert_readers = [row for row in rows if row.has_no_event and row.event_type > 4]
    for life, is_gone in _lives(rows, present):
        # a row that was logged late, or early, or redriven, is folded with the rows of another life
        readers = [*inert_readers, *(row for row in life if row.event_type > 4)]
        skipped, skipped_or_read = (
            [
                r.record_id
                for r in life
                if _is_skipped(r) or (r.event_type > 4 and (reads_nothing or r.has_no_event))
            ]
            for reads_nothing in (False, True)
        )
        for row in (row for row in life if row.letter in _LEVEL_OF_LETTER and row.reason is None):
            words, answered = "", answered_by_row.get(row.record_id)
            if answered is not None:
                run, is_last = answered.run, answered.run.last == rows[-1].record_id
                was_gone = is_gone or (is_compared and not is_last)
                without_effect = skipped_or_read if was_gone else skipped
                is_excused = answered.reads(row) or bisect_left(without_effect, run.first) < bisect_right(
                    without_effect, run.last
                )
                may_be_shorter = bool(answered.read_columns) and not is_last
                words = answered.why_wrong(row, is_excused=is_excused, may_be_shorter=may_be_shorter)
            elif row.letter != "N" and not is_purged:
                words = _why_unaccounted(row, readers, answered_by_row, is_gone)
            if words:
                law = Law.ACCOUNTED if answered is None else Law.ANSWERED
                yield Breach(law, name, row.record_id, f"it is {row.letter}, and {words}")
    is_open = any(row.letter not in ("S", "W") or row.reason or row.is_remembered for row in rows)
    if present is not None and not is_open and not any(row.is_loopback for row in rows):
        has_left = bool(deliveries) or is_purged or not any(_must_leave(row, present) for row in rows)
        words = _difference(deliveries, present) if has_left else "no document has it, and the table does"
        if words:
            last = max((run.last for run in runs.values()), default=rows[-1].record_id if rows else 0)
            yield Breach(Law.SAME_STATE, name, last, words)


def _runs(deliveries: Iterable[Arrival]) -> dict[str, Run]:
    """Return the events that were delivered, without those whose event-ids are none."""
    runs: dict[str, Run] = {}
    for delivery in deliveries:
        if parsed := _EVENT_ID.fullmatch(delivery.event_id):
            run, first, last = parsed["run"], int(parsed["first"]), int(parsed["last"] or parsed["first"])
            runs.setdefault(run, Run(run, parsed["log"], first, last, [])).deliveries.append(delivery)
    return runs


def event_name(log: str, record_ids: Sequence[int]) -> str:
    """Return the event-id of an event of these rows, as the specification has it."""
    if len(record_ids) == 1:
        return f"{log}:{record_ids[0]}"
    digest = hashlib.sha256(",".join(map(str, record_ids)).encode()).hexdigest()[:8]
    return f"{log}:{record_ids[0]}-{record_ids[-1]}:{digest}"


def _rows_on_record(record: RecordedRows, row_by_id: Mapping[int, AuditedRow]) -> list[AuditedRow] | None:
    """Return the rows that the log has on record for an event; None if it has not all of them."""
    rows = [row_by_id[number] for number in record.rows if number in row_by_id]
    return rows if len(rows) == len(record.rows) else None


def _rows_of(run: Run, rows: Sequence[AuditedRow], runs: Container[str]) -> list[AuditedRow] | None:
    """Return the rows that an event's id names; None if the log has no such rows."""
    by_id = attrgetter("record_id")
    between = list(rows[bisect_left(rows, run.first, key=by_id) : bisect_right(rows, run.last, key=by_id)])
    if len(between) < 2:
        return between if between and run.first == run.last else None
    first, *inner, last = between
    without_single_events = [row for row in inner if f"{run.log}:{row.record_id}" not in runs]
    without_reason = [row for row in inner if row.reason is None]  # none that was skipped before
    deletes = [at for at, row in enumerate(inner) if row.event_type == 4]
    last_life = inner[max(deletes, default=-1) + 1 :]  # the first row may have been logged late, by hand
    of_others = [row for row in inner if not row.is_loopback]
    choices: Iterator[Sequence[AuditedRow]] = iter(
        (inner, of_others, last_life, without_single_events, without_reason)
    )
    if len(inner) <= _MOST_UNCERTAIN:
        choices = chain(choices, *(combinations(inner, count) for count in range(len(inner))))
    for choice in choices:
        chosen = [first, *choice, last]
        if event_name(run.log, [row.record_id for row in chosen]) == run.name:
            return chosen
    return None


def _contents(name: str, run: Run, rows: Sequence[AuditedRow]) -> Iterator[Breach]:
    """Yield an operation that no row of the event has, and a second content of one event-id."""
    types = sorted({row.event_type for row in rows})
    operations = {operation for kind in types for operation in OPERATIONS.get(kind, ())}
    refused = [delivery.place for delivery in run.deliveries if delivery.level in _REFUSED]
    retyped_after = max(refused, default=-1) if 8 in types else -1  # rows of an insert go again as type 8
    is_read_back = types[-1] > 4  # a repeat brings the row as it is by then
    first_by_id: dict[str, Arrival] = {}
    for delivery in run.deliveries:
        was_insert = delivery.operation == "add" and delivery.place <= retyped_after
        if delivery.operation not in operations and not was_insert:
            listed = ", ".join(map(str, types))
            words = f"{delivery.where}: {delivery.operation} {delivery.event_id}, of rows of type {listed}"
            yield Breach(Law.EXPLAINED, name, run.first, words)
        first = first_by_id.setdefault(delivery.event_id, delivery)
        if first.operation != delivery.operation or (first.content != delivery.content and not is_read_back):
            words = f"{delivery.event_id} has another content in {delivery.where} than in {first.where}"
            yield Breach(Law.ONE_CONTENT, name, run.first, words)
        if delivery.level in _REFUSED:  # if it is redriven, all of it is read back
            first_by_id.clear()


def _order(
    name: str,
    runs: Iterable[Run],
    row_by_id: Mapping[int, AuditedRow],
    recorded: Mapping[str, RecordedRows],
) -> Iterator[Breach]:
    """Yield an event all of whose rows are before those of an event that came before it.

    Rows of a child table, or that somebody logged by hand, may commit late. What they read back is present,
    so it does not matter which of two events the log had on record first, if one of them is read back.
    """
    before: Run | None = None  # the one with the highest rows
    for run in runs:
        row = row_by_id.get(run.first)
        if row is not None and "." in (row.column or ""):
            continue
        is_late = before is not None and run.last < before.first
        if before is not None and run.name in recorded and before.name in recorded:
            record, former = recorded[run.name], recorded[before.name]
            is_read = any(
                all(row_by_id[number].event_type > 4 for number in event.rows if number in row_by_id)
                for event in (record, former)
            )
            is_late = (
                is_late and not (is_read and record.since >= former.until)
            ) or former.since >= record.until > 0
        if before is not None and is_late:
            where, former_where = run.deliveries[0].where, before.deliveries[0].where
            words = f"{where}: {run.name} came after {before.name}, which is in {former_where}"
            yield Breach(Law.IN_ORDER, name, run.first, words)
        elif before is None or run.first > before.first:
            before = run


def _lives(rows: Iterable[AuditedRow], present: Present | None) -> Iterator[tuple[list[AuditedRow], bool]]:
    """Yield the rows of each life of an object, up to a delete, and whether the object is gone after it.

    A delete that was skipped, or failed, may have ended the life when other rows were folded, or not.
    """
    life: list[AuditedRow] = []
    may_be_gone = False
    for row in rows:
        life.append(row)
        if row.event_type != 4 or row.is_loopback:
            continue
        if _is_skipped(row) or row.is_redriven or row.letter in ("E", "F"):
            may_be_gone = True
            continue
        yield life, True
        life, may_be_gone = [], False
    yield life, may_be_gone or (present is not None and present.state is None)


def _is_skipped(row: AuditedRow) -> bool:
    return row.letter == "W" and row.reason is not None


def _reading(row: AuditedRow, readers: Iterable[AuditedRow]) -> list[AuditedRow]:
    """Return the rows that have the value of a row read back."""
    return [reader for reader in readers if reader.event_type in (5, 6) or reader.column == row.column]


def _answered(run: Run, rows: Sequence[AuditedRow]) -> Answered:
    """Return the last answers to an event of these rows."""
    begins = [
        at for at, delivery in enumerate(run.deliveries) if delivery.event_id == run.name and delivery.level
    ]
    deliveries = run.deliveries[max(begins, default=0) :]  # all parts go again, and may be fewer by then
    is_open = any(last.level not in _ANSWERS for last in {d.event_id: d for d in deliveries}.values())
    in_order = sorted(deliveries, key=lambda d: d.level in _ANSWERS)  # no answer takes none back
    parts = sorted({d.event_id: d for d in in_order}.values(), key=run.part_of)
    worst_until = [*accumulate(parts, lambda worst, part: _worst((worst, part)))]
    readers = [row for row in rows if row.event_type > 4]
    return Answered(
        run,
        worst_until[-1],
        is_open or any(delivery.is_late for delivery in run.deliveries),
        {"success", *(d.level for d in deliveries if d.level in _TAKEN)},
        {worst.level for worst in worst_until[:-1]},
        {None if reader.event_type in (5, 6) else reader.column for reader in readers},
    )


def _worst(deliveries: Iterable[Arrival]) -> Arrival:
    return min(deliveries, key=lambda delivery: _WORST_FIRST.index(delivery.level))


def _why_unaccounted(
    row: AuditedRow, readers: Iterable[AuditedRow], answered_rows: Container[int], is_gone: bool
) -> str:
    """Return why a finished row should have a document, or a reason to have none; empty if it need not."""
    if row.letter != "S":
        return "the log has no reason for it"
    if row.is_silent or row.is_loopback or (is_gone and row.event_type > 4):
        return ""
    reading = _reading(row, readers)
    is_gone = is_gone or any(reader.has_no_event for reader in reading)
    is_without_effect = is_gone and row.event_type != 4 and (row.event_type > 4 or reading)
    is_read_back = row.event_type == 1 and any(reader.record_id in answered_rows for reader in reading)
    is_given_up = any(_is_skipped(reader) for reader in reading)
    needs_none = is_without_effect or is_read_back or is_given_up
    return "" if needs_none else "no document contains it"


def replay(deliveries: Iterable[Arrival]) -> tuple[State | None, bool] | None:
    """Return what documents make of an object: its attributes, and whether they are all that it has.

    It is None if no document names the object, and the state is None if it is deleted. An add of an object
    that is there adds its values, because an insert that was cut comes in two.
    """
    taken = [delivery for delivery in deliveries if delivery.level in _TAKEN]
    state: dict[str, frozenset[str]] | None = {}
    for delivery in taken:
        state = {} if state is None else state
        for step in delivery.steps:
            before = frozenset[str]() if step.kind == "clear" else state.get(step.attribute, frozenset())
            state[step.attribute] = {"add": before | {step.value}, "remove": before - {step.value}}.get(
                step.kind, before
            )
        state = None if delivery.operation == "delete" else state
    is_whole = any(delivery.operation != "modify" for delivery in taken)
    return (state, is_whole) if taken else None


def _must_leave(row: AuditedRow, present: Present) -> bool:
    """Return whether a finished row of an object that the table has comes with a document of the object."""
    if present.state is None or row.is_silent:
        return False
    if row.event_type in (5, 6):
        return bool(present.attributes) or (present.is_all_key and row.event_type == 5)
    return row.event_type < 4 or row.column in present.attributes


def _difference(deliveries: Sequence[Arrival], present: Present) -> str:
    """Return how what documents make of an object differs from its present row; empty if it does not."""
    replayed = replay(deliveries)
    if replayed is None or any(delivery.is_late for delivery in deliveries):
        return ""
    (state, is_whole), nothing = replayed, frozenset[str]()
    if present.state is None:
        return "" if state is None else "the documents leave it, and the table does not have it"
    if state is None:
        return "the documents delete it, and the table has it"
    own_names = {name for name in present.state if is_whole and "." not in name}
    attributes = (state.keys() | own_names) & (present.attributes | present.state.keys())
    for name in sorted(attributes):  # those of a child table are known if a document has them
        if state.get(name, nothing) != present.state.get(name, nothing):
            return f"attribute {name} is not what the table has"
    return ""
