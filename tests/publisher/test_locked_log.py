"""A log that another session locks: no look hangs, each names who locks it, and all of them agree."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from html import unescape
from typing import Any, NamedTuple

import pytest
from sqlalchemy.engine import Connection

from eventlog.cli.run import serving
from eventlog.core.errors import EventlogError, Misuse
from eventlog.opening.config import Config
from eventlog.sql.common import templates
from eventlog.sql.connect import DatabaseFailed, connect
from eventlog.sql.log.log_lock import LogLocked
from tests.kit.logs import key
from tests.kit.support import patient, until
from tests.publisher.test_daemon import Run, configured, running
from tests.world.killable import KILLABLE
from tests.world.rig import Arrivals
from tests.world.world import World, call

LIMIT = 1  # seconds
LOCKED = 30.0  # seconds; without a limit each look would take as long
LOCKS = {
    "postgresql": "lock table {log} in access exclusive mode",
    "mariadb": "lock tables {log} write",
    "mysql": "lock tables {log} write",
}
SHOWS = {"mariadb": ("install soname 'metadata_lock_info'", "uninstall soname 'metadata_lock_info'")}
UNSEEN = "by whom is not shown, which needs "


class Answer(NamedTuple):
    """The answer of a look, and the seconds until it came."""

    seconds: float
    status: int
    text: str


def run_named(connection: Connection, world: World, name: str) -> str:
    (statement,) = templates.statements(world.log.dialect, name, world.log.names())
    return str(connection.exec_driver_sql(statement).scalar())


@contextmanager
def locked(world: World) -> Iterator[str]:
    """Lock the log in a session of its own while the block runs; yield the session's number."""
    engine = connect(world.engine.url)
    with engine.connect() as connection:
        process = run_named(connection, world, "session_id")
        connection.exec_driver_sql(LOCKS[world.log.dialect.name].format(**world.log.names()))
        try:
            yield process
        finally:
            if not world.log.dialect.schema.transactional:
                connection.exec_driver_sql("unlock tables")
    engine.dispose()


@contextmanager
def shown(world: World) -> Iterator[bool]:
    """Let sessions see who holds locks while the block runs; whether they do."""
    switch_on, switch_off = SHOWS.get(world.log.dialect.name, ("", ""))
    if not switch_on:
        yield True
        return
    try:
        world.change(switch_on)
    except DatabaseFailed:
        yield False
        return
    try:
        yield True
    finally:
        world.change(switch_off)


def timed(look: Callable[[], tuple[int, str]]) -> Answer:
    begun = time.monotonic()
    status, text = look()
    return Answer(time.monotonic() - begun, status, text)


def get(port: int | None, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patient(LOCKED))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def command(world: World, *words: str) -> tuple[int, str]:
    done = call(world, *words, EVENTLOG_LOOK_LIMIT=str(LIMIT))
    fault = done.exception if isinstance(done.exception, EventlogError) else ""
    return 2 if isinstance(fault, Misuse) else done.exit_code, f"{done.stdout}{fault}"


def all_looks(world: World, port: int | None) -> dict[str, Answer]:
    commands = ("status", "status --json", "status --exit-code", "errors", "explain", "preview")
    looks = {words: timed(partial(command, world, *words.split())) for words in commands}
    paths = ("/", "/errors", "/row/1", "/next", "/metrics", "/readyz")
    return looks | {path: timed(partial(get, port, path)) for path in paths}


@pytest.mark.quick
@pytest.mark.slow("looks wait for a lock, each for a second")
@pytest.mark.parametrize("sees", [True, pytest.param(False, marks=pytest.mark.long)])
def test_no_look_at_a_locked_log_hangs(
    sees: bool, world: World, arrivals: Arrivals, free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    if not sees and world.log.dialect.name not in SHOWS:
        pytest.skip("every user sees who holds a lock here")
    no_look_hangs(world, arrivals, free_port, caplog, LIMIT, sees=sees)


@pytest.mark.nightly
def test_no_look_hangs_while_the_log_is_locked_for_half_a_minute(
    world: World, arrivals: Arrivals, free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    no_look_hangs(world, arrivals, free_port, caplog, LOCKED, sees=True)


def no_look_hangs(
    world: World,
    arrivals: Arrivals,
    free_port: int,
    caplog: pytest.LogCaptureFixture,
    seconds: float,
    *,
    sees: bool,
) -> None:
    caplog.set_level(logging.INFO)
    world.write(key(1, event_type=4), key(2, event_type=9))
    settings = {"look_limit": LIMIT, "monitor_port": free_port}
    config = configured(world, arrivals, **settings)
    with running(world, arrivals, **settings) as run, serving(config, run.monitor) as port:
        until(lambda: run.fault or (arrivals.documents and get(port, "/readyz")[0] == 200))
        assert run.fault is None
        before = {path: get(port, path)[0] for path in ("/", "/errors", "/row/1", "/metrics", "/readyz")}
        with shown(world) if sees else nothing_shown() as is_shown, locked(world) as process:
            begun = time.monotonic()
            names_holder = f"process {process}" if is_shown else UNSEEN
            until(lambda: get(port, "/readyz")[0] == 503)  # it reads now and then
            while True:
                looks = all_looks(world, port)
                for name, look in looks.items():
                    assert look.seconds < patient(3 * LIMIT), name
                    if name != "/metrics":
                        assert names_holder in look.text, name
                        assert look.status in (1, 2, 503), name
                if time.monotonic() > begun + seconds:
                    break
            (state,) = json.loads(looks["status --json"].text.partition("\n")[0])["states"]
            assert (state["state"], state["severity"]) == ("log-locked", "error")
            assert timeless(state["sentence"]) in timeless(looks["status"].text)
            assert "Log locked" in looks["/"].text
            assert "Log locked" in looks["/readyz"].text
            assert (looks["status"].status, looks["status --exit-code"].status) == (1, 2)
            assert looks["/metrics"].status == 200
            assert "eventlog_database_up 1" in looks["/metrics"].text
            until(lambda: "the publisher waits until it is free" in caplog.text)
        world.write(key(3, event_type=4))
        until(lambda: len(arrivals.documents) == 2)
        until(lambda: "the log is free again" in caplog.text)
        until(lambda: get(port, "/readyz")[0] == 200)
        assert {path: get(port, path)[0] for path in before} == before
        assert "\nstate        1 row failed" in command(world, "status")[1]
    assert caplog.text.count("the publisher waits until it is free") == 1
    assert caplog.text.count(names_holder) == 1
    assert world.counts() == {"S": 2, "E": 1}


def timeless(sentence: str) -> str:
    """Return a sentence without its times, which MariaDB reckons back from now."""
    return re.sub(r"\d\d:\d\d:\d\d", "(T)", sentence)


@contextmanager
def nothing_shown() -> Iterator[bool]:
    yield False


@pytest.mark.quick
@pytest.mark.slow("a look waits for a lock, for a second")
def test_a_lock_that_is_only_asked_for_is_the_fault_of_who_keeps_it_away(world: World) -> None:
    """Name the forgotten session, for which DDL waits, which looks wait for in turn."""
    forgotten, changing = connect(world.engine.url), connect(world.engine.url)
    log = world.log.names()["log"]
    store = type(world.store)(world.engine, world.log, LIMIT)

    def change() -> None:
        with changing.begin() as connection:
            connection.exec_driver_sql(f"alter table {log} add column note integer")

    with shown(world) as is_shown, forgotten.connect() as connection:
        process = run_named(connection, world, "session_id")
        connection.exec_driver_sql(f"select count(*) from {log}")
        thread = threading.Thread(target=change)
        thread.start()
        try:
            fault = until_locked(store.demand_unlocked)
        finally:
            connection.rollback()
            thread.join()
    if is_shown:
        assert f"process {process}" in fault
        assert "idle in its transaction" in fault
        assert f"`alter table {log.replace('`', '')} add column note integer` waits for it" in fault
    world.change(f"alter table {log} drop column note")
    store.demand_unlocked()
    for engine in (forgotten, changing):
        engine.dispose()


def until_locked(look: Callable[[], object]) -> str:
    """Look until the log is locked; return by whom."""
    begun = time.monotonic()
    while time.monotonic() < begun + patient(LOCKED):
        try:
            look()
        except LogLocked as fault:
            return str(fault)
        time.sleep(0.01)
    raise AssertionError("it was never locked")


class Situation(NamedTuple):
    """A world with its publishers' ports, in one state."""

    world: World
    ports: list[int | None]

    def words(self) -> dict[str, str]:
        """Return the state by each instrument."""
        states: dict[str, str] = {}
        as_json = json.loads(
            self.look("status --json", command, self.world, "status", "--json").partition("\n")[0]
        )
        states["status --json"] = str(as_json["states"][0]["state"])
        word = str(as_json["states"][0]["word"])
        printed = self.look("status", command, self.world, "status")
        states["status"] = states["status --json"] if f"\nstate        {word}" in printed else printed
        for at, port in enumerate(self.ports):
            shown = re.findall(
                r'eventlog_state{state="(.*)"} 1.0', self.look("/metrics", get, port, "/metrics")
            )
            states[f"metrics {at}"] = shown[0] if shown else ""
            for path in ("/", "/errors"):
                page = unescape(self.look(path, get, port, path))
                states[f"{path} {at}"] = (
                    states["status --json"] if f"<title>● {word} ·" in page else page[:300]
                )
            ready = self.look("/readyz", get, port, "/readyz").splitlines()
            states[f"/readyz {at}"] = states["status --json"] if ready[1].startswith(word) else ready[1]
        return states

    def look(self, name: str, make: Callable[..., tuple[int, str]], *words: Any) -> str:
        answer = timed(lambda: make(*words))
        assert answer.seconds < patient(3 * LIMIT), name
        return answer.text

    def agree_on(self, state: str) -> None:
        """Wait until each instrument shows a state."""
        until(lambda: {*self.words().values()} == {state}, fault=lambda: str(self.words()))


@pytest.mark.quick
@pytest.mark.slow("looks are shown again for two seconds")
def test_all_looks_agree_while_the_receiver_is_down_also_those_of_a_fresh_standby(
    world: World, arrivals: Arrivals
) -> None:
    arrivals.behave = lambda handler: handler.reply(b"", status=503)
    world.write(*(key(number, event_type=4) for number in (1, 2, 3)))
    settings = {"look_limit": LIMIT, "retry_wait": 600, "reconnect": 600}
    config = configured(world, arrivals, **settings)
    with running(world, arrivals, **settings) as run, shown_at(config, run) as port:
        Situation(world, [port]).agree_on("receiver-down")
        with running(world, arrivals, **settings) as standby, shown_at(config, standby) as second_port:
            Situation(world, [port, second_port]).agree_on("receiver-down")
        arrivals.behave = arrivals.accept
        call(world, "retry", "--all")
        Situation(world, [port]).agree_on("idle")


@pytest.mark.quick
@pytest.mark.cold
@pytest.mark.slow("a server is killed and started again")
@pytest.mark.parametrize("product", KILLABLE)
def test_all_looks_agree_while_the_database_is_stopped(product: str, arrivals: Arrivals) -> None:
    with KILLABLE[product]() as (server, database):
        world = World(connect(database.url), database.dialect)
        world.make()
        config = configured(world, arrivals, look_limit=LIMIT)
        with running(world, arrivals, look_limit=LIMIT) as run, shown_at(config, run) as port:
            Situation(world, [port]).agree_on("idle")
            server.kill()
            Situation(world, [port]).agree_on("database-away")
            server.start()
            Situation(world, [port]).agree_on("idle")


@contextmanager
def shown_at(config: Config, run: Run) -> Iterator[int | None]:
    """Serve the pages of a publisher at a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(replace(config, values={**config.values, "monitor_port": port}), run.monitor) as served:
        yield served
