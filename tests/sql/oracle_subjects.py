"""Tables of Oracle for triggers whose text is looked at: every type, any width, any names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventlog.core.tables import Column, Table
from eventlog.core.typenames import kind_of
from eventlog.sql.names import Log
from eventlog.sql.oracle import ORACLE
from eventlog.sql.relation import Choice, Relation
from eventlog.sql.trigger_rows import Subject

# as the catalogue's statement writes them
TYPES = (
    *("NUMBER", "NUMBER(10,0)", "NUMBER(10,2)", "NUMBER(5,-2)", "FLOAT", "BINARY_FLOAT", "BINARY_DOUBLE"),
    *("DATE", "TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP(9)"),
    *("TIMESTAMP(3) WITH TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
    *("INTERVAL YEAR(2) TO MONTH", "INTERVAL DAY(2) TO SECOND(6)", "INTERVAL DAY(0) TO SECOND(0)"),
    *("CHAR(10)", "NCHAR(10)", "VARCHAR2(64)", "NVARCHAR2(64)", "CLOB", "NCLOB"),
    *("RAW(16)", "RAW(2000)", "BLOB", "ROWID", "UROWID", "BOOLEAN", "XMLTYPE", "JSON", "VECTOR"),
)
LEFT_OUT = ("LONG", "LONG RAW", "BFILE", "OBJECT MDSYS.SDO_GEOMETRY", "OBJECT X.CLOB(3)", "OBJECT X.CLOB Y")
CHOICES = {
    "rows": Choice(),
    "fields": Choice(insert=1, update=2),
    "replaced": Choice(insert=1, update=3),
    "fields-query-back": Choice(insert=7, update=8, delete=None),
}


def table_of(
    columns: Mapping[str, str], key: tuple[str, ...], schema: str = "INDIRECT", name: str = "T"
) -> Table:
    unread = {kind: ORACLE.values.expressions.of(kind).unreadable for kind in columns.values()}
    table_columns = {
        name: Column(name, kind, kind_of(kind, "oracle"), name, unread=unread[kind])
        for name, kind in columns.items()
    }
    return Table(schema, name, table_columns, key)


def subject_of(
    columns: Iterable[tuple[str, str]], choice: Choice, log: Log | None = None, schema: str = "INDIRECT"
) -> Subject:
    """Return a table with these columns and the key K."""
    table = table_of({"K": "NUMBER(10,0)", **dict(columns)}, ("K",), schema)
    return Subject(log or Log(ORACLE, schema="indirect"), Relation(table), choice)


def every_type(choice: Choice, schema: str = "INDIRECT") -> Subject:
    """Return a table with a column of every type."""
    return subject_of(((f"C{n}", kind) for n, kind in enumerate((*TYPES, *LEFT_OUT))), choice, schema=schema)


def wide(columns: int, length: int, choice: Choice) -> Subject:
    """Return a table with that many columns, each with a name of that many bytes."""
    names = (f"{n:04}''''".ljust(length, "x") for n in range(columns))
    return subject_of(((name, "VARCHAR2(64)") for name in names), choice)
