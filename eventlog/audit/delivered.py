"""The events that a receiver has: folders and files of documents, and the file of `eventlog receive`.

What may have come after the log was read is marked as late: `mark` is called before.
"""

from __future__ import annotations

import hashlib
import io
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from lxml import etree

from eventlog.audit.laws import ValueStep
from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.extras import extra
from eventlog.core.tablekey import read_association
from eventlog.files.document_folder import in_order
from eventlog.files.inputs import open_input
from eventlog.sinks.cloud_events import document_of
from eventlog.sinks.kafka import KafkaSinkSettings
from eventlog.xds import answers
from eventlog.xds.documents import HEAD, TAIL
from eventlog.xds.split import BEGINNING, MAX_EVENT, Broken, may_begin, split

OPERATIONS = ("add", "modify", "delete")
_CHUNK = 1 << 20
_MARGIN = 3600.0  # seconds: clocks differ
_NUMBERS = re.compile(r"([0-9]+)")
_TOPIC = "kafka:"
_ODD = re.compile(rb"&|<[!?]")  # a parser gives such a text back in another spelling
_SQLITE = b"SQLite format 3\0"


class DeliveredEvent(NamedTuple):
    """An event of a receiver; an event that cannot be read has a fault instead."""

    where: str
    is_late: bool
    at: str  # when it came, where the receiver keeps that
    level: str
    event_id: str = ""
    operation: str = ""
    schema: str | None = None
    table: str = ""
    table_key: str = ""
    text: bytes = b""
    fault: str = ""

    @property
    def content(self) -> int:
        """Return a number that is equal for equal events."""
        return int.from_bytes(hashlib.blake2b(self.text, digest_size=7).digest(), "big")


class DocumentFiles:
    """A folder or a file of documents.

    A folder of the files sink is read in the order in which the documents left, any other by the numbers in
    the names of its files.
    """

    def __init__(self, path: Path, max_event: int = MAX_EVENT) -> None:
        self._path = path
        self._max_event = max_event
        self._marked: frozenset[Path] = frozenset()
        self._now = 0.0

    def mark(self) -> None:
        """Note what is there, before the log is read."""
        self._marked, self._now = frozenset(self._files()), time.time()

    def position(self) -> float:
        """Return the mark, after which a later audit reads on: the time in seconds."""
        return self._now

    def is_whole(self) -> bool:
        """Return whether nothing that came was dropped."""
        return True

    def may_hold_documents(self) -> bool:
        """Return whether nothing is there yet, or a document begins in one of the files."""
        return any(map(_may_begin, self._files())) or not any(self._files())

    def events(self, position: float | None = None) -> Iterator[DeliveredEvent]:
        """Yield the events in the order in which they came; those of later files if a position is given."""
        earliest = 0.0 if position is None else position - _MARGIN
        for path in self._in_order():
            if path.stat().st_mtime < earliest:
                continue
            where = str(path.relative_to(self._path)) if self._path.is_dir() else path.name
            is_late = path not in self._marked
            plain = DeliveredEvent(where, is_late, "", "success")
            with open_input(str(path)) as file:
                yield from _events_of_file(file, plain, self._max_event)

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

    def position(self) -> int:
        return self._latest

    def is_whole(self) -> bool:
        """Return whether the receiver has dropped no old documents."""
        return int(self._single_value("select coalesce(min(id), 1) from document")) == 1

    def events(self, position: int | None = None) -> Iterator[DeliveredEvent]:
        query = "select id, at, body, level, reply from document where id > ? order by id"
        with closing(self._connect()) as file:
            for number, at, body, level, reply in file.execute(query, (position or 0,)):
                plain = DeliveredEvent(f"document {number}", number > self._latest, at, level)
                yield from _events_of_document(body, plain, self._max_event, _statuses(reply))

    def _single_value(self, query: str) -> str:
        try:
            with closing(self._connect()) as file:
                return str(file.execute(query).fetchone()[0])
        except sqlite3.Error as fault:
            raise Misuse(f"{self._path}: no file of `eventlog receive`: {fault}") from fault

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)


class DeliveredTopic:
    """A topic of the kafka sink; each of its messages is a document, and each partition is in order."""

    def __init__(self, topic: str, settings: KafkaSinkSettings, max_event: int = MAX_EVENT) -> None:
        if settings.kafka_brokers is None:
            raise Misuse("a topic needs the setting kafka-brokers")
        with extra("kafka", "reading a topic"):
            from eventlog.clients.topic_reader import Topics
        names = ("kafka_brokers", "kafka_timeout", "kafka_options")
        client = {name: getattr(settings, name) for name in names}
        self._topics = Topics(KafkaSettings(kafka=topic, **client), encoding="avro")  # bytes as they are
        self._max_event = max_event
        self._ends: dict[tuple[str, int], int] = {}

    def mark(self) -> None:
        self._ends = {at: offsets.high for at, offsets in self._topics.spots().items()}

    def position(self) -> dict[str, int]:
        return {f"{topic}[{number}]": end for (topic, number), end in self._ends.items()}

    def is_whole(self) -> bool:
        """Return whether the brokers have deleted no message."""
        return all(offsets.low == 0 for offsets in self._topics.spots().values())

    def events(self, position: Mapping[str, int] | None = None) -> Iterator[DeliveredEvent]:
        for at, offsets in self._topics.spots().items():
            partition = f"{at[0]}[{at[1]}]"
            first = max(offsets.low, (position or {}).get(partition, 0))
            for message in self._topics.between(at, first, offsets.high).records:
                where = f"{partition}:{message.where}"
                if isinstance(message, Refused):
                    yield DeliveredEvent(where, False, "", "", fault=f"{message.where}: {message.reason}")
                    continue
                plain = DeliveredEvent(where, message.where >= self._ends.get(at, 0), "", "success")
                yield from _events_of_document(document_of(message.value), plain, self._max_event)


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


def read_event(event: bytes) -> tuple[str, str, list[ValueStep]]:
    """Return the class and the association of an event, and what it does to the attributes of its object."""
    compact = _COMPACT_EVENT.match(event)
    if compact is not None and not _ODD.search(event):
        compact_steps = _compact_steps(event[compact.end() : event.rindex(b"</")].decode())
        if compact_steps is not None:
            return compact["class"].decode(), compact["association"].decode(), compact_steps
    (element,) = [part.element for part in split([_ALONE % event]) if not isinstance(part, Broken)]
    steps: list[ValueStep] = []
    for attribute in element.iterchildren():
        if attribute.tag != "association":
            steps += _steps(attribute)
    return element.get("class-name") or "", element.findtext("association") or "", steps


def _steps(attribute: etree._Element) -> Iterator[ValueStep]:
    """Yield what an event does to an attribute."""
    name = attribute.get("attr-name") or ""
    if attribute.tag not in ("add-attr", "modify-attr") or not len(attribute):
        yield ValueStep(name, str(attribute.tag))
        return
    for element in [attribute] if attribute.tag == "add-attr" else attribute:
        kind = _STEPS.get(str(element.tag), str(element.tag))
        if kind == "clear":
            yield ValueStep(name, kind)
        for value in element:
            text = value.text or "" if not len(value) else "".join(map(str, value.itertext()))
            yield ValueStep(name, kind, text, value.get("type") or "", value.get("association-ref") or "")


def _compact_steps(body: str) -> list[ValueStep] | None:
    """Return the steps of an event in our form, in a fifth of a parser's time; None if it has another one."""
    steps: list[ValueStep] = []
    attribute, kind, values = "", "", 0
    tokens = _TOKENS.findall(body)
    for value_type, reference, text, name, element in tokens:
        if name:
            attribute, kind = name, "add"
        elif element == "remove-all-values/":
            steps.append(ValueStep(attribute, "clear"))
        elif element:
            kind = _STEPS.get(element, kind)
        else:
            values += 1
            steps.append(ValueStep(attribute, kind, text, value_type, reference))
    is_plain = body.count("<") == len(tokens) + values and "></add-attr>" not in body.replace(
        "</value></add-attr>", ""
    )
    return steps if is_plain else None


_TOKENS = re.compile(
    r'<(?:value type="([a-zA-Z]+)"(?: association-ref="([^"<>]*)")?>([^<>]*)</value>'
    r'|(?:add|modify)-attr attr-name="([^"<>]+)">'
    r"|(remove-value|add-value|remove-all-values/|/(?:add-attr|modify-attr|remove-value|add-value))>)"
)
_STEPS = {"add-attr": "add", "add-value": "add", "remove-value": "remove", "remove-all-values": "clear"}
_HEAD, _TAIL = HEAD.encode(), TAIL.encode()
_COMPACT_EVENT = re.compile(
    rb"<(?P<operation>add|modify|delete) class-name=\"(?P<class>[^\"<>]*)\" event-id=\"(?P<id>[^\"<>&]*)\">"
    rb"<association>(?P<association>[ -%'-;=?-~]*)</association>"
)
_SIMPLE_ASSOCIATION = re.compile(
    r"([^,;'+\"=\\<>]+=[^,;'+\"=\\<>]*),table=([^,;'+\"=\\<> ]*)(?:,schema=([^,;'+\"=\\<> ]*))?"
)
_ALONE = b"<nds><input>%s</input></nds>"


def _compact_events(document: bytes, plain: DeliveredEvent) -> list[DeliveredEvent] | None:
    """Return the events of a document in the very form that we write; None if it has another one.

    A parser would need ten times as long.
    """
    text = document.strip(b"\n")
    closing = text.count(b"</")
    if not (text.startswith(_HEAD) and text.endswith(_TAIL)) or _ODD.search(text):
        return None
    if text.count(b"<") - text.count(b"/>") != 2 * closing:
        return None
    events: list[DeliveredEvent] = []
    place, end = len(_HEAD), len(text) - len(_TAIL)
    while place < end:
        event = _COMPACT_EVENT.match(text, place, end)
        closing_tag = b"" if event is None else b"</%b>" % event[1]
        if event is None or (last := text.find(closing_tag, event.end(), end)) < 0:
            return None
        start, place = place, last + len(closing_tag)
        operation, event_id, association = (
            event[part].decode() for part in ("operation", "id", "association")
        )
        events.append(_read_event(plain, operation, event_id, association, text[start:place]))
    return events


def _read_event(
    plain: DeliveredEvent, operation: str, event_id: str, association: str, text: bytes
) -> DeliveredEvent:
    """Return an event by its parts."""
    simple = _SIMPLE_ASSOCIATION.fullmatch(association)
    try:
        key, table, schema = simple.groups() if simple else read_association(association)
    except EventlogError as fault:
        return plain._replace(fault=f"{plain.where}: event {event_id}: {fault}")
    return DeliveredEvent(*plain[:4], event_id, operation, schema, table, key, text)


def _events_of_document(
    document: bytes, plain: DeliveredEvent, max_event: int, statuses: Sequence[answers.Status] = ()
) -> Iterable[DeliveredEvent]:
    """Return the events of a document, which may have an answer each."""
    events = None if statuses else _compact_events(document, plain)
    return _events([document], plain, statuses, max_event) if events is None else events


def _events_of_file(file: IO[bytes], plain: DeliveredEvent, max_event: int) -> Iterator[DeliveredEvent]:
    """Yield the events of a file: line by line as long as each line is a document in our form."""
    lines = io.BufferedReader(file, _CHUNK) if isinstance(file, io.RawIOBase) else file
    while line := lines.readline(max_event):
        events = _compact_events(line, plain)
        if events is None:
            chunks = chain([line], iter(lambda: lines.read(_CHUNK), b""))
            yield from _events(chunks, plain, (), max_event)
            return
        yield from events


def _events(
    chunks: Iterable[bytes], plain: DeliveredEvent, statuses: Sequence[answers.Status], max_event: int
) -> Iterator[DeliveredEvent]:
    """Yield the events of documents that were answered together."""
    for part in split(chunks, max_event):
        if isinstance(part, Broken):
            yield plain._replace(fault=f"{plain.where}: {part.where} cannot be read: {part.reason}")
        elif part.element.tag in OPERATIONS:
            yield _event(part.element, plain, statuses)


def _event(
    element: etree._Element, plain: DeliveredEvent, statuses: Sequence[answers.Status]
) -> DeliveredEvent:
    event_id = element.get("event-id") or ""
    level = plain.level
    if statuses:
        level = answers.match([event_id], statuses).statuses[event_id].level.name.lower()
    text = etree.tostring(element, encoding="utf-8", with_tail=False)
    association = element.findtext("association") or ""
    return _read_event(plain._replace(level=level), str(element.tag), event_id, association, text)


def _statuses(reply: bytes) -> list[answers.Status]:
    """Return the statuses of an answer; none if it is no answer."""
    try:
        return answers.read(reply)
    except EventlogError:
        return []


def _may_begin(path: Path) -> bool:
    """Return whether a document begins in a file, or nothing is in the file."""
    with open_input(str(path)) as file:
        return may_begin(file.read(BEGINNING))


def _in_numbers(path: Path) -> list[tuple[int, int | str]]:
    """Return what sorts names by the numbers in them."""
    parts = _NUMBERS.split(str(path))
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]
