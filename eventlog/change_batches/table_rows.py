"""Rows of a change table as changes: consecutive rows of one change_seq are a group.

A group of one row that is no B row is regular, and so is one of a B row and its U row. Every other group is
odd, as is one with a header or a value that is not certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches.batch import BatchTable, ChangeBatch, Sides, SideState
from eventlog.change_batches.masks import MaskTable, masks_of
from eventlog.change_batches.values import (
    CellsOf,
    Texts,
    kind_of,
    load,
    make_each,
    matches,
    texts_or_none,
    times,
)
from eventlog.core.errors import EventlogError
from eventlog.fold.by_column.vectors import Flags, Ints, encode_texts, flags
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.headers import ISO
from eventlog.formats.qlik.row_headers import FACTS
from eventlog.formats.qlik.rows import TablePart
from eventlog.formats.qlik.sides import Masks, Readings

INSERT, UPDATE, DELETE, SNAPSHOT, IMAGE, TRUNCATE, WRONG = range(7)  # letters; the first are places of OPS
_LETTERS = {"I": INSERT, "U": UPDATE, "D": DELETE, "B": IMAGE}
_SEQUENCE = rf"\A(?:{sequence.PATTERN})\z"


class Groups(NamedTuple):
    """The rows in groups, which follow each other."""

    first: Ints  # row of each
    sizes: Ints


class Headers(NamedTuple):
    """The headers by which rows belong together."""

    letters: Ints
    sequences: pa.Array  # null in a row of a full load
    refused: Flags  # by the plain reader, which has the reason


class TableChanges(NamedTuple):
    """The change of each group, and which groups are odd."""

    batch: ChangeBatch
    odd: Flags
    proven: Ints  # the byte order that a mask proves, by its number in `proven_order`


class _Pair(NamedTuple):
    """The row of each change, and its B row."""

    rows: Ints
    images: Ints  # 0 without one
    has_image: Flags


class _RowTexts(NamedTuple):
    """The texts of rows, and which rows are odd."""

    values: list[pa.Array]  # of the columns
    transactions: pa.Array
    times: pa.Array
    facts: dict[str, pa.Array]
    odd: Flags


class RowReader:
    """Reads rows of the columns of one part; `cells_of` returns cells as its plain reader has them."""

    def __init__(self, part: TablePart, types: Sequence[pa.DataType], cells_of: CellsOf) -> None:
        self._part = part
        self._cells_of = cells_of
        self._places = part.heading.headers
        structure = part.structure
        of_columns = zip(structure.columns, part.heading.places, strict=True)
        kinds = tuple(kind_of(column.spec, types[place]) for column, place in of_columns)
        self._facts = tuple(name for name in FACTS if name in self._places)
        self.table = BatchTable(structure.schema, structure.table, structure.names, kinds, structure.key)

    def headers(self, columns: Sequence[pa.Array]) -> Headers:
        """Return the headers of rows."""
        letters = self._letters(columns)
        refused = letters == WRONG
        if "change_mask" in self._places:
            masks = self._header(columns, "change_mask")
            refused |= make_each(masks, lambda cell: self._mask(cell).hex(), self._cells_of).odd
        sequences = self._header(columns, "change_seq")
        is_loaded = flags(pc.fill_null(pc.equal(sequences, ""), True)) & (letters == INSERT)
        certain = matches(sequences, _SEQUENCE)
        sound = sequences if certain.all() else pc.if_else(pa.array(certain), sequences, None)
        return Headers(np.where(is_loaded, SNAPSHOT, letters), sound, refused | ~(certain | is_loaded))

    def changes(
        self, columns: Sequence[pa.Array], headers: Headers, groups: Groups, *, checks_images: bool
    ) -> TableChanges:
        """Return the changes of groups; if it is asked for, a B row must not contradict its U row."""
        pair, odd = _pairs(headers.letters, groups)
        masks, texts = self._masks(columns), self._texts(columns)
        of_change = masks.numbers[pair.rows]
        odd |= (masks.odd | ~masks.are_stated)[of_change] | np.logical_or.reduceat(texts.odd, groups.first)
        ops = np.minimum(headers.letters[pair.rows], SNAPSHOT)  # those above are of odd groups
        rules = _Sides(ops, masks.changed[of_change], pair, "change_mask" in self._places, texts.values)
        sides = [rules.of(place, place in self.table.key) for place in range(len(texts.values))]
        for place in self.table.key:
            odd |= rules.lack_key(sides[place])
        if checks_images:
            odd |= rules.contradict()
        batch = self._batch(ops, headers, pair.rows, texts, sides)
        return TableChanges(batch, odd, masks.proven[of_change])

    def _batch(
        self, ops: Ints, headers: Headers, rows: Ints, texts: _RowTexts, sides: Sequence[Sides]
    ) -> ChangeBatch:
        at = pa.array(rows)
        key = [texts.values[place].take(at) for place in self.table.key]
        facts = {name: values.take(at) for name, values in texts.facts.items()}
        positions, transactions = headers.sequences.take(at), texts.transactions.take(at)
        return ChangeBatch(self.table, ops, key, sides, positions, transactions, texts.times.take(at), facts)

    def _letters(self, columns: Sequence[pa.Array]) -> Ints:
        """Return the number of each row's letter."""
        (opers, oper_cells), (operations, operation_cells) = (
            encode_texts(self._header(columns, name)) for name in ("change_oper", "operation")
        )
        width = len(operation_cells)
        cases = opers.astype(np.int64) * width + operations
        letters = np.full(len(oper_cells) * width, WRONG)
        for case in np.flatnonzero(np.bincount(cases, minlength=len(letters))).tolist():
            kind = oper_cells[case // width], operation_cells[case % width]
            try:
                letters[case] = _LETTERS.get(self._part.headers.letter_of(kind), TRUNCATE)
            except (EventlogError, TypeError):
                continue
        letters_of_rows: Ints = letters[cases]
        return letters_of_rows

    def _mask(self, cell: Any) -> bytes:
        return self._part.masks.load_cell(cell)

    def _masks(self, columns: Sequence[pa.Array]) -> MaskTable:
        width = len(self.table.columns)
        if "change_mask" not in self._places:
            all_marked = Readings((Masks((True,) * width, tuple(range(width))),), ())
            return masks_of(np.zeros(len(columns[0]), np.int64), [all_marked], lambda cell: all_marked, width)
        numbers, cells = encode_texts(self._header(columns, "change_mask"))
        return masks_of(numbers, cells, lambda cell: self._part.masks.readings(self._mask(cell)), width)

    def _texts(self, columns: Sequence[pa.Array]) -> _RowTexts:
        """Return the texts of the rows."""
        values = [self._values(columns, place) for place in range(len(self.table.columns))]
        transactions, *fact_texts = (self._fact(columns, name) for name in ("transaction_id", *self._facts))
        times = self._times(columns)
        facts = {name: texts for name, (texts, _) in zip(self._facts, fact_texts, strict=True)}
        odd = np.logical_or.reduce([is_odd for _, is_odd in (*values, transactions, *fact_texts, times)])
        return _RowTexts([texts for texts, _ in values], transactions.texts, times.texts, facts, odd)

    def _values(self, columns: Sequence[pa.Array], place: int) -> Texts:
        part, kind = self._part, self.table.kinds[place]
        cells, spec = columns[part.heading.places[place]], part.structure.columns[place].spec
        return load(cells, spec, kind, partial(part.plan.convert_value, place), self._cells_of)

    def _times(self, columns: Sequence[pa.Array]) -> Texts:
        """Return the times as changes contain them."""
        headers = self._part.headers
        is_iso = headers.time_form == ISO
        return times(self._header(columns, "timestamp"), headers.time, self._cells_of, is_iso=is_iso)

    def _fact(self, columns: Sequence[pa.Array], name: str) -> Texts:
        """Return the texts of a header; an empty one is none."""
        cells = self._header(columns, name)
        if not pa.types.is_string(cells.type):
            return Texts(pa.nulls(len(cells), pa.string()), flags(cells.is_valid()))
        return Texts(texts_or_none(cells), np.zeros(len(cells), np.bool_))

    def _header(self, columns: Sequence[pa.Array], name: str) -> pa.Array:
        place = self._places.get(name)
        if place is None or pa.types.is_null(columns[place].type):
            return pa.nulls(len(columns[0]), pa.string())
        return columns[place]


def _pairs(letters: Ints, groups: Groups) -> tuple[_Pair, Flags]:
    """Return the row of each group with its B row, and which groups are odd."""
    first, sizes = groups
    second = np.minimum(first + 1, len(letters) - 1)
    letter, next_letter = letters[first], letters[second]
    image_first = (sizes == 2) & (letter == IMAGE) & (next_letter == UPDATE)
    has_image = image_first | ((sizes == 2) & (letter == UPDATE) & (next_letter == IMAGE))
    images = np.where(image_first, first, second) * has_image
    is_regular = has_image | ((sizes == 1) & (letter <= SNAPSHOT))
    return _Pair(np.where(image_first, second, first), images, has_image), ~is_regular


class _Sides:
    """The rules of the sides of a change (`formats/qlik/sides`), for all changes at once."""

    def __init__(
        self, ops: Ints, bits: npt.NDArray[np.bool_], pair: _Pair, is_masked: bool, values: Sequence[pa.Array]
    ) -> None:
        self._is_update: Flags = ops == UPDATE
        self._is_delete: Flags = ops == DELETE
        self._bits = bits
        self._pair = pair
        self._is_masked = is_masked
        self._values = values
        self._valid = [flags(array.is_valid()) for array in values]
        self._only_marked = self._deletes_of_marked()
        self._equal = [self._are_equal(array) for array in values]

    def of(self, place: int, in_key: bool) -> Sides:
        """Return the sides of a column."""
        bit, has_image = self._bits[:, place], self._pair.has_image
        has_new, has_old = (
            self._valid[place][self._pair.rows],
            self._valid[place][self._pair.images] & has_image,
        )
        has = np.where(has_new, SideState.VALUE, np.where(bit, SideState.NULL, SideState.ABSENT))
        both_null = SideState.ABSENT if self._is_masked else SideState.NULL
        marked = np.where(has_old, SideState.VALUE, np.where(has_new, SideState.NULL, both_null))
        clear = np.where(has_new | has_old, SideState.VALUE, SideState.ABSENT)
        had = np.where(bit, np.where(has_image, marked, SideState.ABSENT), clear)
        if in_key:  # a null in both rows is one that was captured
            is_null = ~bit & has_image & ~has_new & ~has_old
            has, had = np.where(is_null, SideState.NULL, has), np.where(is_null, SideState.NULL, had)
        deleted = np.where(
            self._only_marked & ~bit, SideState.ABSENT, np.where(has_new, SideState.VALUE, SideState.NULL)
        )
        had = np.where(self._is_update, had, np.where(self._is_delete, deleted, SideState.ABSENT))
        has = np.where(self._is_delete, SideState.ABSENT, has)
        are_equal = self._equal[place]
        from_image = has_image & (bit | ~has_new) & ~are_equal
        old_at = np.where(from_image, self._pair.images, self._pair.rows)
        same = self._is_update & has_new & (~bit | are_equal) & (had == SideState.VALUE)
        return Sides(self._values[place], old_at, self._pair.rows, had, has, same)

    def lack_key(self, sides: Sides) -> Flags:
        """Return the changes whose key is not in the row, or was another one."""
        of_row = np.where(self._is_delete, sides.had, sides.has)
        without_key: Flags = (of_row != SideState.VALUE) | (
            self._is_update & (sides.had != SideState.ABSENT) & ~sides.same
        )
        return without_key

    def contradict(self) -> Flags:
        """Return the updates whose B row has another value, although its bit is clear."""
        rows, images, has_image = self._pair
        differ = [
            valid[rows] & valid[images] & ~self._bits[:, place] & ~self._equal[place]
            for place, valid in enumerate(self._valid)
        ]
        contradicted: Flags = has_image & np.logical_or.reduce(differ)
        return contradicted

    def _deletes_of_marked(self) -> Flags:
        """Return the deletes in which only columns with a set bit have values."""
        if not self._is_delete.any():
            return self._is_delete
        values = np.stack([valid[self._pair.rows] for valid in self._valid], axis=1)
        marked: Flags = self._is_delete & self._bits.any(axis=1) & ~(values & ~self._bits).any(axis=1)
        return marked

    def _are_equal(self, values: pa.Array) -> Flags:
        """Return the changes whose two values are equal; the two rows are neighbours."""
        rows, images, has_image = self._pair
        if len(values) < 2:
            return np.zeros(len(rows), np.bool_)
        near = flags(pc.equal(values[1:], values[:-1]))
        equal: Flags = has_image & near[np.minimum(np.minimum(rows, images), len(near) - 1)]
        return equal
