"""Rows of a change table and the change that they state, both ways.

What a null means (decision 3): on I rows the bits say what was supplied. On U rows a set bit makes
a null a value; a clear one says "unchanged" where a value stands, or a null in the B row too, and
"not captured" otherwise. On B and D rows what stands there was there before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from eventlog.change import ABSENT, Change, Field, Key, Op, Side, Value
from eventlog.codec import Row, Source
from eventlog.errors import WrongRow
from eventlog.qlik import sequence
from eventlog.qlik.headers import OPERATIONS, Heading, letter_of
from eventlog.qlik.mask import InvalidMask, Layout, Order, load, read, trimmed
from eventlog.qlik.numbering import Numbered, stream_position, utc
from eventlog.qlik.plans import Plan
from eventlog.qlik.structure import Structure
from eventlog.values import Kind, read_moment

Flags = tuple[bool, ...]
Cells = tuple[Any, ...]
_MAX_FLAGS = 10_000
_new = tuple.__new__


class ChangeRow(NamedTuple):
    """A row of a change table, its headers checked, its data as it came."""

    where: int
    letter: str
    seq: str | None
    mask: bytes | None  # None: the table has no such column
    cells: Sequence[Any]
    all: Sequence[Any]
    raw: bytes | None
    table: RowReader


class RowReader:
    """Reads the rows of one source, whose heading and structure are known."""

    def __init__(self, source: Source[Row], heading: Heading, structure: Structure, plan: Plan) -> None:
        self.source = source
        self.structure = structure
        self.layout: Layout = heading.layout
        self.heading = heading
        self._plan = plan
        self._row = heading.row()
        self._oper = heading.header("change_oper")
        self._operation = heading.header("operation")
        self._seq = heading.header("change_seq")
        self._mask = heading.header("change_mask")
        self._transaction = heading.header("transaction_id")
        self._timestamp = heading.header("timestamp")
        self._facts = tuple(
            (name, heading.headers[name])
            for name in ("stream_position", "partition_name")
            if name in heading.headers
        )
        self._letters: dict[tuple[object, object], str] = {}
        self._flags: dict[tuple[bytes, Order], Flags] = {}

    def parse(self, where: int, cells: Sequence[Any], raw: bytes | None) -> ChangeRow:
        """The row, as far as it can be understood without its byte order."""
        if len(cells) != self.heading.columns:
            raise WrongRow(f"{len(cells)} cells, but the header line names {self.heading.columns} columns")
        letter = self._letter(self._oper(cells), self._operation(cells))
        mask = load(self._mask(cells)) if "change_mask" in self.heading.headers else None
        return ChangeRow(
            where, letter, self._sequence(cells, letter), mask, self._row(cells), cells, raw, self
        )

    def change(self, row: ChangeRow, image: ChangeRow | None, order: Order) -> Change:
        """What a row states, with its B row where there is one."""
        structure = self.structure
        if row.letter == "T":
            return self._make(Op.TRUNCATE, row, (), ())
        values = self._plan(row.cells)
        flags = None if row.mask is None else self._bits(row.mask, order, row.letter)
        if row.letter == "I":
            op = Op.INSERT if row.seq or "change_seq" not in self.heading.headers else Op.SNAPSHOT
            return self._make(
                op, row, structure.key_of(_supplied(values, flags)), self._insert(values, flags)
            )
        if row.letter == "D":
            before = _captured(values, flags)
            key = structure.key_of(before) if structure.key else self._key(values, flags)
            return self._make(Op.DELETE, row, key, _fields(structure.names, before, repeat(ABSENT)))
        befores, afters = _sides(values, flags, None if image is None else self._plan(image.cells))
        key = structure.key_of([b if a is ABSENT else a for b, a in zip(befores, afters, strict=True)])
        return self._make(Op.UPDATE, row, key, _fields(structure.names, befores, afters))

    def _letter(self, oper: object, operation: object) -> str:
        letter = self._letters.get((oper, operation))
        if letter is None:
            letter = letter_of(oper, operation)
            if len(self._letters) < _MAX_FLAGS:
                self._letters[oper, operation] = letter
        return letter

    def _sequence(self, cells: Sequence[Any], letter: str) -> str | None:
        seq = self._seq(cells)
        if seq is None and "change_seq" not in self.heading.headers:
            return None
        if not seq and letter == "I":
            return ""  # rows of a full load have none
        return sequence.check("" if seq is None else str(seq))

    def _bits(self, mask: bytes, order: Order, letter: str) -> Flags:
        """For each data column whether its bit is set."""
        flags = self._flags.get((mask, order))
        if flags is None:
            bits = read(mask, order)
            if fault := self.layout.fault(bits):
                raise InvalidMask(f"mask {mask.hex().upper()}: {fault}")
            flags = tuple(bits >> place & 1 == 1 for place in self.heading.places)
            if len(self._flags) >= _MAX_FLAGS:
                self._flags.clear()
            self._flags[mask, order] = flags
        return flags

    def _insert(self, values: Sequence[Value], flags: Flags | None) -> tuple[Field, ...]:
        names = self.structure.names
        if flags is None or all(flags):
            return tuple(map(_new, repeat(Field), zip(names, repeat(ABSENT), values, strict=False)))
        return _fields(names, repeat(ABSENT), _supplied(values, flags))

    def _key(self, values: Sequence[Value], flags: Flags | None) -> Key:
        """The key that the mask of a D row names."""
        columns = zip(self.structure.names, values, flags or (), strict=False)
        return tuple((name, value) for name, value, flag in columns if flag)

    def _make(self, op: Op, row: ChangeRow, key: Key, fields: tuple[Field, ...]) -> Change:
        cells = row.all
        facts = tuple([(name, str(cells[i])) for name, i in self._facts if cells[i] not in (None, "")])
        return Change(
            op,
            self.structure.schema,
            self.structure.table,
            key,
            fields,
            row.seq or None,
            _text(self._transaction(cells)),
            _time(self._timestamp(cells)),
            None,
            False,
            facts,
        )


def _fields(names: Sequence[str], befores: Any, afters: Any) -> tuple[Field, ...]:
    made = map(_new, repeat(Field), zip(names, befores, afters, strict=False))
    return tuple([f for f in made if f[1] is not ABSENT or f[2] is not ABSENT])


def _supplied(values: Sequence[Value], flags: Flags | None) -> Sequence[Side]:
    if flags is None:
        return values
    return [v if flag or v is not None else ABSENT for v, flag in zip(values, flags, strict=True)]


def _captured(values: Sequence[Value], flags: Flags | None) -> Sequence[Side]:
    """The row before a delete: where only the masked columns hold values, the others were not logged."""
    if flags is None or not any(flags):
        return values
    if any(v is not None for v, flag in zip(values, flags, strict=True) if not flag):
        return values
    return [v if flag else ABSENT for v, flag in zip(values, flags, strict=True)]


def _sides(
    values: Sequence[Value], flags: Flags | None, image: Sequence[Value] | None
) -> tuple[Sequence[Side], Sequence[Side]]:
    """The columns before and after an update."""
    if flags is None:
        return ([ABSENT] * len(values) if image is None else image), values
    if image is None:
        befores = [ABSENT if flag or v is None else v for v, flag in zip(values, flags, strict=True)]
        return befores, [
            v if flag or v is not None else ABSENT for v, flag in zip(values, flags, strict=True)
        ]
    triples = list(zip(values, flags, image, strict=True))
    return (
        [
            (ABSENT if b is None and v is None else b) if flag else b if v is None else v
            for v, flag, b in triples
        ],
        [ABSENT if v is None and not flag and b is not None else v for v, flag, b in triples],
    )


def _text(cell: object) -> str | None:
    return None if cell is None or cell == "" else str(cell)


def _time(cell: object) -> str | None:
    """The time of a change, in UTC; 1970-01-01 stands for a time not known before the commit."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, dt.datetime):
        cell = (cell if cell.tzinfo is None else cell.astimezone(dt.UTC)).replace(tzinfo=None).isoformat()
    return None if str(cell).startswith("1970-01-01") else iso_utc(str(cell))


def iso_utc(text: str) -> str:
    """A time that is UTC without saying so, as the model holds it."""
    moment = read_moment(Kind.TIMESTAMP, text)
    return moment.at.isoformat() + moment.fraction.rstrip("0").rstrip(".") + "Z"


class RowWriter:
    """Writes the changes of one table as rows of its change table."""

    def __init__(
        self, structure: Structure, plan: Plan, headers: Sequence[str], order: Order, images: bool
    ) -> None:
        self.structure = structure
        self._plan = plan
        self._headers = headers
        self._order = order
        self._images = images

    def rows(self, numbered: Numbered, partition: str | None) -> list[Cells]:
        """The rows that state a change: one, or a B row and its U row."""
        change = numbered.change
        if change.op is Op.TRUNCATE:
            return [self._row("T", 0, numbered, partition, (None,) * len(self.structure.columns))]
        before, after = sides(self.structure, change)
        if change.op is Op.DELETE:
            return [self._row("D", self.structure.key_bits, numbered, partition, self._plan(before))]
        if change.op is not Op.UPDATE:
            return [
                self._row("I", _bits(v is not ABSENT for v in after), numbered, partition, self._plan(after))
            ]
        return self._update(numbered, partition, before, after)

    def _update(
        self, numbered: Numbered, partition: str | None, before: list[Side], after: list[Side]
    ) -> list[Cells]:
        image, row = self._plan(before), self._plan(after)
        changed = [
            a is not ABSENT and (b is ABSENT or not same(old, new))
            for b, a, old, new in zip(before, after, image, row, strict=True)
        ]
        rows = [self._row("U", _bits(changed), numbered, partition, row)]
        if self._images and _says_more(before, after, changed):
            rows.insert(0, self._row("B", 0, numbered, partition, image))
        return rows

    def _row(
        self, letter: str, bits: int, numbered: Numbered, partition: str | None, data: Sequence[Any]
    ) -> Cells:
        change = numbered.change
        headers = {
            "change_seq": numbered.sequence,
            "change_oper": letter,
            "change_mask": trimmed(bits << len(self._headers), self._order),
            "stream_position": stream_position(change),
            "operation": OPERATIONS[letter],
            "transaction_id": change.transaction or "",
            "timestamp": None if change.time is None else utc(change.time).replace("T", " "),
            "partition_name": change.fact("partition_name") or partition,
        }
        return (*(headers[name] for name in self._headers), *data)


def sides(structure: Structure, change: Change) -> tuple[list[Side], list[Side]]:
    """The columns of a structure before and after a change; what only the key tells is filled in."""
    before: list[Side] = [ABSENT] * len(structure.columns)
    after: list[Side] = before.copy()
    index = structure.index
    for name, value in change.key_before if change.op in (Op.UPDATE, Op.DELETE) else ():
        before[_place(index, name, structure)] = value
    for name, value in change.key if change.op is not Op.DELETE else ():
        after[_place(index, name, structure)] = value
    for name, old, new in change.fields:
        place = _place(index, name, structure)
        before[place] = before[place] if old is ABSENT else old
        after[place] = after[place] if new is ABSENT else new
    return before, after


def same(old: object, new: object) -> bool:
    """Whether two written values are one: 1, 1.0 and true are not."""
    return old == new and type(old) is type(new)


def _place(index: dict[str, int], name: str, structure: Structure) -> int:
    place = index.get(name)
    if place is None:
        raise WrongRow(f"table {structure} has no column {name!r}: name it in the tables file")
    return place


def _bits(flags: Any) -> int:
    bits = 0
    for place, flag in enumerate(flags):
        if flag:
            bits |= 1 << place
    return bits


def _says_more(before: list[Side], after: list[Side], changed: list[bool]) -> bool:
    """Whether a B row tells what its U row alone does not."""
    return any(
        b is not ABSENT and (flag or b is None or a is ABSENT)
        for b, a, flag in zip(before, after, changed, strict=True)
    )
