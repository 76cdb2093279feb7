"""Differences as lines of the format `changes`, many at once, each up to its position.

The form of a line is learned from the plain writer: the texts around its values are its frame. For a new
object of a table with the key ID and the column NAME these are the values 1, 1 and "Ann" in the frame

    {"op":"insert",…,"key":{"ID":1},"fields":[{"column":"ID","after":1},{"column":"NAME","after":"Ann"}],…

A value whose text shows its JSON form is copied; others are loaded one by one. An object with an illegal
value, or with quotes in its key, goes the plain way as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.compare import MEMORY
from eventlog.compare.changes import Difference, build_change, change_of, same_text
from eventlog.compare.join import differing, join_sides, join_tables
from eventlog.compare.jsontexts import JsonTexts
from eventlog.compare.ordering import Order, Phase, Ranks, ranks
from eventlog.compare.rows import schema
from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Precision
from eventlog.fold.by_column.vectors import Flags, flags
from eventlog.formats.neutral import dumps

_AT_ONCE = 16 << 20  # bytes of values that become lines together
_DIGITS = r"\A(-?(?:0|[1-9][0-9]{0,17}))(?:\.0{0,18}|(\.[0-9]{0,17}[1-9])0{0,18})?\z"  # of plain numbers
_KEY_VALUE = r"[^,;'+\"=\\<>]*"  # that is in a key without quotes
END = dumps(Change(Op.INSERT, None, "", position="")).rpartition('""')[2]  # of each line, after its position

Batches = Iterable[pa.RecordBatch]
Columns = Sequence[pa.Array]


class DifferenceLines(NamedTuple):
    """The differences of one phase. Each object has its key, and either a line or why it is refused."""

    phase: Phase
    keys: pa.Array
    heads: pa.Array  # the lines, up to their positions; null where refused
    refused: pa.Array  # why an object has no line; null where it has one


def differences(
    tables: Tables, table: Table, old_batches: Batches, new_batches: Batches, memory: int = MEMORY
) -> Iterator[DifferenceLines]:
    """Yield the objects of one of these tables that differ, in no order."""
    form = schema(table)
    writer = LineWriter(ranks(tables), table)
    yield from join_sides(form, old_batches, form, new_batches, writer.write, memory)


def in_order(
    tables: Tables, differences: Iterable[tuple[Table, DifferenceLines]], memory: int = MEMORY
) -> Iterator[str | Refused]:
    """Yield the lines of differences in the order in which they leave, numbered."""
    order: Order[str | Refused] = Order(tables, memory)
    for table, lines in differences:
        for key, head, refused in zip(*(column.to_pylist() for column in lines[1:]), strict=True):
            item = head if refused is None else Refused(f"{table} {key}", refused)
            order.add(lines.phase, table, key, item)
    position = 0
    for _, _, item in order:
        if isinstance(item, str):
            position += 1
            yield f'{item}"{position}"{END}'
        else:
            yield item


class LineWriter:
    """Writes the differences of one table as lines."""

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

    def write(self, old_rows: pa.RecordBatch, new_rows: pa.RecordBatch) -> Iterator[DifferenceLines]:
        """Yield the differences between all rows of some keys on both sides."""
        joined = join_tables(self._table, old_rows, new_rows)
        for (deleted,) in _pieces(joined.deleted):
            yield self._lines_of(Phase.DELETED, deleted.column("key"), _cells(deleted), None)
        for (added,) in _pieces(joined.added):
            yield from self._added(added.column("key"), _cells(added))
        for before, after in _pieces(joined.before, joined.after):
            yield self._lines_of(Phase.CHANGED, after.column("key"), _cells(before), _cells(after))

    def _added(self, keys: pa.Array, cells: Columns) -> Iterator[DifferenceLines]:
        """Yield new objects; those in a circle of references come first without these, then with them."""
        pairs = list(zip(cells, self._circular, strict=True))
        first = [pa.nulls(len(keys), pa.string()) if is_circular else column for column, is_circular in pairs]
        yield self._lines_of(Phase.NEW, keys, None, first)
        late_columns = [flags(column.is_valid()) for column, is_circular in pairs if is_circular]
        if late_columns and (has_late := np.logical_or.reduce(late_columns)).any():
            at = pa.array(has_late)
            before, after = ([column.filter(at) for column in side] for side in (first, cells))
            yield self._lines_of(Phase.CHANGED, keys.filter(at), before, after)

    def _lines_of(
        self, phase: Phase, keys: pa.Array, before: Columns | None, after: Columns | None
    ) -> DifferenceLines:
        """Return the lines of differences; objects with equal values have none."""
        sides, differ = self._sides(before, after, len(keys))
        heads = self._filled(keys, *sides)
        refused = pa.nulls(len(keys), pa.string())
        doubtful = flags(heads.is_null())
        if doubtful.any():
            at = pa.array(doubtful)
            doubtful_rows = [keys.filter(at).to_pylist(), *(_cells_of(side, at) for side in (before, after))]
            plain = [self._plain_line(Difference(*row)) for row in zip(*doubtful_rows, strict=True)]
            heads = pc.replace_with_mask(heads, at, pa.array([head for head, _ in plain], pa.string()))
            refused = pc.replace_with_mask(refused, at, pa.array([why for _, why in plain], pa.string()))
            differ[doubtful] = [head_and_reason != _NO_LINE for head_and_reason in plain]
        differing = pa.array(differ)
        return DifferenceLines(
            phase, keys.filter(differing), heads.filter(differing), refused.filter(differing)
        )

    def _sides(
        self, before: Columns | None, after: Columns | None, count: int
    ) -> tuple[tuple[Columns | None, Columns | None], Flags]:
        """Return the JSON of so many objects before and after, and which of them have a difference."""
        if before is not None and after is not None:
            old_json, new_json, has_difference = self._changed_sides(before, after, count)
            return (old_json, new_json), has_difference
        before_json, after_json = (None if side is None else self._json(side) for side in (before, after))
        return (before_json, after_json), np.ones(count, np.bool_)

    def _changed_sides(self, before: Columns, after: Columns, count: int) -> tuple[Columns, Columns, Flags]:
        """Return the JSON of so many objects before and after, and which of them have a difference.

        Where both sides mean one value, as 1 and 1.0 do, the JSON before is that after.
        """
        old_json, new_json = [], self._json(after)
        has_difference = np.zeros(count, np.bool_)
        columns = zip(self._table.data, self._data, before, after, new_json, strict=True)
        for column, json, before_texts, after_texts, after_json in columns:
            differ = differing(before_texts, after_texts)
            if not differ.any():
                old_json.append(after_json)
                continue
            at = pa.array(differ)
            differing_before, differing_after = json.of(before_texts.filter(at)), after_json.filter(at)
            if column.number is not None:
                is_same = _same(column, before_texts.filter(at), after_texts.filter(at))
                differing_before = pc.if_else(is_same, differing_after, differing_before)
            is_different = pc.fill_null(pc.not_equal(differing_before, differing_after), True)
            has_difference[differ] |= is_different.to_numpy(zero_copy_only=False)
            old_json.append(pc.replace_with_mask(after_json, at, differing_before))
        return old_json, new_json, has_difference

    def _json(self, cells: Columns) -> list[pa.Array]:
        return [json.of(texts) for json, texts in zip(self._data, cells, strict=True)]

    def _key_json(self, keys: pa.Array) -> list[pa.Array]:
        """Return the JSON of the values in keys; null where one has quotes."""
        key_values = pc.extract_regex(keys, self._key_form)
        values = zip(self._keys, key_values.flatten(), strict=True)
        return [pc.if_else(key_values.is_valid(), json.of(texts), None) for json, texts in values]

    def _filled(self, keys: pa.Array, old_json: Columns | None, new_json: Columns | None) -> pa.Array:
        """Return the frame of a line around the values; null where one of these is."""
        named = self._key_json(keys)
        sides = [side for side in (old_json, new_json) if side is not None]
        values = [*named, *chain.from_iterable([texts] * len(sides) for texts in named)]
        values += chain.from_iterable(zip(*sides, strict=True))
        frame = self._frames[old_json is not None, new_json is not None]
        pieces = chain.from_iterable(zip(frame, values, strict=False))
        return pc.binary_join_element_wise(*pieces, frame[-1], "")

    def _plain_line(self, difference: Difference) -> tuple[str | None, str | None]:
        """Return the line of one difference up to its position, or why it is refused."""
        try:
            change = change_of(self._table, difference)
        except EventlogError as fault:
            return None, str(fault)
        if change is None:
            return _NO_LINE
        return dumps(change._replace(position="")).removesuffix(f'""{END}'), None


_NO_LINE = (None, None)


def _frame(table: Table, had: bool, has: bool) -> list[str]:
    """Return the texts around the values of a line: those of the key, then those of each column, before and
    after.

    The last piece ends before the position.
    """
    mark = "?"
    while mark in f"{table} {[*table.key, *table.columns]}":
        mark += "?"
    key = tuple((name, mark) for name in table.key)
    old_marks, new_marks = ([mark] * len(table.data) if exists else None for exists in (had, has))
    return dumps(build_change(table, key, old_marks, new_marks)._replace(position=mark)).split(f'"{mark}"')[
        :-1
    ]


def _same(column: Column, before: pa.Array, after: pa.Array) -> pa.Array:
    """Return whether the texts before and after mean one number."""
    sides = before, after
    trimmed = [pc.replace_substring_regex(texts, _DIGITS, r"\1\2") for texts in sides]
    is_plain = np.full(len(before), column.number is Precision.EXACT)
    for texts, plain in zip(sides, trimmed, strict=True):
        is_plain &= flags(pc.match_substring_regex(texts, _DIGITS)) & flags(pc.not_equal(plain, "-0"))
    at = pa.array(~is_plain)
    pairs = zip(*(texts.filter(at).to_pylist() for texts in sides), strict=True)
    same_values = pa.array([same_text(column, *pair) for pair in pairs], pa.bool_())
    return pc.replace_with_mask(pc.equal(*trimmed), at, same_values)


def _cells(rows: pa.RecordBatch) -> Columns:
    """Return the columns outside the key."""
    columns: Columns = rows.columns[2:]
    return columns


def _cells_of(side: Columns | None, at: pa.Array) -> Iterable[tuple[str | None, ...] | None]:
    """Return the cells of some rows, one by one; None for the side that has no object."""
    if side is None:
        return [None] * at.true_count
    if not side:
        return [()] * at.true_count
    return zip(*(column.filter(at).to_pylist() for column in side), strict=True)


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
