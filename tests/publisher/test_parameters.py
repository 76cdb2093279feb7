"""Parameters of the publisher that no other test covers, on every database at hand."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from eventlog.files.signals import Signals
from eventlog.publisher.sleep import make_sleeper
from eventlog.sql.capture.track import track, untrack
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.leader_transaction import WaitingEvent
from eventlog.sql.relation import Choice
from tests.kit.logs import Receiver, busy, key, metrics_text
from tests.kit.support import until
from tests.publisher.test_daemon import Run, running
from tests.publisher.test_opening import config, publish
from tests.world.rig import Arrivals
from tests.world.world import World

pytestmark = pytest.mark.quick

AGES = 600.0  # seconds, which a test that passes does not sleep


def end_by_pid(world: World) -> None:
    """End every other session of this database (PostgreSQL)."""
    world.change(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )


def end_by_thread(world: World) -> None:
    """End every other session of this database (MariaDB and MySQL)."""
    with world.engine.connect() as connection:
        sessions = connection.execute(
            text(
                "select id from information_schema.processlist"
                " where db = database() and id <> connection_id()"
            )
        )
        for (number,) in sessions.all():
            try:
                connection.exec_driver_sql(f"kill {int(number)}")
            except DatabaseFailed as fault:
                if "Unknown thread id" not in str(fault):  # else it has ended by itself since
                    raise


ENDINGS: dict[str, Callable[[World], None]] = {
    "postgresql": end_by_pid,
    "mariadb": end_by_thread,
    "mysql": end_by_thread,
}


def cycles(run: Run) -> int:
    """Return how many cycles there were; a fast one may have passed before anyone looks."""
    match = re.search(r"^eventlog_cycles_total (\d+)", metrics_text(run.monitor), re.MULTILINE)
    return int(match[1]) if match else 0


@pytest.mark.slow("an interval passes")
def test_without_wake_up_the_polling_interval_passes_between_two_cycles(
    world: World, arrivals: Arrivals
) -> None:
    assert not make_sleeper(Signals(), world.engine, world.log, wake_up=False).wakes
    begun = time.monotonic()
    with running(world, arrivals, wake_up=False, polling_interval=1) as run:
        until(lambda: cycles(run) >= 4)
        assert time.monotonic() - begun >= 3  # no upper bound: machines differ
        world.write(key(1, event_type=4))
        until(lambda: arrivals.documents)


def test_a_writer_wakes_a_publisher_only_while_it_asks_for_that(world: World) -> None:
    if not world.log.dialect.sessions.wakes:
        pytest.skip(f"{world.log.dialect.title} cannot wake a session")
    track(world.engine, world.log, "usr", Choice())
    sleeper = make_sleeper(Signals(), world.engine, world.log, wake_up=True)
    try:
        world.user(1)
        assert not sleeper.sleep(0.05)
        sleeper.announce()
        world.user(2)
        assert sleeper.sleep(AGES)
        sleeper.rise()
        world.user(3)
        assert not sleeper.sleep(0.05)
    finally:
        sleeper.close()
        untrack(world.engine, world.log, "usr", discard=True)


def test_an_event_waits_ever_longer_up_to_the_longest(world: World) -> None:
    world.write(key(1, event_type=4))
    with world.publisher(Receiver(busy), retry_wait=100.0, retry_longest=250.0) as publisher:
        for tries, wait in enumerate((100, 200, 250, 250), 1):
            publisher.cycle()
            waiting, now = look(world)
            assert waiting.tries == tries
            assert timedelta(seconds=wait - 60) < waiting.next_at - now <= timedelta(seconds=wait)
            world.change(
                f"update {world.log.names()['retry']} set next_at = :at", at=now - timedelta(hours=1)
            )


@pytest.mark.parametrize(("hours", "sent"), [(0.9, False), (24.9, True)])
def test_a_clock_that_was_set_back_makes_no_wait_longer_than_the_longest(
    world: World, hours: float, sent: bool
) -> None:
    world.write(key(1, event_type=4))
    with world.publisher(Receiver(busy)) as publisher:
        publisher.cycle()
        _, now = look(world)
        later = now + timedelta(hours=hours)
        world.change(f"update {world.log.names()['retry']} set next_at = :at", at=later)
        receiver = Receiver()
    with world.publisher(receiver, retry_longest=3600.0) as publisher:
        publisher.cycle()
    assert receiver.event_ids == ["eventlog:1"] * sent


def look(world: World) -> tuple[WaitingEvent, datetime]:
    """Return what waits, and the present time."""
    (waiting,) = world.store.waiting(datetime(2100, 1, 1))
    with world.store.snapshot() as snapshot:
        return waiting, datetime.fromisoformat(snapshot.now())


@pytest.mark.parametrize(("trimmed", "found"), [(True, "ab"), (False, "ab  ")])
def test_padding_is_trimmed_on_wish(world: World, trimmed: bool, found: str) -> None:
    world.change("create table padded (id integer primary key, code char(4))")
    try:
        row = {"event_type": 1, "column_name": "code", "new_value": "ab  "}  # as others' triggers write it
        world.write({"table_name": "padded", "table_key": "id=1"} | row)
        reported = config(world, sync_tables="padded", trim_char=trimmed)
        (event,) = publish(world, world.store, reported).events
        assert event.findtext("add-attr/value") == found
    finally:
        world.change("drop table padded")


@pytest.mark.parametrize(("wanted", "letter"), [("error", "E"), ("string", "S")])
def test_rows_of_an_unknown_table_are_refused_or_strings(world: World, wanted: str, letter: str) -> None:
    row = {"table_name": "nobody", "event_type": 1, "column_name": "n", "new_value": "5"}
    world.write(key(1, **row))
    receiver = publish(world, world.store, config(world, unknown_tables=wanted))
    assert world.letters() == {1: letter}
    values = [value.get("type") for event in receiver.events for value in event.iterfind(".//value")]
    assert values == ["string"] * (letter == "S")


@pytest.mark.parametrize("wanted", ["modify", "add"])
def test_what_was_inserted_is_a_modify_or_an_add(world: World, wanted: str) -> None:
    world.user(1)
    world.write(key(1, event_type=5))
    (event,) = publish(world, world.store, config(world, insert_query_back=wanted)).events
    assert event.tag == wanted


def test_the_catalogue_orders_columns(world: World) -> None:
    world.change("create table pairs (b integer, a integer, d integer, c integer, primary key (b, a))")
    try:
        world.change("insert into pairs values (1, 2, 4, 3)")
        world.write({"table_name": "pairs", "table_key": "b=1+a=2"})
        (event,) = publish(world, world.store, config(world, sync_tables="pairs")).events
        assert event.xpath("modify-attr/@attr-name") == ["d", "c"]
    finally:
        world.change("drop table pairs")


@pytest.mark.cold
def test_a_lost_session_is_followed_by_another(world: World, arrivals: Arrivals) -> None:
    """The setting reconnect: here the server ends every session of the daemon."""
    if (end := ENDINGS.get(world.log.dialect.name)) is None:
        pytest.skip(f"nobody may end sessions of {world.log.dialect.title} here")
    with running(world, arrivals, reconnect=1) as run:
        until(lambda: "eventlog_leader 1" in metrics_text(run.monitor))
        world.engine.dispose()  # the idle sessions of the test would end, too
        end(world)
        until(lambda: "eventlog_faults_total 0" not in metrics_text(run.monitor))
        world.write(key(1, event_type=4))
        until(lambda: world.counts() == {"S": 1})
