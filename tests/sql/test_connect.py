"""Connections: sessions whose texts depend on no setting, and errors of ours without passwords."""

from __future__ import annotations

import re
import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import URL, Engine

from eventlog.core.errors import EventlogError
from eventlog.embedded import Server
from eventlog.sql import connect
from eventlog.sql.capture.track import track
from eventlog.sql.connect import ConnectionLost, DatabaseFailed, InvalidUrl
from eventlog.sql.dialects import UnknownDialect
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.databases import Database, temporary_database
from tests.world.tracked import CUTTING, cut_connections

pytestmark = [pytest.mark.quick, pytest.mark.cold]


def test_the_server_tells_its_dialect(database: Database) -> None:
    assert connect.dialect_at(database.engine()) is database.dialect


def test_connection_init_runs_on_every_connection(database: Database) -> None:
    engine = database.engine("create table started (n integer)", "drop table started")
    for _ in range(2):
        with engine.connect() as connection:
            assert (
                connection.execute(text("select 1 as one" + database.dialect.statements.dual)).scalar() == 1
            )


def test_a_session_of_a_log_is_set_up_in_one_round_trip(embedded: Server, tmp_path: Path) -> None:
    engine = connect.connect_to_log(embedded.url)
    with engine.connect():
        """Let SQLAlchemy ask the first session what the server is."""
    with (tmp_path / "trace").open("w") as file:
        event.listen(engine, "connect", partial(_trace, file.fileno()), insert=True)
        with engine.connect() as connection:
            session: Any = connection.connection.dbapi_connection
            session.pgconn.untrace()
    assert re.findall(r"\tF\t\d+\t(\w+)", (tmp_path / "trace").read_text()) == ["Query"]


def _trace(file: int, connection: Any, record: object) -> None:
    """Let the driver write each message of a session into a file."""
    connection.pgconn.trace(file)


def test_what_a_server_keeps_people_from_is_no_matter_of_ours(database: Database) -> None:
    engine = set_otherwise(
        database, "sql_mode = 'ANSI', sql_select_limit = 1, sql_safe_updates = 1, sql_big_selects = 0"
    )
    log = Log(database.dialect)
    migrate.install(engine, log)
    with engine.begin() as connection:
        connection.execute(text("create table usr (idu integer primary key, fname varchar(9))"))
    track(engine, log, "usr", Choice(insert=1))
    with engine.begin() as connection:
        connection.execute(text("insert into usr values (1, 'Jack'), (2, 'Joe'), (3, 'Jo')"))
    store = Store(engine, log)
    with store.snapshot() as snapshot:
        assert len(snapshot.pick_up(PickUpFilter()).cells) == 3


def test_nothing_is_read_that_may_be_taken_back(database: Database) -> None:
    reading = set_otherwise(database, "session transaction isolation level read uncommitted")
    with reading.begin() as connection:
        connection.execute(text("create table half (n integer)"))
    with database.engine().connect() as writer, reading.connect() as reader:
        writer.execute(text("insert into half values (1)"))
        assert reader.execute(text("select count(*) from half")).scalar() == 0


def set_otherwise(database: Database, settings: str) -> Engine:
    """Return an engine for a server of MySQL or MariaDB whose sessions begin with such settings."""
    if database.dialect.names.quote_mark != "`":
        pytest.skip(f"{database.dialect.title} has other settings")
    return connect.connect(database.url.update_query_dict({"init_command": f"set {settings}"}))


def test_a_server_that_takes_a_connection_and_says_nothing_is_none() -> None:
    """Refuse a silent server, such as a proxy whose own server is gone."""
    pytest.importorskip("pymysql", reason="pymysql is not installed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"mysql://nobody@127.0.0.1:{silent.getsockname()[1]}/none?connect_timeout=1"
        with pytest.raises(ConnectionLost, match="timed out"), connect.connect(url).connect():
            pass


def test_a_statement_may_take_longer_than_a_connection(database: Database) -> None:
    sleep = {"postgresql": "select pg_sleep(1.5)"}.get(database.dialect.name, "select sleep(1.5)")
    url = database.url.update_query_dict({"connect_timeout": "1"})
    with connect.connect(url).connect() as connection:
        connection.execute(text(sleep))


def test_a_refused_statement_is_our_error_in_the_databases_words(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(DatabaseFailed, match="no_such_table"):
        connection.execute(text("select 1 from no_such_table"))


def test_plain_text_is_not_searched_for_parameters(engine: Engine, database: Database) -> None:
    with engine.connect() as connection:
        connect.execute_plain(connection, "select ':new %s %(x)s' as a" + database.dialect.statements.dual)


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


def test_a_session_that_is_cut_before_its_level_is_set_is_a_lost_connection(database: Database) -> None:
    if database.dialect.name not in CUTTING:
        pytest.skip("no statement of ours ends the sessions of others there")
    engine, killer = connect.connect(database.url), connect.connect(database.url)
    event.listen(engine, "engine_connect", lambda connection: cut_connections(killer))
    with pytest.raises(ConnectionLost), connect.connect_at(engine, "AUTOCOMMIT") as connection:
        connection.execute(text("select 1"))


@pytest.mark.parametrize(("url", "fault"), [("secret", InvalidUrl), ("sqlite://", UnknownDialect)])
def test_a_url_that_names_no_database_of_ours(url: str, fault: type[Exception]) -> None:
    with pytest.raises(fault) as raised:
        connect.connect(url)
    assert "secret" not in str(raised.value)


def test_a_database_whose_texts_are_any_bytes_is_refused(server: tuple[str, URL]) -> None:
    name, url = server
    if not url.get_backend_name().startswith("postgresql"):
        pytest.skip("SQL_ASCII is an encoding of PostgreSQL")
    with temporary_database(name, url, " encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'") as database:
        engine = connect.connect(database.url)
        with pytest.raises(EventlogError, match="encoding is SQL_ASCII"), engine.connect():
            pass
