"""Where the records of some formats stand besides files: topics of Kafka and tables of a database.

A carrier belongs to a format and is asked for by a flag of its own name. It knows nothing of the other
side of a conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eventlog import settings
from eventlog.change import Change
from eventlog.codec import Format
from eventlog.errors import Refused
from eventlog.extras import extra
from eventlog.linter import rows as linter_rows
from eventlog.linter.changes import Reader as LinterReader
from eventlog.linter.progress import START, dump_state, load_state
from eventlog.qlik import store
from eventlog.qlik.registry import Registry
from eventlog.qlik.tables import SUFFIX
from eventlog.qlik.topics import KafkaSettings
from eventlog.sql.connect import connect
from eventlog.statefile import read_state, write_state
from eventlog.tables import Tables

Answers = Iterable[Change | Refused]


@dataclass(frozen=True)
class Place:
    """A place that is no file, and the settings of the format that stands there."""

    tables: Tables
    given: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    names: tuple[str, ...] = ()  # of the database's tables
    state: Path | None = None

    def settings(self, of: type) -> Any:
        return settings.build(of, self.given)


class Carried:
    """What is read from a place, and what is to be kept once the output is out."""

    def __init__(self, answers: Answers, delivered: Callable[[], None] = lambda: None) -> None:
        self.answers = answers
        self.delivered = delivered


ReadPlace = Callable[[Format, Place], AbstractContextManager[Carried]]
WritePlace = Callable[[Iterable[Change], Format, Place], Iterator[Refused]]


def connected(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a schema registry fills, where one was named."""
    if not given.get("schema_registry"):
        return {}
    registry = Registry(given["schema_registry"])
    return {"schema_of": registry.schema_of, "register": registry.register}


@contextmanager
def _read_topics(source: Format, place: Place) -> Iterator[Carried]:
    with extra("kafka", "--kafka"):
        from eventlog.qlik.kafka import Topics

    reading = place.settings(source.settings)
    topics = Topics(place.settings(KafkaSettings), reading.encoding)
    try:
        yield Carried(topics.changes(place.tables, reading), topics.commit)
    finally:
        topics.close()


def _write_topics(changes: Iterable[Change], target: Format, place: Place) -> Iterator[Refused]:
    with extra("kafka", "--kafka"):
        from eventlog.qlik.kafka import publish

    return publish(changes, place.tables, place.settings(target.settings), place.settings(KafkaSettings))


@contextmanager
def _read_change_tables(source: Format, place: Place) -> Iterator[Carried]:
    names = [name if name.lower().endswith(SUFFIX) else name + SUFFIX for name in place.names]
    engine = connect(place.url)
    yield Carried(store.read(engine, names, place.tables, place.settings(source.settings)))


def _write_change_tables(changes: Iterable[Change], target: Format, place: Place) -> Iterator[Refused]:
    engine = connect(place.url)
    names = [f"{table.name}{SUFFIX}" for table in place.tables]
    last = store.last_sequence(engine, names, place.settings(target.settings).header_prefix)
    given = {"last_sequence": last} | dict(place.given)
    return store.write(changes, place.tables, settings.build(target.settings, given), engine)


@contextmanager
def _read_queue(source: Format, place: Place) -> Iterator[Carried]:
    """A LINTER queue, from where the last run left it."""
    (name,) = place.names or ("DISPATCH_QUEUE",)
    since = START if place.state is None else read_state(place.state, load_state, START)
    reader = LinterReader(place.tables, place.settings(source.settings).reading(), since)

    def keep() -> None:
        if place.state is not None:
            write_state(place.state, dump_state(reader.state))

    with connect(place.url).connect() as connection:
        waiting = linter_rows.rows(connection, name, since)
        reader.pass_over(waiting.past)
        yield Carried(reader.read(waiting.source), keep)


READERS: dict[tuple[str, str], ReadPlace] = {
    ("qlik-message", "kafka"): _read_topics,
    ("qlik-table", "url"): _read_change_tables,
    ("linter", "url"): _read_queue,
}
WRITERS: dict[tuple[str, str], WritePlace] = {
    ("qlik-message", "kafka"): _write_topics,
    ("qlik-table", "url"): _write_change_tables,
}
