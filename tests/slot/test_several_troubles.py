"""A slot of several tables, each with a trouble of its own at the same time, and gaps that open and close."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.sql.log.slot_state import Loss, LossKind
from tests.slot.rig import Copy, SlotWorld, life, once, rows_of
from tests.world.world import call

pytestmark = [pytest.mark.quick, pytest.mark.cold]

TABLES = ("usr", "filtered", "hidden", "again", "parts")  # the keys of each begin at another hundred
NAMES = " ".join(TABLES)
TYPE = "(idu integer primary key, fname text, lname text)"


def every_row(world: SlotWorld) -> dict[str, Any]:
    return {key: row for table in TABLES for key, row in rows_of(world, table).items()}


def compare(world: SlotWorld) -> None:
    done = call(
        world, "resync", *TABLES, "--compare", EVENTLOG_PUBLICATION_MODE="slot", EVENTLOG_SYNC_TABLES=NAMES
    )
    assert done.exit_code == 0, done.output


@pytest.mark.slow("five tables meet their troubles in one publisher's life")
def test_each_of_several_tables_is_named_with_its_trouble_and_put_right(world: SlotWorld) -> None:
    world.run(
        *(f"create table {table} {TYPE}" for table in TABLES[1:4]),
        f"create table parts {TYPE} partition by range (idu)",
        "create table parts_0 partition of parts for values from (400) to (410)",
        "create table parts_1 partition of parts for values from (410) to (420)",
    )
    world.fill(NAMES)
    copy = Copy()
    for number, table in enumerate(TABLES):
        values = ", ".join(f"({100 * number + place}, 'Jack', 'Frost')" for place in (1, 2, 11, 12))
        world.run(f"insert into {table} values {values}")
    once(world, copy, NAMES)
    compare(world)
    assert copy.rows == every_row(world)
    alter = f'alter publication "{world.slot}"'
    has_filters = int(world.value("show server_version_num")) >= 150_000
    world.run(
        "update again set fname = 'June'",
        "insert into parts values (413, 'Jane', 'Doe')",
        "alter table hidden rename to elsewhere",
    )
    once(world, copy, NAMES)
    world.run(
        f"{alter} drop table filtered",
        f"{alter} add table filtered {'where (idu > 102)' if has_filters else ''}",
        "update filtered set fname = 'unseen' where idu = 101",
        "delete from elsewhere where idu = 201",
        f"{alter} drop table again",
        "update again set fname = 'Jack'",
        f"{alter} add table again",
        "drop table parts_1",
    )
    once(world, copy, NAMES)
    world.run("alter table elsewhere rename to hidden", "update usr set fname = 'Joe' where idu = 1")
    with life(world, copy, NAMES) as publisher:
        publisher.cycle()
        unread = dict(publisher.filler.unread)
    named = {"hidden": "may be lost", "again": "taken out"}
    named |= {"filtered": "only rows of it that pass"} if has_filters else {"filtered": "taken out"}
    assert [table for table, words in named.items() if words not in unread.get(f"public.{table}", "")] == []
    assert {name.partition(".")[2] for name in unread} == {*named}
    assert copy.rows["idu=1"]["fname"] == "Joe"
    world.fill(NAMES)
    compare(world)
    once(world, copy, NAMES)
    assert (copy.rows, world.gaps()) == (every_row(world), {})


def test_a_comparison_closes_the_gaps_that_it_saw(world: SlotWorld) -> None:
    world.fill()
    with world.store.admin() as admin:
        slot = admin.slot()
        for table in ("public.usr", "public.other"):
            slot.note_gap(table, Loss(LossKind.LEFT_OUT, ("one",)))
        first = slot.gaps()["public.usr"]
        slot.note_gap("public.usr", Loss(LossKind.LEFT_OUT, ("two",)))
        reasons = []
        for seen in (first, slot.gaps()["public.usr"]):
            slot.close_gap("public.usr", seen, "test")
            reasons.append({table: gap.why for table, gap in slot.gaps().items()})
    assert reasons == [{"public.usr": "two", "public.other": "one"}, {"public.other": "one"}]
