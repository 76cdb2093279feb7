"""The holder of the leader's lock is named and distinguished from a publisher; a resting leader holds no
more.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import text

from eventlog.opening.config import Config
from eventlog.opening.log_status import read_log_status
from eventlog.publisher.daemon import AnotherLeads
from eventlog.sql.connect import connect
from eventlog.sql.queries import Queries
from eventlog.web.monitor.board import Board
from eventlog.web.monitor.desk import board_app
from tests.logs import World, call, key
from tests.people.conftest import Process
from tests.proofs.rig import Arrivals
from tests.publisher.test_daemon import running
from tests.receiver.conftest import HOST, ask
from tests.support import until

pytestmark = pytest.mark.quick

# A role that may only connect; how it is made, and the setting of its session.
STRANGERS = {
    "postgresql": (
        ("create role {name} login password '{password}'",),
        ("drop role {name}",),
        "set application_name to 'psql'",
    ),
    "mariadb": (("create user '{name}' identified by '{password}'",), ("drop user '{name}'",), "do 0"),
}
STRANGERS["mysql"] = STRANGERS["mariadb"]
IN_TRANSACTION = {
    "postgresql": "select count(*) from pg_stat_activity where datname = current_database()"
    " and pid <> pg_backend_pid() and (state like 'idle in transaction%' or backend_xmin is not null)",
    "mariadb": "select count(*) from information_schema.innodb_trx t join information_schema.processlist p"
    " on p.id = t.trx_mysql_thread_id where p.db = database() and p.id <> connection_id()",
}
IN_TRANSACTION_IS_OLD = 0.2  # seconds: innodb_trx shows the same again to who asks more often than each 0.1
IN_TRANSACTION["mysql"] = IN_TRANSACTION["mariadb"]


@contextmanager
def stranger(world: World) -> Iterator[str]:
    """The name of a role that holds the lock."""
    name = f"mallory_{secrets.token_hex(4)}"
    password = secrets.token_hex(8)
    make, drop, begin = STRANGERS[world.log.dialect.name]
    for statement in make:
        world.change(statement.format(name=name, password=password))
    url = world.engine.url.set(username=name, password=password)
    schema = None
    if not world.log.dialect.transactional_ddl:  # there a schema is a database
        url, schema = url.set(database="information_schema"), url.database
    engine = connect(url)
    queries = Queries(replace(world.log, schema=schema))
    try:
        with engine.connect() as connection:
            connection.execute(text(begin))
            connection.commit()
            assert queries.run(connection, "lead").scalar()
            connection.rollback()
            yield name
    finally:
        engine.dispose()
        for statement in drop:
            world.change(statement.format(name=name))


def test_a_stranger_with_the_lock_is_named_as_none_of_ours(world: World) -> None:
    with stranger(world) as name:
        holder = read_log_status(world.store).holder
        assert holder is not None
        assert (holder.role, holder.publisher) == (name, False)
        for words in (["status"], ["check"]):
            reported = call(world, *words).output
            assert f"role {name}, process {holder.process}" in reported
            assert "no publisher of this log" in reported
        result = call(world, "run", "--once")
        assert isinstance(result.exception, AnotherLeads)
        assert f"role {name}" in str(result.exception)
        page = ask(board_app(Board(Process(world.store), Config({})), HOST), "GET", "/")[1]
        assert name in page
        assert "no publisher of this log" in page
    until(lambda: read_log_status(world.store).holder is None)  # its session may end a moment later
    assert "no publisher is running" in call(world, "status").output


def test_a_publisher_with_the_lock_is_named_as_one(world: World) -> None:
    with world.elect():
        holder = read_log_status(world.store).holder
        assert holder is not None
        assert holder.publisher
        assert holder.role == world.engine.url.username
        assert "eventlog" in str(holder) or not world.log.dialect.wakes
        assert "no publisher" not in call(world, "status").output + call(world, "check").output
        reported = str(call(world, "run", "--once").exception)
        assert f"process {holder.process}" in reported
        assert "no publisher" not in reported


@pytest.mark.slow("a stand-by asks for the lock several times")
def test_who_stands_by_says_for_whom_and_says_it_once(
    world: World, arrivals: Arrivals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with stranger(world) as name:
        with running(world, arrivals) as run:
            until(lambda: name in caplog.text or run.fault)
            assert run.fault is None, run.fault
            run.signals.sleep(2.5)
        assert caplog.text.count(name) == 1
        assert "no publisher of this log" in caplog.text


def test_a_leader_at_rest_is_in_no_transaction(world: World, arrivals: Arrivals) -> None:
    """Hold no snapshot and no open transaction."""
    question = text(IN_TRANSACTION[world.log.dialect.name])
    world.write(key(1, event_type=4))
    with running(world, arrivals, polling_interval=60):
        until(lambda: world.letters() == {1: "S"})

        def at_rest() -> bool:
            time.sleep(IN_TRANSACTION_IS_OLD)
            with world.engine.connect() as connection:
                return connection.execute(question).scalar() == 0

        until(at_rest)
    with world.elect():
        assert at_rest()
