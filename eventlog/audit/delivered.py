"""What a receiver has: folders and files of documents, topics, and the file of `eventlog receive`.

Of each document the texts of its events are taken, as they are on record. Those are the elements of XDS,
the operations of an upload to Entra, or a whole message. What may have come after the log was read is late:
`mark` is called before.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from eventlog.audit.event_text import respelled
from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.extras import extra
from eventlog.core.state_versions import ARCHIVE
from eventlog.files.document_folder import in_order
from eventlog.files.inputs import open_input
from eventlog.sinks.cloud_events import document_of
from eventlog.sinks.kafka import KafkaSinkSettings
from eventlog.xds import answers
from eventlog.xds.documents import HEAD, TAIL
from eventlog.xds.split import BEGINNING, MAX_EVENT, Broken, may_begin, split

OPERATIONS = ("add", "modify", "delete")
_CHUNK = 1 << 20
_NUMBERS = re.compile(r"([0-9]+)")
_TOPIC = "kafka:"
_SQLITE = b"SQLite format 3\0"
_HEAD, _TAIL = HEAD.encode(), TAIL.encode()
_CLOSING = {operation[:1].encode(): b"</%b>" % operation.encode() for operation in OPERATIONS}
_UPLOAD = b'"Operations":['
_ID = re.compile(rb' event-id="([^"]*)"')


class DeliveredDocument(NamedTuple):
    """A document of a receiver; what cannot be read has a fault instead of texts."""

    where: str
    stream: str  # within which documents are in order
    is_late: bool
    at: str = ""  # when it came, where the receiver keeps that
    texts: Sequence[bytes] = ()  # of its events
    levels: Sequence[str] | None = None  # of the answers to them, None where the receiver keeps none
    spelled_anew: int = 0  # events whose XML had another spelling than we write
    fault: str = ""


class DocumentFiles:
    """A folder or a file of documents.

    A folder of the files sink is read in the order in which the documents left, any other by the numbers in
    the names of its files.
    """

    def __init__(self, path: Path, max_event: int = MAX_EVENT) -> None:
        self._path = path
        self._max_event = max_event
        self._marked: frozenset[Path] = frozenset()

    def mark(self) -> None:
        """Note what is there, before the log is read."""
        self._marked = frozenset(self._files())

    def is_whole(self) -> bool:
        """Return whether nothing that came was dropped, as far as it was read."""
        return True

    def may_hold_documents(self) -> bool:
        """Return whether nothing is there yet, or a document begins in one of the files."""
        return any(map(_may_begin, self._files())) or not any(self._files())

    def documents(self) -> Iterator[DeliveredDocument]:
        """Yield the documents in the order in which they came."""
        for path in self._in_order():
            where = str(path.relative_to(self._path)) if self._path.is_dir() else path.name
            plain = DeliveredDocument(where, str(self._path), path not in self._marked)
            with open_input(str(path)) as file:
                yield from _documents_of_file(file, plain, self._max_event)

    def _in_order(self) -> list[Path]:
        """Return the files in the order in which they came."""
        by_numbers = map(str, sorted(self._files(), key=_in_numbers))
        return list(map(Path, in_order([*by_numbers], [str(self._path)])))

    def _files(self) -> Iterator[Path]:
        if not self._path.is_dir():
            yield self._path
            return
        for path in self._path.rglob("*"):
            hidden = any(part.startswith((".", "_")) for part in path.relative_to(self._path).parts)
            if not hidden and path.is_file():
                yield path


class ReceiverFile:
    """The file of `eventlog receive`."""

    def __init__(self, path: Path, max_event: int = MAX_EVENT) -> None:
        self._path = path
        self._max_event = max_event
        self._latest = 0

    def mark(self) -> None:
        self._latest = int(self._single_value("select coalesce(max(id), 0) from document"))

    def is_whole(self) -> bool:
        """Return whether the receiver has dropped no old documents."""
        return int(self._single_value("select coalesce(min(id), 1) from document")) == 1

    def documents(self) -> Iterator[DeliveredDocument]:
        query = "select id, at, body, level, reply from document order by id"
        with closing(self._connect()) as file:
            for number, at, body, level, reply in file.execute(query):
                plain = DeliveredDocument(f"document {number}", str(self._path), number > self._latest, at)
                statuses = _statuses(reply)
                for document in _documents(body, plain, self._max_event):
                    yield document._replace(levels=_levels(document.texts, level, statuses))

    def _single_value(self, query: str) -> str:
        try:
            with closing(self._connect()) as file:
                ARCHIVE.check(self._path, file.execute("pragma user_version").fetchone()[0])
                return str(file.execute(query).fetchone()[0])
        except sqlite3.Error as fault:
            raise Misuse(f"{self._path}: no file of `eventlog receive`: {fault}") from fault

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)


class DeliveredTopic:
    """A topic of the kafka sink; each of its messages is a document, and each partition is in order."""

    def __init__(self, topic: str, settings: KafkaSinkSettings, max_event: int = MAX_EVENT) -> None:
        with extra("kafka", "reading a topic"):
            from eventlog.clients.topic_reader import Topics
        names = ("kafka_brokers", "kafka_timeout", "kafka_options")
        client = {name: getattr(settings, name) for name in names}
        self._topics = Topics(KafkaSettings(kafka=topic, **client), encoding="avro")  # bytes as they are
        self._max_event = max_event
        self._ends: dict[tuple[str, int], int] = {}
        self._has_gaps = False

    def mark(self) -> None:
        self._ends = {at: offsets.high for at, offsets in self._topics.spots().items()}

    def is_whole(self) -> bool:
        """Return whether the brokers have deleted no message, and compacted none that was read."""
        return not self._has_gaps and all(offsets.low == 0 for offsets in self._topics.spots().values())

    def documents(self) -> Iterator[DeliveredDocument]:
        for at, offsets in self._topics.spots().items():
            partition, next_offset = f"{at[0]}[{at[1]}]", offsets.low
            for message in self._topics.between(at, offsets.low, offsets.high).records:
                where = f"{partition}:{message.where}"
                if isinstance(message, Refused):
                    yield DeliveredDocument(where, partition, False, fault=f"{where}: {message.reason}")
                    continue
                self._has_gaps |= message.where != next_offset
                next_offset = message.where + 1
                plain = DeliveredDocument(where, partition, message.where >= self._ends.get(at, 0))
                if message.value is not None:  # else a tombstone
                    yield from _documents(message.value, plain, self._max_event)


Delivered = DocumentFiles | ReceiverFile | DeliveredTopic


def receiver_at(name: str, kafka: KafkaSinkSettings, max_event: int = MAX_EVENT) -> Delivered:
    """Return the receiver of this name: a folder, a file, or a topic."""
    if name.startswith(_TOPIC):
        return DeliveredTopic(name.removeprefix(_TOPIC), kafka, max_event)
    path = Path(name)
    if not path.exists():
        raise Misuse(f"{name}: no such file or folder")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                return ReceiverFile(path, max_event)
    files = DocumentFiles(path, max_event)
    if not files.may_hold_documents():
        raise Misuse(f"{name} holds no documents: name the folder or file of what the receiver has")
    return files


def _documents(body: bytes, plain: DeliveredDocument, max_event: int) -> Iterator[DeliveredDocument]:
    """Yield the document in a body or a message; one in another form is read in parts."""
    texts = _texts(document_of(body))
    if texts is not None:
        yield plain._replace(texts=texts)
    else:
        yield from _parsed([document_of(body)], plain, max_event)


def _documents_of_file(
    file: IO[bytes], plain: DeliveredDocument, max_event: int
) -> Iterator[DeliveredDocument]:
    """Yield the documents of a file: line by line as long as each line is a document in our form."""
    lines = io.BufferedReader(file, _CHUNK) if isinstance(file, io.RawIOBase) else file
    while line := lines.readline(max_event):
        texts = _texts(document_of(line))
        if texts is None:
            chunks = chain([line], iter(lambda: lines.read(_CHUNK), b""))
            yield from _parsed(chunks, plain, max_event)
            return
        yield plain._replace(texts=texts)


def _texts(document: bytes) -> list[bytes] | None:
    """Return the texts of the events of a document in the very form that we write; None if it has another."""
    text = document.strip(b"\n")
    if text.startswith(b"{"):
        return _texts_of_json(text)
    if not (text.startswith(_HEAD) and text.endswith(_TAIL)):
        return None
    texts: list[bytes] = []
    place, end = len(_HEAD), len(text) - len(_TAIL)
    while place < end:
        closing_tag = _CLOSING.get(text[place + 1 : place + 2], b"")
        last = text.find(closing_tag, place, end) if closing_tag else -1
        if last < 0:
            return None
        texts.append(text[place : last + len(closing_tag)])
        place = last + len(closing_tag)
    return texts


def _texts_of_json(text: bytes) -> list[bytes]:
    """Return the operations of an upload to Entra as they are, else the message itself."""
    begin = text.find(_UPLOAD)
    if begin < 0 or not text.endswith(b"]}"):
        return [text]
    decoder, body, texts = json.JSONDecoder(), text[begin + len(_UPLOAD) : -2].decode("utf-8", "replace"), []
    place = 0
    try:
        while place < len(body):
            _, last = decoder.raw_decode(body, place)
            texts.append(body[place:last].encode())
            place = last + 1  # after the comma
    except (ValueError, RecursionError):
        return [text]
    return texts


def _parsed(chunks: Iterable[bytes], plain: DeliveredDocument, max_event: int) -> Iterator[DeliveredDocument]:
    """Yield the events of documents in any form, each as we would write it."""
    for part in split(chunks, max_event):
        if isinstance(part, Broken):
            yield plain._replace(fault=f"{plain.where}: {part.where} cannot be read: {part.reason}")
        elif part.element.tag in OPERATIONS:
            yield plain._replace(texts=[respelled(part.element)], spelled_anew=1)


def _levels(texts: Iterable[bytes], level: str, statuses: Sequence[answers.Status]) -> list[str]:
    """Return the level of the answer to each event of a document."""
    if not statuses:
        return [level for _ in texts]
    matches = (_ID.search(text) for text in texts)
    event_ids = ["" if match is None else match[1].decode("utf-8", "replace") for match in matches]
    return [answers.match([name], statuses).statuses[name].level.name.lower() for name in event_ids]


def _statuses(reply: bytes) -> list[answers.Status]:
    """Return the statuses of an answer; none if it is no answer."""
    try:
        return answers.read(reply)
    except EventlogError:
        return []


def _may_begin(path: Path) -> bool:
    """Return whether a document begins in a file, or nothing is in the file."""
    with open_input(str(path)) as file:
        beginning = file.read(BEGINNING)
    return may_begin(beginning) or beginning.lstrip().startswith(b"{")


def _in_numbers(path: Path) -> list[tuple[int, int | str]]:
    """Return what sorts names by the numbers in them."""
    parts = _NUMBERS.split(str(path))
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]
