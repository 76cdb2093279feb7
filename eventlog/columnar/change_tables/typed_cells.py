"""The values of a data column of a change table: by column where all cells are plain, else one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.captures.column_values import NotPlain
from eventlog.core.errors import EventlogError
from eventlog.qlik.rows import RowReader
from eventlog.qlik.types import Spec

_DATE = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
_KINDS: Final = {int: pa.int64(), bool: pa.bool_(), float: pa.float64(), bytes: pa.binary()}
_INTEGERS: Final = ("INT1", "INT2", "INT4", "INT8", "UINT1", "UINT2", "UINT4")
_CELLS = {pa.null(), pa.string(), pa.bool_(), pa.float64(), pa.binary(), pa.date32()}
_CELLS |= {pa.int8(), pa.int16(), pa.int32(), pa.int64()}
_TYPES: Final = {
    **dict.fromkeys(_INTEGERS, pa.int64()),
    **dict.fromkeys(("REAL4", "REAL8"), pa.float64()),
    **dict.fromkeys(("BYTES", "BLOB"), pa.binary()),
    "BOOLEAN": pa.bool_(),
}


def plain(kind: pa.DataType) -> bool:
    """Return whether the cells of a column are the same in Python as the row-wise reader has them."""
    if pa.types.is_timestamp(kind):
        return kind.tz is None and kind.unit != "ns"
    return kind in _CELLS or pa.types.is_decimal(kind)


def typed(cells: pa.Array, place: int, reader: RowReader) -> pa.Array:
    """Return the values of a data column; NotPlain if a cell is none or fits in no column."""
    spec = reader.structure.columns[place].spec or Spec("")
    if not plain(cells.type):
        raise NotPlain
    load = _PLAIN.get(spec.name) if pa.types.is_string(cells.type) else _NUMBERS.get((spec.name, cells.type))
    if load is not None:
        try:
            found = load(cells, spec)
        except pa.ArrowInvalid:  # a date that the calendar lacks, or a number that is too large
            found = None
        if found is not None:
            return found
    return _one_by_one(cells, place, reader, spec)


def _one_by_one(cells: pa.Array, place: int, reader: RowReader, spec: Spec) -> pa.Array:
    try:
        values = [reader.value(place, cell) for cell in cells.to_pylist()]
        kinds = set(map(type, values)) - {type(None)}
        if len(kinds) > 1:
            raise NotPlain
        declared = _TYPES.get(spec.name, pa.string())
        return pa.array(values, _KINDS.get(kinds.pop(), pa.string()) if kinds else declared)
    except (EventlogError, ValueError, ArithmeticError, TypeError) as fault:
        raise NotPlain from fault


def _match(cells: pa.Array, pattern: str) -> bool:
    """Return whether all cells that are not null match."""
    return pc.all(pc.match_substring_regex(cells, rf"^(?:{pattern})\z")).as_py() is not False


def _unchanged(cells: pa.Array, spec: Spec) -> pa.Array | None:
    return cells


def _integer(cells: pa.Array, spec: Spec) -> pa.Array | None:
    if not _match(cells, "-?[0-9]{1,18}"):
        return None
    return _ranged(cells.cast(pa.int64()), spec)


def _ranged(numbers: pa.Array, spec: Spec) -> pa.Array | None:
    bits, unsigned = 8 * int(spec.name[-1]), spec.name.startswith("U")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    least, most = pc.min_max(numbers).as_py().values()
    return numbers if least is None or (low <= least and most <= high) else None


def _numeric(cells: pa.Array, spec: Spec) -> pa.Array | None:
    """Return canonical integers as numbers where the type has no fraction, else texts."""
    if spec.scale == 0 and (spec.precision > 0 or spec.name == "UINT8"):
        return cells.cast(pa.int64()) if _match(cells, "0|-?[1-9][0-9]{0,17}") else None
    return cells if _match(cells, r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?") else None


def _date(cells: pa.Array, spec: Spec) -> pa.Array | None:
    if not _match(cells, _DATE):
        return None
    cells.cast(pa.date32())
    return cells


def _datetime(cells: pa.Array, spec: Spec) -> pa.Array | None:
    if not _match(cells, f"{_DATE}[ T]{_CLOCK}"):
        return None
    pc.utf8_slice_codeunits(cells, 0, 10).cast(pa.date32())
    return pc.utf8_replace_slice(cells, 10, 11, "T")


def _time(cells: pa.Array, spec: Spec) -> pa.Array | None:
    return cells if _match(cells, _CLOCK) else None


def _boolean(cells: pa.Array, spec: Spec) -> pa.Array | None:
    if not _match(cells, "true|false|0|1|t|f|True|False"):
        return None
    return pc.match_substring_regex(cells, "^(?:[tT].*|1)$")


def _double(cells: pa.Array, spec: Spec) -> pa.Array | None:
    """Return finite numbers; all others are read one by one."""
    if not _match(cells, r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?"):
        return None
    return cells.cast(pa.float64())


_Load = Callable[[pa.Array, Spec], pa.Array | None]
_PLAIN: Final[dict[str, _Load]] = {
    **dict.fromkeys(("", "STRING", "WSTRING", "CLOB", "NCLOB"), _unchanged),
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(("NUMERIC", "UINT8"), _numeric),
    "DATE": _date,
    "DATETIME": _datetime,
    "TIME": _time,
    "BOOLEAN": _boolean,
    "REAL8": _double,
}
_NUMBERS: Final[dict[tuple[str, pa.DataType], _Load]] = {
    **{(name, pa.int64()): _ranged for name in _INTEGERS},
    ("REAL8", pa.float64()): _unchanged,
    ("BOOLEAN", pa.bool_()): _unchanged,
}
