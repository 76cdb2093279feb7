"""The Arrow types of typed changes, and what makes their values."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from eventlog.core.change import Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column
from eventlog.core.typenames import kind_of, number_of
from eventlog.formats.qlik.structure import spec_of
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.transfer.targets.tables.cells import Cell, ToCell, to_cell

# what to_cell asks of a dialect, as Arrow has it
_WITH_ZERO = replace(POSTGRESQL, values=replace(POSTGRESQL.values, holds_zero=True))
_DIGITS = 38


class _Form(NamedTuple):
    """An Arrow type, the SQL type whose cells become its values, and what makes a value of a cell."""

    arrow_type: pa.DataType
    sql_type: str
    read: Callable[[Any], Any] | None = None


def _decimal(precision: int, scale: int) -> _Form:
    sql_type = f"numeric({precision},{scale})"
    return _Form(pa.decimal128(precision, scale), sql_type, lambda cell: decimal.Decimal(str(cell)))


def _moment(text: Any) -> Any:
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


_TEXT = _Form(pa.string(), "text")
_FORMS: dict[str, _Form] = {
    "BOOLEAN": _Form(pa.bool_(), "boolean"),
    **dict.fromkeys(("BYTES", "BLOB"), _Form(pa.binary(), "bytea")),
    "DATE": _Form(pa.date32(), "date", dt.date.fromisoformat),
    "DATETIME": _Form(pa.timestamp("us", tz="UTC"), "timestamp with time zone", _moment),
    **dict.fromkeys(("INT1", "INT2", "INT4", "UINT1", "UINT2"), _Form(pa.int32(), "bigint")),
    **dict.fromkeys(("INT8", "UINT4"), _Form(pa.int64(), "bigint")),
    "UINT8": _decimal(20, 0),
    "REAL4": _Form(pa.float32(), "real", float),
    "REAL8": _Form(pa.float64(), "double precision", float),
    **dict.fromkeys(("TIME", "STRING", "WSTRING", "CLOB", "NCLOB"), _TEXT),
}


def _form_of(column: Column) -> _Form:
    """Return the form of a column; wider decimals, and those without a size, are texts."""
    spec = spec_of(column)
    if spec.name == "NUMERIC":
        return _decimal(spec.precision, spec.scale) if 0 < spec.precision <= _DIGITS else _TEXT
    return _FORMS[spec.name]


def type_of(column: Column) -> pa.DataType:
    """Return the type that holds the values of a column of the tables file."""
    return _form_of(column).arrow_type


def value_maker(column: Column) -> ToCell:
    """Return a function that makes the values of a column such that Arrow changes and refuses none."""
    arrow_type, name, read = _form_of(column)
    described = Column(column.name, name, kind_of(name), column.name, number=number_of(name))
    plain = to_cell(described, _WITH_ZERO)

    def make(value: Value) -> Cell:
        cell = plain(value)
        if cell is None:
            return None
        try:
            arrow_value = cell if read is None else read(cell)
            pa.scalar(arrow_value, arrow_type)
        except (ValueError, OverflowError, ArithmeticError, pa.ArrowException) as fault:
            raise NotExpressible(f"{str(cell)[:60]!r} is no value of {arrow_type}") from fault
        return arrow_value

    return make
