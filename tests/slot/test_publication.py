"""A publication that somebody else made or altered: what it lacks is named, put right and logged."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from eventlog.operate.unexplained import StillLost
from tests.kit.logs import Receiver
from tests.kit.support import until
from tests.slot.rig import Copy, Life, SlotWorld, life, once, rows_of
from tests.world.world import call

pytestmark = [pytest.mark.quick, pytest.mark.cold]

_LISTS, _GENERATED = 15, 18  # versions of PostgreSQL
_BACK = "set (publish = 'insert, update, delete, truncate')"
_CHANGES = (
    "delete from usr where idu = 1",
    "update usr set fname = 'June' where idu = 2",
    "insert into usr values (3, 'new')",
)


@dataclass(frozen=True)
class Alteration:
    """What is done to the publication {0}, how it is undone, and how it is named until then."""

    does: tuple[str, ...]
    undoes: tuple[str, ...]
    named: str
    version: int = 0


OPTIONS = {
    "deletes": Alteration(("set (publish = 'insert, update')",), (_BACK,), "lacks deletes, truncates"),
    "partitions": Alteration(
        ("drop table usr", "set (publish_via_partition_root = false)", "add table usr"),
        ("set (publish_via_partition_root = true)",),
        "lacks publish_via_partition_root",
    ),
    "renamed": Alteration(("rename to odd",), (), "was dropped, or made anew"),
}
MEMBERS = {
    "a filter": Alteration(
        ("set table usr (idu) where (idu > 5)",),
        ("set table usr (idu)",),
        "only rows of it that pass",
        _LISTS,
    ),
    "columns": Alteration(
        ("set table usr (fname)",), ("set table usr (idu)",), "lacks its columns idu", _LISTS
    ),
    "taken out": Alteration(("drop table usr",), ("add table usr",), "it is not in publication"),
}


def alter(world: SlotWorld, *actions: str) -> None:
    world.run(*(f'alter publication "{world.slot}" {action}' for action in actions))


def version(world: SlotWorld) -> int:
    return int(world.value("show server_version_num")) // 10_000


def publish(world: SlotWorld) -> Copy:
    """Return a receiver that has two rows of a table by a slot."""
    copy = Copy()
    install(world)
    world.fill()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    once(world, copy)
    return copy


def install(world: SlotWorld) -> None:
    """Install routines, whose lack is a finding, too."""
    assert call(world, "install").exit_code == 0


def change(world: SlotWorld) -> None:
    """Change rows. Without the columns of the key in the publication the server refuses to."""
    for statement in _CHANGES:
        try:
            world.run(statement)
        except Exception as fault:
            assert "Column list used by the publication" in str(fault)  # noqa: PT017


def unread(publisher: Life) -> str:
    return publisher.filler.unread.get("public.usr", "")


def checked(world: SlotWorld) -> str:
    done = call(world, "check", EVENTLOG_PUBLICATION_MODE="slot")
    assert done.exit_code == 1
    return done.output


def assert_put_right(world: SlotWorld, copy: Copy) -> None:
    """Give the remedy; the receiver gets all changes, and check names nothing."""
    world.fill()
    world.run("insert into usr values (9, 'last')", "delete from usr where idu = 3")
    with life(world, copy) as publisher:
        until(lambda: not publisher.cycle() and "idu=9" in copy.rows)
        assert unread(publisher) == ""
    assert (copy.rows, world.gaps()) == (rows_of(world), {})
    done = call(world, "check", EVENTLOG_PUBLICATION_MODE="slot")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", OPTIONS | MEMBERS)
@pytest.mark.family
def test_what_it_lacks_is_named_and_put_right(world: SlotWorld, name: str) -> None:
    alteration = (OPTIONS | MEMBERS)[name]
    if version(world) < alteration.version:
        return
    copy = publish(world)
    alter(world, *alteration.does)
    change(world)
    assert alteration.named in checked(world)
    with life(world, copy) as publisher:
        publisher.cycle()
        assert alteration.named in unread(publisher)
        assert "`eventlog install --mode slot`" in unread(publisher)
    done = call(world, "resync", "usr", "--compare", EVENTLOG_PUBLICATION_MODE="slot")
    assert isinstance(done.exception, StillLost)  # it would take what differs for what the log explains
    assert any(alteration.named in line for line in world.fill())
    assert_put_right(world, copy)


@pytest.mark.parametrize(("name", "is_running"), [("deletes", True), ("renamed", True), ("renamed", False)])
@pytest.mark.family
def test_what_it_lacked_for_a_while_stops_the_stream(
    world: SlotWorld, name: str, is_running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop also if the publication was altered back, because that brings no lost change back."""
    monkeypatch.setattr("eventlog.slot.slot_tables._AGE", 0.0)
    monkeypatch.setattr("eventlog.slot.connection._RETRY", 0.0)
    copy = publish(world)
    with life(world, copy) as publisher:
        if is_running:
            publisher.cycle()
        publication = world.slot
        alter(world, *OPTIONS[name].does)
        change(world)
        if name == "renamed":
            world.run(f'alter publication odd rename to "{publication}"')
        alter(world, *OPTIONS[name].undoes)
        world.run("insert into usr values (4, 'later')")
        until(lambda: not publisher.cycle() and "altered by somebody else" in unread(publisher))
    assert "altered by somebody else" in checked(world)
    assert_put_right(world, copy)


@pytest.mark.parametrize("name", ["a filter", "columns"])
@pytest.mark.long
def test_what_it_lacked_of_a_table_for_a_while_is_a_gap(world: SlotWorld, name: str) -> None:
    alteration = MEMBERS[name]
    if version(world) < alteration.version:
        return
    copy = publish(world)
    alter(world, *alteration.does)
    change(world)
    alter(world, *alteration.undoes)
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "may be lost" in unread(publisher)
    done = call(world, "resync", "usr", "--compare", EVENTLOG_PUBLICATION_MODE="slot")
    assert done.exit_code == 0, done.output
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


PUBLICATIONS = {
    "of all tables": ('create publication "{0}" for all tables', 0),
    "of a schema": ('create publication "{0}" for tables in schema public', _LISTS),
    "of some rows": (
        """create publication "{0}" for table usr where (idu > 5) with (publish = 'insert')""",
        _LISTS,
    ),
}


@pytest.mark.parametrize("name", PUBLICATIONS)
@pytest.mark.family
def test_one_that_was_there_before_is_put_right(world: SlotWorld, name: str) -> None:
    statement, since = PUBLICATIONS[name]
    if version(world) < since:
        return
    install(world)
    world.run("create table other (n integer)", statement.format(world.slot))
    assert any("put right" in line for line in world.fill())
    world.run("insert into other values (1)", "update other set n = 2")  # it has no replica identity
    copy = Copy()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    once(world, copy)
    change(world)
    assert_put_right(world, copy)


@pytest.mark.long
def test_tables_that_are_not_published_here_are_named_and_taken_out(world: SlotWorld) -> None:
    copy = publish(world)
    world.run("create table other (n integer primary key)")
    alter(world, "add table other")
    assert "tables that are not published here (public.other)" in checked(world)
    assert any("public.other" in line for line in world.fill())
    assert_put_right(world, copy)


def test_a_table_above_it_hides_a_partition(world: SlotWorld) -> None:
    world.run(
        "create table parts (n integer primary key) partition by range (n)",
        "create table part partition of parts for values from (0) to (9)",
    )
    world.fill("part")
    alter(world, "add table parts (n)" if version(world) >= _LISTS else "add table parts")
    world.run("insert into part values (1)")
    with life(world, Receiver(), "part") as publisher:
        publisher.cycle()
        assert "it is not in publication" in publisher.filler.unread["public.part"]
    assert any("1 object differed" in line for line in world.fill("part"))
    assert any("partition of public.parts" in line for line in world.fill("parts part"))


def test_generated_columns_of_keys_and_replica_identities(world: SlotWorld) -> None:
    """The server refuses to update a table if its publication lacks generated columns of its identity."""
    key = "a integer, k integer generated always as (a * 2) stored primary key"
    world.run(
        f"create table by_default ({key})",
        f"create table by_all ({key})",
        "create table identity (a integer primary key, k integer generated always as (a * 2) stored)",
        "alter table by_all replica identity full",
        "alter table identity replica identity full",
    )
    tables = ("by_default", "by_all", "identity")
    lines = world.fill("usr by_default by_all identity")
    refused = [table for table in tables if any(f"public.{table} is not published" in line for line in lines)]
    for table in tables:
        world.run(f"insert into {table} values (1), (2)", f"update {table} set a = 3 where a = 1")
        world.run(f"delete from {table} where a = 2")
    with life(world, Receiver(), "usr by_default by_all identity") as publisher:
        publisher.cycle()
        assert sorted(publisher.filler.unread) == sorted(f"public.{table}" for table in refused)
    assert refused == ([] if version(world) >= _GENERATED else ["by_default", "by_all"])
    keys = {(table, key) for _, table, key in world.logged()}
    assert keys >= {("identity", "a=1"), ("identity", "a=2"), ("identity", "a=3")}
    if not refused:
        assert keys >= {("by_all", "k=2"), ("by_all", "k=4"), ("by_default", "k=6")}


def test_virtual_columns_of_a_replica_identity_are_refused(world: SlotWorld) -> None:
    if version(world) < _GENERATED:
        return
    world.run(
        "create table odd (a integer primary key, k integer generated always as (a * 2) virtual)",
        "alter table odd replica identity full",
    )
    assert any("virtual generated columns" in line for line in world.fill("usr odd"))
    world.run("insert into odd values (1)", "update odd set a = 2")


def test_what_0_1_0_noted_goes_on_and_is_watched_from_then_on(world: SlotWorld) -> None:
    """Take over a record without the transaction that last altered the publication."""
    copy = publish(world)
    world.run("update eventlog_state set slot_facts = (slot_facts::jsonb - 'altered_by' - 'since')::text")
    world.run("insert into usr values (3, 'new')")
    once(world, copy)
    assert copy.rows == rows_of(world)
    alter(world, *OPTIONS["deletes"].does, *OPTIONS["deletes"].undoes)
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "altered by somebody else" in unread(publisher)
