"""A session of PostgreSQL outlives its connection, as new, in quick tests that are not cold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.engine import Connection, Engine

from tests.kit import tiers
from tests.kit.databases import Database
from tests.kit.support import until
from tests.kit.warm import MAX_IDLE

pytestmark = pytest.mark.quick

STATEMENTS = (
    "set search_path = pg_catalog",
    "set eventlog.capture = 'off'",
    "create temporary table left_there (n integer)",
    "listen news",
    "select pg_advisory_lock(1)",
    "prepare one as select 1",
)
STATE = """select current_setting('search_path'), nullif(current_setting('eventlog.capture', true), ''),
  (select count(*) from pg_class where relname = 'left_there'),
  (select count(*) from pg_listening_channels()), (select count(*) from pg_prepared_statements),
  (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())"""


def session(connection: Connection) -> int:
    return int(connection.exec_driver_sql("select pg_backend_pid()").scalar_one())


@contextmanager
def sessions(engine: Engine) -> Iterator[Callable[[], int]]:
    """A function that counts the other sessions at the database."""
    count_query = "select count(*) - 1 from pg_stat_activity where datname = current_database()"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield lambda: int(connection.exec_driver_sql(count_query).scalar_one())


def test_the_next_connection_has_the_session_as_new(
    postgres: Database, request: pytest.FixtureRequest
) -> None:
    engine = postgres.engine()
    with engine.connect() as connection:
        first, as_new = session(connection), connection.exec_driver_sql(STATE).one()
        connection.rollback()
        for statement in STATEMENTS:
            connection.exec_driver_sql(statement)
        connection.commit()
        assert connection.exec_driver_sql(STATE).one() != as_new
        connection.exec_driver_sql("set transaction read only")  # it is left within a transaction
    with engine.connect() as connection:
        assert (session(connection) == first) == tiers.is_warm(request.node)
        assert connection.exec_driver_sql(STATE).one() == as_new
        connection.exec_driver_sql("create table made (n integer)")


def test_a_session_that_was_ended_is_not_handed_on(postgres: Database) -> None:
    engine = postgres.engine()
    with engine.connect() as connection, engine.connect() as other:
        ended = session(connection)
        connection.close()
        other.exec_driver_sql(f"select pg_terminate_backend({ended}, 60000)")
        with engine.connect() as next_one:
            assert session(next_one) not in (ended, session(other))


def test_few_sessions_are_kept(postgres: Database) -> None:
    engine = postgres.engine()
    for connection in [engine.connect() for _ in range(MAX_IDLE + 4)]:
        connection.close()
    with sessions(engine) as count:
        until(lambda: count() < MAX_IDLE)


@pytest.mark.cold
def test_sessions_of_a_cold_test_end(postgres: Database) -> None:
    engine = postgres.engine()
    with engine.connect() as connection, engine.connect() as other:
        assert session(connection) != session(other)
    with sessions(engine) as count:
        until(lambda: count() == 0, 10)
