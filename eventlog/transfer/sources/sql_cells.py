"""Cells in the columns of any database, of the types that Qlik's data have; and the clock of any database."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mssql, mysql, oracle
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from eventlog.core.errors import NotExpressible
from eventlog.formats.qlik.headers import Header
from eventlog.formats.qlik.structure import DataColumn
from eventlog.formats.qlik.types import Spec, exact_decimal
from eventlog.sql.connect import connect_at
from eventlog.sql.dialects import DIALECTS

_LONGEST = 4_000  # characters or bytes of a column that is no LOB, in the least of the dialects


# --- types, per dialect where the generic one is not exact


def _binary(length: int) -> TypeEngine[Any]:
    if not 0 < length <= _LONGEST:
        return sa.LargeBinary()
    return (
        sa.LargeBinary(length)
        .with_variant(mssql.VARBINARY(length), "mssql")  # type: ignore[no-untyped-call]
        .with_variant(mysql.VARBINARY(length), "mysql", "mariadb")
        .with_variant(oracle.RAW(min(length, 2000)), "oracle")
    )


def _text(length: int) -> TypeEngine[Any]:
    return sa.String(length) if 0 < length <= _LONGEST else sa.Text()


def datetime_type(digits: int) -> TypeEngine[Any]:
    return (
        sa.DateTime()
        .with_variant(mysql.DATETIME(fsp=min(digits, 6)), "mysql", "mariadb")
        .with_variant(mssql.DATETIME2(precision=min(digits, 7)), "mssql")  # type: ignore[no-untyped-call]
        .with_variant(oracle.TIMESTAMP(), "oracle")
    )


def _time(spec: Spec) -> TypeEngine[Any]:
    clock = sa.Time().with_variant(mysql.TIME(fsp=min(spec.scale, 6)), "mysql", "mariadb")
    return clock.with_variant(sa.String(18), "oracle")


def _numeric(precision: int, scale: int) -> TypeEngine[Any]:
    """Return a type for exact decimals.

    SQLite has none, and only PostgreSQL has NUMERIC without sizes.
    """
    exact: TypeEngine[Any] = sa.Numeric(precision, scale) if precision else sa.Text()
    if not precision:
        return exact.with_variant(sa.Numeric(), "postgresql")
    return exact.with_variant(sa.Text(), "sqlite")


SQL_TYPES: dict[str, Callable[[Spec], TypeEngine[Any]]] = {
    "BOOLEAN": lambda spec: sa.Boolean(),
    "BYTES": lambda spec: _binary(spec.length),
    "BLOB": lambda spec: sa.LargeBinary(),
    "DATE": lambda spec: sa.Date(),
    "TIME": _time,
    "DATETIME": lambda spec: datetime_type(spec.scale),
    "INT1": lambda spec: sa.SmallInteger(),
    "INT2": lambda spec: sa.SmallInteger(),
    "INT4": lambda spec: sa.Integer(),
    "INT8": lambda spec: sa.BigInteger(),
    "UINT1": lambda spec: sa.SmallInteger(),
    "UINT2": lambda spec: sa.Integer(),
    "UINT4": lambda spec: sa.BigInteger(),
    "UINT8": lambda spec: _numeric(20, 0),
    "REAL4": lambda spec: sa.REAL(),
    "REAL8": lambda spec: sa.Double(),
    "NUMERIC": lambda spec: _numeric(spec.precision, spec.scale),
    "STRING": lambda spec: _text(spec.length),
    "WSTRING": lambda spec: sa.Unicode(spec.length) if 0 < spec.length <= _LONGEST // 2 else sa.UnicodeText(),
    "CLOB": lambda spec: sa.Text(),
    "NCLOB": lambda spec: sa.UnicodeText(),
}

HEADER_TYPES: dict[str, Callable[[Header], TypeEngine[Any]]] = {
    "text": lambda header: _text(header.width),
    "bytes": lambda header: _binary(header.width),
    "timestamp": lambda header: datetime_type(6),
}


def sql_type(column: DataColumn) -> TypeEngine[Any]:
    spec = column.spec or Spec("STRING")
    return SQL_TYPES[spec.name](spec)


def stored_cell(column: sa.Column[Any], dialect: sa.Dialect) -> sa.ColumnElement[Any]:
    """Return what reads a column; SQLite takes a type such as varbinary for a number."""
    if dialect.name == "sqlite" and isinstance(column.type, sa.Numeric):
        return sa.type_coerce(column, sa.types.NullType())
    return column


# --- values, by the type that the dialect has in the end


def _temporal(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    def bind(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        try:
            value = read(cell)
        except ValueError:
            raise NotExpressible(f"{cell!r} is no date or time of this database") from None
        if _digits(cell) > 6:
            raise NotExpressible(f"{cell!r} has more than 6 digits after the second")
        return value

    return bind


def _digits(text: str) -> int:
    return len(text.partition(".")[2].rstrip("0"))


def _time_of_day(text: str) -> dt.time:
    """Return a time as Python has it; ValueError for 24:00:00, which some versions take for 00:00:00."""
    if text.startswith("24"):
        raise ValueError
    return dt.time.fromisoformat(text[:15])


_BINDS: tuple[tuple[type[TypeEngine[Any]], Callable[[Any], Any]], ...] = (
    (sa.DateTime, _temporal(lambda text: dt.datetime.fromisoformat(text[:26]))),
    (sa.Date, _temporal(dt.date.fromisoformat)),
    (sa.Time, _temporal(_time_of_day)),
    (sa.Numeric, lambda cell: None if cell is None else decimal.Decimal(str(cell))),
)


Bind = Callable[[Any], Any]


def _bind(declared: TypeEngine[Any], dialect: sa.Dialect) -> Bind | None:
    dialect_type = declared.dialect_impl(dialect)
    return next((bind for kind, bind in _BINDS if isinstance(dialect_type, kind)), None)


def binds_of(table: sa.Table, dialect: sa.Dialect) -> list[Bind]:
    """Return how each cell is bound.

    A value that its column cannot hold whole is refused here, because some databases cut or round it
    silently.
    """
    return [_bound(_check_of(column.type), _bind(column.type, dialect)) for column in table.columns]


def _bound(check: Bind, bind: Bind | None) -> Bind:
    return check if bind is None else lambda cell: bind(check(cell))


def _check_of(kind: TypeEngine[Any]) -> Bind:
    """Return what refuses a value that a column of this type cannot hold."""
    if isinstance(kind, sa.String | sa.LargeBinary):
        return _at_most(kind.length) if kind.length else _anything
    if isinstance(kind, sa.Integer):
        wide, narrow = isinstance(kind, sa.BigInteger), isinstance(kind, sa.SmallInteger)
        bits = 63 if wide else 15 if narrow else 31
        return _between(-(1 << bits), (1 << bits) - 1)
    if isinstance(kind, sa.Numeric) and kind.precision:
        return _exact(Spec("NUMERIC", 0, kind.precision, kind.scale or 0))
    return _anything


def _anything(cell: Any) -> Any:
    return cell


def _at_most(max_length: int) -> Bind:
    def check(cell: Any) -> Any:
        if isinstance(cell, str | bytes) and len(cell) > max_length:
            kind = "characters" if isinstance(cell, str) else "bytes"
            raise NotExpressible(f"a value has {len(cell)} {kind}, and its column holds {max_length}")
        return cell

    return check


def _between(minimum: int, maximum: int) -> Bind:
    def check(cell: Any) -> Any:
        if isinstance(cell, int) and not minimum <= cell <= maximum:
            raise NotExpressible(f"{cell} is not between {minimum} and {maximum}, as its column asks")
        return cell

    return check


def _exact(spec: Spec) -> Bind:
    def check(cell: Any) -> Any:
        if cell is not None:
            exact_decimal(str(cell), spec)
        return cell

    return check


# what the SQL standard has no word for, or a database another one
_NOW_EXPRESSIONS = {name: dialect.values.utc_now for name, dialect in DIALECTS.items()} | {
    "mssql": "sysutcdatetime()",
    "sqlite": "current_timestamp",
}
_STANDARD = "current_timestamp at time zone 'UTC'"
_ONE_MOMENT = frozenset(("postgresql", "mysql", "mariadb"))


def at_one_moment(engine: sa.Engine) -> sa.Connection:
    """Return a connection whose reads all see one moment, in databases that know how to do that by
    a level.
    """
    return connect_at(engine, "REPEATABLE READ") if engine.dialect.name in _ONE_MOMENT else engine.connect()


class UtcNow(FunctionElement[dt.datetime]):
    """The time now in UTC, without a zone."""

    type = sa.DateTime()
    inherit_cache = True


@compiles(UtcNow)
def _compile_utc_now(element: UtcNow, compiler: Any, **options: Any) -> str:
    return _NOW_EXPRESSIONS.get(compiler.dialect.name, _STANDARD)
