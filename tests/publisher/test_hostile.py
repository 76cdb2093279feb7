"""Rows from anybody who can write to the log: each costs itself, and no statement but ours is run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lxml import etree

from eventlog.sinks.sink import OutgoingDocument, Reply, unanswered
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.quick
TABLES = [
    "usr; drop table usr",
    'usr" where 1=1 --',
    "usr'--",
    "pg_catalog.pg_authid",
    "pg_shadow",
    "information_schema.tables",
    "mysql.user",
    "eventlog",
    "other.usr",
    "../usr",
    "",
    " usr",
    "<usr/>",
    "usr\u0001",
]
KEYS = [
    "idu=1 or 1=1",
    "idu=1; drop table usr",
    "idu=1'",
    'idu="1\\" or 1=1 --"',
    'idu="1',
    "idu=",
    "idu==1",
    "idu=1+idu=1",
    "idu=1+fname=x",
    "IDU)=1",
    "idu=0x1",
    "idu=1e0",
    "idu=\ud7ff",
    "idu=:keys",
    "idu=%s",
    "x" * 500_000,  # both in one pick-up, whose limit counts keys twice
    "idu=" + "9" * 500_000,
    "",
]


def unnumbered(statement: str) -> str:
    """Return a statement without the numbers in the names of its values; each reader has its own."""
    return re.sub(r"%\((keys|first)\d+\)s", r"%(\1)s", statement)


def test_hostile_names_are_refused_and_run_nothing(world: World) -> None:
    world.user(1)
    world.write(key(1), {"table_name": "unknown", "table_key": "idu=1"})
    with world.publisher(Receiver(), query_limit=1000) as publisher:
        with world.statements() as ordinary:
            publisher.cycle()
        world.write(
            *({"table_name": name, "table_key": "idu=1"} for name in TABLES),
            *({"table_key": text} for text in KEYS),
            key(1),
        )
        with world.statements() as hostile:
            publisher.cycle()
    assert set(map(unnumbered, hostile)) <= set(map(unnumbered, ordinary))
    letters = "".join(world.letters().values())
    assert letters == "SE" + "E" * (len(TABLES) + len(KEYS)) + "S"
    assert all(failed.reason for failed in world.failures())


@pytest.fixture
def shares(world: World) -> Iterator[World]:
    """Make a view with a row for each of six users; that of one without a first name cannot be read."""
    for number in range(1, 7):
        world.user(number, fname="x")
    world.change("create view shares as select idu as pk_idu, 60 / octet_length(fname) as share from usr")
    yield world
    world.change("drop view shares")


def unsent(world: World, *bad: int) -> set[int]:
    """Make rows of the view unreadable. Return the users without an event."""
    world.change(f"update usr set fname = '' where idu in ({', '.join(map(str, bad))})")
    world.write(*({"table_name": "shares", "table_key": f"pk_idu={number}"} for number in range(1, 7)))
    receiver = Receiver()
    with world.publisher(receiver, tables=("shares",)) as publisher:
        publisher.cycle()
    assert {number for number, letter in world.letters().items() if letter != "S"} <= {*bad}
    return {*range(1, 7)} - {int(name.partition("=")[2]) for name in receiver.objects}


@pytest.mark.parametrize("bad", [4, 5])  # the first one of a half, and another
@pytest.mark.usefixtures("either_way")
def test_a_row_that_the_database_refuses_to_read_costs_itself_alone(shares: World, bad: int) -> None:
    assert unsent(shares, bad) <= {bad}  # for MariaDB and MySQL the share is null


@pytest.mark.usefixtures("either_way")
def test_several_rows_that_the_database_refuses_to_read_cost_themselves_alone(shares: World) -> None:
    assert unsent(shares, 1, 3, 6) <= {1, 3, 6}


def test_hostile_values_come_out_escaped(world: World) -> None:
    bad = "]]></value><add-value>&\"'\r\n\t<!--"
    world.user(1, fname=bad, lname="</nds>")
    world.write(
        key(1),
        key(2, event_type=1, column_name="fname", new_value=bad),
        key(3, event_type=1, column_name="<x/>", new_value="y"),
        {"table_key": 'idu="<&>"', "event_type": 4},
    )
    receiver = Receiver()
    world.cycle(receiver)
    assert [event.xpath("string(.//value)") for event in receiver.events] == [bad, bad, "y", ""]
    assert receiver.events[2].xpath("add-attr/@attr-name") == ["<x/>"]
    assert str(receiver.events[3].findtext("association")).startswith('idu="<&>",table=usr')
    for document in receiver.documents:
        etree.fromstring(document.text.encode())


def test_a_value_that_xml_cannot_carry_costs_the_rows_that_ask_for_it(world: World) -> None:
    world.user(1, fname="a\x01b")
    world.user(2)
    world.write(key(1), key(1), key(2))
    world.cycle(Receiver())
    assert world.letters() == {1: "E", 2: "E", 3: "S"}


@pytest.mark.parametrize("level", [Level.ERROR, Level.RETRY, None])
def test_a_poisoned_object_delays_nobody(world: World, level: Level | None) -> None:
    world.write(*(key(number, event_type=4) for number in (1, 1, 2, 3)))

    def poison(document: OutgoingDocument) -> Reply:
        if not any(item.association.startswith("idu=1,") for item in document.items):
            return Reply()
        return unanswered("time-out") if level is None else Reply([Status(level)])

    receiver = Receiver(poison)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        for number in range(4, 10):
            world.write(key(1, event_type=4), key(number, event_type=4))
            publisher.cycle()
            assert world.letters()[max(world.letters())] == "S"


def test_a_poisoned_event_in_a_large_document_ends_up_alone(world: World) -> None:
    world.write(*(key(number, event_type=4) for number in range(40)))

    def poison(document: OutgoingDocument) -> Reply:
        return unanswered("it died") if "idu=7," in document.text else Reply()

    with world.publisher(Receiver(poison), retry_wait=0.0, batch_size=40) as publisher:
        for _ in range(8):
            publisher.cycle()
    assert world.counts() == {"S": 39, "N": 1}


@pytest.mark.usefixtures("either_way")
def test_a_column_that_is_dropped_meanwhile_costs_no_row(world: World) -> None:
    world.change("create table short (id integer primary key, a varchar(9), b varchar(9))")
    try:
        for number in (1, 2):
            world.change("insert into short values (:n, 'x', 'y')", n=number)
        row = {"table_name": "short"}
        receiver = Receiver()
        with world.publisher(receiver, tables=("usr", "short")) as publisher:
            world.write(row | {"table_key": "id=1"})
            publisher.cycle()
            world.change("alter table short drop column b")
            world.write(row | {"table_key": "id=1"}, row | {"table_key": "id=2"})
            publisher.cycle()
        assert world.counts() == {"S": 3}
        assert [len(event.findall("modify-attr")) for event in receiver.events] == [2, 1, 1]
    finally:
        world.change("drop table short")
