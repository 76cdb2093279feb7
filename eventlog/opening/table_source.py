"""The tables of a database other than the log's, for publishers that compare; nothing is written there."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy.engine import Connection, Engine

from eventlog.compare import rows, table_snapshot
from eventlog.compare.table_snapshot import TableSnapshot
from eventlog.core.tables import Table
from eventlog.files.current_files import cell_text
from eventlog.opening.published import TableChoice, published_elsewhere, readable_in
from eventlog.sql import any_database, current_rows
from eventlog.sql.any_database import AnyCatalogue, AnyTable
from eventlog.sql.catalogue import Directory, NoSuchTable, open_catalogue
from eventlog.sql.connect import connect_any, dialect_at
from eventlog.sql.current_rows import Current
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.readable import ReadableTable


class KnownSource:
    """A source on a database product that we know: its values become the texts that our triggers write."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._dialect = dialect_at(engine)
        self.dialect = self._dialect.name
        self._queries = Queries(Log(self._dialect))

    def published(self, choice: TableChoice) -> list[Table]:
        """Return the chosen tables."""
        with open_catalogue(self.engine) as catalogue:
            return published_elsewhere(catalogue, choice)

    def existing(self, names: Iterable[str]) -> Iterator[Table]:
        """Yield the tables of these names that are there."""
        with open_catalogue(self.engine) as catalogue:
            yield from Directory(catalogue).existing(names)

    def readable(self, source_tables: Iterable[Table]) -> dict[Table, ReadableTable]:
        """Return how the rows of tables are read."""
        readable_of: dict[Table, ReadableTable] = {}
        with open_catalogue(self.engine) as catalogue:
            for table in source_tables:
                readable_of[table] = readable_in(catalogue, table)
                readable_of[table].elsewhere = self
        return readable_of

    @contextmanager
    def view(self, *, one_moment: bool) -> Iterator[TableSnapshot]:
        """Open a connection that sees one moment, if that is asked for."""
        if one_moment:
            with table_snapshot.snapshot(self.engine) as moment:
                yield moment
        else:
            with self.engine.connect() as connection:
                yield TableSnapshot(connection)

    def attempt(self, connection: Connection) -> AbstractContextManager[Any]:
        """Return a block whose failing statement costs only itself."""
        return connection.begin_nested()

    def rows(self, connection: Connection, table: ReadableTable) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table."""
        return table_snapshot.read_table(connection, table.table, table)

    def current_rows(
        self, table: ReadableTable, keys: Sequence[Sequence[str]]
    ) -> Generator[Current, None, None]:
        """Yield the rows with these keys, as they are now."""
        with self.engine.connect() as connection:
            yield from current_rows.current_rows(connection, self._queries, _here(table), keys)


def _here(table: ReadableTable) -> ReadableTable:
    """Return the table as one of the connection's own database."""
    local_table = copy(table)
    local_table.elsewhere = None
    return local_table


class AnySource:
    """A source on another database product, read through SQLAlchemy alone."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name

    def published(self, choice: TableChoice) -> list[Table]:
        """Return the chosen tables; they have no children."""
        matching: list[Table] = []
        with self.engine.connect() as connection:
            catalogue = AnyCatalogue(connection)
            for name in choice.names:
                try:
                    matching.append(catalogue.find(name))
                except NoSuchTable as fault:
                    choice.absent(name, fault)
            if choice.schema is not None:
                named = catalogue.in_schema(choice.schema)
                matching += (table for table in named if choice.passes(table.name))
            places: dict[tuple[str | None, str], Table] = {}
            for table in matching:  # the schema of the connection may be named or not
                places.setdefault((table.schema or catalogue.default_schema, table.name), table)
        return list(places.values())

    def existing(self, names: Iterable[str]) -> Iterator[Table]:
        with self.engine.connect() as connection:
            yield from AnyCatalogue(connection).existing(names)

    def readable(self, source_tables: Iterable[Table]) -> dict[Table, ReadableTable]:
        return {table: AnyTable(table, self.engine, cell_text) for table in source_tables}

    @contextmanager
    def view(self, *, one_moment: bool) -> Iterator[TableSnapshot]:
        with any_database.one_view(self.engine, one_moment=one_moment) as connection:
            yield TableSnapshot(connection)

    def attempt(self, connection: Connection) -> AbstractContextManager[Any]:
        return nullcontext()

    def rows(self, connection: Connection, table: ReadableTable) -> Iterator[pa.RecordBatch]:
        assert isinstance(table, AnyTable)
        place = str(table.table)
        return rows.in_batches(table.table, ((place, *row) for row in table.rows(connection)))


TableSource = KnownSource | AnySource


class SourceView(NamedTuple):
    """Reads the tables of a source in one view of it."""

    source: TableSource
    moment: TableSnapshot

    @property
    def connection(self) -> Connection:
        """Return the connection to the source."""
        return self.moment.connection

    def rows(self, table: ReadableTable) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table."""
        return self.source.rows(self.connection, table)


def source_at(url: str) -> TableSource:
    """Return the database of this URL."""
    engine = connect_any(url)
    is_known = engine.dialect.name in DIALECTS
    return KnownSource(engine) if is_known else AnySource(engine)
