"""A life too long for memory, streamed from its file: the rules of the fold, on a few numbers for each row.

What each row says, what a current row says and how a run becomes fields are the fold's own steps; here is
only which rows go together, kept as vectors, and a second walk over the rows that fills them in.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

import numpy as np

from eventlog.columnar import runs
from eventlog.columnar.known import OPS, Known
from eventlog.columnar.speaking import spoken
from eventlog.columnar.vectors import Flags, Ints
from eventlog.core.change import ABSENT, Change, Field, Op, scalars
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.fold import Answer, CurrentRow, Fate, Outcome, QueryKey, plan
from eventlog.fold.current import current_fields
from eventlog.fold.runs import Piece, cut, joined, pieces_of, run_fields
from eventlog.fold.understand import STEPS, Interpreter, Object, Step
from eventlog.neutral import refuse
from eventlog.xds.documents import document
from eventlog.xds.write import EventWriter
from eventlog_spark.fold.cutting import LongLife
from eventlog_spark.fold.plain import entry_of
from eventlog_spark.fold.updates import DOCUMENT, LongUpdates, Told
from eventlog_spark.input.kinds import CURRENT
from eventlog_spark.input.untold import fault_of
from eventlog_spark.output.task import Attempt, Task

_NONE = -1
_CODES = {op: code for code, op in enumerate(OPS)}
_SAYING = np.full(9, _NONE)  # the operation of rows that say themselves what they say, by type
_SAYING[1], _SAYING[2:4], _SAYING[4] = _CODES[Op.INSERT], _CODES[Op.UPDATE], _CODES[Op.DELETE]


class Spokesman(NamedTuple):
    """A query-back row that speaks for others, and what it says."""

    rows: Ints  # the places of all rows that it settles, its own included
    step: Step


class Facts(NamedTuple):
    """What is kept of each understood row, in the order of the life."""

    ids: Ints
    types: Ints
    columns: Ints
    silent: Flags
    unread: Flags  # of columns that a query-back of the row does not read


class Speaking(NamedTuple):
    """The rows that have something to say, in the order of their places."""

    places: Ints
    ops: Ints


class HotLife:
    """One long life of one object."""

    def __init__(self, task: Task, attempt: Attempt, life: LongLife) -> None:
        self._task = task
        self._attempt = attempt
        self._writer = EventWriter(task.tables, task.target_settings)
        self._life = life
        self._reader = Interpreter(task.tables, task.rules, task.answerable)
        self._of: Object | None = None
        self._named: set[tuple[str, str]] = set()  # how the rows name the object: in one way, or in several
        self._current: list[CurrentRow] = []
        self._refused: set[int] = set()
        self._names: dict[str, int] = {}
        self._spokesmen: dict[int, Spokesman] = {}  # by the place where they speak

    def write(self) -> None:
        """The documents of the life."""
        task = self._task
        known = Known(task.tables, task.rules, task.target_settings, task.answerable, DOCUMENT)
        updates = LongUpdates(known, self._life, task.rules.max_changes)
        told = updates.told()
        if told is not None:
            self._write_updates(updates, told)
        else:
            self._write_steps()

    def _write_steps(self) -> None:
        """The same, row by row."""
        facts = self._understand()
        if not len(facts.ids):
            return
        speaking = self._decide(facts, bool(facts.types[-1] == 4))
        if len(speaking.places):
            bounds = np.flatnonzero(np.diff(speaking.ops)) + 1
            walk = self._walk(speaking.places)
            for run in np.split(speaking.places, bounds):
                self._write_run(facts, run, walk)

    # -- nothing but updates -----------------------------------------------------------------------

    def _write_updates(self, updates: LongUpdates, told: Told) -> None:
        self._count(Fate.SAYS_NOTHING, told.silent)
        self._count(Fate.SENT, len(told.ids))
        parts = 0

        def names() -> Iterator[str]:
            nonlocal parts
            name = runs.name(told.ids)
            for parts in count(1):
                yield name if parts == 1 else f"{name}.{parts}"

        for lines in updates.lines(names()) if len(told.ids) else ():
            self._attempt.parts.write_lines(lines, 0)
        self._told(updates, "modify", parts)
        if told.deleted is not None:
            self._count(Fate.SENT, 1)
            before, behind, end = updates.frame(Op.DELETE)
            self._attempt.parts.write_lines(f"{before}{told.deleted}{behind}{end}".encode(), 0)
            self._told(updates, "delete", 1)

    def _told(self, updates: LongUpdates, element: str, documents: int) -> None:
        if documents:
            self._attempt.parts.write_lines(b"", documents)
            self._attempt.summary.events[f"{updates.table} {element}"] += documents

    # -- which rows go together ------------------------------------------------------------------

    def _entries(self) -> Iterator[Entry]:
        """The rows that were understood; all of them, before that is known."""
        for row in self._life.rows():
            if row.kind != CURRENT and row.record_id not in self._refused:
                yield entry_of(self._task, row)

    def _understand(self) -> Facts:
        """What each row says, as numbers; a row that cannot be understood leaves."""
        ids, types, columns, silent, unread = array("q"), array("b"), array("l"), array("b"), array("b")
        for row in self._life.rows():
            if row.kind == CURRENT:
                self._current.append(row.current)
                continue
            try:
                entry = entry_of(self._task, row)
                step = STEPS[entry.event_type](self._object_of(entry), entry, ("", row.record_id))
            except EventlogError as fault:
                self._settle(Outcome(Fate.REFUSED, str(fault)), [row.record_id])
                self._refused.add(row.record_id)
                continue
            ids.append(row.record_id)
            types.append(step.type)
            columns.append(self._names.setdefault(step.column, len(self._names)))
            silent.append(bool(step.silence))
            unread.append(step.unread)
        numbers = [np.array(each, np.int64) for each in (ids, types, columns)]
        said = [np.array(each, np.bool_) for each in (silent, unread)]
        return Facts(numbers[0], numbers[1], numbers[2], said[0], said[1])

    def _object_of(self, entry: Entry) -> Object:
        if self._of is None:
            self._of = self._reader.object(entry.table_name, entry.table_key)
        if len(self._named) < 2:
            self._named.add(entry[5:7])
        return self._of

    def _decide(self, facts: Facts, ended: bool) -> Speaking:
        """The rows that speak; what becomes of the others is settled here."""
        left = spoken(facts.types, np.zeros(len(facts.ids), np.int64), facts.columns, facts.unread)
        types = facts.types[left.rows]
        ops = _SAYING[types]
        silent = facts.silent[left.rows] & (types < 5)
        ops[silent] = _NONE
        self._count(Fate.SAYS_NOTHING, int(np.count_nonzero(silent)))
        for at in np.flatnonzero(types > 4).tolist():
            row = int(left.rows[at])
            others = left.swallowed[left.by == row]
            ops[at] = self._speak(facts, int(left.first[at]), row, others, ended)
        return Speaking(left.first[ops != _NONE], ops[ops != _NONE])

    def _speak(self, facts: Facts, place: int, winner: int, others: Ints, ended: bool) -> int:
        """What a query-back row does at its place, for itself and those that it supersedes."""
        entry = next(islice(self._entries(), winner, None))
        outcome, step = self._ask(entry, ended)
        ids = facts.ids[others].tolist()
        refused = outcome.fate is Fate.REFUSED
        self._settle(outcome if refused else Outcome(Fate.SUPERSEDED), ids)
        if step is None:
            self._settle(outcome, [entry.record_id])
            return _NONE
        self._spokesmen[place] = Spokesman(np.append(others, winner), step)
        return _CODES[step.op]

    def _ask(self, entry: Entry, ended: bool) -> tuple[Outcome, Step | None]:
        """What becomes of a query-back row alone in its life, and what it says."""
        assert self._of is not None
        rows = [entry]
        if ended:
            rows.append(entry._replace(record_id=entry.record_id + 1, event_type=4, column_name=None))
        planned = plan(rows, self._task.tables, self._task.rules, answerable=self._task.answerable)
        planned.events(self._lookup)
        outcome = planned.outcomes[entry.record_id]
        if outcome.fate is not Fate.SENT:
            return outcome, None
        step = STEPS[entry.event_type](self._of, entry, ("", entry.record_id))
        fields = current_fields(self._of, step, self._current)
        return outcome, step._replace(fields=fields or ())

    def _lookup(self, table: Table, key: QueryKey) -> Answer:
        return next(filter(None, map(fault_of, self._current)), self._current)

    # -- documents ---------------------------------------------------------------------------------

    def _walk(self, places: Ints) -> Iterator[Step]:
        """What stands at these places, in order."""
        assert self._of is not None
        wanted = iter(places.tolist())
        place = next(wanted)
        for at, entry in enumerate(self._entries()):
            if at != place:
                continue
            spokesman = self._spokesmen.get(at)
            if spokesman is not None:
                yield spokesman.step
            else:
                yield STEPS[entry.event_type](self._of, entry, ("", entry.record_id))
            place = next(wanted, -1)
            if place < 0:
                return

    def _write_run(self, facts: Facts, run: Ints, walk: Iterator[Step]) -> None:
        asking = np.intersect1d(run, list(self._spokesmen)) if self._spokesmen else run[:0]
        speaking = [self._spokesmen[at] for at in asking.tolist()]
        self._count(Fate.SENT, len(run))
        taken = np.setdiff1d(run, asking) if speaking else run
        settled = facts.ids[np.sort(np.concatenate([taken, *(s.rows for s in speaking)]))]
        name = f"{self._task.rules.log_name}:{runs.name(settled)}"
        first = next(walk)
        if len(self._named) > 1:  # an event is named as the row at its place names it
            named = next(islice(self._entries(), int(run[0]), None))
            self._of = self._reader.object(named.table_name, named.table_key)
        types = {s.step.type for s in speaking} | set(np.unique(facts.types[taken]).tolist())
        reads_back = min(types) > 4
        op = Op.INSERT if reads_back and first.op is Op.UPDATE and types <= {5, 7} else first.op
        parts = self._parts(first, run, walk)
        for number, fields in enumerate(parts, 1):
            part_op = Op.UPDATE if number > 1 and first.op is Op.INSERT else op
            part = name if number == 1 else f"{name}.{number}"
            self._write(part_op, fields, part, reads_back, settled)

    def _parts(self, first: Step, run: Ints, walk: Iterator[Step]) -> Iterator[Sequence[Field]]:
        """The fields of a run, cut where they are many."""
        most = self._task.rules.max_changes
        if len(run) <= self._task.longest:
            yield from cut(run_fields([first, *islice(walk, len(run) - 1)]), first.op, most)
            return
        gather = self._gathered if first.op is Op.INSERT else self._pieces
        held: list[Piece] = []
        begun = False
        for piece in gather(first, run, walk):
            if len(held) == most:
                yield joined(held, not begun and first.op is Op.INSERT)
                held, begun = [], True
            held.append(piece)
        if held or not begun:
            yield joined(held, not begun and first.op is Op.INSERT)

    def _pieces(self, first: Step, run: Ints, walk: Iterator[Step]) -> Iterator[Piece]:
        for step in chain([first], islice(walk, len(run) - 1)):
            for field in step.fields:
                yield from pieces_of(field, first.op)

    def _gathered(self, first: Step, run: Ints, walk: Iterator[Step]) -> Iterator[Piece]:
        """The values of an add, those of one column together, at the place of its first."""
        columns = dict.fromkeys(field.column for field in first.fields)
        for step in islice(walk, len(run) - 1):
            columns |= dict.fromkeys(field.column for field in step.fields)
        for column in columns:
            whole = Field(column, ABSENT, None)
            for step in self._walk(run):
                for field in step.fields:
                    if field.column == column:
                        yield from (Piece(whole, "after", value) for value in scalars(field.after))

    def _write(self, op: Op, fields: Sequence[Field], name: str, reads_back: bool, settled: Ints) -> None:
        change = self._change(op, fields, name, reads_back)
        self._attempt.summary.events[f"{change.table} {self._task.operation(change)}"] += 1
        try:
            text = self._writer.write(change, name)
        except EventlogError as fault:
            self._attempt.refuse(refuse(change, fault), settled.tolist())
            return
        if text:
            self._attempt.parts.write_lines(f"{document([text])}\n".encode(), 1)

    def _change(self, op: Op, fields: Sequence[Field], name: str, reads_back: bool) -> Change:
        assert self._of is not None
        reader = self._of.reader
        extra = (("event_id", name), ("table_key", self._of.table_key))
        return Change(
            op, reader.schema, reader.name, self._of.key, tuple(fields), current=reads_back, extra=extra
        )

    # -- outcomes ------------------------------------------------------------------------------------

    def _count(self, fate: Fate, rows: int) -> None:
        if rows:
            self._attempt.summary.fates[fate.value] += rows

    def _settle(self, outcome: Outcome, ids: Sequence[int]) -> None:
        self._count(outcome.fate, len(ids))
        if outcome.fate is Fate.REFUSED:
            for record_id in ids:
                self._attempt.refuse_row(record_id, outcome.reason)
