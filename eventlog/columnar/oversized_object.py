"""A life that is larger than memory: some numbers of each row are kept, and its texts are read again later.

A first pass learns the content of each row (`life_facts`). These numbers decide which rows count, and where
events begin and are cut (`cuts`). A second pass fills the events, some thousand rows at a time. An event that
is not certain goes the plain way with its rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from eventlog.columnar import assembly, runs
from eventlog.columnar.assembly import Atoms
from eventlog.columnar.cuts import Elements, Small, cut, elements
from eventlog.columnar.life_facts import LifeReader, LifeRows
from eventlog.columnar.precedence import Precedence, find_precedence
from eventlog.columnar.templates import ELEMENTS, OPS, Fact, Part, Slot, Templates
from eventlog.columnar.texts import taken
from eventlog.columnar.vectors import Flags, Ints, content
from eventlog.core.change import Change, Field, Op
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.fold import Fate, Outcome, Rules, plan
from eventlog.fold.current import current_fields
from eventlog.fold.plan import Lookup
from eventlog.fold.runs import Piece, joined, pieces_of, run_fields
from eventlog.fold.understand import Interpreter, Step
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

_SLICE = 32_768  # rows that are filled in together,
_BYTES = 64 << 20  # or fewer, of so many bytes
_INSERT, _UPDATE, _DELETE = map(OPS.index, (Op.INSERT, Op.UPDATE, Op.DELETE))
_NONE = -1
_SAYING = np.array([_NONE, _INSERT, _UPDATE, _UPDATE, _DELETE, *[_NONE] * 4], np.int8)  # by type
_JOINT = Part(((Slot.NEW, 0),))  # the text between two events


class Outlet(Protocol):
    """The receiver of the events of a life and of the fates of its rows."""

    def lines(self, data: memoryview | bytes, events: int) -> None:
        """Take more of the texts, and how many events begin in them."""

    def count_event(self, table: str, element: str) -> None:
        """Count one more event, whether or not it has a text."""

    def settled(self, outcome: Outcome, rows: Ints) -> None:
        """Take the outcome of these rows."""

    def unwritten(self, change: Change, fault: EventlogError, rows: Sequence[int]) -> None:
        """Take an event that XDS cannot express."""


class _Spokesman(NamedTuple):
    """A query-back row that supersedes others."""

    step: Step
    pieces: list[Piece]
    others: Ints  # the rows that it superseded


class _Run(NamedTuple):
    """The facts that the events of a run share."""

    number: int
    elements: slice
    name: str
    settles: Ints
    reads_back: bool
    op: Op  # of its first event


class OversizedObject:
    """One life, of one object."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        settings: XdsSettings,
        answerable: Container[Table],
        around: tuple[str, str],
        source: LifeRows,
        lookup: Lookup,
        outlet: Outlet,
    ) -> None:
        self._rules = rules
        self._around = around
        self._source = source
        self._lookup = lookup
        self._outlet = outlet
        self._plan = partial(plan, tables=tables, rules=rules, answerable=answerable)
        self._reader = LifeReader(
            lambda: Templates(tables, rules, settings, answerable, around),
            Interpreter(tables, rules, answerable),
            rules.status,
        )
        self._writer = EventWriter(tables, settings)
        self._spokesmen: dict[int, _Spokesman] = {}  # by their row

    def write(self) -> None:
        """The events of the life."""
        self._facts = facts = self._reader.facts(self._source, self._refuse)
        count = len(facts)
        if count:
            lives = np.broadcast_to(np.int64(0), count)
            self._elements = self._decide(
                find_precedence(facts["kind"], lives, facts["column"], facts["unread"])
            )
            self._cuts = cut(self._elements, self._rules.max_changes)
            if len(self._cuts.slots):
                self._fill_all()

    def _refuse(self, record_id: int, reason: str) -> None:
        self._outlet.settled(Outcome(Fate.REFUSED, reason), np.array([record_id]))

    # -- which rows go together ----------------------------------------------------------------------

    def _decide(self, left: Precedence) -> Elements:
        """Decide which of the remaining rows have content, and report the fates of rows."""
        facts, rows, first = self._facts, left.rows, left.first
        kinds = facts["kind"][rows]
        ops, values, sure = _SAYING[kinds], facts["values"][rows].astype(np.int32), facts["sure"][rows]
        silent = facts["silent"][rows] & (kinds < 5)
        ops[silent] = _NONE
        self._settle(Outcome(Fate.SAYS_NOTHING), rows[silent])
        for at in np.flatnonzero(kinds > 4).tolist():
            row, sure[at] = int(rows[at]), False
            spokesman = self._ask(row, left.swallowed[left.by == row])
            if spokesman is not None:
                self._spokesmen[row] = spokesman
                ops[at], values[at] = OPS.index(spokesman.step.op), len(spokesman.pieces)
        speaks = np.flatnonzero(ops != _NONE).astype(np.int32)
        self._settle(Outcome(Fate.SENT), rows[speaks])
        ops = ops[speaks]
        starts = np.flatnonzero(np.diff(ops, prepend=_NONE))
        self._first = first[speaks[starts]]  # the row in whose place each run leaves
        self._begins = np.append(
            starts, len(ops)
        )  # the first element of each run, and the one after the last
        written = rows[speaks].astype(np.int32)
        return elements(written, ops, values[speaks], sure[speaks], facts["column"][written])

    def _ask(self, row: int, others: Ints) -> _Spokesman | None:
        """Return the content of a query-back row for itself and for others."""
        (entry,) = self._entries(np.array([row]))
        rows = [entry]
        if self._facts["kind"][-1] == 4:
            rows.append(entry._replace(record_id=entry.record_id + 1, event_type=4, column_name=None))
        planned = self._plan(rows)
        planned.events(self._lookup)
        outcome = planned.outcomes[entry.record_id]
        self._settle(outcome if outcome.fate is Fate.REFUSED else Outcome(Fate.SUPERSEDED), others)
        if outcome.fate is not Fate.SENT:
            self._settle(outcome, np.array([row]))
            return None
        step = self._reader.step(entry)
        of = self._reader.object(entry)
        fields = current_fields(of, step, self._lookup(of.table, of.query_key()))
        return _Spokesman(*_pieces(step._replace(fields=fields or ())), others)

    def _settle(self, outcome: Outcome, rows: Ints) -> None:
        if len(rows):
            self._outlet.settled(outcome, self._facts["id"][rows])

    def _entries(self, rows: Ints | Small) -> Iterator[Entry]:
        return self._source.some(self._places(rows)).entries(self._rules.status)

    def _places(self, rows: Ints | Small) -> Ints:
        """Return the places of these rows among all, those that were refused included."""
        found: Ints = self._facts["place"][rows].astype(np.int64)
        return found

    # -- events --------------------------------------------------------------------------------------

    def _fill_all(self) -> None:
        """The texts of all events, some after the others."""
        cuts, found = self._cuts, self._elements
        unsure = np.logical_or.reduceat(~found.sure[cuts.slots], cuts.begins[:-1])
        alike = self._facts["alike"][self._first][cuts.runs]
        ops = found.ops[cuts.slots[cuts.begins[:-1]]]
        name, known = self._reader.name, self._reader.known
        framed = np.array(
            [name is not None and known.frame(name[0], op) is not None for op in range(len(OPS))]
        )
        plain = unsure | ~alike | ~framed[ops] | ((ops == _INSERT) & (cuts.parts > 0))
        size = max(1, min(_SLICE, _BYTES // self._reader.widest))
        run = self._run(0)
        behind = ""
        for start in range(0, len(cuts.slots), size):
            slots = np.arange(start, min(start + size, len(cuts.slots)))
            joints = []
            begun = 0
            starting = np.flatnonzero(cuts.begins[cuts.events[slots]] == slots)
            for event in cuts.events[slots[starting]].tolist():
                if cuts.runs[event] != run.number:
                    run = self._run(int(cuts.runs[event]))
                if plain[event]:
                    text, after = self._plain(run, event), ""
                    begun += text != ""
                else:
                    text, after = self._opening(run, int(cuts.parts[event]))
                    begun += 1
                joints.append(behind + text)
                behind = after
            filled = ~plain[cuts.events[slots]]
            before = np.cumsum(filled) - filled  # of each slot, how many are filled in before it
            data = self._filled(slots[filled], before[starting], joints)
            self._outlet.lines(data, begun)
        self._outlet.lines(behind.encode(), 0)

    def _run(self, number: int) -> _Run:
        """Return the facts that the events of a run share."""
        some = slice(*self._begins[number : number + 2].tolist())
        rows = self._elements.rows[some]
        asking = np.intersect1d(rows, list(self._spokesmen)) if self._spokesmen else rows[:0]
        spoken_for = (self._spokesmen[row].others for row in asking.tolist())
        settles = np.sort(self._facts["id"][np.concatenate([rows, *spoken_for])])
        reads_back = len(asking) == len(rows)
        op = OPS[self._elements.ops[some.start]]
        if reads_back and op is Op.UPDATE and set(self._facts["kind"][asking].tolist()) <= {5, 7}:
            op = Op.INSERT  # types 5 and 7 stay inserts, also where they are sent as a modify
        return _Run(number, some, runs.name(settles), settles, reads_back, op)

    def _opening(self, run: _Run, part: int) -> tuple[str, str]:
        """Return the texts before and after the body of an event that is filled in."""
        op = int(self._elements.ops[run.elements.start])
        known, name = self._reader.known, self._reader.name
        assert name is not None
        frame, of = known.frame(name[0], op), known.spelled(name[0]).object
        assert frame is not None
        assert of is not None
        self._outlet.count_event(of.reader.name, ELEMENTS[OPS[op]])
        before_id, before_key, before_body, behind = (known.constants[at] for at in frame)
        return f"{before_id}{_name(run, part)}{before_key}{name[1]}{before_body}", behind

    def _filled(self, slots: Ints, at: Ints, joints: list[str]) -> memoryview | bytes:
        """Return what the rows of these slots add, and these texts, each before one of them."""
        if not len(slots):
            return "".join(joints).encode()
        found = self._reader.understood(
            self._source.some(self._places(self._elements.rows[self._cuts.slots[slots]]))
        )
        assert found is not None
        known, batch, said, count = self._reader.known, found.batch, found.said, len(slots)
        parts, codes = [*said.parts], said.codes.copy()
        for half, removes in zip(self._halves(slots), (True, False), strict=True):
            for slot in np.flatnonzero(half).tolist():
                kind, old = int(batch.kinds[slot]), batch.old[slot].is_valid
                fact = Fact(kind, old and kind == 2, False, False) if removes else Fact(2, False, True, False)
                codes[slot] = len(parts)
                parts.append(known.part(batch.named[int(batch.pairs[slot])], fact))
        every = np.arange(count)
        atoms = Atoms(
            [*parts, _JOINT],
            np.insert(codes, at, len(parts)),
            np.insert(every, at, 0),
            np.insert(every + count, at, np.arange(len(joints)) + 2 * count),
            np.empty(0, np.int64),
        )
        wanted, _ = assembly.bodies(atoms, 2 * count + len(joints))
        pool = [batch.old, batch.new, pa.array(joints, pa.string()), pa.array(known.constants, pa.string())]
        return content(taken(pool, wanted, said.treated))

    def _halves(self, slots: Ints) -> tuple[Flags, Flags]:
        """Return the rows with only their old values in an event, and those with only their new values."""
        of, last = self._cuts.slots, len(self._cuts.slots) - 1
        first = (slots < last) & (of[np.minimum(slots + 1, last)] == of[slots])
        return first, (slots > 0) & (of[slots - 1] == of[slots])

    # -- the plain way -------------------------------------------------------------------------------

    def _plain(self, run: _Run, event: int) -> str:
        """Return the text of one event; none if it changes nothing, or cannot be written."""
        part, slots = int(self._cuts.parts[event]), slice(*self._cuts.begins[event : event + 2].tolist())
        op = OPS[self._elements.ops[run.elements.start]]
        fields = self._fields(self._cuts.slots[slots], op, part, self._is_whole(event))
        (first,) = self._entries(self._first[[run.number]])
        of = self._reader.object(first)
        change = Change(
            Op.UPDATE if part and op is Op.INSERT else run.op,
            of.reader.schema,
            of.reader.name,
            of.key,
            tuple(fields),
            current=run.reads_back,
            extra=(
                ("event_id", name := f"{self._rules.log_name}:{_name(run, part)}"),
                ("table_key", of.table_key),
            ),
        )
        self._outlet.count_event(change.table, self._writer.element(change))
        try:
            text = self._writer.write(change, name)
        except EventlogError as fault:
            self._outlet.unwritten(change, fault, run.settles.tolist())
            return ""
        return text and text.join(self._around)

    def _is_whole(self, event: int) -> bool:
        """Return whether the event is all of its run."""
        around = self._cuts.runs[max(0, event - 1) : event + 2]
        return bool(np.count_nonzero(around == self._cuts.runs[event]) == 1)

    def _fields(self, elements: Small, op: Op, part: int, whole: bool) -> Sequence[Field]:
        """Return what these elements add to one part of their run."""
        steps = [
            self._said(*row)
            for row in zip(
                self._elements.rows[elements].tolist(),
                self._entries(self._elements.rows[elements]),
                strict=True,
            )
        ]
        if whole:
            return run_fields([step for step, _ in steps])
        most = self._rules.max_changes
        columns: dict[str, Field] = {}
        pieces = []
        for start, (_, own) in zip((part * most - self._cuts.starts[elements]).tolist(), steps, strict=True):
            pieces += own[max(0, start) : start + most]
        if op is Op.INSERT:  # the values of a column are those of one attribute
            pieces = [p._replace(field=columns.setdefault(p.field.column, p.field)) for p in pieces]
        return joined(pieces, op is Op.INSERT and part == 0)

    def _said(self, row: int, entry: Entry) -> tuple[Step, list[Piece]]:
        """Return the content of a row, and its values one by one."""
        found = self._spokesmen.get(row)
        return _pieces(self._reader.step(entry)) if found is None else found[:2]


def _pieces(step: Step) -> tuple[Step, list[Piece]]:
    return step, [piece for field in step.fields for piece in pieces_of(field, step.op)]


def _name(run: _Run, part: int) -> str:
    """Return the name of a part of a run, without the log's."""
    return run.name if part == 0 else f"{run.name}.{part + 1}"
