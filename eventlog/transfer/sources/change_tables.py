"""Change tables in a database: created with the right types, filled, read in order."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.formats.qlik import change_tables, headers, sequence
from eventlog.formats.qlik.change_tables import ChangeTable, TableSettings
from eventlog.formats.qlik.headers import HEADERS
from eventlog.formats.qlik.row_writer import WrittenCells
from eventlog.sql.connect import ConnectionLost, DatabaseFailed
from eventlog.transfer.sources.sql_cells import (
    HEADER_TYPES,
    Bind,
    UtcNow,
    at_one_moment,
    binds_of,
    sql_type,
    stored_cell,
)

_BATCH = 1_000


class StoreFault(EventlogError):
    """change tables: {0}"""


# --- writing


def table_of(change_table: ChangeTable, settings: TableSettings) -> sa.Table:
    """Return the change table as SQLAlchemy knows it."""
    names, prefix, structure = change_table.headers, settings.header_prefix, change_table.structure
    header_columns = [sa.Column(prefix + h.name, HEADER_TYPES[h.type](h)) for h in HEADERS if h.name in names]
    data_columns = [sa.Column(c.name, sql_type(c)) for c in structure.columns]
    schema = _schema(structure.schema, settings)
    return sa.Table(
        structure.table + settings.suffix, sa.MetaData(), *header_columns, *data_columns, schema=schema
    )


def name_of(schema: str | None, table: str, settings: TableSettings) -> str:
    """Return the name of the change table of a table, with the schema where it is written if one was set."""
    written = _schema(schema, settings)
    return f"{written}.{table}{settings.suffix}" if written else table + settings.suffix


def _schema(schema: str | None, settings: TableSettings) -> str | None:
    written = settings.change_table_schema
    return (schema if written == "*" else written) or None


def write(
    changes: Iterable[Change], declared_tables: Tables, settings: TableSettings, engine: sa.Engine
) -> Iterator[Refused]:
    """Writes change tables in one transaction, created where they are not there; yields what was refused."""
    with engine.begin() as connection:
        store = _Store(connection, settings)
        for item in change_tables.write_rows(changes, declared_tables, settings):
            if isinstance(item, Refused):
                yield item
            else:
                yield from store.add(*item)
        yield from store.flush()


class _StoredTable(NamedTuple):
    """A change table of the database, the table that it belongs to, and how its cells are bound."""

    table: sa.Table
    of: tuple[str | None, str]
    binds: list[Bind]


class _Store:
    def __init__(self, connection: sa.Connection, settings: TableSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._stored_tables: dict[tuple[str | None, str], _StoredTable] = {}
        self._waiting: list[tuple[sa.Table, dict[str, Any]]] = []

    def add(self, change_table: ChangeTable, cells: WrittenCells) -> Iterator[Refused]:
        table, _, binds = self._table(change_table)
        bound = []
        for column, bind, cell in zip(table.columns, binds, cells, strict=True):
            try:
                bound.append(bind(cell))
            except (EventlogError, decimal.InvalidOperation) as fault:
                first_cell, *_ = cells
                yield Refused(f"{table.name}:{first_cell}", f"column {column.name!r}: {fault}")
                return
        self._waiting.append((table, {f"c{i}": value for i, value in enumerate(bound)}))
        if len(self._waiting) >= _BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[Refused]:
        """Insert the waiting rows; if a batch fails, insert row by row, so that only bad rows are refused."""
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

    def _insert(self, insert: sa.Insert, rows: list[dict[str, Any]]) -> str | None:
        """Return why the database refuses the rows; a lost connection is not their fault."""
        try:
            with self._connection.begin_nested():
                self._connection.execute(insert, rows)
        except ConnectionLost:
            raise
        except DBAPIError as fault:
            if fault.connection_invalidated:
                raise
            return str(fault.orig).strip()
        except (EventlogError, SQLAlchemyError, ValueError, TypeError, ArithmeticError) as fault:
            return str(fault).strip()
        return None

    def _table(self, change_table: ChangeTable) -> _StoredTable:
        of = change_table.structure.schema, change_table.structure.table
        stored_table = self._stored_tables.get(of)
        if stored_table is None:
            stored_table = self._stored_tables[of] = self._make(change_table, of)
        return stored_table

    def _make(self, change_table: ChangeTable, of: tuple[str | None, str]) -> _StoredTable:
        try:
            table = table_of(change_table, self._settings)
            owner = next(
                (s.of for s in self._stored_tables.values() if s.table.fullname == table.fullname), None
            )
            if owner is not None:
                raise StoreFault(
                    f"of {owner[0]}.{owner[1]} and {of[0]}.{of[1]} would be one table, {table.fullname}:"
                    " change-table-schema = * gives each its own schema"
                )
            table.create(self._connection, checkfirst=True)
            stored_columns = sa.inspect(self._connection).get_columns(table.name, table.schema)
        except (SQLAlchemyError, DatabaseFailed) as fault:
            raise StoreFault(f"of {change_table.structure} cannot be created: {fault}") from fault
        column_names = [column["name"] for column in stored_columns]
        if column_names != [c.name for c in table.columns]:
            raise StoreFault(
                f"{table.name} has the columns {', '.join(column_names)}, not those of the table, so masks"
                " would mark wrong columns: drop or rename it"
            )
        return _StoredTable(table, of, binds_of(table, self._connection.dialect))


# --- reading


def source(connection: sa.Connection, name: str, settings: TableSettings, done: str = "") -> Source[Row]:
    """Return a change table as a source, in the order of its changes; its name may contain its schema.

    Rows up to `done`, a change_seq or the time part of one, are not read.
    """
    try:
        schema, bare = _place_of(connection, name)
        table = sa.Table(bare, sa.MetaData(), schema=schema, autoload_with=connection)
    except (SQLAlchemyError, DatabaseFailed) as fault:
        raise StoreFault(f"{name} cannot be read: {fault}") from fault
    columns = tuple(c.name for c in table.columns)
    return Source(name, name, columns, _rows(connection, table, settings, done))


def _place_of(connection: sa.Connection, name: str) -> tuple[str | None, str]:
    """Return the schema and the name of a table; the schema ends at the last dot."""
    schema, dot, bare = name.rpartition(".")
    if not dot or not schema or sa.inspect(connection).has_table(name):
        return None, name
    return schema, bare


def _rows(connection: sa.Connection, table: sa.Table, settings: TableSettings, done: str) -> Iterator[Row]:
    """Yield the rows by change_seq, a B row before its U row; digits order the same in every collation."""
    columns_by_name = {c.name.lower(): c for c in table.columns}
    order = [
        columns_by_name[settings.header_prefix.lower() + name]
        for name in ("change_seq", "change_oper")
        if settings.header_prefix.lower() + name in columns_by_name
    ]
    cells = [stored_cell(column, connection.dialect) for column in table.columns]
    query = sa.select(*cells).order_by(*order).execution_options(yield_per=_BATCH)
    seq = columns_by_name.get(settings.header_prefix.lower() + "change_seq")
    if done and seq is not None:
        query = query.where(sa.or_(seq.is_(None), seq == "", seq > done.ljust(sequence.LENGTH, "9")))
    for where, row in enumerate(connection.execute(query), 1):
        yield Row(where, tuple(row))


class StoredTables:
    """The change tables in a database, to be read on and on."""

    def __init__(
        self, engine: sa.Engine, names: Sequence[str], declared_tables: Tables, settings: TableSettings
    ) -> None:
        if not names:
            raise Misuse("name the change tables to read")
        self._engine = engine
        self._names = names
        self._declared_tables = declared_tables
        self._settings = settings

    def clock(self) -> str:
        """Return the time part of a change_seq now, by the clock of the database."""
        with self._engine.connect() as connection:
            now = connection.execute(sa.select(UtcNow())).scalar_one()
        return f"{now:%Y%m%d%H%M%S}".zfill(14) + "00"

    def open(self, low: Callable[[str], str]) -> Iterator[Source[Row]]:
        """Return the sources; rows up to the time that is low for their table are not read."""

        def low_of(name: str) -> str:
            name = self._settings.table or name
            schema, table = change_tables.table_name(name, self._declared_tables, self._settings.suffix)
            return low(f"{schema}.{table}" if schema else table)

        with at_one_moment(self._engine) as connection:
            for name in self._names:
                yield source(connection, name, self._settings, low_of(name))


def last_sequence(engine: sa.Engine, names: Sequence[str], prefix: str = "header__") -> str:
    """Return the greatest change_seq of the existing change tables, so that new ones continue after it."""
    last = sequence.START
    with engine.connect() as connection:
        for name in names:
            schema, bare = _place_of(connection, name)
            if not sa.inspect(connection).has_table(bare, schema):
                continue
            table = sa.Table(bare, sa.MetaData(), schema=schema, autoload_with=connection)
            sequences = [c for c in table.columns if c.name.lower() == (prefix + headers.NAMES[0]).lower()]
            if sequences:  # else it is no change table, which is reported when it is written to
                last = max(last, connection.execute(sa.select(sa.func.max(*sequences))).scalar() or last)
    return last
