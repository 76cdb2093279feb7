"""Values as events contain them: most are copied as they came, a few are made one by one.

Every text of a batch has a number in a pool. A text that must change gets another one at the end of the pool.
Objects with an uncertain text are named, and go the plain way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import Scalar
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column
from eventlog.fold.by_column.key_patterns import int_form
from eventlog.fold.by_column.vectors import Ints, are_controls, bytes_of, flags, suspects
from eventlog.xds.skeleton import EventForm, Treatment
from eventlog.xds.write import Render

_MAX_RENDERED = 20_000  # texts of a column whose elements are remembered


class CellTexts(NamedTuple):
    """The texts of some cells, with their numbers in the pool and their objects."""

    texts: pa.Array
    numbers: Ints
    objects: Ints

    def take(self, at: Ints) -> CellTexts:
        """Return the cells at these positions."""
        return CellTexts(self.texts.take(pa.array(at)), self.numbers[at], self.objects[at])

    def slice(self, start: int, end: int) -> CellTexts:
        """Return a range of the cells."""
        return CellTexts(self.texts[start:end], self.numbers[start:end], self.objects[start:end])


class Replacements(NamedTuple):
    """The texts in place of those with these numbers, and the objects with uncertain texts."""

    numbers: Ints
    texts: pa.Array
    doubtful: Ints


NO_REPLACEMENTS = Replacements(np.empty(0, np.int64), pa.array([], pa.string()), np.empty(0, np.int64))


def escape(cells: CellTexts, limit: int, form: EventForm) -> Replacements:
    """Return the texts that events hold otherwise; one over the limit of bytes is in doubt."""
    too_long = cells.objects[flags(pc.greater(pc.binary_length(cells.texts), limit))]
    hits = suspects(cells.texts, form.escapes)
    if not len(hits):
        return NO_REPLACEMENTS._replace(doubtful=too_long)
    suspect_cells = cells.take(hits)
    if are_controls(bytes_of(suspect_cells.texts)).any():
        escaped = _replace_each(suspect_cells, form.content)
    else:
        texts = suspect_cells.texts
        for character, escaped_text in form.escapes:
            texts = pc.replace_substring(texts, character, escaped_text)
        escaped = Replacements(suspect_cells.numbers, texts, np.empty(0, np.int64))
    return escaped._replace(doubtful=np.concatenate([escaped.doubtful, too_long]))


class ColumnTexts:
    """The texts of one column that is not plain text."""

    def __init__(self, column: Column, form: EventForm, render: Render) -> None:
        self.treatment = form.treatment(column)
        self._form = form
        self._load = column.load
        self._certain_int = rf"^{int_form(column)}\z"
        self._render = render
        self._rendered: dict[str, tuple[Scalar, str] | None] = {}

    def replace(self, cells: CellTexts) -> Replacements:
        """Return the texts that events hold otherwise."""
        if self.treatment is Treatment.PADDED:
            padded = flags(pc.ends_with(cells.texts, " "))
            at = np.union1d(np.flatnonzero(padded), suspects(cells.texts, self._form.escapes))
            return _replace_each(cells.take(at), lambda text: self._form.content(text.rstrip(" ")))
        if self.treatment is Treatment.INT:
            certain = flags(pc.match_substring_regex(cells.texts, self._certain_int))
            return NO_REPLACEMENTS._replace(
                doubtful=cells.objects[~(certain | flags(pc.is_null(cells.texts)))]
            )
        return _replace_each(cells, self._element)

    def are_equal(self, old_text: str, new_text: str) -> bool:
        """Return whether two texts mean the same."""
        if self.treatment is Treatment.PADDED:
            return old_text.rstrip(" ") == new_text.rstrip(" ")
        if self.treatment is not Treatment.ELEMENT:
            return old_text == new_text
        before, after = self._value_and_element(old_text), self._value_and_element(new_text)
        return before is not None and after is not None and before[0] == after[0]

    def _element(self, text: str) -> str | None:
        rendered = self._value_and_element(text)
        return None if rendered is None else rendered[1]

    def _value_and_element(self, text: str) -> tuple[Scalar, str] | None:
        """Return the value of a text, and its element; None for a text that is not of the column's type."""
        if text not in self._rendered:
            if len(self._rendered) >= _MAX_RENDERED:
                self._rendered.clear()
            try:
                value = self._load(text)
                self._rendered[text] = value, self._render(value)
            except EventlogError:
                self._rendered[text] = None
        return self._rendered[text]


def _replace_each(cells: CellTexts, make: Callable[[str], str | None]) -> Replacements:
    """Return the texts made one by one; where that fails, the object is in doubt."""
    texts: list[str] = []
    replaced: list[int] = []
    failed: list[int] = []
    for place, text in enumerate(cells.texts.to_pylist()):
        if text is None:
            continue
        try:
            replacement = make(text)
        except EventlogError:
            replacement = None
        if replacement is None:
            failed.append(place)
        else:
            replaced.append(place)
            texts.append(replacement)
    numbers = cells.numbers[np.array(replaced, np.int64)]
    return Replacements(numbers, pa.array(texts, pa.string()), cells.objects[np.array(failed, np.int64)])
