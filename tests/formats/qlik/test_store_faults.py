"""Rows that a database refuses: each costs itself, with its place, in change tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql
from sqlalchemy.schema import CreateTable

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Key, Op, Value
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import SheetRow
from eventlog.core.tables import Tables
from eventlog.formats.qlik import change_tables
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.sql.connect import InvalidUrl, connect_any
from eventlog.transfer.sources import change_tables as store
from tests.formats.qlik.helpers import read_store, seq
from tests.kit.databases import Database
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    '[tables.t]\nkey = ["id"]\n'
    'columns = { id = "integer", s = "varchar(5)", b = "varbinary(2)", n = "decimal(5,2)", j = "smallint" }\n'
)
TWO = tablesfile.read(
    '[tables."one.t"]\nschema = "one"\nkey = ["id"]\ncolumns = { id = "integer" }\n'
    '[tables."two.t"]\nschema = "two"\nkey = ["id"]\ncolumns = { id = "integer" }\n'
)


def insert(number: int, schema: str | None = None, **cells: Any) -> Change:
    key: Key = (("id", number),)
    fields = (Field("id", ABSENT, number), *(Field(name, ABSENT, value) for name, value in cells.items()))
    return Change(Op.INSERT, schema, "t", key, fields, seq(number))


@pytest.fixture
def lax(database: Database) -> Iterator[sa.Engine]:
    """An engine of each server at hand; MariaDB would cut and clamp without a word."""
    engine = connect_any(database.url)
    if engine.dialect.name in ("mysql", "mariadb"):
        engine.dispose()
        engine = sa.create_engine(database.url, connect_args={"init_command": "set sql_mode = ''"})
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("s", "six ch", "column 's': a value has 6 characters, and its column holds 5"),
        ("b", b"abc", "column 'b': a value has 3 bytes, and its column holds 2"),
        ("n", "1.234", "column 'n': '1.234' does not fit decimal(5, 2)"),
        ("n", "1234.5", "column 'n': '1234.5' does not fit decimal(5, 2)"),
        ("j", 40_000, "column 'j': 40000 is not between -32768 and 32767, as its column asks"),
    ],
)
def test_a_value_that_its_column_cannot_hold_costs_its_row(
    lax: sa.Engine, name: str, value: Value, reason: str
) -> None:
    cells: dict[str, Any] = {name: value}
    changes = [insert(1, **cells), insert(2, s="five!", b=b"ab", n="-999.99", j=-32768)]
    refused = list(store.write(changes, TABLES, TableSettings(), lax))
    assert [(one.where, one.reason) for one in refused] == [(f"t__ct:{seq(1)}", reason)]
    (kept,) = read_store(lax, ["t__ct"], TABLES, TableSettings())
    assert isinstance(kept, Change)
    assert kept.after == {"id": 2, "s": "five!", "b": b"ab", "n": "-999.99", "j": -32768}


def test_what_the_driver_or_the_server_refuses_costs_its_row(database: Database) -> None:
    """Use our own engine, whose errors are no longer the driver's."""
    engine = connect_any(database.url)
    with engine.begin() as connection:
        connection.execute(CreateTable(table_of(engine)))
        connection.execute(sa.text("alter table t__ct add constraint never check (id <> 2)"))
    refused = list(store.write([insert(n) for n in (1, 2, 3)], TABLES, TableSettings(), engine))
    assert [one.where for one in refused] == [f"t__ct:{seq(2)}"]
    assert "never" in refused[0].reason
    kept = read_store(engine, ["t__ct"], TABLES, TableSettings())
    assert [change.key for change in kept if isinstance(change, Change)] == [(("id", 1),), (("id", 3),)]
    engine.dispose()


def table_of(engine: sa.Engine) -> sa.Table:
    return store.table_of(change_tables.change_table(insert(1), TABLES, TableSettings()), TableSettings())


@pytest.mark.cold
def test_a_connection_that_is_lost_is_no_fault_of_rows(postgres: Database) -> None:
    engine = connect_any(postgres.url)
    killer = connect_any(postgres.url)

    def changes() -> Iterator[Change]:
        yield insert(1)
        with killer.begin() as connection:
            mine = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
            connection.execute(sa.text(f"{mine} and pid <> pg_backend_pid()"))
        yield insert(2)

    heard: list[Refused] = []
    with pytest.raises(EventlogError, match="no connection to the database"):
        heard += store.write(changes(), TABLES, TableSettings(), engine)
    assert heard == []
    engine.dispose()
    killer.dispose()


def test_tables_of_two_schemas_are_never_one_change_table(postgres: Database) -> None:
    engine = connect_any(postgres.url)
    changes = [insert(1, "one"), insert(2, "two")]
    with pytest.raises(store.StoreFault, match="change-table-schema"):
        list(store.write(changes, TWO, TableSettings(), engine))
    run_statements(engine, "create schema one", "create schema two")
    own = TableSettings(change_table_schema="*", suffix="_changes")
    assert list(store.write(changes, TWO, own, engine)) == []
    assert store.last_sequence(engine, [store.name_of("two", "t", own)]) == seq(2)
    found = read_store(engine, ["one.t_changes", "two.t_changes"], TWO, own)
    assert [(c.schema, c.key) for c in found if isinstance(c, Change)] == [
        ("one", (("id", 1),)),
        ("two", (("id", 2),)),
    ]
    engine.dispose()


def test_tables_of_two_schemas_have_files_of_their_own() -> None:
    written = list(change_tables.write([insert(1, "one"), insert(2, "two")], TWO, TableSettings()))
    assert [row.sheet.name for row in written if isinstance(row, SheetRow)] == ["one.t__ct", "two.t__ct"]


@pytest.mark.parametrize("suffix", ["__ct", "__CT", "_log", ""])
def test_a_change_table_is_called_as_the_suffix_says(suffix: str) -> None:
    assert change_tables.table_name(f"T1{suffix}", Tables(), suffix.lower()) == (None, "T1")


def test_a_stream_position_that_has_no_room_costs_its_change() -> None:
    long = insert(1)._replace(extra=(("stream_position", "9" * 129),))
    written = list(change_tables.write([long, insert(2)], TABLES, TableSettings()))
    assert isinstance(written[0], Refused)
    assert "129 characters: at most 128" in written[0].reason
    assert len(written) == 2


def test_sql_server_is_spoken_to_in_its_own_words() -> None:
    """Compare texts, because there is no such server here."""
    settings = TableSettings(change_table_schema="dbo")
    table = store.table_of(change_tables.change_table(insert(1), TABLES, settings), settings)
    dialect = mssql.dialect()  # type: ignore[no-untyped-call]
    assert str(CreateTable(table).compile(dialect=dialect)).split("\n")[1:4] == [
        "CREATE TABLE dbo.t__ct (",
        "\theader__change_seq VARCHAR(35) NULL, ",
        "\theader__change_oper VARCHAR(1) NULL, ",
    ]
    query = sa.select(table.c.id).order_by(table.c.header__change_seq)
    assert str(query.compile(dialect=dialect)).split() == (
        ["SELECT", "dbo.t__ct.id", "FROM", "dbo.t__ct", "ORDER", "BY", "dbo.t__ct.header__change_seq"]
    )


@pytest.mark.parametrize("url", ["nonsense://host/db", "mssql+nonsense://host/db"])
def test_a_driver_that_nobody_knows_is_misuse(url: str) -> None:
    with pytest.raises(InvalidUrl, match="is not a supported driver"):
        connect_any(url)
