"""What receivers of each kind hold of documents, and the laws that these break."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from eventlog.audit.audit_report import AuditReport, Breach
from eventlog.audit.delivered import Delivered, DeliveredTopic, DocumentFiles, ReceiverFile
from eventlog.audit.laws import Arrivals, judge
from eventlog.audit.on_record import LogOnRecord
from eventlog.sinks.kafka import KafkaSinkSettings
from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.incoming import read as read_incoming
from tests.kit.brokers import MOCK, addresses, own_name


def broken_laws(
    receiver: str,
    folder: Path,
    documents: Iterable[bytes],
    levels: dict[int, str],  # of documents that were no success, by their numbers
    recorded: LogOnRecord,
    objects: Mapping[int, str],  # by their rows
) -> set[tuple[str, str]]:
    """Return the laws that these documents break at a kind of receiver, each with its object."""
    with PUT[receiver](folder / secrets.token_hex(4), documents, levels) as delivered:
        delivered.mark()
        return broken_at(delivered, recorded, objects)


def broken_at(
    delivered: Delivered, recorded: LogOnRecord, objects: Mapping[int, str]
) -> set[tuple[str, str]]:
    """Return the laws that a receiver breaks, each with its object; all of it can be read and is judged."""
    arrivals, report = Arrivals(recorded), EveryBreach()
    for _ in arrivals.add(delivered.documents()):
        pass
    judge(recorded, arrivals, report, "eventlog", lambda ids: objects)
    assert (report.faults, report.not_judged) == ([], 0)
    return {(b.law.name.lower(), objects.get(b.record_id, b.object)) for b in report.every}


class EveryBreach(AuditReport):
    """A report that keeps all breaches."""

    every: tuple[Breach, ...] = ()

    def add(self, breaches: Iterable[Breach]) -> None:
        self.every = (*self.every, *breaches)


@contextmanager
def in_folder(place: Path, documents: Iterable[bytes], levels: dict[int, str]) -> Iterator[Delivered]:
    """Put each document into a file of a folder."""
    place.mkdir()
    for number, document in enumerate(documents):
        (place / f"{number}.xml").write_bytes(document)
    yield DocumentFiles(place)


@contextmanager
def in_one_file(place: Path, documents: Iterable[bytes], levels: dict[int, str]) -> Iterator[Delivered]:
    """Put the documents into one file, a line each."""
    place.write_bytes(b"".join(document.strip() + b"\n" for document in documents))
    yield DocumentFiles(place)


@contextmanager
def in_archive(place: Path, documents: Iterable[bytes], levels: dict[int, str]) -> Iterator[Delivered]:
    """Put the documents into the file of `eventlog receive`."""
    with closing(Archive(place)) as archive:
        for number, document in enumerate(documents):
            level = levels.get(number, "success")
            archive.keep("2026-11-27 12:00:00", document, read_incoming(document), level, b"")
    yield ReceiverFile(place)


@contextmanager
def in_topic(place: Path, documents: Iterable[bytes], levels: dict[int, str]) -> Iterator[Delivered]:
    """Put the documents into a topic, a message each."""
    from confluent_kafka import Producer

    topic = own_name("audit")
    with addresses(MOCK) as brokers:
        producer = Producer({"bootstrap.servers": brokers})
        for document in documents:
            producer.produce(topic, document, partition=0)
        assert producer.flush(30) == 0
        yield DeliveredTopic(topic, KafkaSinkSettings(kafka_brokers=brokers))


PUT = {"folder": in_folder, "file": in_one_file, "receiver": in_archive, "topic": in_topic}
