"""The values of a batch as documents hold them: most are copied, the others are made one by one.

Every text has a number in the batch's pool. One that must change gets another number, behind all
others; an object with one that cannot be right is marked, and goes the plain way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import Scalar
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Tables
from eventlog.xds.text import content
from eventlog.xds.write import renderer
from eventlog_spark.keys import int_form
from eventlog_spark.templates import Treatment, treatment
from eventlog_spark.vectors import Flags, Ints, flags, suspects

_MOST_KEPT = 20_000


class Made(NamedTuple):
    """A value that was loaded, and its text in documents."""

    value: Scalar
    text: str


class Texts:
    """The texts of one batch that are not copied."""

    def __init__(self, base: int, doubtful: Flags) -> None:
        self.more: list[str] = []
        self._base = base
        self._doubtful = doubtful
        self._at: list[Ints] = []
        self._numbers: list[Ints] = []

    def replace(self, at: Ints, made: list[str]) -> None:
        """Other texts for those of these numbers."""
        self._at.append(at)
        self._numbers.append(np.arange(len(made)) + self._base + len(self.more))
        self.more += made

    def doubt(self, objects: Ints) -> None:
        """The objects must go the plain way."""
        self._doubtful[objects] = True

    def redirected(self, wanted: Ints, total: int) -> Ints:
        """The numbers, of so many, where replaced the new ones."""
        if not self._at:
            return wanted
        to = np.arange(total)
        to[np.concatenate(self._at)] = np.concatenate(self._numbers)
        found: Ints = to[wanted]
        return found


class Cells(NamedTuple):
    """Some texts of one column of the pool: the texts, their numbers, and the objects they are of."""

    array: pa.Array
    numbers: Ints
    objects: Ints

    def some(self, at: Ints) -> Cells:
        return Cells(self.array.take(pa.array(at)), self.numbers[at], self.objects[at])


def escape(cells: Cells, texts: Texts) -> None:
    """Replace what may not stand in a document as it is."""
    hits = suspects(cells.array)
    _each(cells, hits, texts, content)


def _each(cells: Cells, hits: Ints, texts: Texts, make: Callable[[str], str]) -> None:
    at, made = [], []
    for hit in hits.tolist():
        text = cells.array[hit].as_py()
        if text is None:
            continue
        try:
            made.append(make(text))
            at.append(hit)
        except EventlogError:
            texts.doubt(cells.objects[hit : hit + 1])
    if made:
        texts.replace(cells.numbers[np.array(at)], made)


class ColumnTexts:
    """How the texts of one column that is more than text are treated."""

    def __init__(self, column: Column, tables: Tables, time_syntax: int) -> None:
        self.treatment = treatment(column)
        self._load = column.load
        self._sure_int = rf"^{int_form(column)}\z"
        self._render = renderer(column, tables, time_syntax)
        self._made: dict[str, Made | None] = {}

    def treat(self, cells: Cells, texts: Texts) -> None:
        """Replace or doubt the texts of this column."""
        _TREAT[self.treatment](self, cells, texts)

    def same(self, old: str, new: str) -> bool:
        """Whether two texts mean the same."""
        if self.treatment is Treatment.PADDED:
            return old.rstrip(" ") == new.rstrip(" ")
        if self.treatment is not Treatment.ELEMENT:
            return old == new
        before, after = self._make(old), self._make(new)
        return before is not None and after is not None and before.value == after.value

    def _padded(self, cells: Cells, texts: Texts) -> None:
        padded = np.flatnonzero(flags(pc.ends_with(cells.array, " ")))
        _each(cells, np.union1d(padded, suspects(cells.array)), texts, lambda text: content(text.rstrip(" ")))

    def _int(self, cells: Cells, texts: Texts) -> None:
        right = flags(pc.match_substring_regex(cells.array, self._sure_int)) | flags(pc.is_null(cells.array))
        texts.doubt(cells.objects[~right])

    def _element(self, cells: Cells, texts: Texts) -> None:
        at, made = [], []
        for number, text in enumerate(cells.array.to_pylist()):
            if text is None:
                continue
            found = self._make(text)
            if found is None:
                texts.doubt(cells.objects[number : number + 1])
            else:
                at.append(number)
                made.append(found.text)
        if made:
            texts.replace(cells.numbers[np.array(at)], made)

    def _make(self, text: str) -> Made | None:
        if text not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            try:
                value = self._load(text)
                self._made[text] = Made(value, self._render(value))
            except EventlogError:
                self._made[text] = None
        return self._made[text]


_TREAT: dict[Treatment, Callable[[ColumnTexts, Cells, Texts], None]] = {
    Treatment.TEXT: lambda column, cells, texts: None,  # escaped with all others
    Treatment.PADDED: ColumnTexts._padded,
    Treatment.INT: ColumnTexts._int,
    Treatment.ELEMENT: ColumnTexts._element,
}
