"""The cells of a column as texts of the model's values.

A pattern proves that the text of a cell is that of its value. All others are read by the plan of the plain
reader, each distinct one once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches.batch import ValueKind
from eventlog.core import values
from eventlog.core.errors import EventlogError
from eventlog.fold.by_column.vectors import Flags, flags
from eventlog.formats.qlik.row_headers import NO_TIME
from eventlog.formats.qlik.types import DATA_TYPES, Spec

_DATE = r"[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"  # that every calendar has
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
MOMENT = rf"\A{_DATE}[ T]{_TIME}\z"
_CERTAIN = {
    "DATE": rf"\A{_DATE}\z",
    "DATETIME": MOMENT,
    "NUMERIC": r"\A[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?\z",
}
_INTEGER = r"\A(?:0|-?[1-9][0-9]{0,17})\z"
# texts that Arrow and Python both write, without an exponent; the sign of -0.0 is no certain one
_FLOAT = r"\A-?(?:[1-9][0-9]{0,14}\.[0-9]+|0\.0{0,3}[1-9][0-9]*)\z|\A0\.0\z"
_BY_SPEC = {
    "BOOLEAN": ValueKind.BOOL,
    "REAL4": ValueKind.FLOAT,
    "REAL8": ValueKind.FLOAT,
    "BYTES": ValueKind.BYTES,
    "BLOB": ValueKind.BYTES,
    **dict.fromkeys(("INT1", "INT2", "INT4", "INT8", "UINT1", "UINT2", "UINT4"), ValueKind.INT),
}
_TYPES: dict[ValueKind, Any] = {
    ValueKind.TEXT: str,
    ValueKind.INT: int,
    ValueKind.FLOAT: float,
    ValueKind.BOOL: bool,
    ValueKind.BYTES: bytes,
}
_TEXTS = frozenset(("STRING", "WSTRING", "CLOB", "NCLOB"))
_MINUS_ZERO = "-0.0"  # equals 0.0, and is written otherwise

_FEW = 200  # distinct times that are read one by one

Convert = Callable[[Any], Any]  # a cell into its value; raises an error if that is impossible
CellsOf = Callable[[pa.Array], Sequence[Any]]  # as the plain reader gets the cells of an array


class Texts(NamedTuple):
    """The texts of cells, and which of them are odd."""

    texts: pa.Array
    odd: Flags


def kind_of(spec: Spec | None, cells: pa.DataType) -> ValueKind:
    """Return the kind of a column's values."""
    if spec is not None:
        exact = spec.name == "UINT8" or (spec.name == "NUMERIC" and spec.precision > 0)
        return _BY_SPEC.get(spec.name, ValueKind.INT if exact and not spec.scale else ValueKind.TEXT)
    if pa.types.is_boolean(cells):
        return ValueKind.BOOL
    if pa.types.is_integer(cells):
        return ValueKind.INT
    if pa.types.is_floating(cells):
        return ValueKind.FLOAT
    return ValueKind.BYTES if pa.types.is_binary(cells) else ValueKind.TEXT


def value_of(kind: ValueKind, text: str) -> Any:
    """Return the value of a text."""
    if kind is ValueKind.BOOL:
        return text == "true"
    if kind is ValueKind.BYTES:
        return values.load_base64(text)
    return _TYPES[kind](text)


def load(cells: pa.Array, spec: Spec | None, kind: ValueKind, convert: Convert, cells_of: CellsOf) -> Texts:
    """Return the texts of a column's cells."""
    name = "STRING" if spec is None else spec.name
    if pa.types.is_string(cells.type):
        texts, certain = _certain_texts(cells, name, kind)
    else:
        texts, certain = _certain_values(cells, spec, kind)
    uncertain = ~certain & flags(cells.is_valid())
    if not uncertain.any():
        return Texts(texts, np.zeros(len(cells), np.bool_))
    few, few_odd = make_each(
        cells.filter(pa.array(uncertain)), lambda cell: _text(convert(cell), kind), cells_of
    )
    odd = np.zeros(len(cells), np.bool_)
    odd[uncertain] = few_odd
    return Texts(pc.replace_with_mask(texts, pa.array(uncertain), few), odd)


def _certain_texts(cells: pa.Array, name: str, kind: ValueKind) -> tuple[pa.Array, Flags]:
    if name in _TEXTS:
        return cells, np.ones(len(cells), np.bool_)
    if kind is ValueKind.INT:
        certain = matches(cells, _INTEGER)
        if (bounds := DATA_TYPES[name].bounds) is not None and certain.any():
            certain &= _are_within(pc.cast(pc.if_else(pa.array(certain), cells, None), pa.int64()), bounds)
        return cells, certain
    if name == "REAL8":
        return cells, _certain_floats(cells)
    if (pattern := _CERTAIN.get(name)) is None:
        return cells, np.zeros(len(cells), np.bool_)
    texts = pc.replace_substring(cells, " ", "T", max_replacements=1) if name == "DATETIME" else cells
    return texts, matches(cells, pattern)


def _certain_floats(cells: pa.Array) -> Flags:
    """Return which texts are the shortest of their numbers."""
    certain = matches(cells, _FLOAT)
    numbers = pc.cast(pc.if_else(pa.array(certain), cells, None), pa.float64())
    return certain & flags(pc.equal(pc.cast(numbers, pa.string()), cells))


def _certain_values(cells: pa.Array, spec: Spec | None, kind: ValueKind) -> tuple[pa.Array, Flags]:
    if kind is ValueKind.BOOL and pa.types.is_boolean(cells.type):
        return pc.cast(cells, pa.string()), np.ones(len(cells), np.bool_)
    if kind is ValueKind.INT and pa.types.is_signed_integer(cells.type):
        bounds = None if spec is None else DATA_TYPES[spec.name].bounds
        within = np.ones(len(cells), np.bool_) if bounds is None else _are_within(cells, bounds)
        return pc.cast(cells, pa.string()), within
    if kind is ValueKind.FLOAT and pa.types.is_float64(cells.type) and (spec is None or spec.name == "REAL8"):
        texts = pc.cast(cells, pa.string())
        return texts, matches(texts, _FLOAT)
    return pa.nulls(len(cells), pa.string()), np.zeros(len(cells), np.bool_)


def _are_within(numbers: pa.Array, bounds: tuple[int, int]) -> Flags:
    return flags(pc.and_(pc.greater_equal(numbers, bounds[0]), pc.less_equal(numbers, bounds[1])))


def matches(texts: pa.Array, pattern: str) -> Flags:
    """Return which texts match a pattern; null does not."""
    return flags(pc.match_substring_regex(texts, pattern))


def make_each(cells: pa.Array, make: Callable[[Any], str | None], cells_of: CellsOf) -> Texts:
    """Return what is made of each distinct cell; what fails is odd, and null stays null."""
    encoded = pc.dictionary_encode(cells)
    texts: list[str | None] = []
    failed: list[bool] = []
    for cell in cells_of(encoded.dictionary):
        try:
            texts.append(make(cell))
            failed.append(False)
        except (EventlogError, ValueError, ArithmeticError):
            texts.append(None)
            failed.append(True)
    return Texts(
        pa.array(texts, pa.string()).take(encoded.indices),
        flags(pa.array(failed, pa.bool_()).take(encoded.indices)),
    )


def times(cells: pa.Array, read: Callable[[Any], str | None], cells_of: CellsOf, *, is_iso: bool) -> Texts:
    """Return times in UTC, as changes contain them; `read` reads what is no usual time."""
    if is_iso and pa.types.is_string(cells.type):
        encoded = pc.dictionary_encode(cells)
        if len(encoded.dictionary) > _FEW and _are_moments(encoded.dictionary):
            return Texts(_utc(encoded.dictionary).take(encoded.indices), np.zeros(len(cells), np.bool_))
    return make_each(cells, read, cells_of)


def _are_moments(texts: pa.Array) -> bool:
    """Return whether all texts are times without a zone, and none means an unknown time."""
    return bool(matches(texts, MOMENT).all()) and not flags(pc.starts_with(texts, NO_TIME)).any()


def _utc(moments: pa.Array) -> pa.Array:
    """Return such times as the model has them."""
    in_iso = pc.replace_substring(moments, " ", "T", max_replacements=1)
    trimmed = pc.ascii_rtrim(pc.ascii_rtrim(in_iso, "0"), ".")
    return pc.binary_join_element_wise(pc.if_else(pc.match_substring(in_iso, "."), trimmed, in_iso), "Z", "")


def texts_or_none(texts: pa.Array) -> pa.Array:
    """Return texts without those that are empty."""
    is_empty = flags(pc.equal(texts, ""))
    return pc.if_else(pa.array(is_empty), None, texts) if is_empty.any() else texts


def _text(value: Any, kind: ValueKind) -> str:
    """Return the text of a value; raise ValueError for one of another kind."""
    if type(value) is not _TYPES[kind]:
        raise ValueError
    text = values.plain_text(value)
    if kind is ValueKind.FLOAT and text == _MINUS_ZERO:
        raise ValueError
    return text
