"""Differences as lines of the format `changes`, many at once, each up to its position.

The form of a line is learned from the plain writer. A value whose text shows its JSON form is copied; others
are loaded one by one. An object with an illegal value, or with quotes in its key, goes the plain way as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.vectors import Flags, flags
from eventlog.compare.changes import Difference, build_change, change_of, same_text
from eventlog.compare.join import differing, join_sides, join_tables
from eventlog.compare.jsontexts import JsonTexts
from eventlog.compare.memory import MEMORY
from eventlog.compare.ordering import Order, Phase, Ranks, ranks
from eventlog.compare.rows import schema
from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Precision
from eventlog.neutral import dumps

_AT_ONCE = 16 << 20  # bytes of values that become lines together
_DIGITS = r"\A(-?(?:0|[1-9][0-9]{0,17}))(?:\.0{0,18}|(\.[0-9]{0,17}[1-9])0{0,18})?\z"  # of plain numbers
_KEY_VALUE = r"[^,;'+\"=\\<>]*"  # that is in a key without quotes
END = dumps(Change(Op.INSERT, None, "", position="")).rpartition('""')[2]  # of each line, after its position

Batches = Iterable[pa.RecordBatch]
Columns = Sequence[pa.Array]


class DifferenceLine(NamedTuple):
    """The differences of one phase: the keys of the objects, and the line of each, or why it has none."""

    phase: Phase
    keys: pa.Array
    heads: pa.Array  # the lines, up to their positions
    refused: pa.Array


def line(head: str, position: int) -> str:
    """Return a whole line."""
    return f'{head}"{position}"{END}'


def differences(
    tables: Tables, table: Table, old: Batches, new: Batches, memory: int = MEMORY
) -> Iterator[DifferenceLine]:
    """Yield the objects of one of these tables that differ, in no order."""
    form = schema(table)
    yield from join_sides(form, old, form, new, DifferenceLines(ranks(tables), table).differences, memory)


def in_order(
    tables: Tables, found: Iterable[tuple[Table, DifferenceLine]], memory: int = MEMORY
) -> Iterator[str | Refused]:
    """Yield the lines of differences in the order in which they leave, numbered."""
    order: Order[str | Refused] = Order(tables, memory)
    for table, lines in found:
        for key, head, refused in zip(*(column.to_pylist() for column in lines[1:]), strict=True):
            what = head if refused is None else Refused(f"{table} {key}", refused)
            order.add(lines.phase, table, key, what)
    position = 0
    for _, _, what in order:
        if isinstance(what, str):
            position += 1
            yield line(what, position)
        else:
            yield what


class DifferenceLines:
    """The form of the differences of one table."""

    def __init__(self, ranks: Ranks, table: Table) -> None:
        self._table = table
        self._circular = [ranks.circular(table, column) for column in table.data]
        named = (rf"\Q{name}\E=(?P<k{number}>{_KEY_VALUE})" for number, name in enumerate(table.key))
        self._key_form = r"\A" + r"\+".join(named) + r"\z"
        self._keys = [JsonTexts.of_key(table, name) for name in table.key]
        self._data = [JsonTexts.of_column(column) for column in table.data]
        self._frames = {
            sides: _frame(table, *sides) for sides in ((True, False), (False, True), (True, True))
        }

    def differences(self, old: pa.RecordBatch, new: pa.RecordBatch) -> Iterator[DifferenceLine]:
        """Yield the differences between all rows of some keys."""
        found = join_tables(self._table, old, new)
        for (gone,) in _pieces(found.gone):
            yield self._lines(Phase.GONE, gone.column("key"), _cells(gone), None)
        for (added,) in _pieces(found.new):
            yield from self._added(added.column("key"), _cells(added))
        for before, after in _pieces(found.before, found.after):
            yield self._lines(Phase.CHANGED, after.column("key"), _cells(before), _cells(after))

    def _added(self, keys: pa.Array, cells: Columns) -> Iterator[DifferenceLine]:
        """Yield new objects; those in a circle of references come first without these, then with them."""
        pairs = list(zip(cells, self._circular, strict=True))
        first = [pa.nulls(len(keys), pa.string()) if later else one for one, later in pairs]
        yield self._lines(Phase.NEW, keys, None, first)
        late = [flags(one.is_valid()) for one, later in pairs if later]
        if late and (some := np.logical_or.reduce(late)).any():
            at = pa.array(some)
            before, after = ([one.filter(at) for one in side] for side in (first, cells))
            yield self._lines(Phase.CHANGED, keys.filter(at), before, after)

    def _lines(
        self, phase: Phase, keys: pa.Array, before: Columns | None, after: Columns | None
    ) -> DifferenceLine:
        """Return the lines of differences; objects with equal values have none."""
        sides, differ = self._sides(before, after, len(keys))
        heads = self._filled(keys, *sides)
        refused = pa.nulls(len(keys), pa.string())
        doubtful = flags(heads.is_null())
        if doubtful.any():
            at = pa.array(doubtful)
            some = [keys.filter(at).to_pylist(), *(_cells_of(side, at) for side in (before, after))]
            plain = [self._plainly(Difference(*one)) for one in zip(*some, strict=True)]
            heads = pc.replace_with_mask(heads, at, pa.array([head for head, _ in plain], pa.string()))
            refused = pc.replace_with_mask(refused, at, pa.array([why for _, why in plain], pa.string()))
            differ[doubtful] = [one != _NOTHING for one in plain]
        differing = pa.array(differ)
        return DifferenceLine(
            phase, keys.filter(differing), heads.filter(differing), refused.filter(differing)
        )

    def _sides(
        self, before: Columns | None, after: Columns | None, count: int
    ) -> tuple[tuple[Columns | None, Columns | None], Flags]:
        """Return the JSON of so many objects before and after, and which of them have a difference."""
        if before is not None and after is not None:
            old, new, tells = self._changed(before, after, count)
            return (old, new), tells
        one, other = (None if side is None else self._json(side) for side in (before, after))
        return (one, other), np.ones(count, np.bool_)

    def _changed(self, before: Columns, after: Columns, count: int) -> tuple[Columns, Columns, Flags]:
        old, new = [], self._json(after)
        tells = np.zeros(count, np.bool_)
        columns = zip(self._table.data, self._data, before, after, new, strict=True)
        for column, json, one, other, now in columns:
            differ = differing(one, other)
            if not differ.any():
                old.append(now)
                continue
            at = pa.array(differ)
            was, to = json.of(one.filter(at)), now.filter(at)
            if column.number is not None:
                was = pc.if_else(_same(column, one.filter(at), other.filter(at)), to, was)
            tells[differ] |= pc.fill_null(pc.not_equal(was, to), True).to_numpy(zero_copy_only=False)
            old.append(pc.replace_with_mask(now, at, was))
        return old, new, tells

    def _json(self, cells: Columns) -> list[pa.Array]:
        return [json.of(one) for json, one in zip(self._data, cells, strict=True)]

    def _key_json(self, keys: pa.Array) -> list[pa.Array]:
        """Return the JSON of the values in keys; null where one has quotes."""
        found = pc.extract_regex(keys, self._key_form)
        values = zip(self._keys, found.flatten(), strict=True)
        return [pc.if_else(found.is_valid(), json.of(texts), None) for json, texts in values]

    def _filled(self, keys: pa.Array, old: Columns | None, new: Columns | None) -> pa.Array:
        """Return the frame of a line around the values; null where one of these is."""
        named = self._key_json(keys)
        sides = [side for side in (old, new) if side is not None]
        values = [*named, *chain.from_iterable([one] * len(sides) for one in named)]
        values += chain.from_iterable(zip(*sides, strict=True))
        frame = self._frames[old is not None, new is not None]
        pieces = chain.from_iterable(zip(frame, values, strict=False))
        return pc.binary_join_element_wise(*pieces, frame[-1], "")

    def _plainly(self, one: Difference) -> tuple[str | None, str | None]:
        """Return the line of one difference up to its position, or why it is refused."""
        try:
            change = change_of(self._table, one)
        except EventlogError as fault:
            return None, str(fault)
        if change is None:
            return _NOTHING
        return dumps(change._replace(position="")).removesuffix(f'""{END}'), None


_NOTHING = (None, None)


def _frame(table: Table, had: bool, has: bool) -> list[str]:
    """Return the texts around the values of a line: those of the key, then those of each column, before and
    after.

    The last piece ends before the position.
    """
    mark = "?"
    while mark in f"{table} {[*table.key, *table.columns]}":
        mark += "?"
    key = tuple((name, mark) for name in table.key)
    old, new = ([mark] * len(table.data) if there else None for there in (had, has))
    return dumps(build_change(table, key, old, new)._replace(position=mark)).split(f'"{mark}"')[:-1]


def _same(column: Column, before: pa.Array, after: pa.Array) -> pa.Array:
    """Return whether texts of numbers mean the same."""
    sides = before, after
    trimmed = [pc.replace_substring_regex(texts, _DIGITS, r"\1\2") for texts in sides]
    sure = np.full(len(before), column.number is Precision.EXACT)
    for texts, plain in zip(sides, trimmed, strict=True):
        sure &= flags(pc.match_substring_regex(texts, _DIGITS)) & flags(pc.not_equal(plain, "-0"))
    at = pa.array(~sure)
    pairs = zip(*(texts.filter(at).to_pylist() for texts in sides), strict=True)
    others = pa.array([same_text(column, *pair) for pair in pairs], pa.bool_())
    return pc.replace_with_mask(pc.equal(*trimmed), at, others)


def _cells(rows: pa.RecordBatch) -> Columns:
    """Return the columns outside the key."""
    found: Columns = rows.columns[2:]
    return found


def _cells_of(side: Columns | None, at: pa.Array) -> Iterable[tuple[str | None, ...] | None]:
    """Return the cells of some rows, one by one; None for the side that has no object."""
    if side is None:
        return [None] * at.true_count
    if not side:
        return [()] * at.true_count
    return zip(*(one.filter(at).to_pylist() for one in side), strict=True)


def _pieces(*sides: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Yield the rows of sides that have as many, so many bytes at a time."""
    count = sides[0].num_rows
    if not count:
        return
    columns = (column for side in sides for column in side.columns)
    sizes = sum(pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64) for column in columns)
    edges = np.flatnonzero(np.diff(np.cumsum(sizes) // _AT_ONCE)) + 1
    for begin, end in pairwise([0, *edges.tolist(), count]):
        yield tuple(side.slice(begin, end - begin) for side in sides)
