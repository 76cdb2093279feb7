"""Publishing without triggers: the replica equals the table, and nothing unchanged is sent."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lxml import etree
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.compare.digest import digest_of
from eventlog.compare.polling import gone_statement
from eventlog.core import tablesfile
from eventlog.core.tables import Column
from eventlog.core.values import Kind
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_readable, read_tables
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.object_states import StateGone, StateLost
from eventlog.sql.queries import each_side_once, unbound
from tests.compare.rig import Replica, life, rows_of
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.logs import Receiver, fail
from tests.kit.statements import run_statements
from tests.kit.tiers import drawn
from tests.sql.test_roundtrip import Changes, create, layouts
from tests.sql.tracked import Logged, Texts, Tracked, query_back, replay
from tests.world.world import World, call, fresh_world

pytestmark = pytest.mark.quick

_NAMES = itertools.count()


def test_an_event_that_waits_is_sent_as_it_was_and_what_came_later_follows(world: World) -> None:
    replica = Replica()
    world.user(1, "Jack")
    with life(world, replica, retry_wait=0) as publisher:
        replica.moods["idu=1"] = "retry"
        publisher.cycle()
        assert replica.rows == {}
        world.change("update usr set fname = 'John'")
        assert publisher.cycle() == 0  # what is on its way has Jack
        assert replica.rows["idu=1"]["fname"] == "Jack"
        assert publisher.cycle() == 1
        assert replica.rows == rows_of(world)


def test_an_object_is_left_alone_while_an_event_of_it_waits(world: World) -> None:
    replica = Replica()
    world.user(1, "Jack")
    world.user(2, "Jane")
    with life(world, replica, retry_wait=3600) as publisher:
        publisher.cycle()
        publisher.cycle()
        replica.moods["idu=1"] = "retry"
        world.change("update usr set fname = 'John' where idu = 1")
        assert publisher.cycle() == 1
        assert publisher.poll() == 0
        world.change("update usr set fname = 'Joe'")
        assert [publisher.poll(), publisher.poll()] == [1, 0]  # of the other object


def test_a_poll_logs_how_many_objects_differ(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with life(world, Replica()) as publisher:
        world.user(1)
        publisher.cycle()
        world.user(2)
        world.user(3)
        publisher.cycle()
    sentences = [record.getMessage() for record in caplog.records if record.name == "eventlog.comparing"]
    assert sentences == [
        "1 object differs from what the receiver has",
        "2 objects differ from what the receiver has",
    ]


def test_an_event_that_failed_is_sent_again_only_when_its_row_differs(world: World) -> None:
    replica = Replica()
    world.user(1, "Jack")
    with life(world, replica) as publisher:
        replica.moods["idu=1"] = "error"
        publisher.cycle()
        assert [publisher.cycle() for _ in range(3)] == [0, 0, 0]
        world.change("update usr set fname = 'John'")
        assert publisher.cycle() == 1
        assert replica.reported == {"add": 1}  # it has none, so all of it is sent
        assert replica.rows == rows_of(world)
        replica.moods["idu=1"] = "error"
        world.change("update usr set fname = 'Joe'")
        publisher.cycle()
        world.change("update usr set fname = 'John'")
        assert publisher.cycle() == 0  # it is again what the receiver has
        world.change("update usr set fname = 'Jim'")
        assert publisher.cycle() == 1
        assert replica.rows == rows_of(world)


def test_a_failed_event_stays_if_its_object_was_compared_since(world: World) -> None:
    """Leave it, because the later event brings what the object has; both would add it."""
    first = iter([True])

    def answer(document: OutgoingDocument) -> Reply:
        return fail(document) if next(first, False) else ACCEPTED

    receiver = Receiver(answer)
    with life(world, receiver) as publisher:
        world.user(1, "old", "x")
        publisher.cycle()
        world.change("update usr set fname = 'new' where idu = 1")
        publisher.poll()
        (report,) = world.redrive().reports
        publisher.send()
    assert "rows 1, 2 stay: its object was compared since" in str(report)
    values = [[value.text for value in event.iter("value")] for event in receiver.events]
    assert values == [["old", "x"], ["new", "x"]]


def test_what_failed_and_is_redriven_is_known_then(world: World) -> None:
    replica = Replica()
    world.user(1, "Jack")
    with life(world, replica) as publisher:
        replica.moods["idu=1"] = "error"
        publisher.cycle()
        publisher.cycle()
        with world.store.admin() as admin:
            admin.redrive({failed.record_id: 0 for failed in admin.failures(FailureFilter())})
        publisher.cycle()
        assert replica.rows == rows_of(world)
        world.change("update usr set fname = 'John'")
        publisher.cycle()
        assert replica.reported == {"add": 1, "modify": 1}
        assert replica.rows == rows_of(world)


def test_starts(world: World) -> None:
    replica = Replica()
    world.user(1, "Jack")
    with life(world, replica, startup_option="future") as publisher:
        publisher.cycle()
        assert replica.reported == {}
        world.user(2, "Jane")
        publisher.cycle()
        assert replica.rows == {"idu=2": {"fname": "Jane", "lname": "Frost"}}
    world.change("update usr set fname = 'John' where idu = 2")
    with life(world, replica, startup_option="future") as publisher:
        publisher.cycle()
        assert replica.rows["idu=2"]["fname"] == "Jane"
        world.change("delete from usr where idu = 1")
        world.user(3)
    replica.rows["idu=1"] = {}
    with life(world, replica, startup_option="all") as publisher:
        assert publisher.cycle() == 2
    replica.rows["idu=2"]["fname"] = "nobody knows"
    with life(world, replica, startup_option="resync") as publisher:
        assert publisher.cycle() == 2
        assert replica.rows == rows_of(world)
        assert publisher.cycle() == 0


@pytest.mark.parametrize("condition", ["1 = 1", "object_key = 'idu=1'"])
def test_a_lost_state_is_said(world: World, condition: str) -> None:
    replica = Replica()
    world.user(1)
    world.user(2)
    with life(world, replica) as publisher:
        publisher.cycle()
    world.change(f"delete from {world.log.names()['known']} where {condition}")
    with life(world, replica) as publisher, pytest.raises(StateLost, match="startup-option"):
        publisher.cycle()
    with life(world, replica, startup_option="future") as publisher:
        publisher.cycle()
        world.change("update usr set lname = 'Doe' where idu = 2")
        publisher.cycle()
    assert replica.rows == rows_of(world)


def test_a_state_without_its_table_is_said_with_the_remedy(server: tuple[str, URL]) -> None:
    with fresh_world(server) as world:
        world.user(1)
        world.change(f"drop table {world.log.names()['known']}")
        checked = call(world, "check", EVENTLOG_PUBLICATION_MODE="compare")
        assert (checked.exit_code, "eventlog_known" in checked.output) == (1, True), checked.output
        with life(world, Receiver()) as publisher, pytest.raises(StateGone, match="eventlog install"):
            publisher.cycle()
        assert call(world, "install").exit_code == 0
        with life(world, Receiver()) as publisher:
            assert publisher.cycle() == 1


def test_no_event_is_of_a_column_that_may_not_leave(world: World) -> None:
    world.user(1, "Jack", "secret")
    with life(world, Receiver(), sections={"usr": {"withhold": ["lname"]}}) as publisher:
        assert publisher.poll() == 1
    with world.engine.connect() as connection:
        names = world.log.names()
        for table in ("log", "known"):
            found = connection.execute(text(f"select * from {names[table]}")).all()
            assert "secret" not in str(found)


def test_the_command_publishes_without_triggers(postgres: Database, tmp_path: Path) -> None:
    url = postgres.address
    engine = postgres.engine()
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", url)
        run_statements(
            engine,
            "create table note (body text)",
            "create table usr (idu integer primary key, fname text, photo bytea)",
            "create table tag (name text primary key)",
            "insert into usr values (1, 'Jack', '\\xaaaa'), (2, null, null)",
            "insert into tag values ('a b')",
        )
        words: tuple[str, ...] = ("run", "--once", "--mode", "compare", "--url", url, "--batch-size", "10")
        assert shell.run(*words).code == 2  # no table is named
        done = shell.run(*words, "--sync-tables", "note")
        assert (done.code, "has no key" in done.stderr) == (1, True)
        words = (*words, "--sync-tables", "usr tag")
        done = shell.run(*words)
        assert [event.tag for event in events_of(done.stdout)] == ["add"] * 3
        assert "qqo=" in done.stdout
        run_statements(engine, "update usr set fname = 'John' where idu = 1", "delete from tag")
        delete, modify = events_of(shell.run(*words).stdout)
        assert (delete.tag, delete.get("class-name"), modify.tag) == ("delete", "tag", "modify")
        assert [attr.get("attr-name") for attr in modify.iterfind("modify-attr")] == ["fname"]
        assert shell.run(*words).stdout == ""
    engine.dispose()


def events_of(documents: str) -> list[Any]:
    """Return the events of documents, one on each line."""
    return [
        event
        for line in documents.splitlines()
        for event in etree.fromstring(line.encode()).iterfind("input/*")
    ]


VECTORS = Path(__file__).parents[2] / "examples" / "digests.jsonl"


def test_databases_make_the_published_digests(world: World) -> None:
    dialect = world.log.dialect
    with world.engine.connect() as connection:
        for line in VECTORS.read_text("utf-8").splitlines():
            vector = json.loads(line)
            columns = [replace(_column(kind), name=name) for name, kind, _ in vector["columns"]]
            texts = [one for *_, one in vector["columns"]]
            if any(isinstance(one, list) for one in texts):
                continue  # an attribute of many values is digested here
            texts = [
                one.rstrip() if c.kind is Kind.PADDED else one for c, one in zip(columns, texts, strict=True)
            ]
            marks = [dialect.values.text.format(column=f":v{number}") for number in range(len(texts))]
            asked = unbound(digest_of(dialect, zip(columns, marks, strict=True))).replace(r"\:v", ":v")
            given = {f"v{number}": one for number, one in enumerate(texts)}
            found = connection.execute(text(f"select {asked}"), given).scalar()
            assert found == vector["digest"], line


def _column(kind: str) -> Column:
    return (
        tablesfile.read(f'[tables.t]\nkey = ["k"]\ncolumns = {{ k = "text", c = "{kind}" }}\n')
        .get("t")
        .columns["c"]
    )


@settings(
    max_examples=drawn(8),
    phases=(Phase.generate,),  # each example makes a table: shrinking would take minutes,
)
@given(data=st.data())
def test_the_rows_that_comparing_logs_give_the_content_of_any_table(
    world: World, data: st.DataObject
) -> None:
    """Log random tables of every type: each poll turns the old content into the new one."""
    dialect, tracking = world.log.dialect, Tracked(world.engine, world.log)
    kinds = data.draw(layouts(dialect.name), "table")
    table = f"Odd 'table {next(_NAMES)}"
    tracking.run(create(dialect, table, kinds))
    described = tracking.described(table)
    columns = [name for name in described.columns if name not in described.key]
    schema = described.schema
    with contextlib.closing(world.engine.connect()) as connection:
        changes = Changes(data, connection, dialect, table, kinds)
        rows: list[Logged] = []
        with life(world, Receiver(), tables=f'"{schema}.{table}"') as publisher:
            for _ in range(data.draw(st.integers(1, 3), "polls")):
                for _ in range(data.draw(st.integers(1, 6), "changes")):
                    changes.change()
                connection.commit()
                differ = publisher.cycle()
                logged = tracking.logged(f"{schema}.{table}")
                assert len({row.key for row in logged}) == differ
                rows += logged
                with world.engine.connect() as now:
                    assert unsigned(replay(rows, columns)) == unsigned(query_back(now, dialect, described))
                assert publisher.cycle() == 0


def unsigned(content: dict[str, Texts]) -> dict[str, Texts]:
    """Return the content with 0 for -0: they are one number, so comparing sends no event between them."""
    return {
        key: {name: "0" if text == "-0" else text for name, text in texts.items()}
        for key, texts in content.items()
    }


@pytest.fixture
def family(world: World) -> Iterator[World]:
    """Make users and their phone numbers, without triggers."""
    world.change(
        "create table usr_phone (idu integer, phoneno varchar(20),"
        " constraint fk_phone foreign key (idu) references usr (idu))"
    )
    yield world
    world.change("drop table usr_phone")


def test_a_childs_rows_are_values_of_its_parent(family: World) -> None:
    receiver = Receiver()
    family.user(1)
    family.user(2)
    for number in ("11", "12"):
        family.change("insert into usr_phone values (1, :n)", n=number)
    with life(family, receiver, tables="usr usr_phone") as publisher:
        assert publisher.cycle() == 2
        first = receiver.events[0]
        phones = "add-attr[@attr-name='usr_phone.phoneno']/value"
        assert sorted(value.text or "" for value in first.iterfind(phones)) == ["11", "12"]
        assert publisher.cycle() == 0
        family.change("update usr_phone set phoneno = '13' where phoneno = '11'")
        family.change("insert into usr_phone values (2, '21')")
        assert publisher.cycle() == 2
        one, other = receiver.events[2:]
        reported = [(side.tag, side.findtext("value")) for side in one.iterfind("modify-attr/*")]
        assert reported == [("remove-value", "11"), ("add-value", "13")]
        assert [value.text for value in other.iterfind("modify-attr/add-value/value")] == ["21"]
        family.change("delete from usr_phone")
        family.change("delete from usr where idu = 2")
        assert publisher.cycle() == 2
        assert [event.tag for event in receiver.events[4:]] == ["delete", "modify"]
        assert publisher.cycle() == 0


def test_a_table_that_refers_to_itself_leaves_bosses_first_and_whole(world: World) -> None:
    """Send references first; only in a circle one object leaves without its reference, which follows."""
    world.change(
        "create table emp (id integer primary key, boss integer references emp (id), name varchar(9))"
    )
    bosses = {1: 2, 2: None, 3: 1, 4: 5, 5: 4, 6: None, 7: 4}
    for number in bosses:
        world.change("insert into emp values (:n, null, 'x')", n=number)
    for number, boss in bosses.items():
        world.change("update emp set boss = :b where id = :n", n=number, b=boss)
    world.change("update emp set boss = 6 where id = 6")
    replica = Replica()
    try:
        with life(world, replica, tables="emp") as publisher:
            assert publisher.cycle() == 7
            added = [(event.tag, str(event.findtext("association"))[3]) for event in replica.events]
            assert added == [("add", number) for number in "2156347"]
            assert [key for key, row in replica.rows.items() if "boss" not in row] == ["id=2", "id=5", "id=6"]
            assert publisher.cycle() == 2
            assert publisher.cycle() == 0
        path = "modify-attr/add-value/value"
        last = [value for event in replica.events[7:] for value in event.iterfind(path)]
        referred = [(value.get("type"), value.get("association-ref", "")[:4]) for value in last]
        assert referred == [("dn", "id=4"), ("dn", "id=6")]
        assert replica.reported == {"add": 7, "modify": 2}
        assert {key: row.get("boss") for key, row in replica.rows.items()} == {
            f"id={number}": None if boss is None else str(boss) for number, boss in (bosses | {6: 6}).items()
        }
    finally:
        world.change("drop table emp")


def test_a_column_that_is_new_is_reported_where_it_holds_something(world: World) -> None:
    replica = Replica()
    world.user(1)
    world.user(2)
    with life(world, replica) as publisher:
        publisher.cycle()
        try:
            world.change("alter table usr add mail varchar(20)")
            assert publisher.cycle() == 0
            world.change("update usr set mail = 'a@b' where idu = 2")
            assert publisher.cycle() == 1
            assert replica.rows["idu=2"]["mail"] == "a@b"
        finally:
            world.change("alter table usr drop column mail")
        assert publisher.cycle() == 1
        assert "mail" not in replica.rows["idu=2"]


def test_what_is_gone_is_not_looked_for_row_by_row(world: World) -> None:
    """Read each side once, also if the statistics show next to nothing to read."""
    for number in range(200):
        world.user(number)
    with life(world, Receiver()) as publisher:
        publisher.cycle()
    world.change("delete from usr where idu > 5")
    world.change(f"analyze {'' if world.log.dialect.schema.transactional else 'table '}usr")
    for number in range(6, 100):
        world.user(number)
    url = world.url
    tables = read_tables(world.engine, world.log, Config({"url": url, "sync_tables": "usr"}))
    ((table, source),) = read_readable(world.engine, world.log, tables).items()
    statement = gone_statement(world.store.queries, source)
    with world.engine.connect() as connection, each_side_once(connection, world.log.dialect):
        plan = connection.execute(text(f"explain {statement}"), {"object_table": str(table)}).all()
    reported = " ".join(str(row) for row in plan)
    assert "join buffer" not in reported
    assert "Nested Loop" not in reported
