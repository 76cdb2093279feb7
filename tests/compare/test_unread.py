"""A table that cannot be compared stops no other; a lost or damaged state is reported in our words."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.sql.catalogue import NoSuchTable
from eventlog.sql.log.object_states import StateGone, StateLost
from eventlog.sql.schema import migrate
from tests.compare.rig import Replica, life, rows_of
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.logs import Receiver
from tests.kit.statements import run_statements
from tests.world.world import World

pytestmark = pytest.mark.quick

MODE = ("--mode", "compare")


@pytest.fixture
def world_with_view(world: World) -> Iterator[World]:
    """Make a view next to the table, which a test may spoil."""
    world.change("create table plain (pk integer primary key, v varchar(10))")
    world.change("create view odd as select pk as pk_pk, v from plain")
    yield world
    world.change("drop view if exists odd")
    world.change("drop table if exists plain")


def test_a_table_that_cannot_be_read_stops_no_other(world_with_view: World) -> None:
    receiver = Receiver()
    world_with_view.user(1)
    world_with_view.change("insert into plain values (1, 'a'), (2, 'b')")
    with life(world_with_view, receiver, tables="odd usr") as publisher:
        assert publisher.cycle() == 3
        # two rows of one key: the first may have been found when it is seen
        world_with_view.change("drop view odd")
        world_with_view.change(
            "create view odd as select pk as pk_pk, v from plain union all select pk, 'x' from plain"
        )
        world_with_view.change("insert into plain values (3, 'c')")
        world_with_view.change("update usr set fname = 'John'")
        assert publisher.cycle() == 1
        assert [event.get("class-name") for event in receiver.events[3:]] == ["usr"]
        ((table, why),) = publisher.unread.items()
        assert table.endswith("odd")
        assert "same key" in why
        world_with_view.change("drop view odd")
        assert publisher.cycle() == 0
        assert "no table or view odd" in str(publisher.unread)
        world_with_view.change("create view odd as select pk as pk_pk, v from plain")
        assert publisher.cycle() == 1  # what it had is still known: only what is new is sent
        assert publisher.unread == {}
        assert "pk_pk=3" in str(receiver.events[-1].findtext("association"))


@pytest.mark.parametrize("section", [{"publish": ["v"]}, {"withhold": ["v"]}, {"max-value": 5}])
def test_a_table_that_is_gone_stops_no_other_whatever_the_settings_say_of_it(
    world_with_view: World, section: dict[str, object]
) -> None:
    receiver = Receiver()
    world_with_view.change("insert into plain values (1, 'a')")
    with life(world_with_view, receiver, tables="plain usr", sections={"plain": section}) as publisher:
        publisher.cycle()
        world_with_view.change("alter table plain rename to away")
        world_with_view.user(1)
        assert publisher.cycle() == 1
        assert receiver.events[-1].get("class-name") == "usr"
        assert "no table or view plain" in str(publisher.unread)
        world_with_view.change("alter table away rename to plain")
        world_with_view.change("insert into plain values (2, 'b')")
        withheld = "withhold" in section  # there is nothing else to send
        assert publisher.cycle() == int(not withheld)
        assert publisher.unread == {}
    assert receiver.events[-1].get("class-name") == ("usr" if withheld else "plain")


def test_a_name_of_which_nothing_is_known_is_an_error_at_the_start(world_with_view: World) -> None:
    with life(world_with_view, Receiver(), tables="usr nowhere") as publisher, pytest.raises(NoSuchTable):
        publisher.cycle()


def test_a_table_without_a_key_is_named_at_every_start_and_stops_no_other(world_with_view: World) -> None:
    world_with_view.change("create table loose (v varchar(10))")
    world_with_view.change("create view seen as select idu, fname from usr")
    receiver = Receiver()
    world_with_view.user(1)
    for differing in (1, 0):
        with life(world_with_view, receiver, tables="usr loose seen") as publisher:
            assert publisher.cycle() == differing
            assert [name.rpartition(".")[2] for name in sorted(publisher.unread)] == ["loose", "seen"]
            assert "exclude-table-filter" in str(publisher.unread)
    assert [event.tag for event in receiver.events] == ["add"]
    world_with_view.change("drop view seen")
    world_with_view.change("drop table loose")


def test_a_table_that_could_not_be_read_at_the_start_is_taken_as_it_is_later(world_with_view: World) -> None:
    receiver = Receiver()
    world_with_view.change("insert into plain values (1, 'a')")
    world_with_view.change("drop view odd")
    world_with_view.change(
        "create view odd as select pk as pk_pk, v from plain union all select pk, 'x' from plain"
    )
    with life(world_with_view, receiver, tables="odd", startup_option="future") as publisher:
        assert publisher.cycle() == 0
        assert len(publisher.unread) == 1
        world_with_view.change("drop view odd")
        world_with_view.change("create view odd as select pk as pk_pk, v from plain")
        assert publisher.cycle() == 0
        assert publisher.unread == {}
        world_with_view.change("update plain set v = 'b'")
        assert publisher.cycle() == 1
    assert [event.tag for event in receiver.events] == ["modify"]


def test_a_state_that_was_dropped_is_reported_in_our_words(world: World) -> None:
    replica = Replica()
    world.user(1)
    with life(world, replica) as publisher:
        publisher.cycle()
        world.change(f"drop table {world.log.names()['known']}")
        with pytest.raises(StateGone, match="eventlog install"):
            publisher.cycle()
    assert migrate.install(world.engine, world.log)
    assert not migrate.install(world.engine, world.log)
    with life(world, replica) as publisher, pytest.raises(StateLost, match="startup-option"):
        publisher.cycle()


@pytest.mark.parametrize(
    "damage",
    [
        "row_values = replace(row_values, 'Frost', 'Frust')",
        "row_values = concat(row_values, ' ')",
        "digest = '0'",
    ],
)
@pytest.mark.long
def test_values_that_are_not_those_that_were_kept_are_never_sent(world: World, damage: str) -> None:
    replica = Replica()
    world.user(1)
    known = world.log.names()["known"]
    with life(world, replica) as publisher:
        publisher.cycle()
        publisher.cycle()
        world.change(f"update {known} set {damage} where object_key = 'idu=1'")
        world.change("update usr set lname = 'Doe'")
        assert publisher.cycle() == 0
        assert "what is kept of idu=1 is damaged" in str(publisher.unread)
    with life(world, replica, startup_option="resync") as publisher:
        assert publisher.cycle() == 1
    assert replica.rows == rows_of(world)


@pytest.mark.parametrize("text", ["{}", '{"format": 1}', "x", '{"format": 3, "objects": 1}'])
def test_a_count_that_cannot_be_read_is_a_state_that_is_lost(world: World, text: str) -> None:
    world.user(1)
    known = world.log.names()["known"]
    with life(world, Receiver()) as publisher:
        publisher.cycle()
        world.change(f"update {known} set row_values = :t where key_hash = 'base'", t=text)
        with pytest.raises(StateLost):
            publisher.cycle()


def test_status_and_check_tell_what_is_not_compared(postgres: Database, tmp_path: Path) -> None:
    url = postgres.address
    engine = postgres.engine()
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", url)
        run_statements(
            engine,
            "create table usr (idu integer primary key)",
            "create table twin (n integer)",
            "create view odd as select n as pk_n from twin",
            "insert into twin values (1), (1)",
            "insert into usr values (1)",
        )
        (tmp_path / "eventlog.toml").write_text(
            f'url = "{url}"\npublication-mode = "compare"\nsync-tables = "usr odd"\n'
        )
        done = shell.run("run", "--once")
        assert (done.code, done.stdout.count("<add")) == (1, 1)
        assert "public.odd: public.odd and public.odd have the same key, pk_n=1" in done.stderr
        assert "not published public.odd: " in shell.run("status").stdout
        done = shell.run("check")
        assert done.code == 1
        assert "public.odd: it is not published: " in done.stdout
        assert "public.odd: the keys of a view are perhaps not unique: each poll" in done.stdout
        assert "public.usr" not in done.stdout
        run_statements(engine, "drop table eventlog_known")
        done = shell.run("check")
        assert "eventlog_known: eventlog_known, the table of the receiver's state" in done.stdout
        assert "is installed" in shell.run("install").stderr
        run_statements(engine, "delete from twin")
        done = shell.run("run", "--once", "--startup-option", "future")
        assert (done.code, done.stdout) == (0, "")
        assert "not published" not in shell.run("status").stdout
    engine.dispose()


def test_with_the_printed_grants_a_publisher_compares(postgres: Database, tmp_path: Path) -> None:
    engine = postgres.engine()
    role = f"r{secrets.token_hex(6)}"
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", postgres.address)
        printed = ("install", "--sql", "--dialect", "postgresql", "--grants", role)
        assert shell.run("install", "--sql", "--dialect", "postgresql", "--mode", "compare").code == 2
        less, more = (set(shell.run(*printed, *words).stdout.split(";")) for words in ((), MODE))
        assert len(more - less) == 2
        assert shell.run(*printed, "--mode", "trigger").stdout == shell.run(*printed).stdout
        run_statements(
            engine,
            "create table usr (idu integer primary key)",
            "insert into usr values (1)",
            f"create role {role} login password 'p'",
            f"grant select on usr to {role}",
        )
        script = shell.run(*printed, *MODE).stdout.replace("\\set ON_ERROR_STOP on", "")
        raw = engine.raw_connection()
        raw.cursor().execute(script)
        raw.close()
        url = postgres.url.set(username=role, password="p").render_as_string(hide_password=False)
        done = shell.run("run", "--once", "--mode", "compare", "--sync-tables", "usr", "--url", url)
        assert (done.code, done.stdout.count("<add")) == (0, 1), done.stderr
    run_statements(engine, f"drop owned by {role}", f"drop role {role}")
    engine.dispose()
