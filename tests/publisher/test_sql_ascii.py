"""A SQL_ASCII database stores any bytes. What is UTF-8 is published; bytes that are none cost their row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.cli import cli
from eventlog.sql.capture.check import check
from eventlog.sql.capture.track import track
from eventlog.sql.choice import Choice
from eventlog.sql.connect import connect
from tests.databases import fresh
from tests.publisher.world import Receiver, World, key

pytestmark = pytest.mark.quick

ODD = "a\udce9b"  # the byte E9 as it is read: Latin-1, not UTF-8
OPTIONS = " encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'"


@pytest.fixture
def ascii_world(server: tuple[str, URL]) -> Iterator[World]:
    name, url = server
    if not url.get_backend_name().startswith("postgresql"):
        pytest.skip("SQL_ASCII is an encoding of PostgreSQL")
    with fresh(name, url, OPTIONS) as database:
        engine = connect(database.url)
        world = World(engine, database.dialect)
        world.make()
        yield world
        engine.dispose()


@pytest.fixture
def published(ascii_world: World) -> Receiver:
    """Return what a publisher sent for rows, every second one with odd bytes."""
    world = ascii_world
    world.change('create table "été" (k text primary key, "prénom" text)')
    world.change('insert into "été" values (:k, :v), (:o, :v), (:p, :o)', k="雪", v="Zoé", o=ODD, p="p")
    world.user(1, "Zoé")
    world.user(2, ODD)
    world.write(
        {"table_name": "été", "table_key": "k=雪"},
        {"table_name": "été", "table_key": "k=p"},
        {"table_name": "été", "table_key": f"k={ODD}"},
        key(1, perpetrator=ODD),
        key(2),
        key(3, event_type=2, column_name="fname", new_value="é"),
        key(4, event_type=2, column_name="fname", old_value=ODD, new_value="é"),
        key(5, event_type=1, column_name=ODD, new_value="é"),
        key(6, table_name=ODD),
    )
    receiver = Receiver()
    with world.publisher(receiver, tables=("usr", "été")) as publisher:
        publisher.cycle()
    return receiver


def test_every_row_that_a_document_can_carry_is_sent(ascii_world: World, published: Receiver) -> None:
    assert sorted(published.objects) == ["idu=1", "idu=3", "k=雪"]
    assert "".join(ascii_world.letters().values()) == "SEESESEEE"
    assert "Zoé" in published.documents[0].text


def test_what_is_odd_is_reported_and_found_again(ascii_world: World, published: Receiver) -> None:
    reasons = [failure.reason for failure in ascii_world.failures()]
    assert len(reasons) == 6
    with ascii_world.engine.connect() as connection:
        notes = [finding.what for finding in check(connection, ascii_world.log) if not finding.fault]
        found = connection.execute(
            text("select count(*) from eventlog where table_key = :k"), {"k": f"k={ODD}"}
        )
        assert found.scalar() == 1
    assert any("encoding is SQL_ASCII" in note for note in notes)


def test_commands_show_odd_bytes(ascii_world: World, published: Receiver) -> None:
    url = ascii_world.engine.url.render_as_string(hide_password=False)
    done = CliRunner().invoke(cli, ["errors", "--url", url])
    assert done.exit_code == 0, done.exception
    assert "⟨U+DCE9⟩" in done.output
    assert CliRunner().invoke(cli, ["status", "--url", url]).exit_code == 0
    assert "encoding is SQL_ASCII" in CliRunner().invoke(cli, ["check", "--url", url]).output


def test_triggers_log_the_bytes_that_are_there(ascii_world: World) -> None:
    ascii_world.change('create table "été" (k text primary key, v text)')
    track(ascii_world.engine, ascii_world.log, "été", Choice(insert=1))
    ascii_world.change('insert into "été" values (:k, :o)', k="雪=", o=ODD)
    with ascii_world.engine.connect() as connection:
        found = connection.execute(text("select table_name, table_key, new_value from eventlog")).all()
    assert [tuple(row) for row in found] == [("été", 'k="雪="', ODD)]
