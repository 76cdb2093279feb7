"""Child tables: a query-back of the parent reads the values that its children hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lxml import etree

from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_readable, read_tables
from eventlog.publisher.fold import PickUpFold
from eventlog.sql.capture import track
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.relation import Choice
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import key
from tests.world.world import World, call

pytestmark = pytest.mark.quick


@pytest.fixture
def family(world: World) -> Iterator[World]:
    """Make users, their phone numbers and their mail addresses, tracked as one class."""
    world.change(
        "create table usr_phone (idu integer, phoneno varchar(20),"
        " constraint fk_phone foreign key (idu) references usr (idu))"
    )
    world.change(
        "create table usr_mail (idu integer, address varchar(20),"
        " constraint fk_mail foreign key (idu) references usr (idu))"
    )
    track.track(world.engine, world.log, "usr", Choice(children=("usr_phone.phoneno", "usr_mail.address")))
    yield world
    track.untrack(world.engine, world.log, "usr", discard=True)
    world.change("drop table usr_phone")
    world.change("drop table usr_mail")


def texts(world: World, **settings: object) -> list[str]:
    """Return the events that the pending rows give."""
    tables = read_tables(world.engine, world.log, Config(settings))
    readable = read_readable(world.engine, world.log, tables)
    with world.store.snapshot() as snapshot:
        reading = PickUpFold(tables, readable, Rules(), XdsSettings()).preview(snapshot, PickUpFilter(100))
    assert reading.refused == []
    return [event.text for event in reading.events.events()]


def test_a_childs_rows_are_read_back_as_values_of_its_parent(family: World) -> None:
    family.user(1)
    family.change("update eventlog set status = 'S'")
    for number in ("11", "12"):
        family.change("insert into usr_phone values (1, :n)", n=number)
    (event,) = texts(family)
    assert event.count("<modify-attr ") == 1
    assert '<modify-attr attr-name="usr_phone.phoneno"><remove-all-values/><add-value>' in event
    for number in ("11", "12"):
        assert f'<value type="string">{number}</value>' in event


def test_a_parents_row_brings_the_values_of_all_its_children(family: World) -> None:
    family.user(1)
    for number in ("11", "12"):
        family.change("insert into usr_phone values (1, :n)", n=number)
        family.change("insert into usr_mail values (1, :n)", n=f"{number}@x")
    family.user(2, "Jane")
    first, second = texts(family)
    for value in ("Jack", "Frost", "11", "12", "11@x", "12@x"):
        assert first.count(f'<value type="string">{value}</value>') == 1
    assert '<modify-attr attr-name="usr_mail.address"><remove-all-values/></modify-attr>' in second


@pytest.fixture
def named(world: World) -> Iterator[World]:
    """A user's phones and a membership in groups, none of them tracked; named in sync-tables alone."""
    world.change("create table grp (gid integer primary key)")
    world.change(
        "create table usr_phone (owner integer, phoneno varchar(20), grp integer, boss integer,"
        " constraint fk_of foreign key (owner) references usr (idu),"
        " constraint fk_grp foreign key (grp) references grp (gid),"
        " constraint fk_boss foreign key (boss) references usr (idu))"
    )
    yield world
    world.change("drop table usr_phone")
    world.change("drop table grp")


NAMED: dict[str, object] = {"sync_tables": "usr, grp; usr_phone"}


def values(event: str, attribute: str) -> list[tuple[str, str | None, str | None]]:
    """Return the type, the reference and the text of each value that is added to an attribute."""
    elements = etree.fromstring(event).iterfind(f".//*[@attr-name='{attribute}']/add-value/value")
    return [(str(v.get("type")), v.get("association-ref"), v.text) for v in elements]


def test_a_child_that_is_only_named_is_read_back_and_refers(named: World) -> None:
    named.user(1)
    named.user(2)
    named.change("update eventlog set status = 'S'")
    named.change("insert into grp values (7)")
    named.change("insert into usr_phone values (1, '11', 7, 2), (1, '12', null, 2)")
    named.write(key(1, event_type=6))
    (event,) = texts(named, **NAMED)
    end = ",table={},schema=" + str(read_tables(named.engine, named.log, Config(NAMED)).get("usr").schema)
    assert sorted(values(event, "usr_phone.phoneno")) == [("string", None, "11"), ("string", None, "12")]
    assert values(event, "usr_phone.grp") == [("dn", f"gid=7{end.format('grp')}", "7")]
    assert values(event, "usr_phone.boss") == [("dn", f"idu=2{end.format('usr')}", "2")]
    assert "usr_phone.owner" not in event


@pytest.mark.parametrize("taken", [True, False])
def test_children_of_a_list_are_taken_along_if_wanted(named: World, taken: bool) -> None:
    known = read_tables(named.engine, named.log, Config({"sync_tables": "usr", "sync_children": taken}))
    assert [table.name for table in known] == ["usr"]
    assert ("usr_phone.phoneno" in known.get("usr").columns) == taken


def test_rows_of_a_named_child_are_its_parents_and_the_query_back_swallows_them(named: World) -> None:
    named.user(1)
    named.change("update eventlog set status = 'S'")
    named.change("insert into usr_phone values (1, '11', null, null)")
    child = key(
        1, event_type=2, table_name="usr_phone", column_name="phoneno", old_value="10", new_value="11"
    )
    named.write(child)
    (event,) = texts(named, **NAMED)
    assert '<modify class-name="usr"' in event
    assert 'attr-name="usr_phone.phoneno"><remove-value>' in event
    named.write(key(1, event_type=6))
    (event,) = texts(named, **NAMED)
    assert event.count('attr-name="usr_phone.phoneno"') == 1
    assert '"usr_phone.phoneno"><remove-all-values/>' in event


def test_a_query_back_that_does_not_read_the_child_leaves_its_rows(named: World) -> None:
    named.user(1)
    named.change("update eventlog set status = 'S'")
    column = {"column_name": "usr_phone.phoneno", "old_value": "10", "new_value": "11"}
    named.write(key(1, event_type=2, **column), key(1, event_type=6))
    (event,) = texts(named, sync_tables="usr")
    assert '"usr_phone.phoneno"><remove-value><value type="string">10</value>' in event
    assert '"fname"><remove-all-values/>' in event


def test_two_children_are_read_one_after_the_other(named: World) -> None:
    """Read them in turn, not each row of one with each row of the other."""
    named.change(
        "create table usr_mail (idu integer, address varchar(20), foreign key (idu) references usr (idu))"
    )
    try:
        named.user(1)
        named.change("update eventlog set status = 'S'")
        for n in range(30):
            named.change("insert into usr_phone values (1, :n, null, null)", n=str(n))
            named.change("insert into usr_mail values (1, :n)", n=f"{n}@x")
        known = {"sync_tables": f"{NAMED['sync_tables']} usr_mail"}
        tables = read_tables(named.engine, named.log, Config(known))
        usr = tables.get("usr")
        source = read_readable(named.engine, named.log, tables)[usr]
        with named.store.snapshot() as snapshot:
            rows = list(snapshot.current_rows(source, [source.load_values(("1",))]))
        assert len(rows) == 60
        named.write(key(1, event_type=6))
        (event,) = texts(named, **known)
        for attribute, end in (("usr_phone.phoneno", ""), ("usr_mail.address", "@x")):
            assert {text for _, _, text in values(event, attribute)} == {f"{n}{end}" for n in range(30)}
    finally:
        named.change("drop table usr_mail")


def test_the_publisher_says_which_children_it_reads(named: World) -> None:
    reported = call(named, "run", "--once", EVENTLOG_SYNC_TABLES=str(NAMED["sync_tables"]))
    assert reported.exit_code == 0, reported.output
    assert (
        "read the rows of its children too: usr_phone.phoneno, usr_phone.grp, usr_phone.boss"
        in reported.stderr
    )
