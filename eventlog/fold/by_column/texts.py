"""Values as events contain them: most are copied as they came, a few are made one by one.

Every text of a batch has a number in a pool. A text that must change gets another one at the end of the pool.
Objects with an uncertain text are named, and go the plain way.

A pattern proves that a key is plain: it has no quotes, markup or characters that XML lacks. The patterns mean
the same to Arrow (RE2) and to Spark (Java).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import Scalar
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Table
from eventlog.core.values import Precision
from eventlog.fold.by_column.vectors import Ints, are_controls, bytes_of, flags, suspects
from eventlog.xds.skeleton import EventForm, Treatment, treatment
from eventlog.xds.write import Render

_MAX_RENDERED = 20_000  # texts of a column whose elements are remembered
_WORD = r"[^,;'+\"=\\<>&\x00-\x1f\x{FFFE}\x{FFFF}]"
_DECIMAL = r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{0,17}[1-9]"
_NUMBERS = {Precision.EXACT: rf"(?:0|-?[1-9][0-9]{{0,17}}|{_DECIMAL})"}


def int_form(column: Column) -> str:
    """Return the pattern of canonical integers that are certainly in the column's range."""
    low, high = certain_bounds(column)
    digits, sign = len(str(high)), "-?" if low else ""
    return rf"(?:0|{sign}[1-9][0-9]{{0,{digits - 1}}})" if high else "0"


def certain_bounds(column: Column) -> tuple[int, int]:
    """Return the least and the greatest integer of `int_form`."""
    low, high = column.bounds or (-(1 << 63), (1 << 63) - 1)
    greatest = 10 ** (len(str(high)) - 1) - 1
    return (-greatest if low < 0 else 0), greatest


def is_integer(column: Column) -> bool:
    """Return whether an event contains the column's values as integers."""
    return treatment(column) is Treatment.INT


def named_form(names: Sequence[str]) -> str:
    """Return the pattern of keys that name exactly these columns, in this order and spelling."""
    return "^" + r"\+".join(f"{re.escape(name)}={_WORD}*" for name in names) + r"\z"


def key_values(names: Sequence[str], keys: pa.Array) -> list[pa.Array]:
    """Return the values of such keys, for each of these columns."""
    if len(names) == 1:
        return [pc.utf8_slice_codeunits(keys, len(names[0]) + 1)]
    parts = pc.split_pattern(keys, "+")
    named = ((f"{name}=", pc.list_element(parts, at)) for at, name in enumerate(names))
    return [pc.utf8_slice_codeunits(part, len(name)) for name, part in named]


def key_form(table: Table, names: Sequence[str]) -> str | None:
    """Return the pattern of keys that certainly name a row, each in one way; None if there is no such
    pattern.
    """
    forms = [_value_form(column) for column in table.key_columns]
    if not forms or None in forms:
        return None
    return "^" + r"\+".join(f"{re.escape(n)}={form}" for n, form in zip(names, forms, strict=True)) + r"\z"


def _value_form(column: Column) -> str | None:
    """Return the pattern of a key's values that certainly name a row, each in one way."""
    if is_integer(column):
        return int_form(column)
    if treatment(column) is not Treatment.TEXT:
        return None
    return f"{_WORD}*" if column.number is None else _NUMBERS.get(column.number)


class Cells(NamedTuple):
    """The texts of some cells, with their numbers in the pool and their objects."""

    texts: pa.Array
    numbers: Ints
    objects: Ints

    def take(self, at: Ints) -> Cells:
        """Return the cells at these positions."""
        return Cells(self.texts.take(pa.array(at)), self.numbers[at], self.objects[at])

    def slice(self, start: int, end: int) -> Cells:
        """Return a range of the cells."""
        return Cells(self.texts[start:end], self.numbers[start:end], self.objects[start:end])


class Replacements(NamedTuple):
    """The texts in place of those with these numbers, and the objects with uncertain texts."""

    numbers: Ints
    texts: pa.Array
    doubtful: Ints


NO_REPLACEMENTS = Replacements(np.empty(0, np.int64), pa.array([], pa.string()), np.empty(0, np.int64))


def escape(cells: Cells, limit: int, form: EventForm) -> Replacements:
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

    def replace(self, cells: Cells) -> Replacements:
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


def _replace_each(cells: Cells, make: Callable[[str], str | None]) -> Replacements:
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


def take_texts(pool: Sequence[pa.Array], numbers: Ints) -> pa.Array:
    """Return the texts of these numbers in a pool of arrays."""
    if sum(map(len, pool)) > 2 * len(numbers):
        pool, numbers = _narrow(pool, numbers)
    return pa.concat_arrays(pool).take(pa.array(numbers))


def _narrow(pool: Sequence[pa.Array], numbers: Ints) -> tuple[list[pa.Array], Ints]:
    """Return the range of each array that has all texts of these numbers, and their numbers among those."""
    ranges, narrowed = [pool[0][:0]], np.empty_like(numbers)
    first = count = 0
    for texts in pool:
        at = np.flatnonzero((numbers >= first) & (numbers < first + len(texts)))
        if len(at):
            begin, end = int(numbers[at].min()), int(numbers[at].max()) + 1
            ranges.append(texts[begin - first : end - first])
            narrowed[at] = numbers[at] - begin + count
            count += end - begin
        first += len(texts)
    return ranges, narrowed
