"""The holder of the leader's lock is named and distinguished from a publisher; a resting leader holds no
more.
"""

from __future__ import annotations

import logging
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.opening.config import Config
from eventlog.publisher import daemon
from eventlog.publisher.daemon import AnotherLeads
from eventlog.sinks import open_sink
from eventlog.sql.connect import connect
from eventlog.sql.queries import Queries
from eventlog.status.log_status import read_log_status
from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import pages_app
from tests.kit.logs import key
from tests.kit.support import until
from tests.publisher.test_daemon import running
from tests.web.conftest import Process
from tests.web.receiver.conftest import HOST, ask
from tests.world.rig import Arrivals
from tests.world.world import World, call

pytestmark = [pytest.mark.quick, pytest.mark.cold]

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
    if not world.log.dialect.schema.transactional:  # there a schema is a database
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
        page = ask(pages_app(PageData(Process(world.store), Config({})), HOST), "GET", "/")[1]
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
        assert "eventlog" in str(holder) or not world.log.dialect.sessions.wakes
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


BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "a package": (
        {"sink": "kafka", "kafka_brokers": "127.0.0.1:1"},
        "the kafka sink needs a package that is not installed",
    ),
    "a program": ({"sink": "command", "command": "/no/such/program -x"}, "/no/such/program"),
    "a folder": ({"sink": "files", "files_folder": "{folder}/file/below"}, "cannot be written"),
    "a file of a token": ({"http_token_file": "{folder}/none"}, "http-token-file {folder}/none"),
    "a certificate": ({"http_url": "https://127.0.0.1:1/", "http_ca": "{folder}/file"}, "http-ca"),
    "a mode": ({"source_url": "sqlite://"}, "source-url"),
    "the tables": (
        {"publication_mode": "compare", "source_url": "sqlite:///{folder}/none/source"},
        "unable to open database file",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_publisher_that_could_not_lead_does_not_stand_by(
    what: str,
    world: World,
    arrivals: Arrivals,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    (tmp_path / "file").touch()
    templates, reason = BROKEN[what]
    settings = {name: str(value).format(folder=tmp_path) for name, value in templates.items()}
    with world.elect(), running(world, arrivals, **settings) as run:
        until(lambda: run.fault or "on standby" in caplog.text or "next try" in caplog.text)
        assert reason.format(folder=tmp_path) in f"{run.fault} {caplog.text}"
        assert "on standby" not in caplog.text
        assert not run.monitor.ready


def test_a_standby_leaves_the_folder_of_the_leader_as_it_is(
    world: World, arrivals: Arrivals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink = open_sink("files", {"files_folder": str(tmp_path)})
    unfinished = tmp_path / ".eventlog" / "000000000000001-1-1"
    unfinished.touch()
    with world.elect(), running(world, arrivals, sink="files", files_folder=str(tmp_path)) as run:
        until(lambda: run.fault or "on standby" in caplog.text)
        assert run.fault is None, run.fault
    assert unfinished.exists()
    sink.close()


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


def test_a_standby_that_could_not_take_over_is_not_ready(
    world: World,
    arrivals: Arrivals,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(daemon, "STANDBY_CHECK", 0.0)
    folder = tmp_path / "out"
    folder.mkdir()
    with world.elect(), running(world, arrivals, sink="files", files_folder=str(folder)) as run:
        until(lambda: run.monitor.ready or run.fault)
        assert (
            "the sink files with its settings, packages, files and folders" in run.monitor.readiness.checked
        )
        folder.rename(tmp_path / "away")
        folder.touch()
        until(lambda: "this standby could not take over" in caplog.text)
        assert not run.monitor.ready
        assert "cannot be written" in run.monitor.why_not_ready
        until(lambda: [standby.could_lead for standby in world.store.standbys()] == [False])
        assert "No standby could take over" in call(world, "status").stdout
        folder.unlink()
        folder.mkdir()
        until(lambda: run.monitor.ready)
        until(lambda: [standby.could_lead for standby in world.store.standbys()] == [True])
        (standby,) = world.store.standbys()
        assert standby.holder.role == world.engine.url.username
        assert f"{standby.holder}: it could lead" in call(world, "status").stdout
        page = ask(pages_app(PageData(Process(world.store), Config({})), HOST), "GET", "/")[1]
        assert f"<dt>Standby</dt><dd>{standby.holder}: it could lead</dd>" in page
    assert "this standby could take over again" in caplog.text
    until(lambda: world.store.standbys() == [])
