"""Statements that take one round trip on PostgreSQL, on the embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.embedded import Server
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.dialect import Call
from eventlog.sql.connect import ConnectionLost, DatabaseFailed, connect
from eventlog.sql.log.snapshot import SettingsLost
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL, pipeline
from eventlog.sql.queries import Queries
from eventlog.sql.schema import migrate
from tests.kit.databases import EMBEDDED, server_url, temporary_database

pytestmark = pytest.mark.quick


@pytest.fixture
def connection(embedded: Server) -> Iterator[Connection]:
    """A connection that commits by itself, to a database with one table."""
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        engine = connect(database.url).execution_options(**POSTGRESQL.sessions.options)
        with engine.connect() as connection:
            connection.execute(text("create table t (n bigint primary key, words text)"))
            connection.commit()
            yield connection
        engine.dispose()


def run(connection: Connection, *statements: str, commit: bool = False, **values: Any) -> list[Any]:
    calls = [Call(text(statement), values) for statement in statements]
    return Queries(Log(POSTGRESQL)).run_calls(connection, calls, commit=commit)


def prepared(connection: Connection) -> set[str]:
    names = "select statement from pg_prepared_statements where name like 'eventlog%'"
    return set(connection.execute(text(names)).scalars())


def test_each_statement_has_its_rows_or_how_many_it_changed(connection: Connection) -> None:
    results = run(
        connection,
        "begin",
        "insert into t values (:n, :words), (:n + 1, 'it''s 100% 1::2')",
        "select n, words from t order by n",
        "select n from t where n < 0",
        "delete from t where words = :words",
        commit=True,
        n=7,
        words="a\tü",
    )
    assert results == [0, 2, [(7, "a\tü"), (8, "it's 100% 1::2")], [], 1]
    assert run(connection, "select count(*), :words from t", words=None) == [[(1, None)]]


def test_nothing_after_a_statement_that_fails_is_run(connection: Connection) -> None:
    for _ in range(3):
        with pytest.raises(DatabaseFailed, match="division by zero"):
            run(connection, "begin", "insert into t values (1, 'a')", "select 1 / 0", commit=True)
        connection.rollback()
        assert run(connection, "select count(*) from t") == [[(0,)]]


@pytest.mark.parametrize("commits", range(3))
def test_a_failure_before_the_commit_leaves_later_commits_possible(
    connection: Connection, commits: int
) -> None:
    """Fail when the commit comes for the first time, when it is prepared, and when it is prepared already."""
    insert = "insert into t values (:n, 'a')"
    for n in range(commits):
        run(connection, "begin", insert, commit=True, n=n)
    with pytest.raises(DatabaseFailed, match="statement timeout"):
        run(connection, "begin", "set local statement_timeout = 1", "select pg_sleep(10)", commit=True)
    connection.rollback()
    for n in range(commits, commits + 3):
        assert run(connection, "begin", insert, commit=True, n=n) == [0, 1]
    assert run(connection, "select count(*) from t") == [[(commits + 3,)]]


def test_what_comes_again_is_prepared_up_to_a_limit(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MAX_STATEMENTS", 3)
    run(connection, "select 1")
    assert prepared(connection) == set()
    for number in range(1, 6):
        for _ in range(3):
            assert run(connection, f"select {number}") == [[(number,)]]
    assert prepared(connection) == {"select 3", "select 4", "select 5"}
    for _ in range(7):  # so often that psycopg would prepare it
        connection.execute(text("select 6"))
    connection.execute(text("begin"))
    connection.rollback()
    assert run(connection, "select 5") == [[(5,)]]  # a rollback has dropped nothing


def test_a_table_that_was_changed_costs_one_attempt(connection: Connection) -> None:
    for _ in range(3):
        run(connection, "select * from t")
    with connection.engine.connect() as other:
        other.execute(text("alter table t add more text"))
    with pytest.raises(DatabaseFailed, match="cached plan"):
        run(connection, "select 1", "select * from t")
    connection.rollback()
    assert run(connection, "insert into t values (1, 'a', 'b')", "select * from t") == [1, [(1, "a", "b")]]
    for _ in range(3):  # it is prepared anew
        assert run(connection, "select * from t") == [[(1, "a", "b")]]


def test_a_session_that_a_pooler_resets_is_not_used(embedded: Server) -> None:
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        engine, log = connect(database.url, keep_open=1), Log(POSTGRESQL)
        migrate.install(engine, log)
        store = Store(engine, log)
        for _ in range(3):
            with store.snapshot():
                pass
        with engine.connect() as connection:
            connection.execute(text("reset all"))
            connection.commit()
        with pytest.raises(SettingsLost, match="pooler"), store.snapshot():
            pass
        engine.dispose()
        with store.snapshot() as snapshot:
            assert snapshot.pending_after(0, 1) == []
        engine.dispose()


def test_values_and_rows_of_any_size_pass(connection: Connection) -> None:
    large = "ü" * 3_000_000
    statements = ["select cast(:words as text)"] * 4
    assert run(connection, *statements, words=large) == [[(large,)]] * 4


def test_a_value_that_cannot_be_sent_leaves_the_session_as_it_was(connection: Connection) -> None:
    with pytest.raises(DatabaseFailed, match="NUL"):
        run(connection, "begin", "insert into t values (1, :words)", words="a\0b")
    connection.rollback()
    assert run(connection, "select 1") == [[(1,)]]


@pytest.mark.cold
def test_a_session_that_was_ended_is_a_lost_connection(connection: Connection) -> None:
    (((session,),),) = run(connection, "select pg_backend_pid()")
    with connection.engine.connect() as other:
        other.execute(text("select pg_terminate_backend(:session)"), {"session": session})
    with pytest.raises(ConnectionLost):
        run(connection, "select pg_sleep(10)")  # the server ends it at once
    assert connection.invalidated


def test_the_catalogue_is_asked_by_prepared_statements(connection: Connection) -> None:
    """Find the same as in a transaction, where each question is planned anew."""
    run(
        connection,
        "create table u (k integer primary key, t bigint references t)",
        "create view v as select 1 as n",
    )
    catalogue = Catalogue(connection)
    found = [catalogue.find(name) for name in ("t", "u", "v") * 2]
    assert found[:3] == found[3:]
    assert any("pg_constraint" in statement for statement in prepared(connection))
    with connection.engine.execution_options(isolation_level="READ COMMITTED").connect() as other:
        catalogue = Catalogue(other)
        assert [catalogue.find(name) for name in ("t", "u", "v") * 2] == found
