"""Tables for triggers whose text is compared, without any database."""

from __future__ import annotations

from eventlog.core.tables import Column, Table
from eventlog.core.typenames import kind_of
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.names import Log
from eventlog.sql.relation import Child, Choice, ForeignKey, Relation
from eventlog.sql.trigger_rows import Subject

TYPES = {
    "postgresql": (
        "integer",
        "character varying(64)",
        "timestamp with time zone",
        "bytea",
        "numeric(10,2)",
        "text",
    ),
    "oracle": (
        "NUMBER(10,0)",
        "VARCHAR2(64)",
        "TIMESTAMP(6) WITH TIME ZONE",
        "RAW(200)",
        "NUMBER(10,2)",
        "CLOB",
    ),
    "mariadb": ("int(11)", "varchar(64)", "timestamp(6)", "blob", "decimal(10,2)", "longtext"),
    "mysql": ("int", "varchar(64)", "timestamp(6)", "blob", "decimal(10,2)", "longtext"),
}


def subject(dialect: str, choice: Choice) -> Subject:
    """Return a table of one column of each usual type, with a child table where the choice names one."""
    fold = DIALECTS[dialect].fold
    number, words, moment, data, amount, long = TYPES[dialect]
    usr = _table(
        dialect,
        "usr",
        {"idu": number, "site": words, "born": moment, "photo": data, "amount": amount, "bio": long},
        ("site", "idu"),
    )
    phone = _table(dialect, "usr_phone", {"site": words, "idu": number, "phoneno": words}, ())
    link = ForeignKey((fold("idu"), fold("site")), fold("indirect"), fold("usr"), (fold("idu"), fold("site")))
    child = Child(Relation(phone, (link,)), (phone.columns[fold("phoneno")],), link)
    children = (child,) if choice.children else ()
    return Subject(Log(DIALECTS[dialect], schema="indirect"), Relation(usr), choice, children)


def _table(dialect: str, name: str, columns: dict[str, str], key: tuple[str, ...]) -> Table:
    fold = DIALECTS[dialect].fold
    table_columns = {
        fold(column): Column(fold(column), kind, kind_of(kind, dialect), fold(column))
        for column, kind in columns.items()
    }
    return Table(fold("indirect"), fold(name), table_columns, tuple(map(fold, key)))
