"""Where the records of some formats stand besides files: topics of Kafka and tables of a database.

A place belongs to a format and is asked for by a flag of its own name. It knows nothing of the other
side of a conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.extras import extra
from eventlog.core.formats import Format
from eventlog.core.tables import Tables
from eventlog.files.keyed_store import KeyedStore
from eventlog.files.statefile import read_state, write_state
from eventlog.linter.changes import QueueReader as LinterReader
from eventlog.linter.progress import START, dump_state, load_state
from eventlog.places import change_tables, queues
from eventlog.places.capture_feed import CaptureFeed, is_live
from eventlog.places.registry import Registry, RegistryAccess
from eventlog.places.sql_clock import at_one_moment
from eventlog.places.topics import KafkaSettings
from eventlog.qlik.control import control_table
from eventlog.sinks.secured import authorization
from eventlog.sql.connect import connect, connect_any
from eventlog.streams.commits_feed import COMMITS, CommitsFeed
from eventlog.streams.feed import Feed
from eventlog.streams.rows_feed import RowsFeed
from eventlog.streams.settings import StreamSettings
from eventlog.streams.topics_feed import TopicsFeed

Answers = Iterable[Change | Refused]


@dataclass(frozen=True)
class Place:
    """A place that is no file, and the settings of the format that stands there."""

    tables: Tables
    given: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    names: tuple[str, ...] = ()  # of the database's tables
    state: Path | None = None
    tasks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # with the database's tables of each

    def settings(self, of: type) -> Any:
        return settings.build(of, self.given)


class FromPlace:
    """What is read from a place, and what is to be kept once the output is out."""

    def __init__(self, answers: Answers, delivered: Callable[[], None] = lambda: None) -> None:
        self.answers = answers
        self.delivered = delivered


ReadPlace = Callable[[Format, Place], AbstractContextManager[FromPlace]]
WritePlace = Callable[[Iterable[Change], Format, Place], Iterator[Refused]]


def connected(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are no values: a place on disk and, where one was named, a schema registry."""
    if not given.get("schema_registry"):
        return {"store": partial(KeyedStore, 0)}
    kafka = settings.build(KafkaSettings, given)
    access = RegistryAccess(authorization(*kafka.registry_identity), kafka.registry_ca, kafka.registry_cert)
    registry = Registry(kafka.schema_registry, access=access)
    return {
        "store": partial(KeyedStore, 0),
        "schema_of": registry.schema_of,
        "register": registry.register,
        "register_key": registry.register_key,
    }


@contextmanager
def _read_topics(source: Format, place: Place) -> Iterator[FromPlace]:
    with extra("kafka", "--kafka"):
        from eventlog.places.kafka import Topics

    reading = place.settings(source.settings)
    topics = Topics(place.settings(KafkaSettings), reading.encoding)
    try:
        changes = topics.changes(place.tables, reading, place.settings(StreamSettings))
        yield FromPlace(changes, topics.commit)
    finally:
        topics.close()


def _write_topics(changes: Iterable[Change], target: Format, place: Place) -> Iterator[Refused]:
    with extra("kafka", "--kafka"):
        from eventlog.places.kafka_writing import publish
        from eventlog.places.topic_state import read_topic_state

    writing, kafka = place.settings(target.settings), place.settings(KafkaSettings)
    known = replace(writing, memory=read_topic_state(place.tables, writing, kafka))
    return publish(changes, place.tables, known, kafka)


@contextmanager
def _read_change_tables(source: Format, place: Place) -> Iterator[FromPlace]:
    tasks = [("", place.names)] * bool(place.names) + list(place.tasks)
    reading, stream = place.settings(source.settings), place.settings(StreamSettings)
    suffixed = [(task, [_suffixed(name, reading.suffix) for name in names]) for task, names in tasks]
    engine = connect_any(place.url)
    yield FromPlace(change_tables.read_tasks(engine, suffixed, place.tables, reading, stream))


def _feed_change_tables(source: Format, place: Place, state: str | None) -> Feed:
    tasks = [("", place.names)] * bool(place.names) + list(place.tasks)
    reading, stream = place.settings(source.settings), place.settings(StreamSettings)
    engine = connect_any(place.url)
    inputs = [
        change_tables.StoredTables(
            engine, task, [_suffixed(name, reading.suffix) for name in names], place.tables, reading
        )
        for task, names in tasks
    ]
    return RowsFeed(inputs, place.tables, reading, stream, state)


def _suffixed(name: str, suffix: str) -> str:
    return name if name.lower().endswith(suffix.lower()) or control_table(name) else name + suffix


def _write_change_tables(changes: Iterable[Change], target: Format, place: Place) -> Iterator[Refused]:
    engine = connect_any(place.url)
    writing = place.settings(target.settings)
    names = [change_tables.name_of(table.schema, table.name, writing) for table in place.tables]
    last = change_tables.last_sequence(engine, names, writing.header_prefix)
    given = {"last_sequence": last} | dict(place.given)
    return change_tables.write(changes, place.tables, settings.build(target.settings, given), engine)


@contextmanager
def _read_queue(source: Format, place: Place) -> Iterator[FromPlace]:
    """A LINTER queue, from where the last run left it."""
    (name,) = place.names or ("DISPATCH_QUEUE",)
    since = START if place.state is None else read_state(place.state, load_state, START)
    reader = LinterReader(place.tables, place.settings(source.settings).reading(), since)

    def keep() -> None:
        if place.state is not None:
            write_state(place.state, dump_state(reader.state))

    with at_one_moment(connect(place.url)) as connection:
        waiting = queues.rows(connection, name, since)
        reader.pass_over(waiting.past)
        yield FromPlace(reader.read(waiting.source), keep)


READERS: dict[tuple[str, str], ReadPlace] = {
    ("qlik-message", "kafka"): _read_topics,
    ("qlik-table", "url"): _read_change_tables,
    ("linter", "url"): _read_queue,
}


def _feed_topics(source: Format, place: Place, state: str | None) -> Feed:
    with extra("kafka", "--kafka"):
        from eventlog.places.kafka import Topics

    reading = place.settings(source.settings)
    topics = Topics(place.settings(KafkaSettings), reading.encoding)
    stream = place.settings(StreamSettings)
    return TopicsFeed(topics, place.tables, topics.reading(reading), stream, state)


class _Queue:
    """One reading of a LINTER queue."""

    ended, over = False, None  # it is opened anew in each round

    def __init__(self, place: Place, source: Format, name: str, position: Any) -> None:
        since = START if position is None else load_state(position)
        self._place, self._name, self._since = place, name, since
        self._reader = LinterReader(place.tables, place.settings(source.settings).reading(), since)

    @property
    def position(self) -> Callable[[], Any]:
        mark = self._reader.mark()
        return lambda: dump_state(mark())

    def close(self) -> None:
        """Nothing is open between rounds."""

    def answers(self, growing: bool) -> Iterator[Change | Refused]:
        with at_one_moment(connect(self._place.url)) as connection:
            waiting = queues.rows(connection, self._name, self._since)
            self._reader.pass_over(waiting.past)
            yield from self._reader.read(waiting.source)


def _feed_queue(source: Format, place: Place, state: str | None) -> Feed:
    def opened(name: str, position: Any) -> _Queue:
        return _Queue(place, source, name, position)

    names = place.names or ("DISPATCH_QUEUE",)
    since = place.settings(StreamSettings).since
    return CommitsFeed(names, opened, COMMITS[source.name], since, state)


def _feed_capture(source: Format, place: Place, state: str | None) -> Feed:
    if not is_live(place.url):
        raise Misuse(f"{place.url.partition('://')[0]} is no server whose changes are captured")
    return CaptureFeed(place.url, place.names, place.tables, place.given, state)


FEEDS: dict[tuple[str, str], Callable[[Format, Place, str | None], Feed]] = {
    ("qlik-message", "kafka"): _feed_topics,
    ("qlik-table", "url"): _feed_change_tables,
    ("linter", "url"): _feed_queue,
    ("gbase", "url"): _feed_capture,
}
WRITERS: dict[tuple[str, str], WritePlace] = {
    ("qlik-message", "kafka"): _write_topics,
    ("qlik-table", "url"): _write_change_tables,
}
