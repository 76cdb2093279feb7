"""The Arrow types of typed changes, and what makes their values."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eventlog.core.change import Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column
from eventlog.core.typenames import kind_of, number_of
from eventlog.qlik.structure import spec_of
from eventlog.qlik.types import Spec
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.targets.tables.cells import Cell, ToCell, to_cell

_WITH_ZERO = replace(POSTGRESQL, holds_zero=True)  # what to_cell asks of a dialect, as Arrow has it
_DIGITS = 38

_ARROW_TYPES: dict[str, Callable[[Spec], pa.DataType]] = {
    "BOOLEAN": lambda spec: pa.bool_(),
    "BYTES": lambda spec: pa.binary(),
    "BLOB": lambda spec: pa.binary(),
    "DATE": lambda spec: pa.date32(),
    "TIME": lambda spec: pa.string(),
    "DATETIME": lambda spec: pa.timestamp("us", tz="UTC"),
    **dict.fromkeys(("INT1", "INT2", "INT4", "UINT1", "UINT2"), lambda spec: pa.int32()),
    **dict.fromkeys(("INT8", "UINT4"), lambda spec: pa.int64()),
    "UINT8": lambda spec: pa.decimal128(20, 0),
    "REAL4": lambda spec: pa.float32(),
    "REAL8": lambda spec: pa.float64(),
    "NUMERIC": lambda spec: _decimal_type(spec),
    **dict.fromkeys(("STRING", "WSTRING", "CLOB", "NCLOB"), lambda spec: pa.string()),
}


def _decimal_type(spec: Spec) -> pa.DataType:
    """Return the type for decimals; wider ones, and those without a size, are texts."""
    return pa.decimal128(spec.precision, spec.scale) if 0 < spec.precision <= _DIGITS else pa.string()


def type_of(column: Column) -> pa.DataType:
    """Return the type that holds the values of a column of the tables file."""
    spec = spec_of(column)
    return _ARROW_TYPES[spec.name](spec)


def _column(field: pa.Field) -> Column:
    name = _sql_name(field.type)
    return Column(field.name, name, kind_of(name), field.name, number=number_of(name))


def _sql_name(of: pa.DataType) -> str:
    """Return an Arrow type in the words of SQL."""
    if pa.types.is_decimal(of):
        return f"numeric({of.precision},{of.scale})"
    if pa.types.is_timestamp(of):
        return "timestamp with time zone" if of.tz else "timestamp"
    sql_name = next((name for is_it, name in _SQL_NAMES if is_it(of)), None)
    return sql_name or "text"


_SQL_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_date, "date"),
    (lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of), "bytea"),
)


def value_maker(field: pa.Field) -> ToCell:
    """Return a function that makes the values of a column such that Arrow changes and refuses none."""
    plain = to_cell(_column(field), _WITH_ZERO)
    read = _READERS.get(_sql_name(field.type).partition("(")[0])

    def make(value: Value) -> Cell:
        cell = plain(value)
        if cell is None:
            return None
        try:
            arrow_value = cell if read is None else read(cell)
            pa.scalar(arrow_value, field.type)
        except (ValueError, OverflowError, ArithmeticError, pa.ArrowException) as fault:
            raise NotExpressible(f"{str(cell)[:60]!r} is no value of {field.type}") from fault
        return arrow_value

    return make


def _moment(text: Any) -> Any:
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


_READERS: dict[str, Callable[[Any], Any]] = {
    "numeric": lambda cell: decimal.Decimal(str(cell)),
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamp with time zone": _moment,
    "real": float,
    "double precision": float,
}
