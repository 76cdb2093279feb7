"""Rows of a log, documents of a publisher, and a receiver that answers by instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from lxml import etree
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.audit.delivered import DeliveredDocument
from eventlog.publisher.monitor import Monitor
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.xds.answers import Level, Status
from tests.kit.databases import own_ids

Answering = Callable[[OutgoingDocument], Reply]


class Receiver:
    """A sink that keeps what it was sent, and answers by instruction."""

    def __init__(self, answering: Answering = lambda document: ACCEPTED) -> None:
        self.answering = answering
        self.documents: list[OutgoingDocument] = []

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        for document in documents:
            reply = self.answering(document)
            if reply.arrived:
                self.documents.append(document)
            yield reply
            if not reply.arrived:
                return

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    @property
    def events(self) -> list[etree._Element]:
        return [event for document in self.documents for event in events_of(document.text)]

    @property
    def event_ids(self) -> list[str]:
        return [item.event_id for document in self.documents for item in document.items]

    @property
    def objects(self) -> list[str]:
        return [str(event.findtext("association")).partition(",")[0] for event in self.events]


class Archive(Receiver):
    """A receiver that keeps each document with its answers, also where the publisher hears none."""

    def __init__(self, answering: Callable[[OutgoingDocument], Reply] = lambda document: ACCEPTED) -> None:
        super().__init__(answering)
        self.archived: list[DeliveredDocument] = []
        self.copies = 1  # of each document

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        for document in documents:
            texts = [item.text.encode() for item in document.items]
            plain = DeliveredDocument(document.name, "", False, texts=texts, levels=["success"] * len(texts))
            self.archived.append(plain)
            reply = self.answering(document)
            self.archived.pop()
            if reply.arrived:
                levels = [_level_of(item.event_id, reply) for item in document.items]
                self.archived += [plain._replace(levels=levels)] * self.copies
            yield reply
            if not reply.arrived:
                return


def _level_of(event_id: str, reply: Reply) -> str:
    levels = [status.level.name.lower() for status in reply.statuses if status.event_id == event_id]
    return levels[0] if levels else "" if reply.fault is not None else "success"


class Crash(BaseException):
    """A kill -9, as far as one process can play it."""


def crash(document: OutgoingDocument) -> Reply:
    """Make a crash instead of an answer."""
    raise Crash


def answering(level: Level, words: str = "") -> Answering:
    """Return a function that answers each event of every document like this."""
    return lambda document: Reply([Status(level, item.event_id, words) for item in document.items])


def fail(document: OutgoingDocument) -> Reply:
    """Answer error for each event, with a reason of its own."""
    return Reply([Status(Level.ERROR, item.event_id, f"no {item.event_id}") for item in document.items])


busy = answering(Level.RETRY)


def events_of(document: str) -> list[etree._Element]:
    """Return the events of a document."""
    input_element = etree.fromstring(document.encode()).find("input")
    assert input_element is not None
    return list(input_element)


def write_rows(place: Engine | Connection, log: Log, *rows: Mapping[str, Any]) -> None:
    """Write log rows as a trigger would, of type 6 of usr by default; with an engine, in one transaction."""
    if isinstance(place, Engine):
        with place.begin() as connection:
            write_rows(connection, log, *rows)
        return
    names = log.names()
    filled = ({"event_type": 6, "table_name": "usr"} | dict(row) for row in rows)
    for columns, group in groupby(filled, key=tuple):
        into = ", ".join(names[column] for column in columns)
        marks = ", ".join(f":{name}" for name in columns)
        values = f"{own_ids(log.dialect) if 'record_id' in columns else ''}values ({marks})"
        place.execute(text(f"insert into {names['log']} ({into}) {values}"), list(group))


@contextmanager
def leading(store: Store, name: str = "test") -> Iterator[int]:
    """Lead while the block runs; yield the epoch."""
    leader = store.lead(name)
    assert leader is not None
    with leader:
        yield leader.epoch


def metrics_text(monitor: Monitor) -> str:
    """Return the numbers of a publisher as Prometheus reads them."""
    return monitor.exposition()[0].decode()


def key(number: int, **columns: Any) -> dict[str, Any]:
    """Return a row of one user."""
    return {"table_key": f"idu={number}"} | columns
