"""Child tables: a query-back of the parent reads the values that its children hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventlog.config import Config
from eventlog.fold import Rules
from eventlog.publishing.opening import read_readable, read_tables
from eventlog.publishing.reading import Reader
from eventlog.sql import track
from eventlog.sql.choice import Choice
from eventlog.sql.pending import Choice as Pick
from eventlog.xds.settings import XdsSettings
from tests.publisher.world import World


@pytest.fixture
def family(world: World) -> Iterator[World]:
    """Users, their phone numbers and their mail addresses, tracked as one class."""
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
    track.untrack(world.engine, world.log, "usr")
    world.change("drop table usr_phone")
    world.change("drop table usr_mail")


def texts(world: World) -> list[str]:
    """The events that the pending rows give."""
    tables = read_tables(world.engine, world.log, Config({}))
    readable = read_readable(world.engine, world.log, tables)
    with world.store.snapshot() as snapshot:
        reading = Reader(tables, readable, Rules(), XdsSettings()).pick_up(snapshot, Pick(100))
    assert reading.refused == []
    return [sending.text for sending in reading.sendings]


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
