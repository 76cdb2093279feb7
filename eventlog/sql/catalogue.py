"""The catalogue of a database: its tables as `eventlog.core.tables` knows them, with triggers and keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.errors import EventlogError
from eventlog.core.meta_identifiers import read_name
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.typenames import bounds_of, kind_of, number_of
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Call, Dialect
from eventlog.sql.connect import connect_at
from eventlog.sql.dialects import dialect_of
from eventlog.sql.names import Log
from eventlog.sql.queries import run_calls
from eventlog.sql.relation import MARK, Firing, ForeignKey, Identity, Installed, Owner, Place, Relation

Facts = Mapping[str, Any]


class NoSuchTable(EventlogError):
    """no table or view {0}: one outside the connection's own schemas is named with its schema"""


class QuotedTable(NoSuchTable):
    """no table or view {0}: leave out the quotes, as in {1}"""


class LogColumn(NamedTuple):
    """A column of a log from the catalogue."""

    name: str
    type: str
    exact: bool  # its texts compare by case and by blanks
    keyed: bool  # the primary key begins with it, where statements must know
    unique: bool  # it has a unique key of its own


class AmbiguousLog(EventlogError):
    """there is a {0} in the schemas {1}: name the log with its schema, as in log-table = {2}.{0}"""


class Catalogue:
    """The catalogue of the database at this connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.dialect: Dialect = dialect_of(connection.engine)
        self._columns: dict[str, Sequence[str]] = {}  # of each question that was asked

    def names(self, schema: str | None = None) -> list[tuple[str, str, str]]:
        """Return schema, name and kind of the tables and views of a schema, or of those without one."""
        rows = self._ask("tables", schema=schema)
        return [(row["schema_name"], row["table_name"], row["kind"]) for row in rows]

    def home(self) -> str:
        """Return the schema of what is named without one."""
        return str(next(self._ask("home"))["schema_name"])

    def log(self, log: Log) -> list[LogColumn]:
        """Return the columns of a log in their order; none where there is no such table."""
        rows = self.connection.execute(
            text(templates.statement(self.dialect, "catalogue_log", **log.names()))
        )
        return [LogColumn(name, type_name, *map(bool, facts)) for name, type_name, *facts in rows]

    def find(self, name: str) -> Relation:
        """Return the table of that name, which may carry its schema: exactly, else uniquely without case."""
        return Directory(self).find(name)

    def at(self, place: Place) -> Relation | None:
        """Return the table of exactly that name, None if there is none."""
        with suppress(NoSuchTable):
            return self.relation(*place)
        return None

    def located(self, log: Log) -> Log:
        """Return the log with its schema, because statements may meet another search path.

        A name that exists in two schemas of ours is refused, so that another log cannot be taken for this
        one.
        """
        if log.schema:
            return log
        schemas = self.places(log.dialect.fold(log.table))
        if len(schemas) > 1:
            raise AmbiguousLog(log.table, " and ".join(schemas), schemas[0])
        return replace(log, schema=schemas[0] if schemas else self.home())

    def places(self, name: str) -> list[str]:
        """Return the schemas among those that need no naming in which something has that name."""
        return [row["schema_name"] for row in self._ask("places", name=name)]

    def logs(self) -> list[Place]:
        """Return the tables of all schemas that have the ten columns of a log."""
        return [(row["schema_name"], row["table_name"]) for row in self._ask("logs")]

    def owner(self, log: Log) -> Owner:
        """Return the owner of a log: the owner of the record of tracked tables."""
        rows = self._ask("owner", schema=log.place, table_name=log.companion_name("tracked"))
        return next((Owner(row["owner"], bool(row["almighty"])) for row in rows), Owner())

    def marked(self, log: Log) -> dict[Place, bool]:
        """Return the tables with triggers that claim to be of that log, and whether its owner owns them."""
        names = log.names()
        place = {"log_schema": log.place, "record": log.companion_name("tracked")}
        rows = self._ask("marked", mark=f"{MARK}{{", log=names["log"], **place)
        return {(row["schema_name"], row["table_name"]): bool(row["ours"]) for row in rows}

    def routines(self, log: Log) -> dict[str, str | None]:
        """Return the bodies of the routines in a log's schema, as far as we may see them, without single
        quotes; None for a body that is hidden.
        """
        return {row["routine_name"]: row["body"] for row in self._ask("routines", schema=log.place)}

    def sees_routines(self, log: Log) -> bool:
        """Return whether no routine of a log's schema is hidden from us."""
        return any(self._ask("sees_routines", schema=log.place))

    def shows_triggers(self, place: Place) -> bool:
        """Return whether we may see the triggers of a table; False if that is unknown."""
        if not self.dialect.triggers.are_hidden:
            return True
        rows = self._ask("shows_triggers", schema=place[0], table_name=place[1])
        privileges = {row["privilege"] for row in rows if row["grantee"].replace("'", "") == row["ours"]}
        return "TRIGGER" in privileges

    def subscriptions(self, schema: str | None, name: str) -> list[str]:
        """Return the replications that write to a table without firing its triggers."""
        return [row["name"] for row in self._ask("subscriptions", schema=schema, table_name=name)]

    def relation(self, schema: str, name: str) -> Relation:
        """Return the table of exactly that name, with its triggers and keys."""
        where = {"schema": schema, "table_name": name}
        identity = next((Identity(**row) for row in self._ask("identity", **where)), None)
        if identity is None:
            raise NoSuchTable(f"{schema}.{name}")
        kind = identity.kind
        columns, key = list(self._ask("columns", **where)), list(self._ask("key", **where))
        partitions = list(self._ask("partitions", **where)) if kind == "partitioned" else []
        foreign_keys = tuple(_foreign_keys(self._ask("foreign_keys", **where)))
        below = [(row["schema_name"], row["table_name"], row["leaf"]) for row in partitions]
        return Relation(
            table=self._table(schema, name, kind, columns, key, foreign_keys),
            foreign_keys=foreign_keys,
            triggers=tuple(_trigger(row) for row in self._ask("triggers", **where)),
            leaves=tuple((place, partition) for place, partition, leaf in below if leaf),
            below=tuple((place, partition) for place, partition, _ in below),
            virtual=tuple(row["column_name"] for row in columns if row["virtual"]),
            identity=identity,
            deferrable=any(row.get("is_deferrable") for row in key),
            family=tuple((row["name"], row["kin"]) for row in self._ask("family", **where)),
        )

    def tables(self, schema: str | None = None) -> Tables:
        """Return every table and view, as a tables file holds them."""
        every = (self.relation(*named[:2]).table for named in self.names(schema))
        return Tables(every, self.dialect.name)

    def schemas(self) -> frozenset[str]:
        """Return the names of all schemas."""
        return frozenset(row["schema_name"] for row in self._ask("schemas"))

    def _table(
        self,
        schema: str,
        name: str,
        kind: str,
        columns: list[Facts],
        key_columns: list[Facts],
        foreign_keys: tuple[ForeignKey, ...],
    ) -> Table:
        view = kind.endswith("view")
        references = references_of(foreign_keys)
        described = {
            column: Column(
                name=column,
                type=row["type_name"],
                kind=kind_of(row["type_name"], self.dialect.name),
                published=read_name(column).published if view else column,
                multivalued=view and read_name(column).is_multivalued,
                reference=references.get(column, (None, None))[0],
                referred=references.get(column, (None, None))[1],
                bounds=bounds_of(row["type_name"], self.dialect.name),
                number=number_of(row["type_name"], self.dialect.name),
                effective=read_name(column).name if view else None,
                unread=self.dialect.values.expressions.of(row["type_name"]).unreadable,
            )
            for row in columns
            for column in (row["column_name"],)
        }
        key = tuple(row["column_name"] for row in key_columns)
        if view:
            key = tuple(column for column in described if read_name(column).is_key)
        reasons = map(self.dialect.why_no_key, (described[column] for column in key))
        return Table(schema, name, described, key, view=view, halted=next(filter(None, reasons), ""))

    def _ask(self, question: str, **values: str | None) -> Iterator[Facts]:
        """Yield the rows of a question; a session that commits by itself prepares what comes again."""
        call = Call(text(templates.statement(self.dialect, f"catalogue_{question}")), values)
        rows: Iterable[Sequence[Any]]
        if question in self._columns:
            (rows,) = run_calls(self.dialect, self.connection, [call])
        else:
            rows = self.connection.execute(*call)
            self._columns[question] = tuple(map(str, rows.keys()))
        for row in rows:
            yield dict(zip(self._columns[question], row, strict=True))


@contextmanager
def open_catalogue(engine: Engine) -> Iterator[Catalogue]:
    """Open the catalogue on a session that commits each statement.

    A look at a table then waits for DDL that replaces it. MariaDB passes over such a table if the session
    holds a lock on another one.
    """
    with connect_at(engine, "AUTOCOMMIT") as connection:
        yield Catalogue(connection)


class Directory:
    """A finder of many tables by name; the names are listed once, at the first search."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._listed: dict[tuple[str, ...], Tables] = {}  # by the schemas that are searched besides our own

    def find(self, name: str) -> Relation:
        """Return the table of that name, which may carry its schema: exactly, else uniquely without case."""
        further = () if name in self._plain else tuple(self._schemas_in(name))
        stub = self._tables(further).find(name)
        if stub is None:
            return self._unlisted(name)
        return self._catalogue.relation(stub.schema or "", stub.name)

    def _unlisted(self, name: str) -> Relation:
        """Return the table of exactly that name: MariaDB lists none that DDL replaces at this moment, but a
        look at one waits for the DDL."""
        splits = [(name[: dot.start()], name[dot.end() :]) for dot in re.finditer(r"\.", name)]
        for place in ((self._catalogue.home(), name), *splits):
            if relation := self._catalogue.at(place):
                return relation
        plain = re.sub('["`]', "", name)
        raise NoSuchTable(name) if plain == name else QuotedTable(name, plain)

    def existing(self, names: Iterable[str]) -> Iterator[Table]:
        """Yield the tables of these names that there are."""
        for name in names:
            with suppress(NoSuchTable):
                yield self.find(name).table

    @cached_property
    def _plain(self) -> frozenset[str]:
        return frozenset(table.name for table in self._tables(()))

    @cached_property
    def _schemas(self) -> frozenset[str]:
        return self._catalogue.schemas()

    def _tables(self, further: tuple[str, ...]) -> Tables:
        """Return the tables that need no schema, and those of some schemas, without columns."""
        if further not in self._listed:
            named = [row for schema in (None, *further) for row in self._catalogue.names(schema)]
            stubs = (Table(schema, name, {}) for schema, name, _ in dict.fromkeys(named))
            self._listed[further] = Tables(stubs)
        return self._listed[further]

    def _schemas_in(self, name: str) -> Iterator[str]:
        """Yield the schemas with which a name may begin; there are several where names hold dots."""
        for start in (name[: dot.start()] for dot in re.finditer(r"\.", name)):
            schema = start if start in self._schemas else self._catalogue.dialect.fold(start)
            if schema in self._schemas:
                yield schema


def references_of(foreign_keys: Iterable[ForeignKey]) -> dict[str, tuple[str, str]]:
    """Return the table and the column there to which each column refers by itself."""
    references: dict[str, tuple[str, str]] = {}
    for foreign in foreign_keys:
        if len(foreign.columns) == 1:
            target = Table(foreign.target_schema, foreign.target, {})
            references.setdefault(foreign.columns[0], (str(target), foreign.target_columns[0]))
    return references


def _foreign_keys(rows: Iterator[Facts]) -> Iterator[ForeignKey]:
    by_name: dict[str, list[Facts]] = {}
    for row in rows:
        by_name.setdefault(row["constraint_name"], []).append(row)
    for parts in by_name.values():
        yield ForeignKey(
            columns=tuple(row["column_name"] for row in parts),
            target_schema=parts[0]["target_schema"],
            target=parts[0]["target_table"],
            target_columns=tuple(row["target_column"] for row in parts),
            on_delete=parts[0]["on_delete"].lower(),
            on_update=parts[0]["on_update"].lower(),
        )


def _trigger(row: Facts) -> Installed:
    return Installed(
        name=row["trigger_name"],
        body=row["body"],
        row=bool(row["fires_by_row"]),
        # most databases only know whether it is enabled
        firing=Firing(row.get("firing") or ("origin" if row["enabled"] else "disabled")),
        schema=row["schema_name"],
        table=row["table_name"],
        routine=row["routine"],
        internal=bool(row["internal"]),
    )
