"""The changes of a piece of a change table as one batch, as far as all of its rows are plain.

Plain rows have a change_seq; a B row is directly before its U row; no row truncates the table. Nothing
contradicts itself or another row, and the masks prove at most one byte order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.captures.column_values import NotPlain
from eventlog.columnar.change_batch import ChangeBatch
from eventlog.columnar.change_tables.typed_cells import plain, typed
from eventlog.columnar.vectors import Flags, Ints, flags
from eventlog.core.change import Op
from eventlog.core.errors import EventlogError
from eventlog.qlik import sequence
from eventlog.qlik.headers import letter_of
from eventlog.qlik.mask import MaskOrder, differs
from eventlog.qlik.ordering import DOCUMENTED, Finder
from eventlog.qlik.rows import RowReader

_OPS: Final = {"I": Op.INSERT, "U": Op.UPDATE, "D": Op.DELETE}
_FACTS: Final = ("stream_position", "partition_name")
Matrix = npt.NDArray[np.bool_]


class _Coded(NamedTuple):
    """A column of cells as numbers, with the distinct cells in the order in which they first occur."""

    of: Ints
    cells: list[Any]


def table_batch(
    reader: RowReader, finder: Finder, columns: Mapping[str, pa.Array], where: Ints
) -> tuple[ChangeBatch | None, int]:
    """Return the changes of rows, and how many rows at the end may belong to those that follow.

    Raise NotPlain if the row-wise reader must read them.
    """
    try:
        return _Piece(reader, finder, list(columns.values()), where).batch()
    except (EventlogError, pa.ArrowInvalid, TypeError, OverflowError) as fault:
        raise NotPlain from fault


class _Piece:
    """The rows of a piece, whose headers were checked."""

    def __init__(self, reader: RowReader, finder: Finder, columns: list[pa.Array], where: Ints) -> None:
        self._reader = reader
        self._finder = finder
        self._where = where
        self._names = reader.structure.names
        at = reader.heading.headers
        if "change_seq" not in at:
            raise NotPlain
        self._headers = {name: columns[place] for name, place in at.items()}
        self._data = [columns[place] for place in reader.heading.places]
        self._seq = self._sequences()
        self._letters = self._read_letters()
        self._masks = self._read_masks()

    def batch(self) -> tuple[ChangeBatch | None, int]:
        """Return the changes, and how many rows are left for the next piece."""
        rows, images, left = self._pairs()
        if not len(rows):
            return None, left
        if not self._finder.undecided and self._finder.order is None:
            self._finder.settle()
        proof = self._proof(rows)
        order = self._finder.order or (proof.order if proof else DOCUMENTED)
        columns = self._heads(rows) | self._sides(rows, images, self._marked(rows, order))
        self._finder.pass_over(len(rows), proof and (proof.order, proof.where))
        structure = self._reader.structure
        key = tuple(self._names[place] for place in structure.key)
        batch = pa.RecordBatch.from_pydict(columns)
        return ChangeBatch(structure.schema, structure.table, key, (), batch), left

    def _sequences(self) -> pa.Array:
        seq = self._headers["change_seq"]
        if not pa.types.is_string(seq.type) or seq.null_count:
            raise NotPlain
        if pc.all(pc.match_substring_regex(seq, rf"^{sequence.PATTERN}\z")).as_py() is False:
            raise NotPlain
        return seq

    def _read_letters(self) -> npt.NDArray[np.str_]:
        oper, operation = map(self._coded, ("change_oper", "operation"))
        pairs, of = np.unique(oper.of * len(operation.cells) + operation.of, return_inverse=True)
        letters = [
            letter_of(oper.cells[pair // len(operation.cells)], operation.cells[pair % len(operation.cells)])
            for pair in pairs.tolist()
        ]
        if "T" in letters:
            raise NotPlain
        found: npt.NDArray[np.str_] = np.array(letters, "U1")[of]
        return found

    def _read_masks(self) -> _Coded | None:
        """Return the mask of each row; None where the table has none."""
        if "change_mask" not in self._headers:
            return None
        of, cells = self._coded("change_mask")
        return _Coded(of, list(map(self._reader.mask_of, cells)))

    def _coded(self, name: str) -> _Coded:
        column = self._headers.get(name)
        if column is None:
            return _Coded(np.zeros(len(self._where), np.int64), [None])
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        of = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return _Coded(of, encoded.dictionary.to_pylist())

    def _pairs(self) -> tuple[Ints, Ints, int]:
        """Return the rows of changes, the B row of each or -1, and how many rows are left."""
        old, new = self._letters == "B", self._letters == "U"
        same = flags(pc.equal(self._seq[1:], self._seq[:-1]))
        whole = np.append(old[:-1] & new[1:] & same, False)  # B rows directly before their U rows
        paired = np.append(False, whole[:-1])
        open_end = bool(len(old)) and bool(old[-1] or (new[-1] and not paired[-1]))
        count = len(old) - open_end
        behind = new[:-1] & ~paired[:-1] & old[1:] & same
        if (old & ~whole)[:count].any() or behind.any():
            raise NotPlain
        rows = np.flatnonzero(~old[:count])
        return rows, np.where(paired[rows], rows - 1, -1), int(open_end)

    def _proof(self, rows: Ints) -> _Proof | None:
        """Return the byte order that masks prove; NotPlain if the row-wise reader must decide."""
        if self._masks is None:
            return None
        of = self._masks.of[rows]
        proven: dict[int, MaskOrder] = {}
        for number in np.unique(of).tolist():
            mask = self._masks.cells[number]
            proof = self._reader.proof(mask)
            if proof is not None:
                proven[number] = proof
            elif len(mask) > 1 and differs(mask, self._reader.layout):
                raise NotPlain
        if not proven:
            return None
        first = int(np.flatnonzero(np.isin(of, list(proven)))[0])
        if self._finder.order is None and first >= self._finder.undecided:
            raise NotPlain
        return _Proof(proven[int(of[first])], int(self._where[rows[first]]))

    def _marked(self, rows: Ints, order: MaskOrder) -> Matrix | None:
        """Return whether the mask of each change sets the bit of each data column; None without masks."""
        if self._masks is None:
            return None
        of = self._masks.of[rows]
        found = np.zeros((len(self._masks.cells), len(self._names)), np.bool_)
        for number in np.unique(of).tolist():
            found[number] = self._reader.flags_of(self._masks.cells[number], order)
        return found[of]

    def _heads(self, rows: Ints) -> dict[str, pa.Array]:
        """Return the columns of the header."""
        take = pa.array(rows)
        names, of = np.unique(self._letters[rows], return_inverse=True)
        ops = pa.array([_OPS[letter].value for letter in names.tolist()])
        facts = [name for name in _FACTS if name in self._headers]
        return {
            "op": pa.DictionaryArray.from_arrays(of.astype(np.int32), ops),
            "position": self._seq.take(take),
            "transaction": self._text("transaction_id").take(take),
            "time": self._times().take(take),
            "user": pa.nulls(len(rows), pa.string()),
            **{name: self._text(name).take(take) for name in facts},
        }

    def _text(self, name: str) -> pa.Array:
        """Return a header that is text; an empty one is null."""
        column = self._headers.get(name)
        if column is None or pa.types.is_null(column.type):
            return pa.nulls(len(self._where), pa.string())
        if not pa.types.is_string(column.type):
            raise NotPlain
        return pc.if_else(pc.equal(column, ""), None, column)

    def _times(self) -> pa.Array:
        column = self._headers.get("timestamp")
        if column is not None and not plain(column.type):
            raise NotPlain
        of, cells = self._coded("timestamp")
        return pa.array(list(map(self._reader.time_of, cells)), pa.string()).take(pa.array(of))

    def _sides(self, rows: Ints, images: Ints, marked: Matrix | None) -> dict[str, pa.Array]:
        """Return the rows before and after, and which of their columns were captured."""
        kinds = _Kinds(self._letters[rows], images)
        if marked is not None and not self._reader.structure.key and kinds.deleted.any():
            raise NotPlain  # these masks name the keys
        count = int(rows[-1]) + 1
        values = [typed(column[:count], at, self._reader) for at, column in enumerate(self._data)]
        nulls = np.array([flags(column.is_null()) for column in values]).T.reshape(count, -1)
        new, old = nulls[rows], nulls[np.where(images < 0, rows, images)]
        has = kinds.after(new, marked)
        had = kinds.before(new, old, marked)
        if marked is not None and (kinds.paired[:, None] & new & old & ~marked)[:, self._key].any():
            raise NotPlain  # in a key a null is a value
        imaged = kinds.paired[:, None] & (np.ones_like(new) if marked is None else marked | new)
        before = [self._before(column, rows, images, imaged[:, at]) for at, column in enumerate(values)]
        after = [column.take(pa.array(rows)) for column in values]
        return {
            "before": self._struct(before, pa.array(~had.any(axis=1))),
            "after": self._struct(after, pa.array(~has.any(axis=1))),
            "captured_before": self._struct([pa.array(column) for column in had.T]),
            "captured_after": self._struct([pa.array(column) for column in has.T]),
        }

    @property
    def _key(self) -> list[int]:
        return list(self._reader.structure.key)

    def _before(self, column: pa.Array, rows: Ints, images: Ints, imaged: Flags) -> pa.Array:
        return column.take(pa.array(np.where(imaged, images, rows)))

    def _struct(self, columns: list[pa.Array], absent: pa.Array | None = None) -> pa.StructArray:
        return pa.StructArray.from_arrays(columns, self._names, mask=absent)


class _Proof(NamedTuple):
    """A byte order, and the place of the row that proves it."""

    order: MaskOrder
    where: int


class _Kinds:
    """The kinds of changes, and which columns they capture (see `eventlog.qlik.rows`)."""

    def __init__(self, letters: npt.NDArray[np.str_], images: Ints) -> None:
        self.deleted: Flags = letters == "D"
        updated: Flags = letters == "U"
        self.paired: Flags = updated & (images >= 0)
        self._alone: Flags = updated & (images < 0)

    def after(self, nulls: Matrix, marked: Matrix | None) -> Matrix:
        """Return the columns after a change: a null that no bit marks was not supplied."""
        found = np.ones_like(nulls) if marked is None else marked | ~nulls
        return found & ~self.deleted[:, None]

    def before(self, nulls: Matrix, old: Matrix, marked: Matrix | None) -> Matrix:
        """Return the columns before a change."""
        found = np.zeros_like(nulls)
        paired, alone, deleted = self.paired, self._alone, self.deleted
        if marked is None:
            found[paired | deleted] = True
            return found
        found[paired] = ~(nulls & old)[paired]
        found[alone] = (~marked & ~nulls)[alone]
        logged = np.any(~nulls & ~marked, axis=1, keepdims=True) | ~np.any(marked, axis=1, keepdims=True)
        found[deleted] = (marked | logged)[deleted]
        return found
