"""A leader whose lock is a row's, as on Oracle without dbms_lock; PostgreSQL plays the part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.sql.log.leader import Leader
from eventlog.sql.log.leader_transaction import LeadershipLost
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.schema.migrate import install
from tests.kit.databases import Database

pytestmark = pytest.mark.quick


@pytest.fixture
def engine(postgres: Database) -> Iterator[Engine]:
    new_engine = postgres.engine()
    log = Log(postgres.dialect)
    install(new_engine, log)
    with new_engine.begin() as connection:
        connection.execute(text("create table if not exists eventlog_lock (one integer)"))
        connection.execute(text("insert into eventlog_lock select 1 where not exists (table eventlog_lock)"))
    yield new_engine
    new_engine.dispose()


@pytest.fixture
def queries(postgres: Database, tmp_path: Path) -> Queries:
    text = "-- lead --\n-- Takes the row's lock.\nselect one from {lock} for update skip locked\n"
    (tmp_path / "leader.sql").write_text(text)
    folders = (str(tmp_path), "postgresql", "oracle", "common")
    sessions = replace(postgres.dialect.sessions, lock_is_transactional=True)
    return Queries(Log(replace(postgres.dialect, folders=folders, sessions=sessions)))


BEGAN = "select xact_start from pg_stat_activity where pid = cast(:pid as integer)"


def began(engine: Engine, leader: Leader) -> object:
    """Return when the transaction of the lock began."""
    with engine.connect() as connection:
        noted = connection.execute(text("select leader_session from eventlog_state")).scalar()
        return connection.execute(text(BEGAN), {"pid": noted}).scalar()


def test_the_transaction_of_a_lock_is_young(engine: Engine, queries: Queries) -> None:
    leader = Leader.elect(engine, queries, "one")
    assert leader is not None
    with leader:
        assert Leader.elect(engine, queries, "two") is None
        first = began(engine, leader)
        leader.paused_since()
        assert first is not None
        assert began(engine, leader) != first
        assert Leader.elect(engine, queries, "two") is None
    again = Leader.elect(engine, queries, "two")
    assert again is not None
    again.close()


def test_who_loses_the_lock_in_between_leads_no_longer(engine: Engine, queries: Queries) -> None:
    leader = Leader.elect(engine, queries, "one")
    assert leader is not None
    leader._connection.rollback()
    other = Leader.elect(engine, queries, "two")
    assert other is not None
    with leader, other, pytest.raises(LeadershipLost):
        leader.paused_since()
