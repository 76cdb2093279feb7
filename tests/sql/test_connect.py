"""Connections: sessions whose texts depend on no setting, errors that are ours and tell no password."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.demo.embedded import Server
from eventlog.sql import connect
from eventlog.sql.connect import ConnectionLost, DatabaseFailed, InvalidUrl
from eventlog.sql.dialect.dialects import UnknownDialect
from tests.databases import Database


def test_the_server_tells_its_dialect(database: Database) -> None:
    assert connect.dialect_at(database.engine()) is database.dialect


def test_connection_init_runs_on_every_connection(database: Database) -> None:
    engine = database.engine("create table started (n integer)", "drop table started")
    for _ in range(2):
        with engine.connect() as connection:
            assert connection.execute(text("select 1 as one" + database.dialect.dual)).scalar() == 1


def test_a_refused_statement_is_our_error_in_the_databases_words(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(DatabaseFailed, match="no_such_table"):
        connection.execute(text("select 1 from no_such_table"))


def test_plain_text_is_not_searched_for_parameters(engine: Engine, database: Database) -> None:
    with engine.connect() as connection:
        connect.execute_plain(connection, "select ':new %s %(x)s' as a" + database.dialect.dual)


def test_a_server_that_is_not_there_is_a_lost_connection() -> None:
    with (
        pytest.raises(ConnectionLost) as fault,
        connect.connect("postgresql://u:secret@127.0.0.1:1/x").connect(),
    ):
        pass
    assert "secret" not in str(fault.value)


def test_a_killed_session_is_a_lost_connection(embedded: Server) -> None:
    engine = connect.connect(embedded.url)
    with engine.connect() as victim, engine.connect() as killer:
        pid = victim.execute(text("select pg_backend_pid()")).scalar()
        killer.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        with pytest.raises(ConnectionLost):
            victim.execute(text("select 1"))


@pytest.mark.parametrize(("url", "fault"), [("secret", InvalidUrl), ("sqlite://", UnknownDialect)])
def test_a_url_that_names_no_database_of_ours(url: str, fault: type[Exception]) -> None:
    with pytest.raises(fault) as raised:
        connect.connect(url)
    assert "secret" not in str(raised.value)
