"""Documents of each kind over HTTP and in topics: each corruption is named, and an honest history is not."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog.audit.delivered import DeliveredTopic
from eventlog.audit.on_record import read_log
from eventlog.embedded import Server
from eventlog.sinks.kafka import KafkaSinkSettings
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.audit.receivers import PUT, broken_at, broken_laws
from tests.kit.brokers import MOCK, addresses, own_name
from tests.kit.commands import Shell
from tests.kit.databases import EMBEDDED, Database, server_url, temporary_database
from tests.kit.receivers import serving
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

CHANGES = (
    ("insert into usr values (1, 'Jack', 'Frost'), (2, 'Eve', 'Snow \t€'), (3, 'Bob', null)",),
    ("update usr set fname = 'John' where idu = 1", "delete from usr where idu = 2"),
)
SECRET = "whsec_" + b64encode(bytes(32)).decode()
MAPPING = 'externalId = "idu"\ndisplayName = "fname"\n"name.familyName" = "lname"'
FILES = {
    "eventlog.toml": f"[tables.usr.scim]\n{MAPPING}\n",
    "secrets": SECRET,
}
KINDS = {
    "signed": ("--http-signing-file", "secrets"),
    "cloudevents-binary": ("--document", "cloudevents-binary"),
    "cloudevents-structured": ("--document", "cloudevents-structured"),
    "debezium": ("--document", "debezium"),
    "entra-bulk": ("--document", "entra-bulk"),
}


class PublishedLog:
    """A log with some changes, which are published."""

    def __init__(self, database: Database, shell: Shell) -> None:
        self.engine, self.log = database.engine(), Log(database.dialect)
        self.shell = shell.with_files(FILES)
        self._url = database.url.render_as_string(hide_password=False)
        migrate.install(self.engine, self.log)
        columns = "idu integer primary key, fname varchar(64), lname varchar(64)"
        run_statements(self.engine, f"create table usr ({columns})")
        self.run("track", "usr")

    def run(self, *words: str) -> Any:
        """Run a command; return what it prints as JSON, if it does."""
        done = self.shell.run(*words, "--url", self._url)
        assert done.code == 0, done.stderr
        return json.loads(done.stdout) if "--json" in words else None

    def publish(self, *words: str) -> None:
        """Make each change, and publish it."""
        for statements in CHANGES:
            run_statements(self.engine, *statements)
            self.publish_pending(*words)

    def publish_pending(self, *words: str) -> None:
        """Publish until no row is new, however often the receiver hangs up."""
        store = Store(self.engine, self.log)
        while read_log_letters(store) & {"N"}:
            words_of_run = ("--once", "--allow-loopback", "--retry-wait", "0.1", *words)
            self.shell.run("run", *words_of_run, "--url", self._url)

    def read(self) -> None:
        with Store(self.engine, self.log).snapshot() as snapshot:
            self.recorded = read_log(snapshot)
            ids = self.recorded.ids.tolist()
            self.objects = {int(row[0] or 0): f"usr {row[6]}" for row in snapshot.rows(ids)}


def read_log_letters(store: Store) -> set[str]:
    with store.snapshot() as snapshot:
        return {*read_log(snapshot).letters.tolist()}


class Collector:
    """A receiver that keeps each body, and hangs up instead of its first answer."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def __call__(self, handler: Any) -> None:
        self.bodies.append(handler.body)
        if len(self.bodies) == 1:
            handler.reply(b"<nds>", length=100)
        else:
            handler.reply(b"<nds><output></output></nds>", status=202)


@pytest.fixture(scope="module", params=KINDS)
def sent(
    request: pytest.FixtureRequest, embedded: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PublishedLog, list[bytes], Path]]:
    folder, collector = tmp_path_factory.mktemp("kinds"), Collector()
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url) as database,
        closing(Shell(folder)) as shell,
        serving(collector) as place,
    ):
        log = PublishedLog(database, shell)
        size = "2" if request.param in ("signed", "entra-bulk") else "1"
        log.publish("--sink", "http", "--http-url", place, "--batch-size", size, *KINDS[request.param])
        log.read()
        yield log, collector.bodies, folder
        log.engine.dispose()


@pytest.mark.slow("a publisher runs for each kind")
def test_what_was_sent_is_accused_of_nothing(sent: tuple[PublishedLog, list[bytes], Path]) -> None:
    log, bodies, folder = sent
    for receiver in PUT:
        assert broken_laws(receiver, folder, bodies, {}, log.recorded, log.objects) == set()
        assert broken_laws(receiver, folder, bodies * 2, {}, log.recorded, log.objects) == set()


def test_the_states_of_xds_alone_are_judged(sent: tuple[PublishedLog, list[bytes], Path]) -> None:
    log, bodies, folder = sent
    archive = folder / "bodies"
    archive.mkdir()
    for number, body in enumerate(bodies):
        (archive / f"{number}.xml").write_bytes(body)
    report = log.run("audit", "--delivered", str(archive), "--state", "--allow-loopback", "--json")
    assert [law["breaches"] for law in report["laws"]] == [0] * 6
    assert report["laws"][-1]["judged"] is (
        not any(body.startswith(b'{"') and b"<nds" not in body for body in bodies)
    )


ALTERED = {"delivered", "explained"}
CORRUPTIONS = {
    "another value": (b"John", b"Joan", "usr idu=1", ALTERED),
    "one letter more": (b"Frost", b"Frosty", "usr idu=1", ALTERED),
    "a value of one of two events of a document": (b"Bob", b"Rob", "usr idu=3", ALTERED),
    "another character": ("€".encode(), "£".encode(), "usr idu=2", ALTERED),
    "an event of another log": (b"eventlog:", b"eventlag:", "", ALTERED),
    "a document that was lost": (None, b"Frost", "", {"delivered"}),
}


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_corruption_is_named_at_its_object(sent: tuple[PublishedLog, list[bytes], Path], kind: str) -> None:
    log, bodies, folder = sent
    before, after, of, laws = CORRUPTIONS[kind]
    if before is None:
        corrupted = [body for body in bodies if after not in body]
    else:
        escaped = re.escape(before) + b"|" + re.escape(before.decode().encode("unicode_escape"))
        corrupted = [re.sub(escaped, lambda match: after, body) for body in bodies]
    assert corrupted != bodies
    for receiver in PUT:
        broken = broken_laws(receiver, folder, corrupted, {}, log.recorded, log.objects)
        assert {law for law, _ in broken} == laws, receiver
        assert not of or {name for _, name in broken} == {of}, receiver


@pytest.mark.slow("a publisher runs for each kind")
@pytest.mark.parametrize("document", ["xds", "cloudevents-binary", "cloudevents-structured", "debezium"])
def test_topics_of_each_kind_are_judged(embedded: Server, tmp_path: Path, document: str) -> None:
    prefix = own_name("kinds")
    topic = f"{prefix}.public.usr" if document == "debezium" else prefix
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url) as database,
        closing(Shell(tmp_path)) as shell,
        addresses(MOCK) as brokers,
    ):
        log = PublishedLog(database, shell)
        sink = ("--sink", "kafka", "--kafka-topic", prefix, "--kafka-brokers", brokers)
        log.publish(*sink, "--document", document)
        log.read()
        delivered = DeliveredTopic(topic, KafkaSinkSettings(kafka_brokers=brokers))
        delivered.mark()
        assert broken_at(delivered, log.recorded, log.objects) == set()
        assert delivered.is_whole()
        produce(brokers, topic, b'{"op":"r","source":{"position":"eventlog:1"}}')
        delivered.mark()
        assert {law for law, _ in broken_at(delivered, log.recorded, log.objects)} == {"explained"}
        log.engine.dispose()


def produce(brokers: str, topic: str, message: bytes) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers})
    producer.produce(topic, message)
    assert producer.flush(30) == 0
