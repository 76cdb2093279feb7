"""Values as events contain them: most are copied as they came, a few are made one by one.

Every text of a batch has a number in a pool. A text that must change gets another one at the end of the pool.
Objects with an uncertain text are named, and go the plain way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.keys import int_form
from eventlog.columnar.vectors import Ints, flags, offsets, suspects
from eventlog.core.change import Scalar
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Tables
from eventlog.xds.skeleton import Treatment, treatment
from eventlog.xds.text import content
from eventlog.xds.write import Spell, renderer

_MOST_KEPT = 20_000
_MARKUP = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_CONTROL = np.zeros(256, np.bool_)
_CONTROL[:32] = True
_CONTROL[0xEF] = True  # begins U+FFFE and U+FFFF
_CONTROL[9] = False


class Cells(NamedTuple):
    """The texts of some cells: the texts, their numbers in the pool, and their objects."""

    array: pa.Array
    numbers: Ints
    objects: Ints

    def some(self, at: Ints) -> Cells:
        return Cells(self.array.take(pa.array(at)), self.numbers[at], self.objects[at])

    def slice(self, start: int, end: int) -> Cells:
        return Cells(self.array[start:end], self.numbers[start:end], self.objects[start:end])


class Treated(NamedTuple):
    """The replacements for texts of these numbers, and the objects with uncertain texts."""

    numbers: Ints
    texts: pa.Array
    doubtful: Ints


_NONE = Treated(np.empty(0, np.int64), pa.array([], pa.string()), np.empty(0, np.int64))


def escaped(cells: Cells, limit: int) -> Treated:
    """Return the texts as XML holds them; one over the limit of bytes is in doubt."""
    long = cells.objects[flags(pc.greater(pc.binary_length(cells.array), limit))]
    hits = suspects(cells.array)
    if not len(hits):
        return _NONE._replace(doubtful=long)
    some = cells.some(hits)
    if _CONTROL[_bytes(some.array)].any():
        treated = _each(some, content)
    else:
        texts = some.array
        for mark, reference in _MARKUP:
            texts = pc.replace_substring(texts, mark, reference)
        treated = Treated(some.numbers, texts, np.empty(0, np.int64))
    return treated._replace(doubtful=np.concatenate([treated.doubtful, long]))


class ColumnTexts:
    """The treatment of the texts of one column that is not plain text."""

    def __init__(self, column: Column, tables: Tables, time_syntax: int, spell: Spell) -> None:
        self.treatment = treatment(column)
        self._load = column.load
        self._sure_int = rf"^{int_form(column)}\z"
        self._render = renderer(column, tables, time_syntax, spell)
        self._made: dict[str, tuple[Scalar, str] | None] = {}

    def treat(self, cells: Cells) -> Treated:
        """Return the texts of this column as events hold them."""
        if self.treatment is Treatment.PADDED:
            padded = flags(pc.ends_with(cells.array, " "))
            some = np.union1d(np.flatnonzero(padded), suspects(cells.array))
            return _each(cells.some(some), lambda text: content(text.rstrip(" ")))
        if self.treatment is Treatment.INT:
            right = flags(pc.match_substring_regex(cells.array, self._sure_int))
            return _NONE._replace(doubtful=cells.objects[~(right | flags(pc.is_null(cells.array)))])
        return _each(cells, self._element)

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts mean the same."""
        if self.treatment is Treatment.PADDED:
            return old.rstrip(" ") == new.rstrip(" ")
        if self.treatment is not Treatment.ELEMENT:
            return old == new
        before, after = self._make(old), self._make(new)
        return before is not None and after is not None and before[0] == after[0]

    def _element(self, text: str) -> str | None:
        made = self._make(text)
        return None if made is None else made[1]

    def _make(self, text: str) -> tuple[Scalar, str] | None:
        """Return the value of a text, and its element; None for what is none of the column's type."""
        if text not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            try:
                value = self._load(text)
                self._made[text] = value, self._render(value)
            except EventlogError:
                self._made[text] = None
        return self._made[text]


def _each(cells: Cells, make: Callable[[str], str | None]) -> Treated:
    """Return the texts one by one; what cannot be made is in doubt."""
    texts: list[str] = []
    at: list[int] = []
    wrong: list[int] = []
    for place, text in enumerate(cells.array.to_pylist()):
        if text is None:
            continue
        try:
            made = make(text)
        except EventlogError:
            made = None
        if made is None:
            wrong.append(place)
        else:
            at.append(place)
            texts.append(made)
    kept, doubted = np.array(at, np.int64), np.array(wrong, np.int64)
    return Treated(cells.numbers[kept], pa.array(texts, pa.string()), cells.objects[doubted])


def _bytes(texts: pa.Array) -> npt.NDArray[np.uint8]:
    at = offsets(texts)
    return np.frombuffer(texts.buffers()[2], np.uint8)[at[0] : at[-1]]


def taken(pool: Sequence[pa.Array], wanted: Ints, treated: Sequence[Treated]) -> pa.Array:
    """Return the texts of these numbers: from a pool of arrays, or their replacements."""
    count = sum(map(len, pool))
    replaced = [some for some in treated if len(some.numbers)]
    if replaced:
        to = np.arange(count)
        numbers = np.concatenate([some.numbers for some in replaced])
        to[numbers] = count + np.arange(len(numbers))
        wanted = to[wanted]
    whole = pa.concat_arrays([*pool, *(some.texts for some in replaced)])
    return whole.take(pa.array(wanted))
