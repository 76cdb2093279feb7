"""A pick-up as a whole: what its rows ask for, its events in the order of leaving, each row's outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from eventlog.core.change import Change, Op
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.identity import ObjectName, child_column
from eventlog.core.tables import Table, Tables
from eventlog.fold.rules import Fate, Outcome, Rules, why_excluded
from eventlog.fold.runs import CurrentOrError, Fields, current_fields, cut, remaining, run_fields, runs
from eventlog.fold.understand import Interpreter, NamedObject, QueryKey, Step, UnknownName, steps_of

_CHUNK_ROWS = 5000
_CHUNK_BYTES = 16 << 20  # of what they hold
_INSERT, _UPDATE, _SENT = Op.INSERT, Op.UPDATE, Fate.SENT  # a lookup in its enum costs a call
_new = tuple.__new__  # by constructors and keywords the fold of single rows takes a tenth more
Lookup = Callable[[Table, QueryKey], CurrentOrError]
T = TypeVar("T")


class Event(NamedTuple):
    """One event of one object, as a document carries it."""

    change: Change
    event_id: str
    place: tuple[str, int, int]  # event_time if that orders, record_id, part: the order of leaving
    object: ObjectName
    rows: tuple[int, ...]  # every row that this event's answer decides, ascending
    part: int = 1  # of a change that was cut
    parts: int = 1


class Need(NamedTuple):
    """A current row that decides the content of a query-back."""

    table: Table
    key: QueryKey


class _Life(NamedTuple):
    object: NamedObject
    object_by_row: Mapping[int, NamedObject]  # by record_id, where rows name it in several ways
    steps: Sequence[Step]
    is_ended: bool  # by a delete
    is_plain: bool  # every step has content, and has it without the current row
    has_one_op: bool
    max_changes: int  # values removed or added in one event


def plan(
    entries: Iterable[Entry],
    tables: Tables,
    rules: Rules,
    *,
    now: str | None = None,
    held_objects: Container[ObjectName] = (),
    answerable: Container[Table] = (),
) -> Plan:
    """Plan the events of a pick-up, as far as that is possible without current rows.

    `now` is the database's clock as Entry writes times, `answerable` the tables whose current rows can be
    read. Each record_id is unique among the entries; `admit` ensures it.
    """
    reader = Interpreter(tables, rules, answerable)
    planned = Plan(rules, reader.unknown)
    entries_by_name: dict[tuple[str, str], list[Entry]] = {}
    screened = rules.driver_user is not None or rules.handle_future_events
    for entry in sorted(entries, key=_order(rules)):
        name = entry.spelling
        if screened or entry.status != rules.status:
            outcome = why_excluded(entry, rules, now)
            if outcome is not None:
                planned.outcomes[entry.record_id] = outcome
                continue
        if name in entries_by_name:
            entries_by_name[name].append(entry)
        else:
            entries_by_name[name] = [entry]
    for rows in planned.identify(reader, entries_by_name.items(), held_objects).values():
        planned.add_object(rows, rules.max_changes)
    return planned


def plan_again(
    groups: Iterable[tuple[Iterable[Entry], int]],
    tables: Tables,
    rules: Rules,
    answerable: Container[Table] = (),
) -> Plan:
    """Plan each group of rows by itself: the rows of one event that was sent before, with its max_changes.

    Nothing joins or extends them, whatever else is pending. Rows that are no longer new are left out.
    """
    reader = Interpreter(tables, rules, answerable)
    planned = Plan(rules, reader.unknown)
    for group, max_changes in groups:
        entries_by_name: dict[tuple[str, str], list[Entry]] = {}
        for entry in sorted(group, key=_order(rules)):
            outcome = why_excluded(entry, rules, None)
            if outcome is None:
                entries_by_name.setdefault(entry.spelling, []).append(entry)
            else:
                planned.outcomes[entry.record_id] = outcome
        event_rows: _ObjectRows | None = None
        for rows in planned.identify(reader, entries_by_name.items(), ()).values():
            event_rows = rows if event_rows is None else event_rows.join(rows)
        if event_rows is not None:
            planned.add_object(event_rows, max_changes)
    return planned


def whole_objects(
    rows: Iterable[T], object_of: Callable[[T], object], size: Callable[[T], int]
) -> Iterator[list[T]]:
    """Yield the rows in lists that hold all rows of their objects: some thousands, or fewer that are long."""
    chunk: list[T] = []
    chunk_bytes = 0
    for _, group in groupby(rows, object_of):
        for row in group:
            chunk.append(row)
            chunk_bytes += size(row)
        if len(chunk) >= _CHUNK_ROWS or chunk_bytes >= _CHUNK_BYTES:
            yield chunk
            chunk, chunk_bytes = [], 0
    if chunk:
        yield chunk


def event_id(log: str, rows: Sequence[int]) -> str:
    """Return the name of the event of these rows: the same wherever and whenever it is made."""
    if len(rows) == 1:
        return f"{log}:{rows[0]}"
    digest = hashlib.sha256(",".join(map(str, rows)).encode()).hexdigest()[:8]
    return f"{log}:{rows[0]}-{rows[-1]}:{digest}"


class _ObjectRows:
    """The rows of one object, in order where all name it in one way."""

    __slots__ = ("object", "object_by_row", "rows")

    def __init__(self, of: NamedObject, rows: list[Entry]) -> None:
        self.object = of
        self.rows = rows
        self.object_by_row: dict[int, NamedObject] = {}  # by row, where they name it in several ways

    def join(self, addition: _ObjectRows) -> _ObjectRows:
        """Return these rows together with rows that name the object in another way."""
        for part in (self, addition) if not self.object_by_row else (addition,):
            self.object_by_row |= {entry.record_id: part.object for entry in part.rows} | part.object_by_row
        self.rows = self.rows + addition.rows
        return self


class Plan:
    """The lives of a pick-up's objects, and what has become of its rows so far."""

    def __init__(self, rules: Rules, unknown: Set[UnknownName] = frozenset()) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self.unknown = unknown  # columns that rows named and their tables lack
        self._rules = rules
        self._steps = steps_of(rules)
        self._lives: list[_Life] = []

    def needs(self) -> list[Need]:
        """Return the current rows to ask for, each once."""
        return list(
            dict.fromkeys(
                Need(life.object.table, life.object.query_key())
                for life in self._lives
                if not life.is_ended and any(step.type > 4 for step in life.steps)
            )
        )

    def events(self, lookup: Lookup | None = None) -> list[Event]:
        """Return the events in the order in which they leave; afterwards every row has its outcome."""
        events: list[Event] = []
        for life in self._lives:
            if life.is_plain and life.has_one_op:
                self._append_events(events, life, life.steps)
            else:
                for run in runs(life.steps if life.is_plain else self._steps_with_content(life, lookup)):
                    self._append_events(events, life, run)
        events.sort(key=attrgetter("place"))
        return events

    def identify(
        self,
        reader: Interpreter,
        entries_by_name: Iterable[tuple[tuple[str, str], list[Entry]]],
        held_objects: Container[ObjectName],
    ) -> dict[ObjectName, _ObjectRows]:
        """Return the rows of each object; those of one that is held, or that cannot be understood, leave."""
        objects: dict[ObjectName, _ObjectRows] = {}
        for name, rows in entries_by_name:
            try:
                of = reader.object(*name)
            except EventlogError as fault:
                self.outcomes.update((row.record_id, Outcome(Fate.REFUSED, str(fault))) for row in rows)
                continue
            if of.name in held_objects:
                self.outcomes.update((row.record_id, _HELD_OUTCOME) for row in rows)
                continue
            if of.child:
                rows = [
                    row._replace(column_name=child_column(of.reader.table, of.child, row.column_name))
                    for row in rows
                ]
            object_rows = objects.get(of.name)
            named_rows = _ObjectRows(of, rows)
            objects[of.name] = object_rows.join(named_rows) if object_rows else named_rows
        return objects

    def add_object(self, object_rows: _ObjectRows, max_changes: int) -> None:
        """Add the lives of one object; a row that cannot be understood leaves, and interrupts nothing."""
        of, object_by_row = object_rows.object, object_rows.object_by_row
        by_time = self._rules.handle_future_events
        life: list[Step] = []
        plain = True
        for row in sorted(object_rows.rows, key=_order(self._rules)) if object_by_row else object_rows.rows:
            place = (row.event_time if by_time else "", row.record_id)
            try:
                step = self._steps[row.event_type](of, row, place)
            except EventlogError as fault:
                self.outcomes[row.record_id] = Outcome(Fate.REFUSED, str(fault))
                continue
            if step.type == 4:
                ended = (*remaining(life), step)
                self._lives.append(_Life(of, object_by_row, ended, True, plain, not life, max_changes))
                life, plain = [], True
            else:
                plain = plain and step.type < 4 and not step.silence
                life.append(step)
        if life:
            first = life[0].op
            single = all([step.op is first for step in life])  # noqa: C419 - a generator costs more
            steps = life if plain else remaining(life)
            self._lives.append(_Life(of, object_by_row, steps, False, plain, single, max_changes))

    def _steps_with_content(self, life: _Life, lookup: Lookup | None) -> Iterator[Step]:
        """Yield the steps that have content; the others get their outcome here."""
        for step in life.steps:
            if step.silence:
                self._set_outcome(step, Outcome(Fate.SAYS_NOTHING, step.silence))
            elif step.type < 5:
                yield step
            else:
                answer = self._query_back(life, step, lookup)
                if isinstance(answer, Step):
                    yield answer
                else:
                    self._set_outcome(step, answer)

    def _query_back(self, life: _Life, step: Step, lookup: Lookup | None) -> Step | Outcome:
        if life.is_ended:
            return Outcome(Fate.NO_EFFECT, "its object was deleted later")
        assert lookup is not None
        table = life.object.table
        try:
            fields = current_fields(life.object, step, lookup(table, life.object.query_key()))
        except EventlogError as fault:
            return Outcome(Fate.REFUSED, f"its current row: {fault}")
        if fields is None:
            return Outcome(Fate.NO_EFFECT, "its object is gone")
        if not fields and step.op is Op.UPDATE:
            return Outcome(Fate.SAYS_NOTHING, f"{table} has no published column except its key")
        place, entry, number, op, column, _, silence, superseded, unread = step
        return _new(Step, (place, entry, number, op, column, fields, silence, superseded, unread))

    def _append_events(self, events: list[Event], life: _Life, run: Sequence[Step]) -> None:
        """Add the events of a run: one, or several where it is long."""
        first, is_plain, max_changes = run[0], life.is_plain, life.max_changes
        of = life.object_by_row[first.place[1]] if life.object_by_row else life.object
        rows = _rows_of_run(run)
        name = event_id(self._rules.log_name, rows)
        sent = _new(Outcome, (_SENT, "", name, None))
        for step in run:
            if step.superseded:
                self._set_outcome(step, sent)
            else:
                self.outcomes[step.entry.record_id] = sent
        op = first.op
        reads_row = () if is_plain else [step.type > 4 for step in run]
        reads_back = bool(reads_row) and all(reads_row)
        if reads_back and op is _UPDATE and all(step.type in (5, 7) for step in run):
            op = _INSERT  # types 5 and 7 stay inserts, also where they are sent as a modify
        fields = run_fields(run)
        parts: Sequence[Fields] = (fields,)
        # without a query-back or repetition every field is of one row, and brings two values at most
        if any(reads_row) or len(fields) != len(run) or len(fields) * 2 > max_changes:
            parts = cut(fields, first.op, max_changes)
        for number, part in enumerate(parts, 1):
            part_id = name if number == 1 else f"{name}.{number}"
            change = (
                op if number == 1 or first.op is _UPDATE else _UPDATE,
                of.reader.schema,
                of.reader.name,
                of.key,
                tuple(part),
                str(rows[0]),
                None,
                first.entry.event_time + "Z",
                first.entry.perpetrator,
                reads_back,
                (("event_id", part_id), ("record_ids", rows), ("table_key", of.table_key)),
                None,
            )
            place = (*first.place, number)
            event = (_new(Change, change), part_id, place, of.name, rows, number, len(parts))
            events.append(_new(Event, event))

    def _set_outcome(self, step: Step, outcome: Outcome) -> None:
        """Set the outcome of a row, and of the rows that it superseded."""
        row = step.entry.record_id
        self.outcomes[row] = outcome
        if step.superseded:
            fate = Fate.REFUSED if outcome.fate is Fate.REFUSED else Fate.SUPERSEDED
            reason = outcome.reason if fate is Fate.REFUSED else _why_superseded(step)
            superseded = Outcome(fate, reason, outcome.event_id, row)
            self.outcomes.update(dict.fromkeys(step.superseded, superseded))


def _order(rules: Rules) -> Callable[[Entry], Any]:
    """Return the sort key of rows: record_id, and event_time before it if that is the order."""
    names = ("event_time", "record_id") if rules.handle_future_events else ("record_id",)
    return attrgetter(*names)


_HELD_OUTCOME = Outcome(Fate.HELD, "an earlier event of its object waits for a retry")


def _rows_of_run(run: Sequence[Step]) -> tuple[int, ...]:
    """Return the rows that a run's event decides, those that were superseded included."""
    if len(run) == 1 and not run[0].superseded:
        return (run[0].entry.record_id,)
    rows = [step.entry.record_id for step in run]
    for step in run:
        rows += step.superseded
    rows.sort()
    return tuple(rows)


def _why_superseded(step: Step) -> str:
    what = "row" if step.type in (5, 6) else f"value of {step.column}"
    return f"type {step.type} reads the current {what}"
