"""A poll that would delete too many objects of a table stops that table until an operator lets it pass."""

from __future__ import annotations

import contextlib
import json
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.compare import events
from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import InvalidValue
from eventlog.files.signals import Signals
from eventlog.opening.config import Config
from eventlog.operate.upkeep import NotStopped, resume_tables
from eventlog.publisher.daemon import Daemon, TablesUnread
from eventlog.publisher.delete_brake import DeleteBrake
from eventlog.publisher.monitor import Monitor
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.object_states import LogRow, StateStep, TableState
from tests.compare.rig import Life, Replica, life, rows_of
from tests.kit.commands import Shell
from tests.kit.logs import metrics_text
from tests.world.world import World

pytestmark = pytest.mark.quick

BOTH = "usr plain"


@pytest.fixture
def two_table_world(world: World) -> Iterator[World]:
    """Make a second table, whose rows are published all along."""
    world.change("create table plain (pk integer primary key, v varchar(10))")
    yield world
    world.change("drop table plain")


def fill(world: World, rows: int, first: int = 1) -> None:
    with world.engine.begin() as connection:
        values = [{"i": number, "f": f"Jack {number}"} for number in range(first, first + rows)]
        connection.execute(text("insert into usr values (:i, :f, 'Frost')"), values)


def state(world: World) -> list[tuple[object, ...]]:
    """Return everything that is on record of the objects of usr."""
    state_table = world.log.names()["known"]
    with world.engine.connect() as connection:
        rows = connection.execute(text(f"select * from {state_table} where object_table like '%usr'"))
        return sorted((tuple(row) for row in rows), key=repr)


def stopped(publisher: Life) -> str:
    """Return the one table that is not published, which the brake stopped."""
    (table,) = publisher.unread
    assert publisher.stopped_tables == {table}
    return table


def resume(world: World, table: str) -> None:
    with world.store.admin() as admin:
        admin.resume_table(table, "Jane")


def kinds(world: World) -> list[str]:
    with world.store.admin() as admin:
        notices = admin.notices()
    return [notice.kind for notice in reversed(notices) if notice.kind in ("resume", "pass")]


@pytest.mark.long
def test_a_table_that_was_emptied_stops_alone_until_it_may_pass_once(two_table_world: World) -> None:
    replica = Replica()
    fill(two_table_world, 150)
    with life(two_table_world, replica, tables=BOTH) as publisher:
        assert publisher.cycle() == 150
        publisher.cycle()
        recorded = state(two_table_world)
        two_table_world.change("truncate table usr")
        for number in range(3):
            two_table_world.change("insert into plain values (:n, 'a')", n=number)
            assert publisher.cycle() == 1
            assert replica.events[-1].get("class-name") == "plain"
            usr = stopped(publisher)
            assert "150 of 150 objects would be deleted" in publisher.unread[usr]
        assert state(two_table_world) == recorded
        assert replica.reported["delete"] == 0
        resume(two_table_world, usr)
        assert publisher.cycle() == 150
        assert (publisher.unread, replica.reported["delete"]) == ({}, 150)
        fill(two_table_world, 150)
        assert publisher.cycle() == 150
        publisher.cycle()
        two_table_world.change("delete from usr")
        assert publisher.cycle() == 0
        assert stopped(publisher) == usr
    assert (replica.reported["delete"], kinds(two_table_world)) == (150, ["resume", "pass"])


def test_a_start_decides_anew_and_keeps_what_may_pass(world: World) -> None:
    replica = Replica()
    fill(world, 150)
    with life(world, replica) as publisher:
        publisher.cycle()
    world.change("delete from usr")
    for _ in range(2):
        with life(world, replica) as publisher:
            assert publisher.cycle() == 0
            usr = stopped(publisher)
    resume(world, usr)
    with life(world, replica) as publisher:
        assert publisher.cycle() == 150
    assert (replica.rows, kinds(world)) == ({}, ["resume", "pass"])


@pytest.mark.parametrize(
    ("rows", "gone", "given", "stops"),
    [
        (100, 100, {}, False),  # a small table is never stopped by default
        (101, 101, {}, True),
        (600, 120, {}, False),
        (600, 121, {}, True),
        (600, 121, {"max_deletes": "auto"}, True),
        (600, 100, {"max_deletes": "0%"}, False),
        (600, 101, {"max_deletes": "1%"}, True),
        (300, 150, {"max_deletes": "50%"}, False),
        (300, 151, {"max_deletes": "50 %"}, True),
        (200, 200, {"max_deletes": "100%"}, False),
        (20, 5, {"max_deletes": "5"}, False),
        (20, 6, {"max_deletes": "5"}, True),
        (3, 1, {"max_deletes": "0"}, True),
    ],
)
@pytest.mark.family
def test_exactly_the_limit_passes(
    world: World, rows: int, gone: int, given: dict[str, str], stops: bool
) -> None:
    replica = Replica()
    fill(world, rows)
    with life(world, replica, **given) as publisher:
        publisher.cycle()
        world.change("delete from usr where idu <= :n", n=gone)
        assert publisher.cycle() == (0 if stops else gone)
        assert bool(publisher.unread) == stops
    assert len(replica.rows) == rows - (0 if stops else gone)


def test_what_the_receiver_does_not_have_counts_as_no_delete(world: World) -> None:
    replica = Replica()
    fill(world, 30)
    replica.moods = {f"idu={number}": "error" for number in range(1, 21)}
    with life(world, replica, max_deletes="10") as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change("delete from usr where idu <= 25")  # five of them were accepted
        publisher.cycle()
        assert publisher.unread == {}
    assert replica.reported["delete"] == 5


def test_nothing_of_a_stopped_table_leaves_and_it_goes_on_once_its_rows_are_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    replica = Replica()
    fill(world, 150)
    with life(world, replica) as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change("delete from usr")
        publisher.cycle()
        fill(world, 100)
        world.change("update usr set lname = 'Doe' where idu = 1")
        world.user(1000)
        assert publisher.cycle() == 0  # 50 deletes would have passed if the table had not been stopped
        assert "50 of 150 objects" in publisher.unread[stopped(publisher)]
        fill(world, 50, first=101)
        assert publisher.cycle() == 2
        assert publisher.unread == {}
        sentences = [one.getMessage() for one in caplog.records if "usr is" in one.getMessage()]
        assert ["not published" in sentence for sentence in sentences] == [True, False]
        world.change("delete from usr where idu > 100")
        assert publisher.cycle() == 51
    assert replica.rows == rows_of(world)


def test_a_stopped_table_deletes_nothing_at_all_until_nothing_would_be_deleted(world: World) -> None:
    replica = Replica()
    fill(world, 20)
    gone_and_logged = []
    with life(world, replica, max_deletes="5") as publisher:
        publisher.cycle()
        publisher.cycle()
        for gone in (6, 3, 0, 5):
            world.change("delete from usr where idu between 1 and 10")
            fill(world, 10 - gone)
            gone_and_logged.append((gone, publisher.cycle(), bool(publisher.unread)))
    assert gone_and_logged == [(6, 0, True), (3, 0, True), (0, 0, False), (5, 5, False)]


def test_a_permission_is_used_up_in_the_transaction_of_the_last_delete(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world.log.dialect.name != "postgresql":
        pytest.skip("rows do not name the transaction that wrote them")
    monkeypatch.setattr(events, "_STEPS", 40)
    fill(world, 150)
    with life(world, Replica(), max_deletes="10") as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change("delete from usr")
        publisher.cycle()
        resume(world, stopped(publisher))
        assert publisher.poll() == 150
    names = world.log.names()
    deletes = f"select xmin::text from {names['log']} where event_type = 4 order by record_id"
    passed = f"select xmin::text from {names['notice']} where kind = 'pass'"
    with world.engine.connect() as connection:
        transactions = connection.execute(text(deletes)).scalars().all()
        noted = connection.execute(text(passed)).scalars().all()
    assert len(set(transactions)) == 4
    assert noted == [transactions[-1]]


def test_a_poll_that_needs_no_permission_uses_it_up(world: World) -> None:
    replica = Replica()
    fill(world, 150)
    with life(world, replica) as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change("delete from usr")
        publisher.cycle()
        usr = stopped(publisher)
        fill(world, 150)
        resume(world, usr)
        assert publisher.cycle() == 0
        assert publisher.unread == {}
        world.change("delete from usr")
        assert publisher.cycle() == 0
        stopped(publisher)
    assert (replica.reported["delete"], kinds(world)) == (0, ["resume", "pass"])


def test_a_poll_that_ends_between_two_transactions_passes_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_STEPS", 100)
    replica = Replica()
    fill(world, 150)
    log, key = world.log.names()["log"], world.log.names()["table_key"]
    with life(world, replica, max_deletes="10") as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change("delete from usr")
        publisher.cycle()
        resume(world, stopped(publisher))
        world.change(f"alter table {log} add constraint spoilt check ({key} <> 'idu=99' or event_type <> 4)")
        with pytest.raises(DatabaseFailed):
            publisher.poll()
        world.change(f"alter table {log} drop constraint spoilt")
        assert kinds(world) == ["resume"]
        assert publisher.cycle() == 50
        assert (publisher.unread, replica.rows) == ({}, {})
        fill(world, 20)
        publisher.cycle()
        world.change("delete from usr")
        assert publisher.cycle() == 0
        stopped(publisher)
    assert kinds(world) == ["resume", "pass"]


def test_the_objects_of_a_table_that_is_gone_pass_the_same_brake(world: World) -> None:
    replica = Replica()
    world.change("create table person (id integer primary key, name varchar(20))")
    world.change("insert into person select idu, fname from usr")
    fill(world, 150)
    world.change("insert into person select idu, fname from usr")
    given = {"tables": "person usr", "on_dropped_table": "delete", "max_deletes": "20%"}
    with life(world, replica, **given) as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change("drop table person")
        world.user(1000)
        assert publisher.cycle() == 1
        person = stopped(publisher)
        assert person.endswith("person")
        resume(world, person)
        assert publisher.cycle() == 150
        assert publisher.unread == {}
    assert replica.reported["delete"] == 150


@pytest.mark.parametrize("words", ["", "x", "-1", "101%", "1.5", "20 percent", "%"])
def test_other_words_are_no_limit(world: World, words: str) -> None:
    with (
        pytest.raises(InvalidValue, match="a whole number, or a percentage"),
        life(world, Replica(), max_deletes=words),
    ):
        pass


def test_the_remedy_takes_a_hostile_name_as_one_word() -> None:
    table = "public.usr; echo 'x'"
    brake = DeleteBrake(DeleteLimit.read("0"))
    brake.begin({table: TableState(objects=1)}, ())
    brake.add(StateStep(table, "", "", None, None, rows=(LogRow(4),)))
    remedy = brake.stop([table])[table].split("`")[1]
    assert shlex.split(remedy) == ["eventlog", "resume", "--table", table]


def test_only_a_table_that_the_brake_stopped_may_pass_whatever_its_reason_reads(world: World) -> None:
    with world.elect() as leader, world.store.as_leader(leader.epoch) as work:
        reason = "is there a table `eventlog resume --table usr`?"
        work.record_cycle(json.dumps({"unread": {"usr": reason}, "stopped_tables": []}))
    with pytest.raises(NotStopped, match="for another reason"):
        resume_tables(world.store, ["usr"], "Jane")


def test_a_daemon_counts_the_stopped_tables(world: World, tmp_path: Path) -> None:
    url = world.url
    given = {"url": url, "sync_tables": "usr", "publication_mode": "compare", "max_deletes": "5"}
    config = Config(given | {"sink": "files", "files_folder": str(tmp_path)})
    monitor = Monitor()

    def run_once() -> None:
        try:
            Daemon(config, Signals(), once=True, monitor=monitor).run()
        finally:
            monitor.connected(world.store)  # its own connection is closed

    fill(world, 20)
    run_once()
    assert "eventlog_unread_tables 0" in metrics_text(monitor)
    world.change("delete from usr")
    with pytest.raises(TablesUnread, match="eventlog resume --table"):
        run_once()
    assert "eventlog_unread_tables 1" in metrics_text(monitor)


@pytest.mark.slow("it runs the command several times")
def test_the_commands_name_a_stopped_table_and_let_it_pass(two_table_world: World, tmp_path: Path) -> None:
    url = two_table_world.url
    (tmp_path / "eventlog.toml").write_text(
        f'url = "{url}"\npublication-mode = "compare"\nsync-tables = "usr plain"\nmax-deletes = 5\n'
    )
    fill(two_table_world, 20)
    with contextlib.closing(Shell(tmp_path)) as shell:
        assert shell.run("run", "--once").stdout.count("<add ") == 20
        two_table_world.change("delete from usr")
        two_table_world.change("insert into plain values (1, 'a')")
        done = shell.run("resume", "--table", "usr")
        assert (done.code, "usr: max-deletes stops no such table" in done.stderr) == (1, True)
        done = shell.run("run", "--once")
        assert (done.code, done.stdout.count("<delete"), done.stdout.count("<add ")) == (1, 0, 1)
        assert "usr is not published: 20 of 20 objects would be deleted" in done.stderr
        reason = "usr: 20 of 20 objects would be deleted at the receiver, which max-deletes = 5 stops"
        assert reason in shell.run("status").stdout
        done = shell.run("check")
        assert done.code == 1
        assert "usr: it is not published: 20 of 20 objects would be deleted" in done.stdout
        done = shell.run("resume", "--table", "usr", "--table", "plain")
        assert (done.code, "plain: max-deletes stops no such table" in done.stderr) == (1, True)
        assert shell.run("run", "--once").stdout == ""
        done = shell.run("resume", "--table", "usr")
        assert (done.code, "usr: the next poll may delete any number" in done.stderr) == (0, True)
        done = shell.run("run", "--once")
        assert (done.code, done.stdout.count("<delete")) == (0, 20)
        assert "not published" not in shell.run("status").stdout
