"""Change tables in a database: created with the right types, filled, read in order."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mssql, mysql, oracle
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.types import TypeEngine

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse, NotExpressible, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.qlik import headers, partitions, sequence, tables
from eventlog.qlik.headers import HEADERS, Header
from eventlog.qlik.rows import Cells
from eventlog.qlik.structure import Column
from eventlog.qlik.tables import ChangeTable, TableSettings
from eventlog.qlik.types import Spec
from eventlog.streams.ordered import read_changes
from eventlog.streams.settings import StreamSettings

_BATCH = 1_000
_LONGEST = 4_000  # characters or bytes of a column that is no LOB, in the least of the dialects


class StoreFault(EventlogError):
    """change tables: {0}"""


# --- types, per dialect where the generic one says too little


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


def _datetime(digits: int) -> TypeEngine[Any]:
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
    """Exact decimals; SQLite has none, and a NUMERIC without sizes is one only in PostgreSQL."""
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
    "DATETIME": lambda spec: _datetime(spec.scale),
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

_HEADER_TYPES: dict[str, Callable[[Header], TypeEngine[Any]]] = {
    "text": lambda header: _text(header.width),
    "bytes": lambda header: _binary(header.width),
    "timestamp": lambda header: _datetime(6),
}


def _sql_type(column: Column) -> TypeEngine[Any]:
    spec = column.spec or Spec("STRING")
    return SQL_TYPES[spec.name](spec)


def table_of(
    change_table: ChangeTable, names: Sequence[str], prefix: str, metadata: sa.MetaData, schema: str | None
) -> sa.Table:
    """The change table as SQLAlchemy knows it."""
    own = [sa.Column(prefix + h.name, _HEADER_TYPES[h.type](h)) for h in HEADERS if h.name in names]
    data = [sa.Column(c.name, _sql_type(c)) for c in change_table.structure.columns]
    return sa.Table(f"{change_table.structure.table}{tables.SUFFIX}", metadata, *own, *data, schema=schema)


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


_BINDS: tuple[tuple[type[TypeEngine[Any]], Callable[[Any], Any]], ...] = (
    (sa.DateTime, _temporal(lambda text: dt.datetime.fromisoformat(text[:26]))),
    (sa.Date, _temporal(dt.date.fromisoformat)),
    (sa.Time, _temporal(lambda text: dt.time.fromisoformat(text[:15]))),
    (sa.Numeric, lambda cell: None if cell is None else decimal.Decimal(str(cell))),
)


def _bind(sql_type: TypeEngine[Any], dialect: sa.Dialect) -> Callable[[Any], Any] | None:
    own = sql_type.dialect_impl(dialect)
    return next((bind for kind, bind in _BINDS if isinstance(own, kind)), None)


# --- writing


def write(
    changes: Iterable[Change],
    known: Tables,
    settings: TableSettings,
    engine: sa.Engine,
    schema: str | None = None,
) -> Iterator[Refused]:
    """Writes change tables in one transaction, created where they are not there; yields what was refused."""
    with engine.begin() as connection:
        store = _Store(connection, settings, schema)
        closed: dict[tuple[str, str], partitions.Partition] = {}
        for item in tables.write_rows(changes, known, settings, closed):
            if isinstance(item, Refused):
                yield item
            else:
                yield from store.add(*item)
        yield from store.flush()
        if closed:
            store.list_partitions(closed.values())


class _Store:
    def __init__(self, connection: sa.Connection, settings: TableSettings, schema: str | None) -> None:
        self._connection = connection
        self._prefix = settings.header_prefix
        self._names = tables.header_names(settings)
        self._schema = schema
        self._metadata = sa.MetaData()
        self._tables: dict[str, tuple[sa.Table, list[Callable[[Any], Any] | None]]] = {}
        self._waiting: list[tuple[sa.Table, dict[str, Any]]] = []

    def add(self, change_table: ChangeTable, cells: Cells) -> Iterator[Refused]:
        table, binds = self._table(change_table)
        try:
            bound = [cell if bind is None else bind(cell) for bind, cell in zip(binds, cells, strict=True)]
        except (EventlogError, decimal.InvalidOperation) as fault:
            yield Refused(f"{table.name}:{cells[0]}", str(fault))
            return
        self._waiting.append((table, {f"c{i}": value for i, value in enumerate(bound)}))
        if len(self._waiting) >= _BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[Refused]:
        """Inserts what waits; where a batch fails, row by row, so that only the bad rows are left out."""
        waiting, self._waiting = self._waiting, []
        by_table: dict[sa.Table, list[dict[str, Any]]] = {}
        for table, row in waiting:
            by_table.setdefault(table, []).append(row)
        for table, rows in by_table.items():
            insert = table.insert().values({c: sa.bindparam(f"c{i}") for i, c in enumerate(table.columns)})
            if self._insert(insert, rows) is not None:
                for row in rows:
                    fault = self._insert(insert, [row])
                    if fault is not None:
                        yield Refused(f"{table.name}:{row['c0']}", fault)

    def list_partitions(self, closed: Iterable[partitions.Partition]) -> None:
        """Adds to the control table what it does not list yet."""
        kinds = {"text": sa.String(128), "timestamp": _datetime(6)}
        columns = [sa.Column(c.name, kinds[c.type]) for c in partitions.SHEET.columns]
        table = sa.Table(partitions.TABLE, self._metadata, *columns, schema=self._schema)
        table.create(self._connection, checkfirst=True)
        listed = set(
            self._connection.execute(
                sa.select(table.c.TABLE_OWNER, table.c.TABLE_NAME, table.c.PARTITION_NAME)
            )
        )
        for p in closed:
            if (p.schema or "", p.table, p.name) not in {tuple(row) for row in listed}:
                cells = (p.server, p.task, p.name, p.start, p.end, p.schema or "", p.table)
                self._connection.execute(table.insert().values(cells))

    def _insert(self, insert: sa.Insert, rows: list[dict[str, Any]]) -> str | None:
        try:
            with self._connection.begin_nested():
                self._connection.execute(insert, rows)
        except (DBAPIError, ValueError, OverflowError) as fault:
            return str(getattr(fault, "orig", fault)).strip()
        return None

    def _table(self, change_table: ChangeTable) -> tuple[sa.Table, list[Callable[[Any], Any] | None]]:
        name = f"{change_table.structure.schema}.{change_table.structure.table}"
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._make(change_table)
        return found

    def _make(self, change_table: ChangeTable) -> tuple[sa.Table, list[Callable[[Any], Any] | None]]:
        try:
            table = table_of(change_table, self._names, self._prefix, self._metadata, self._schema)
            table.create(self._connection, checkfirst=True)
            standing = sa.inspect(self._connection).get_columns(table.name, self._schema)
        except SQLAlchemyError as fault:
            raise StoreFault(f"of {change_table.structure} cannot be created: {fault}") from fault
        found = [column["name"] for column in standing]
        if found != [c.name for c in table.columns]:
            raise StoreFault(
                f"{table.name} stands with the columns {', '.join(found)}, not those of the table;"
                " masks would point at others: drop or rename it"
            )
        return table, [_bind(c.type, self._connection.dialect) for c in table.columns]


# --- reading


def source(
    connection: sa.Connection, name: str, settings: TableSettings, schema: str | None = None
) -> Source[Row]:
    """A change table of the database as a source, in the order of its changes."""
    try:
        table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)
    except SQLAlchemyError as fault:
        raise StoreFault(f"{name} cannot be read: {fault}") from fault
    columns = tuple(c.name for c in table.columns)
    return Source(name, name, columns, _rows(connection, table, settings))


def _rows(connection: sa.Connection, table: sa.Table, settings: TableSettings) -> Iterator[Row]:
    """The rows by change_seq, a B row before its U row; digits order the same in every collation."""
    found = {c.name.lower(): c for c in table.columns}
    order = [
        found[settings.header_prefix.lower() + name]
        for name in ("change_seq", "change_oper")
        if settings.header_prefix.lower() + name in found
    ]
    query = sa.select(table).order_by(*order).execution_options(yield_per=_BATCH)
    for where, row in enumerate(connection.execute(query), 1):
        yield Row(where, tuple(row))


def read_tasks(
    engine: sa.Engine,
    tasks: Sequence[tuple[str, Sequence[str]]],
    known: Tables,
    settings: TableSettings,
    stream: StreamSettings | None = None,
    schema: str | None = None,
) -> Iterator[Change | Refused]:
    """The changes of the change tables of tasks, by their sequence, in one snapshot where there is one."""
    if not any(names for _, names in tasks):
        raise Misuse("name the change tables to read")
    with engine.connect() as connection:
        opened = (
            (task, (source(connection, name, settings, schema) for name in names)) for task, names in tasks
        )
        yield from read_changes(tables.FORMAT, known, settings, stream or StreamSettings(), opened)


def read(
    engine: sa.Engine,
    names: Sequence[str],
    known: Tables,
    settings: TableSettings,
    schema: str | None = None,
) -> Iterator[Change | Refused]:
    """The changes of the change tables of one task, as one sequence."""
    yield from read_tasks(engine, [("", names)], known, settings, schema=schema)


def last_sequence(
    engine: sa.Engine, names: Sequence[str], prefix: str = "header__", schema: str | None = None
) -> str:
    """The greatest change_seq of the change tables that stand, to continue after."""
    last = sequence.START
    with engine.connect() as connection:
        for name in names:
            if not sa.inspect(connection).has_table(name, schema):
                continue
            table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)
            column = table.columns[prefix + headers.NAMES[0]]
            last = max(last, connection.execute(sa.select(sa.func.max(column))).scalar() or last)
    return last
