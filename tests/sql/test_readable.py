"""Rows are read back by the very texts that triggers write into table_key; a bad text costs only itself."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core.entry import read_entry
from eventlog.core.errors import WrongRow
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.current_rows import current_rows
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.readable import ReadableTable, readable
from eventlog.sql.schema import migrate
from tests.kit.databases import Database

pytestmark = pytest.mark.quick

# A key column's type and a few values, as SQL.
COMMON = {
    "integer": ("-5", "0", "2147483647"),
    "smallint": ("-5", "32767"),
    "bigint": ("-9223372036854775808", "17"),
    "numeric(12,2)": ("1.50", "-0.01"),
    "numeric(20,0)": ("99999999999999999999", "1"),
    "varchar(40)": ("'a'", "'A'", "'x y '", "',;''+\"=<>'", "'ü€'", "'a:b {k} %s'"),
    "date": ("'2025-02-28'", "'1970-01-01'"),
    "timestamp": ("'2025-02-28 12:00:00'", "'1999-12-31 23:59:59'"),
}
VALUES_BY_DATABASE: dict[str, dict[str, tuple[str, ...]]] = {
    "postgresql": {
        "text": ("''", "'x\\'", "' x'"),
        "char(4)": ("'a'", "'ab'"),
        "uuid": ("'11111111-2222-3333-4444-555555555555'",),
        "boolean": ("true", "false"),
        "bytea": (r"'\x00ff'", r"'\x'"),
        "timestamp with time zone": ("'2025-06-01 12:00:00.123456+02'",),
        "time": ("'12:30:00.5'",),
        "inet": ("'10.0.0.1'",),
        "double precision": ("0.1", "1e300"),
        "interval": ("'1 day 02:03:04'",),
    },
    "mariadb": {
        "varchar(40) character set latin1": ("'a'", "'ü'"),
        "varchar(40) collate utf8mb4_bin": ("'a'", "'A'"),
        "char(4)": ("'a'", "'ab'"),
        "varbinary(20)": ("x'00ff'", "x'41'"),
        "bigint unsigned": ("18446744073709551615", "0"),
        "datetime(6)": ("'2025-02-28 12:00:00.123456'",),
        "tinyint(1)": ("0", "1"),
        "double": ("0.5", "1e100"),
    },
}
VALUES_BY_DATABASE["mysql"] = VALUES_BY_DATABASE["mariadb"]
DIFFER_BY_CASE = {"varchar(40)"}  # not everywhere, unless the column is declared so


def prepare(
    engine: Engine, database: Database, type_name: str, shown: tuple[str, ...]
) -> tuple[Store, ReadableTable]:
    store = Store(engine, Log(database.dialect))
    migrate.install(engine, store.log)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"create table keyed (k {type_name} not null, n integer, primary key (k))")
        for n, value in enumerate(shown):
            connection.execute(text(f"insert into keyed values ({value.replace(':', chr(92) + ':')}, {n})"))
        table = Catalogue(connection).find("keyed").table
        return store, readable(connection, table, database.dialect)


def values_of(database: Database) -> dict[str, tuple[str, ...]]:
    values_by_type = COMMON | VALUES_BY_DATABASE.get(database.dialect.name, {})
    if database.dialect.values.collation:
        values_by_type = {
            kind: tuple(v for v in shown if v != "'A'" or "bin" in kind)
            for kind, shown in values_by_type.items()
        }
    return values_by_type


@pytest.mark.long
def test_each_row_is_found_by_the_key_that_is_logged_for_it(engine: Engine, database: Database) -> None:
    for type_name, shown in values_of(database).items():
        store, table = prepare(engine, database, type_name, shown)
        for _ in resync(store, Resync(table.table), lambda rows: None):
            pass
        with store.snapshot() as snapshot:
            keys = [read_entry(tuple(cells)).table_key for cells in snapshot.pick_up(PickUpFilter()).cells]
            found = list(snapshot.current_rows(table, [table.load_key(key) for key in keys]))
        assert sorted(row.texts[0] or "" for row in found) == [str(n) for n in range(len(shown))], type_name
        assert [row.place for row in found] == list(range(len(shown))), type_name
        migrate.uninstall(engine, store.log, discard=True)
        with engine.begin() as connection:
            connection.execute(text("drop table keyed"))


@pytest.mark.parametrize("type_name", ["integer", "bpchar"])
def test_few_rows_of_a_small_table_are_read_without_the_others(
    engine: Engine, database: Database, type_name: str
) -> None:
    if database.dialect.name != "postgresql":
        pytest.skip(f"{database.dialect.title} does not count the rows that are read of one table")
    store, table = prepare(engine, database, type_name, ())
    with engine.begin() as connection:
        connection.exec_driver_sql("insert into keyed select n, n from generate_series(1, 5000) as n")
        connection.exec_driver_sql("analyze keyed")
    read = "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'keyed'"
    with engine.connect() as connection:
        found = list(current_rows(connection, store.queries, table, [("7",), ("4999",), ("9000",)]))
        assert [row.texts[0] for row in found] == ["7", "4999"]
        assert connection.exec_driver_sql(read).scalar_one() <= 3


@pytest.mark.parametrize("type_name", ["varchar(40)", "bpchar"])
def test_a_key_finds_its_row_by_exactly_its_characters(
    engine: Engine, database: Database, type_name: str
) -> None:
    """Find no row by another case, or with other blanks at the end, whatever the column's collation is."""
    if type_name == "bpchar" and not database.dialect.sessions.has_slots:
        pytest.skip("text without a length that ignores blanks is PostgreSQL's alone")
    store, table = prepare(engine, database, type_name, ("'a'", "'b '", "' c'"))
    keys = ["a", "b ", " c", "a ", "A", "b", "b  ", "c", "B "]
    with store.snapshot() as snapshot:
        rows = list(snapshot.current_rows(table, [table.load_key(f"k={key}") for key in keys]))
    assert [(row.place, row.texts) for row in rows] == [(0, ("0",)), (1, ("1",)), (2, ("2",))]


BAD: dict[str, tuple[str, ...]] = {
    "integer": ("k=x", "k=", "k=99999999999999999999", "k=1.5", "n=1", "k=1+n=2", "k=1+k=1", "j=1"),
    "date": ("k=2025-02-30", "k=today"),
    "timestamp": ("k=infinity", "k=2025-02-30 00:00:00"),
    "numeric(12,2)": ("k=NaN", "k=1e9999", "k=0x10"),
    "varchar(40)": ("k=\0",),
}


def test_a_key_that_is_none_of_the_table_is_refused_before_it_is_asked_for(
    engine: Engine, database: Database
) -> None:
    for type_name, bad in BAD.items():
        _, table = prepare(engine, database, type_name, ())
        for key in bad:
            with pytest.raises(WrongRow, match="table_key"):
                table.load_key(key)
        with engine.begin() as connection:
            connection.execute(text("drop table keyed"))


@pytest.mark.parametrize("key", ["k=1;drop table keyed", "k=1' or '1'='1", "k=" + "x" * 1_000_000])
def test_hostile_texts_find_nothing_and_harm_nothing(engine: Engine, database: Database, key: str) -> None:
    store, table = prepare(engine, database, "varchar(40)", ("'a'",))
    value: Any = key.removeprefix("k=")
    with store.snapshot() as snapshot:
        found = list(snapshot.current_rows(table, [(value,), ("a",), ("no such",)]))
    assert [(row.place, row.texts) for row in found] == [(1, ("0",))]
