"""`run --document debezium`: present rows and deletes, as our own reader, `apply` and Flink take them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.core import tablesfile
from eventlog.core.change import Change, Field, Op
from eventlog.core.errors import NotExpressible
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.format import read
from eventlog.sinks.debezium_documents import PresentRowWriter
from eventlog.sql.catalogue import Catalogue
from tests.kit import judges
from tests.kit.brokers import own_name
from tests.kit.receivers import Answering, receiver
from tests.kit.support import patient
from tests.publisher.brokers import TAKEN, VIOLATION, cluster
from tests.sinks.test_kafka import consumed
from tests.world.world import World, call, fresh_world, publishing

pytestmark = pytest.mark.quick

CREATE = (
    "create table person (id integer primary key, name varchar(40), born date, pay numeric(10,2),"
    " seen timestamp(6) null)"
)
ANNE = "(1, 'Anne \"A\" & <co>\\', date '1989-03-02', 327.68, timestamp '2023-11-14 22:13:20.123456')"
ROW = {
    "id": 1,
    "name": 'Anne "A" & <co>\\',
    "born": 7000,
    "pay": "AIAA",  # two bytes would be a negative number
    "seen": 1_700_000_000_123_456,
}
VALUES = {
    "id": 1,
    "name": 'Anne "A" & <co>\\',
    "born": "1989-03-02",
    "pay": "327.68",
    "seen": "2023-11-14T22:13:20.123456",
}
BEN = {"id": 2, "name": None, "born": None, "pay": None, "seen": None}


@pytest.fixture(scope="module")
def made_people(server: tuple[str, URL]) -> Iterator[World]:
    with fresh_world(server) as world:
        world.change(CREATE)
        yield world


@pytest.fixture
def people(made_people: World) -> World:
    """A log with a table of each kind of values, and two rows in it."""
    made_people.clear()
    made_people.change("delete from person")
    made_people.change(f"insert into person values {ANNE}")
    made_people.change("insert into person (id) values (2)")
    return made_people


def row(kind: int, number: int = 1, column: str | None = None, **cells: Any) -> dict[str, Any]:
    return {
        "event_type": kind,
        "table_name": "person",
        "table_key": f"id={number}",
        "column_name": column,
        **cells,
    }


def run(world: World, *words: str, **settings: str) -> Result:
    environment = {"EVENTLOG_SYNC_TABLES": "person", "EVENTLOG_RETRY_WAIT": "0", **settings}
    return call(world, "run", "--once", "--document", "debezium", *words, **environment)


def post(world: World, *words: str, answering: Answering | None = None, **settings: str) -> list[Any]:
    """Return the bodies of the requests that a run makes."""
    bodies: list[Any] = []

    def answer(handler: Any) -> None:
        assert handler.headers["Content-Type"] == "application/json"
        bodies.append(json.loads(handler.body))
        (answering or (lambda handler: handler.reply(b"")))(handler)

    with receiver(answer) as url:
        done = run(world, "--sink", "http", "--http-url", url, *words, **settings)
    assert done.exit_code == 0, done.output
    return bodies


def changes(world: World, *messages: Any) -> list[Change]:
    """Return the messages as our own reader reads them."""
    with world.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find("person").table])
    objects = [Object(number, message) for number, message in enumerate(messages)]
    items = list(read([Source("topic", "topic", (), objects)], tables, DebeziumSettings()))
    read_changes = [item for item in items if isinstance(item, Change)]
    assert read_changes == items
    return read_changes


COLUMN_CELLS: dict[int, dict[str, Any]] = {
    1: {"column": "name", "new_value": "an older name"},
    2: {"column": "name", "old_value": "a", "new_value": "an older name"},
    3: {"column": "name", "new_value": "an older name"},
    7: {"column": "name"},
    8: {"column": "name"},
}


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("kind", [1, 2, 3, 5, 6, 7, 8])
@pytest.mark.family
def test_a_row_of_each_type_is_the_present_row(people: World, kind: int) -> None:
    """Write what is in the table, not what the log holds: all columns, and none that is unknown as null."""
    people.write(row(kind, **COLUMN_CELLS.get(kind, {})), row(kind, 2, **COLUMN_CELLS.get(kind, {})))
    anne, ben = post(people)
    assert (anne["op"], anne["before"], anne["after"]) == ("r", None, ROW)
    assert (ben["op"], ben["after"]) == ("r", BEN)
    assert (anne["source"]["table"], anne["source"]["position"]) == ("person", "eventlog:1")
    assert set(people.letters().values()) == {"S"}
    first, _ = changes(people, anne, ben)
    assert (first.op, first.key, first.after) == (Op.SNAPSHOT, (("id", 1),), VALUES)


@pytest.mark.usefixtures("either_way")
def test_a_delete_is_its_key_and_rows_of_a_deleted_object_are_nothing(people: World) -> None:
    people.change("delete from person where id = 1")
    people.write(row(1, column="name", new_value="Anne"), row(4), row(6, 3))
    (delete,) = post(people)
    assert (delete["op"], delete["before"], delete["after"]) == ("d", {"id": 1}, None)
    assert list(people.letters().values()) == ["S", "S", "S"]
    (change,) = changes(people, delete)
    assert (change.op, change.key, change.before) == (Op.DELETE, (("id", 1),), {"id": 1})


@pytest.mark.usefixtures("either_way")
def test_rows_of_one_object_are_one_message_with_the_id_that_they_have_in_every_try(people: World) -> None:
    people.write(row(3, column="name", new_value="a"), row(6), row(8, column="pay"))
    busy = post(people, answering=lambda handler: handler.reply(b"", status=503))
    assert list(people.letters().values()) == ["N", "N", "N"]
    (message,) = post(people)
    assert busy[0] == message
    assert message["source"]["position"].startswith("eventlog:1-3:")


def test_what_the_receiver_refuses_is_refused_alone(people: World) -> None:
    """Take 400 as the answer to one message; try again what 500 answers."""

    def answer(handler: Any) -> None:
        refused = json.loads(handler.body)["after"]["id"] == 1
        handler.reply(b"not XDS", status=400 if refused else 200)

    people.write(row(6), row(6, 2))
    post(people, answering=answer)
    assert list(people.letters().values()) == ["E", "S"]
    (failure,) = people.failures()
    assert "400" in str(failure.reason)
    assert json.loads(str(failure.document))["after"] == ROW
    assert call(people, "redrive", "--all", EVENTLOG_SYNC_TABLES="person").exit_code == 0
    (again,) = post(people)
    assert (again["after"], again["source"]["position"]) == (ROW, "eventlog:1")


@pytest.mark.usefixtures("either_way")
def test_a_row_that_a_message_cannot_hold_is_refused_by_name(people: World) -> None:
    """Refuse what the table does not know, where that is set, and a table that is not there."""
    people.write(row(3, column="shoe", new_value="46"), row(6, 2), {**row(6), "table_name": "nothing"})
    (message,) = post(people, EVENTLOG_UNKNOWN_COLUMNS="refuse")
    assert message["after"] == BEN
    reasons = {failure.record_id: str(failure.reason) for failure in people.failures()}
    assert "shoe" in reasons[1]
    assert "nothing" in reasons[3]


@pytest.mark.usefixtures("either_way")
def test_an_unknown_column_is_no_part_of_a_row(people: World) -> None:
    people.write(row(3, column="shoe", new_value="46"))
    (message,) = post(people)
    assert message["after"] == ROW


@pytest.mark.usefixtures("either_way")
def test_a_withheld_column_is_no_part_of_a_row(people: World, tmp_path: Path) -> None:
    people.write(row(6))
    config = tmp_path / "eventlog.toml"
    config.write_text('[tables.person]\nwithhold = ["pay"]\n')
    (message,) = post(people, "--config", str(config))
    assert message["after"] == {name: value for name, value in ROW.items() if name != "pay"}


def test_a_row_with_a_column_that_nothing_can_read_is_refused_by_name() -> None:
    """Refuse rows that would lack a column, until it is withheld; a delete lacks nothing."""
    (table,) = tablesfile.read(TABLES)
    unread = replace(table.columns["pay"], unread="is kept in a file outside the database")
    fields = tuple(Field(column, after=None) for column in ("name", "born", "seen"))
    row_change = Change(Op.INSERT, None, "person", (("id", 1),), fields, current=True)
    for column, refuses in ((unread, True), (replace(unread, leaves=False), False)):
        tables = Tables([replace(table, columns={**table.columns, "pay": column})])
        writer = PresentRowWriter(tables, "eventlog")
        delete = row_change._replace(op=Op.DELETE, fields=())
        assert json.loads(writer.write(delete, "eventlog:1"))["before"] == {"id": 1}
        if refuses:
            with pytest.raises(NotExpressible, match="column pay of person is kept in a file"):
                writer.write(row_change, "eventlog:1")
        else:
            assert json.loads(writer.write(row_change, "eventlog:1"))["after"].keys() == {*VALUES} - {"pay"}
            with pytest.raises(NotExpressible, match="cut by max-changes"):
                writer.write(row_change._replace(fields=fields[:1]), "eventlog:1")


FLINK = Path(__file__).parents[1] / "formats" / "debezium" / "FlinkReads.java"


@pytest.mark.servers
def test_flink_takes_rows_and_deletes(people: World) -> None:
    jars = judges.java("flink")
    people.write(row(1, column="name", new_value="x"), row(4, 3))
    lines = [json.dumps(message).replace('"seen"', '"at"') for message in post(people)]
    command = ["java", "-cp", os.pathsep.join(jars), str(FLINK), "plain"]
    read_lines = subprocess.run(
        command,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=patient(120),
    ).stdout.splitlines()
    assert read_lines == [
        f"+I 1 {VALUES['name']} 7000 32768 1700000000123456",
        "-D 3 null null null null",
    ]


def test_preview_shows_messages(people: World, tmp_path: Path) -> None:
    config = tmp_path / "eventlog.toml"
    config.write_text('sink = "http"\nhttp-url = "http://127.0.0.1:1/"\ndocument = "debezium"\n')
    people.write(row(6))
    shown = call(people, "preview", "--config", str(config), EVENTLOG_SYNC_TABLES="person")
    assert json.loads(shown.stdout)["after"] == ROW


def taken(brokers: str, topic: str, count: int) -> list[dict[str, Any]]:
    """Return so many messages of a topic, each as a line that we read, with its event-id."""
    messages = consumed(brokers, topic, count)
    assert {message.topic() for message in messages} <= {topic}
    parts = ((json.loads(m.key()), m.value(), dict(m.headers())["event-id"].decode()) for m in messages)
    return [
        {"key": key, "value": None if value is None else json.loads(value), "id": name}
        for key, value, name in parts
    ]


def topic_of(world: World, prefix: str) -> str:
    """Return the topic of the table, which is named as Debezium names topics."""
    with world.engine.connect() as connection:
        schema = Catalogue(connection).find("person").table.schema
    return ".".join(part for part in (prefix, schema, "person") if part)


def test_a_column_that_is_added_meanwhile_is_in_the_next_row(people: World, tmp_path: Path) -> None:
    """Read the tables again before a row goes out without a column that the log names."""
    arrived: queue.Queue[Any] = queue.Queue()

    def answer(handler: Any) -> None:
        arrived.put(json.loads(handler.body))
        handler.reply(b"")

    words = ("--sync-tables", "person", "--sink", "http", "--document", "debezium")
    with receiver(answer) as url, publishing(people, tmp_path, *words, "--http-url", url):
        people.write(row(6))
        assert arrived.get(timeout=patient(60))["after"] == ROW
        people.change("alter table person add shoe integer")
        try:
            people.change("update person set shoe = 46 where id = 1")
            people.write(row(3, column="shoe", new_value="46"))
            assert arrived.get(timeout=patient(60))["after"] == ROW | {"shoe": 46}
        finally:
            people.change("alter table person drop column shoe")


def test_documents_of_a_file_are_not_sent_as_messages(people: World, tmp_path: Path) -> None:
    file = tmp_path / "documents.xml"
    file.write_text("<nds><input/></nds>")
    words = ("--sink", "http", "--http-url", "http://127.0.0.1:1/", "--document", "debezium")
    done = call(people, "deliver", str(file), *words)
    assert (done.exit_code, "these documents are XDS" in str(done.exception)) == (1, True)


TABLES = """
[tables.person]
key = ["id"]
columns.id = "integer"
columns.name = "varchar(40)"
columns.born = "date"
columns.pay = "numeric(10,2)"
columns.seen = "timestamp(6)"
"""


def apply(source: World, target: World, folder: Path, messages: list[Any]) -> None:
    """Apply messages, also those that were applied before, to the table of another database."""
    lines, tables = folder / "messages.jsonl", folder / "tables.toml"
    tables.write_text(TABLES)
    lines.write_text("".join(json.dumps(message) + "\n" for message in messages))
    words = ("--from", "debezium", "--tables", str(tables), "--to-url", target.url, str(lines))
    done = call(source, "apply", *words)
    assert done.exit_code == 0, done.output


def people_of(world: World) -> list[tuple[Any, ...]]:
    with world.engine.connect() as connection:
        return [tuple(cells) for cells in connection.execute(text("select * from person order by id"))]


@pytest.mark.slow("a consumer waits for its group")
def test_kafka_gets_keyed_rows_deletes_and_tombstones(people: World, brokers: str) -> None:
    prefix = own_name("people")
    people.write(row(6), row(6, 2), row(4, 3))
    done = run(people, "--sink", "kafka", "--kafka-brokers", brokers, "--kafka-topic", prefix)
    assert done.exit_code == 0, done.output
    assert list(people.letters().values()) == ["S", "S", "S"]
    messages = taken(brokers, topic_of(people, prefix), 4)
    by_key = {number: [m for m in messages if m["key"] == {"id": number}] for number in (1, 2, 3)}
    assert [m["value"]["after"] for m in by_key[1] + by_key[2]] == [ROW, BEN]
    delete, tombstone = by_key[3]
    assert (delete["value"]["op"], delete["value"]["before"]) == ("d", {"id": 3})
    assert (tombstone["value"], tombstone["id"]) == (None, delete["id"])


@pytest.mark.parametrize("codes", [(VIOLATION, TAKEN), (TAKEN, VIOLATION)])
def test_kafka_a_delete_goes_again_whole_if_it_or_its_tombstone_did_not_arrive(
    people: World, codes: tuple[int, ...]
) -> None:
    people.change("delete from person where id = 1")
    people.write(row(4))
    topic = topic_of(people, "people")
    with cluster() as brokers:
        brokers.create(topic)
        brokers.refuse(*codes)
        words = ("--sink", "kafka", "--kafka-brokers", brokers.address, "--kafka-topic", "people")
        letters = list[str]()
        for _ in range(2):
            run(people, *words, "--kafka-options", "batch.num.messages=1")
            letters += people.letters().values()
        assert letters == ["N", "S"]
        is_tombstone = [message.value() is None for message in brokers.messages(topic)]
    assert is_tombstone == [codes == (VIOLATION, TAKEN), False, True]


@pytest.mark.parametrize(("name", "sink"), [("a-b", "kafka"), ("a$b", "kafka"), ("a$b", "http")])
def test_two_tables_of_one_topic_are_refused(people: World, name: str, sink: str) -> None:
    """Publish nothing if a topic would have the rows of two tables; over HTTP they have none."""
    quoted = people.engine.dialect.identifier_preparer.quote(name)
    people.change(f"create table {quoted} (id integer primary key)")
    people.change("create table a_b (id integer primary key)")
    where = {"kafka": ("--kafka-brokers", "127.0.0.1:1"), "http": ("--http-url", "http://127.0.0.1:1/")}
    try:
        done = run(people, "--sync-tables", f"a_b,{name}", "--sink", sink, *where[sink])
    finally:
        people.change(f"drop table {quoted}")
        people.change("drop table a_b")
    if (name, sink) != ("a$b", "kafka"):
        assert done.exit_code == 0, done.output
        return
    assert done.exit_code != 0
    words = str(done.exception)
    assert "a_b and " in words or "a$b and " in words
    assert "have one topic, whose name ends with" in words
    assert "with another kafka-topic, or rename it" in words


STEPS = (
    "insert into person (id, name, pay) values (3, 'Cy', 1.50)",
    "update person set name = 'Ann' where id = 1",
    "delete from person where id = 2",
    "insert into person (id, name) values (2, 'Ben again')",
    "update person set id = 4 where id = 3",
    "delete from person where id = 1",
)


@pytest.mark.slow("several runs, and as many of apply")
@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("steps_a_run", [1, 6])
@pytest.mark.family
def test_what_is_applied_of_messages_is_the_table(
    server: tuple[str, URL], people: World, tmp_path: Path, steps_a_run: int
) -> None:
    """Publish what triggers log, one change or several of an object in a run, and apply it elsewhere."""
    assert call(people, "track", "person").exit_code == 0
    people.write(row(6), row(6, 2))
    messages = post(people, "--allow-loopback")
    with fresh_world(server) as target:
        target.change(CREATE)
        for start in range(0, len(STEPS), steps_a_run):
            for statement in STEPS[start : start + steps_a_run]:
                people.change(statement)
            messages += post(people, "--allow-loopback")
            apply(people, target, tmp_path, messages)
            assert people_of(target) == people_of(people)
    assert call(people, "untrack", "--discard", "person").exit_code == 0


def test_a_killed_publisher_goes_on_with_the_same_messages(people: World, tmp_path: Path) -> None:
    """Kill it before the receiver answers: nothing is lost, and what comes again has the same id and row."""
    numbers = range(10, 30)
    for number in numbers:
        people.change(f"insert into person (id, name) values ({number}, 'N{number}')")
    people.write(*(row(3, number, column="name", new_value="x") for number in numbers))
    before_kill: list[Any] = []

    def answer(handler: Any) -> None:
        before_kill.append(json.loads(handler.body))
        if len(before_kill) == 5:
            process.kill()
        handler.reply(b"")

    with receiver(answer) as url:
        words = ("--sync-tables", "person", "--sink", "http", "--http-url", url, "--document", "debezium")
        with publishing(people, tmp_path, *words) as process:
            process.wait(patient(60))
    assert len(before_kill) == 5
    after_kill = post(people, "--allow-loopback")
    sent = {message["source"]["position"]: message for message in before_kill}
    again = {message["source"]["position"]: message for message in after_kill}
    assert {**sent, **again} == {**again, **sent}
    assert [{**again, **sent}[f"eventlog:{at}"]["after"]["id"] for at in range(1, 21)] == list(numbers)
    assert set(people.letters().values()) == {"S"}
