"""Tables of any database that SQLAlchemy supports: described, and read with standard statements.

The database needs nothing of ours. Values are written as their driver returns them, so a value that the
driver changes is written as changed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.exc import CompileError, NoSuchTableError, SQLAlchemyError

from eventlog.core.errors import EventlogError, Misuse, WrongRow
from eventlog.core.meta_identifiers import read_name
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.typenames import bounds_of, kind_of, number_of
from eventlog.core.values import Kind
from eventlog.sql.catalogue import NoSuchTable, references_of
from eventlog.sql.common.key_types import KeyType
from eventlog.sql.connect import DatabaseFailed, connect_at
from eventlog.sql.current_rows import Current, KeyColumn
from eventlog.sql.readable import ReadableTable
from eventlog.sql.relation import ForeignKey

TextOf = Callable[[Any], str | None]  # the text of a value, as a log would hold it
_KEYS = 50  # that one statement asks for
_FETCHED = 1_000  # rows at a time
_COLLATION = re.compile(r"\s+collate\s.*", re.DOTALL)

# What makes one view of all tables, by SQLAlchemy's name of the database.
_BEGINS = {"sqlite": "begin", "duckdb": ""}  # empty: its driver begins by itself
_LEVELS = {"mssql": "SNAPSHOT"}


class NoSnapshot(Misuse):
    """eventlog cannot read all tables of {0} at one moment. With snapshot = "none" it reads one \
after another, and reads each difference once more before it is sent"""


@contextmanager
def one_view(engine: Engine, *, one_moment: bool) -> Iterator[Connection]:
    """A connection whose reads all see one moment, or, where that is not asked for, each its own."""
    name = engine.dialect.name
    level = _LEVELS.get(name) if one_moment else None
    with connect_at(engine, level) if level else engine.connect() as connection:
        if one_moment and not level:
            if name not in _BEGINS:
                raise NoSnapshot(name)
            if _BEGINS[name]:
                connection.exec_driver_sql(_BEGINS[name])
        try:
            yield connection
        finally:
            connection.rollback()


class AnyTable(ReadableTable):
    """A table that is read by SQLAlchemy's own words."""

    def __init__(self, table: Table, engine: Engine, text_of: TextOf) -> None:
        self.table = table
        self.columns = table.data
        self.places = ()
        self.expressions = ("",) * len(table.data)
        self.elsewhere = self
        self._engine = engine
        self._as_text = text_of
        self.key = tuple(KeyColumn(column.name, "") for column in table.key_columns)
        self._sent = {column.name: KeyType("") for column in table.key_columns}

    def _load(self, column: Column, value: str) -> str:
        try:
            column.load(value)
        except EventlogError as fault:
            raise WrongRow(f"table_key: {column.name}: {fault}") from fault
        return value

    def statement(self, condition: sa.ColumnElement[bool] | None = None) -> Any:
        """Return the query for the key and the columns of rows."""
        columns: Any = [sa.column(column.name) for column in (*self.table.key_columns, *self.columns)]
        query = sa.select(*columns).select_from(sa.table(self.table.name, schema=self.table.schema))
        return query if condition is None else query.where(condition)

    def current_rows(self, table: object, keys: Sequence[Sequence[str]]) -> Generator[Current, None, None]:
        """Yield the rows with these keys, and which of the keys found each."""
        places = {tuple(key): place for place, key in enumerate(keys)}
        with self._engine.connect() as connection:
            for condition in self._conditions(keys):
                for key, texts in self.rows(connection, condition):
                    if None not in key and (place := places.get(tuple(map(str, key)))) is not None:
                        yield Current(place, texts)

    def _conditions(self, keys: Sequence[Sequence[str]]) -> Iterator[sa.ColumnElement[bool] | None]:
        """Return conditions for rows that include all rows with these keys.

        None finds every row, if it is uncertain how a value of the key is compared.
        """
        if any(column.kind not in _COMPARED for column in self.table.key_columns):
            yield None
            return
        for start in range(0, len(keys), _KEYS):
            yield sa.or_(
                *(
                    sa.and_(
                        *(
                            sa.column(column.name) == _COMPARED[column.kind](text)
                            for column, text in zip(self.table.key_columns, key, strict=True)
                        )
                    )
                    for key in keys[start : start + _KEYS]
                )
            )

    def rows(
        self, connection: Connection, condition: sa.ColumnElement[bool] | None = None
    ) -> Iterator[tuple[tuple[str | None, ...], tuple[str | None, ...]]]:
        """Yield the texts of the key and of the columns of rows."""
        columns = (*self.table.key_columns, *self.columns)
        query = self.statement(condition)
        texts_of = [self._key_text if n < len(self.key) else self._cell_text for n in range(len(columns))]
        width = len(self.key)
        with connection.execute(query.execution_options(stream_results=True, yield_per=_FETCHED)) as rows:
            for row in rows:
                texts = tuple(
                    [text(column, cell) for text, column, cell in zip(texts_of, columns, row, strict=True)]
                )
                yield texts[:width], texts[width:]

    def _cell_text(self, column: Column, cell: Any) -> str | None:
        """Return the text of a cell; a moment without a clock's time, where the column has one, is
        midnight.
        """
        if isinstance(cell, memoryview | bytearray):
            cell = bytes(cell)
        if column.kind is Kind.TIMESTAMP and type(cell) is dt.date:
            cell = dt.datetime.combine(cell, dt.time())
        return self._as_text(cell)

    def _key_text(self, column: Column, cell: Any) -> str | None:
        text = self._cell_text(column, cell)
        return text.rstrip(" ") if text is not None and column.kind is Kind.PADDED else text


_Described = tuple[list[tuple[str, str]], list[str], list[ForeignKey]]  # columns with types, key, references
_COLUMNS = sa.text(
    """select column_name, data_type from information_schema.columns
    where table_name = :name and table_schema = coalesce(:schema, current_schema())
    order by ordinal_position"""
)
_KEY = sa.text(
    """select k.column_name from information_schema.key_column_usage k
    join information_schema.table_constraints c
      on c.constraint_name = k.constraint_name and c.table_schema = k.table_schema
        and c.table_name = k.table_name
    where c.constraint_type = 'PRIMARY KEY' and k.table_name = :name
      and k.table_schema = coalesce(:schema, current_schema())
    order by k.ordinal_position"""
)

# How the text of a key's value is bound; other kinds differ too much from driver to driver.
_COMPARED: Mapping[Kind, Callable[[str], Any]] = {Kind.INT: int, Kind.STRING: str, Kind.PADDED: str}


class AnyCatalogue:
    """The tables of a database as SQLAlchemy describes them."""

    def __init__(self, connection: Connection) -> None:
        self.dialect = connection.engine.dialect.name
        self._compiled = connection.engine.dialect
        # SQLAlchemy itself tries statements that some versions of a product refuse
        asking = connection.execution_options(skip_user_error_events=True)
        self._connection = asking
        self._inspector: Inspector = sa.inspect(asking)
        self._tables_by_schema: dict[str | None, Tables] = {}

    @property
    def default_schema(self) -> str | None:
        """Return the schema of tables that are named without one; None if the database has no such name."""
        return self._inspector.default_schema_name

    def find(self, name: str) -> Table:
        """Return the table or view of that name, which may carry its schema: exactly, else uniquely without
        case.
        """
        schema, dot, _ = name.rpartition(".")
        stub = self._named(schema if dot else None).find(name)
        if stub is None:
            raise NoSuchTable(name)
        return self.at(stub.schema, stub.name)

    def existing(self, names: Iterable[str]) -> Iterator[Table]:
        """Yield the tables of these names that there are."""
        for name in names:
            with suppress(NoSuchTable):
                yield self.find(name)

    def in_schema(self, schema: str) -> Iterator[Table]:
        """Yield the tables and views of a schema."""
        yield from (self.at(stub.schema, stub.name) for stub in self._stubs(schema))

    def at(self, schema: str | None, name: str) -> Table:
        """Return the table or view of exactly that name."""
        try:
            columns, key, foreign = self._reflected(schema, name)
        except NoSuchTableError:
            raise NoSuchTable(name if schema is None else f"{schema}.{name}") from None
        except (SQLAlchemyError, NotImplementedError) as fault:
            columns, key, foreign = self._described_by_standard(schema, name, fault)
        view = name in self._inspector.get_view_names(schema)
        references = references_of(foreign)
        described = {column: self._column(column, kind, references, view=view) for column, kind in columns}
        if view:
            key = [column for column in described if read_name(column).is_key]
        return Table(schema, name, described, tuple(key), view=view)

    def _reflected(self, schema: str | None, name: str) -> _Described:
        inspector = self._inspector
        columns = [(row["name"], self._type(row["type"])) for row in inspector.get_columns(name, schema)]
        key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
        return columns, key, [self._foreign(row) for row in inspector.get_foreign_keys(name, schema)]

    def _described_by_standard(self, schema: str | None, name: str, fault: Exception) -> _Described:
        """Return what the views of the SQL standard contain, if SQLAlchemy's own way fails; without
        references.
        """
        self._connection.rollback()
        values = {"name": name, "schema": schema}
        try:
            columns = [
                (column, type_name.lower())
                for column, type_name in self._connection.execute(_COLUMNS, values)
            ]
            key = [row[0] for row in self._connection.execute(_KEY, values)]
        except SQLAlchemyError:
            self._connection.rollback()
            columns, key = [], []
        if not columns:
            words = getattr(fault, "orig", None) or fault
            raise DatabaseFailed(f"{name} cannot be described: {words}") from fault
        return columns, key, []

    def _named(self, schema: str | None) -> Tables:
        """Return the tables that need no schema, and those of one, without columns; SQLAlchemy lists them
        once.
        """
        if schema not in self._tables_by_schema:
            further = () if schema is None else self._stubs(schema)
            self._tables_by_schema[schema] = Tables([*self._stubs(None), *further])
        return self._tables_by_schema[schema]

    def _stubs(self, schema: str | None) -> list[Table]:
        names = [*self._inspector.get_table_names(schema), *self._inspector.get_view_names(schema)]
        return [Table(schema, name, {}) for name in names]

    def _column(
        self,
        name: str,
        type_name: str,
        references: Mapping[str, tuple[str, str]],
        *,
        view: bool,
    ) -> Column:
        reference, referred = references.get(name, (None, None))
        return Column(
            name=name,
            type=type_name,
            kind=kind_of(type_name, self.dialect),
            published=read_name(name).published if view else name,
            multivalued=view and read_name(name).is_multivalued,
            reference=reference,
            referred=referred,
            bounds=bounds_of(type_name, self.dialect),
            number=number_of(type_name, self.dialect),
            effective=read_name(name).name if view else None,
        )

    def _type(self, declared: sa.types.TypeEngine[Any]) -> str:
        """Return the name of a type, as its database writes it; one that cannot be written is text."""
        try:
            compiled = declared.compile(dialect=self._compiled).lower()
        except CompileError:
            return "text"
        return _COLLATION.sub("", compiled)

    def _foreign(self, row: Any) -> ForeignKey:
        return ForeignKey(
            columns=tuple(row["constrained_columns"]),
            target_schema=row["referred_schema"],
            target=row["referred_table"],
            target_columns=tuple(row["referred_columns"]),
        )
