"""The column types of Delta tables: what a source's become, and what makes their cells."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eventlog.core.change import Change, Op, Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column, Table
from eventlog.core.typenames import kind_of, number_of
from eventlog.qlik.sqltypes import spec_of
from eventlog.qlik.types import Spec
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.targets.tables.cells import Cell, ToCell, to_cell
from eventlog.targets.tables.errors import KeepsVersions, NoHistory
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.table_target import TableTarget
from eventlog.targets.tables.type_guesses import guessed, values_of
from eventlog.targets.tables.validity import SPAN

_WITH_ZERO = replace(POSTGRESQL, holds_zero=True)  # what to_cell asks of a dialect, as Delta has it
_DIGITS = 38

ARROW_TYPES: dict[str, Callable[[Spec], pa.DataType]] = {
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
    """Return the type for decimals; Delta stores wider ones, and those without a size, as text."""
    return pa.decimal128(spec.precision, spec.scale) if 0 < spec.precision <= _DIGITS else pa.string()


def fields_for(
    changes: Sequence[Change], source: Table | None, key: Iterable[str], described: Mapping[str, Spec]
) -> Iterator[pa.Field]:
    """Yield the columns that changes need: those of the tables file, or else those that the source described,
    with their types, others by their values.
    """
    known = {name: ARROW_TYPES[spec.name](spec) for name, spec in described.items()}
    if source is not None and source.columns:
        known = {name: type_of(column) for name, column in source.columns.items()}
    names = [
        *known,
        *key,
        *(f.column for change in changes if change.op is not Op.DELETE for f in change.fields),
    ]
    columns = dict[str, str]()
    for name in names:
        columns.setdefault(name.lower(), name)  # Delta takes no twins by case
    for name in columns.values():
        if name not in known:
            spec = guessed(values_of(name, changes))
            known[name] = ARROW_TYPES[spec.name](spec)
        yield pa.field(name, known[name], nullable=name not in key)


def type_of(column: Column) -> pa.DataType:
    """Return the type that holds the values of a column of the tables file."""
    spec = spec_of(column)
    return ARROW_TYPES[spec.name](spec)


def goal_of(
    table: Any, named: tuple[str | None, str], source: Table | None, key: Sequence[str], chosen: ApplySettings
) -> TableTarget:
    """Return a Delta table as changes see it."""
    fields = list(pa.schema(table.schema().to_arrow()))
    spanned = {field.name for field in fields}.intersection(SPAN)
    if chosen.history and spanned != set(SPAN):
        raise NoHistory(named[1])
    if not chosen.history and spanned == set(SPAN):
        raise KeepsVersions(named[1])
    if chosen.history:
        fields = [field for field in fields if field.name not in SPAN]
    columns = {field.name: _column(field) for field in fields}
    described = Table(*named, columns)
    found = [column.name for name in key if (column := described.column(name)) is not None]
    return TableTarget(
        replace(described, key=tuple(found)),
        described.name,
        tuple(value_maker(field) for field in fields),
        source=source,
        lenient=chosen.schema_changes == "ignore",
    )


def _column(field: pa.Field) -> Column:
    name = _sql_name(field.type)
    return Column(field.name, name, kind_of(name), field.name, number=number_of(name))


def _sql_name(of: pa.DataType) -> str:
    """Return an Arrow type in the words of SQL."""
    if pa.types.is_decimal(of):
        return f"numeric({of.precision},{of.scale})"
    if pa.types.is_timestamp(of):
        return "timestamp with time zone" if of.tz else "timestamp"
    found = next((name for is_it, name in _SQL_NAMES if is_it(of)), None)
    return found or "text"


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
            made = cell if read is None else read(cell)
            pa.scalar(made, field.type)
        except (ValueError, OverflowError, ArithmeticError, pa.ArrowException) as fault:
            raise NotExpressible(f"{str(cell)[:60]!r} is no value of {field.type}") from fault
        return made

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
