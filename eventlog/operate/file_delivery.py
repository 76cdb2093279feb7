"""Delivers the XDS documents of a file through any sink, with the publisher's retries and memory.

It reads the file again until no event is left for a retry. It records the answers next to the file, so that
an interrupted delivery continues where it ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from eventlog.core.errors import Misuse, shortened
from eventlog.core.state_versions import ANSWERS
from eventlog.files.durable import naming, need_memory, write_all, write_whole
from eventlog.opening.waits import Waits
from eventlog.sinks.sink import Item, OutgoingDocument, Recording, Reply, Sink
from eventlog.xds.answers import FIRST_TRIES, LAST_TRIES, LONGEST_WORDS, Level, Status, match
from eventlog.xds.split import MAX_EVENT, Broken, Element, split

Chunks = Callable[[], Iterable[bytes]]
_RETRY, _SUCCESS = (level.name.lower() for level in (Level.RETRY, Level.SUCCESS))
_MOST_DROPPED = 1000  # lines of tries, before the file is written anew
_PATIENCE = 1.0  # seconds of answers that may be lost if the machine stops
_MOST_DOCUMENTS, _MOST_TEXT = 500, 4 << 20  # documents and characters that a sink gets at once
NumberedItems = tuple[int, Sequence[Item]]  # the events of a document, after its number


class KeptTry(NamedTuple):
    """An answer to an event that is no first success, as it is on record."""

    number: int  # of the try, from 1
    level: str
    at: str
    words: str


class AnswerMemory:
    """The answers, event by event, after a head: a line once an event is done, one for each answer that is no
    first success. A cut last line is ignored.
    """

    def __init__(self, path: Path) -> None:
        need_memory(path)
        self._path = path
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        head, end, lines = text.partition("\n")
        is_begun = bool(end) or not ANSWERS.head.startswith(head)  # a kill may have cut the head
        if is_begun:
            ANSWERS.check_head(path, head)
        self.done: dict[str, str] = {}
        self.tries: dict[str, list[KeptTry]] = {}
        self._dropped = 0  # lines of tries that do not count any more
        self._synced = time.monotonic()
        for line in lines.splitlines():
            try:
                event_id, level, *facts = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if [*map(type, facts)] == [int, str, str]:
                self._add_try(str(event_id), KeptTry(facts[0], str(level), facts[1], facts[2]))
            elif not facts:
                self.done[str(event_id)] = str(level)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        with naming(path):
            write_all(self._file, b"\n" if is_begun else f"{ANSWERS.head.removeprefix(head)}\n".encode())

    def keep(self, statuses: Mapping[str, Status], at: str) -> None:
        """Put answers on record that came at a time. An event with retry is not done."""
        levels = {event_id: status.level.name.lower() for event_id, status in statuses.items()}
        done = {event_id: level for event_id, level in levels.items() if level != _RETRY}
        tries = {
            event_id: KeptTry(self._last_number(event_id) + 1, level, at, _words(statuses[event_id]))
            for event_id, level in levels.items()
            if event_id in self.tries or level != _SUCCESS
        }
        self._write(_lines(done, tries.items()))
        self.done.update(done)
        for event_id, each in tries.items():
            self._add_try(event_id, each)
        if self._dropped > max(_MOST_DROPPED, len(self.done)):
            self._write_anew()

    def _last_number(self, event_id: str) -> int:
        tries = self.tries.get(event_id)
        return tries[-1].number if tries else 0

    def _add_try(self, event_id: str, each: KeptTry) -> None:
        """Add a try of an event, which keeps the first ones and the last ones."""
        tries = self.tries.setdefault(event_id, [])
        tries.append(each)
        if len(tries) > FIRST_TRIES + LAST_TRIES:
            tries.pop(FIRST_TRIES)
            self._dropped += 1

    def _write(self, lines: str) -> None:
        with naming(self._path):
            write_all(self._file, lines.encode())
        if time.monotonic() > self._synced + _PATIENCE:
            self.sync()

    def sync(self) -> None:
        """Bring what is on record to disk."""
        with naming(self._path):
            os.fsync(self._file)
        self._synced = time.monotonic()

    def _write_anew(self) -> None:
        """Replace the file by one without the tries that were dropped."""
        tries = ((event_id, each) for event_id, tries in self.tries.items() for each in tries)
        os.close(self._file)
        write_whole(self._path, f"{ANSWERS.head}\n{_lines(self.done, tries)}")
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND)
        self._dropped = 0

    def close(self) -> None:
        self.sync()
        os.close(self._file)


def _words(status: Status) -> str:
    return shortened(status.text, LONGEST_WORDS - 1)


def _lines(done: Mapping[str, str], tries: Iterable[tuple[str, KeptTry]]) -> str:
    """Return the lines of answers."""
    facts = ((event_id, each.level, each.number, each.at, each.words) for event_id, each in tries)
    return "".join(json.dumps(line) + "\n" for line in chain(done.items(), facts))


class FileDelivery:
    """One file on its way."""

    def __init__(
        self,
        sink: Sink,
        memory: AnswerMemory,
        waits: Waits,
        print_line: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        max_event: int = MAX_EVENT,
        max_tries: int | None = None,
    ) -> None:
        self.levels: Counter[str] = Counter()
        self.fatal = False
        self.is_given_up = False  # events are left after the last try
        self.has_events = False
        self._sink = sink
        self._is_recording = isinstance(sink, Recording)
        self._memory = memory
        self._waits = waits
        self._print = print_line
        self._max_event = max_event
        self._max_tries = max_tries
        self._sleep = sleep
        self._reported: set[str] = set()

    def run(self, chunks: Chunks) -> None:
        """Deliver, again and again, until everything is answered, or fatal is, or no try is left."""
        tries = 0
        while self._send_all(chunks()) and not self.fatal:
            tries += 1
            if tries == self._max_tries:
                self.is_given_up = True
                return
            seconds = self._waits.after(tries).total_seconds()
            self._memory.sync()
            if seconds:
                limit = f" of {self._max_tries}" if self._max_tries else ""
                no_limit = "" if limit else ", without a limit of tries (--tries)"
                self._print(f"try {tries + 1}{limit} in {seconds:g} s{no_limit}")
            self._sleep(seconds)

    def _send_all(self, chunks: Iterable[bytes]) -> bool:
        """Send everything once. Return whether an event waits; it holds back the later ones of its object."""
        waiting: set[str] = set()
        documents = _documents(split(chunks, self._max_event), self._refuse)
        for batch in _batches(documents, _MOST_DOCUMENTS if self._is_recording else 1):
            self.has_events = self.has_events or bool(batch)
            if not self._deliver(batch, waiting):
                return True
        return bool(waiting)

    def _deliver(self, batch: Iterable[NumberedItems], waiting: set[str]) -> bool:
        """Send documents, in halves if one is too large. Return whether the next ones may be sent."""
        documents = ((number, self._unsent(items, waiting)) for number, items in batch)
        unsent = [document for document in documents if document[1]]
        replied = 0
        for (number, items), reply in zip(unsent, self._replies(unsent), strict=False):
            replied += 1
            if reply.divide:
                middle = len(items) // 2
                parts = [(number, items[:middle])], [(number, items[middle:])], unsent[replied:]
                return all(self._deliver(part, waiting) for part in parts)
            waiting |= self._record_reply(items, reply)
            if self.fatal:
                return False
            if not reply.arrived or reply.wait is not None:
                self._memory.sync()
                self._sleep(reply.wait or 0.0)
                return False
        return replied == len(unsent)

    def _unsent(self, items: Iterable[Item], waiting: Container[str]) -> Sequence[Item]:
        return [i for i in items if i.event_id not in self._memory.done and i.association not in waiting]

    def _replies(self, unsent: Iterable[NumberedItems]) -> Iterator[Reply]:
        """Yield the reply to each document until the sink stops; of those that are out, a success."""
        documents = [OutgoingDocument(_name(number, items), items) for number, items in unsent]
        are_out = [self._sink.knows(document.name) for document in documents]
        replies = self._sink.deliver(
            [document for document, is_out in zip(documents, are_out, strict=True) if not is_out]
        )
        for is_out in are_out:
            reply = Reply() if is_out else next(replies, None)
            if reply is None:
                return
            yield reply

    def _record_reply(self, items: Sequence[Item], reply: Reply) -> set[str]:
        """Record the answer. Return the objects that wait."""
        if reply.fault is not None:
            self._print(f"no answer: {reply.fault}")
        statuses = [Status(Level.RETRY, None, reply.fault)] if reply.fault is not None else reply.statuses
        answer = match((item.event_id for item in items), statuses)
        settled = {e: s for e, s in answer.statuses.items() if s.level is not Level.RETRY}
        self._memory.keep(answer.statuses if reply.arrived else {}, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        for event_id, status in settled.items():
            self.levels[status.level.name.lower()] += 1
            if status.level >= Level.ERROR:
                self._print(f"{event_id}: {status.level.name.lower()}: {status.text}")
            self.fatal = self.fatal or status.level is Level.FATAL
        return {item.association for item in items if item.event_id not in settled}

    def _refuse(self, broken: Broken) -> None:
        if broken.where not in self._reported:
            self._reported.add(broken.where)
            self.levels["refused"] += 1
            self._print(f"{broken.where}: {broken.reason}")


def memory_of(file: Path) -> AnswerMemory:
    """Return the memory of a file's delivery."""
    try:
        return AnswerMemory(file.with_name(file.name + ".delivered"))
    except OSError as fault:
        raise Misuse(
            f"the record next to {file} cannot be written: {fault.strerror}; name one with --state"
        ) from fault


def _documents(
    elements: Iterable[Element | Broken], refuse: Callable[[Broken], None]
) -> Iterator[tuple[int, list[Item]]]:
    """Yield the events of each document, by the documents' numbers; no object twice in one."""
    number = 0
    for _, group in groupby(_readable(elements, refuse), key=lambda element: element.where.partition(",")[0]):
        batch: list[Item] = []
        for element in group:
            item = _read_item(element)
            if any(item.association == earlier_item.association for earlier_item in batch):
                number += 1
                yield number, batch
                batch = []
            batch.append(item)
        if batch:
            number += 1
            yield number, batch


def _batches(documents: Iterable[NumberedItems], max_documents: int) -> Iterator[list[NumberedItems]]:
    """Yield documents that leave together, each event once.

    Those before a fault of the file leave before it is raised.
    """
    batch, event_ids, size = list[NumberedItems](), set[str](), 0
    try:
        for number, items in documents:
            is_full = len(batch) == max_documents or size > _MOST_TEXT
            if is_full or not event_ids.isdisjoint(_event_ids(items)):
                yield batch
                batch, event_ids, size = [], set(), 0
            batch.append((number, items))
            event_ids.update(_event_ids(items))
            size += sum(len(item.text) for item in items)
    except Exception:
        yield batch
        raise
    yield batch


def _event_ids(items: Iterable[Item]) -> Iterator[str]:
    return (item.event_id for item in items)


def _readable(elements: Iterable[Element | Broken], refuse: Callable[[Broken], None]) -> Iterator[Element]:
    for element in elements:
        if isinstance(element, Broken):
            refuse(element)
        else:
            yield element


def _name(number: int, items: Iterable[Item]) -> str:
    """Return the document's place and content: what another file holds at that place is another document."""
    content = "".join(item.text for item in items)
    return f"{number:09d}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _read_item(part: Element) -> Item:
    """Return an event; one without an event-id or an object gets its place as one."""
    element = part.element
    name = element.get("event-id")
    if name is None:
        name = part.where
        element.set("event-id", name)
    association = (element.findtext("association") or "").strip() or f"({part.where})"
    text = etree.tostring(element, encoding="unicode", with_tail=False)
    return Item(name, text.replace("\r", "&#13;").replace("\n", "&#10;"), association, str(element.tag))
