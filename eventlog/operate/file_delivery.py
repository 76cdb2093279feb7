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
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from lxml import etree

from eventlog.core.errors import Misuse
from eventlog.core.state_versions import ANSWERS
from eventlog.files.durable import naming, need_memory, write_all
from eventlog.opening.waits import Waits
from eventlog.sinks.sink import Item, OutgoingDocument, Reply, Sink
from eventlog.xds.answers import Level, Status, match
from eventlog.xds.split import MAX_EVENT, Broken, Element, split

Chunks = Callable[[], Iterable[bytes]]


class AnswerMemory:
    """The answers, event by event, a line each, after a head; a cut last line is ignored."""

    def __init__(self, path: Path) -> None:
        need_memory(path)
        self._path = path
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        head, end, lines = text.partition("\n")
        is_begun = bool(end) or not ANSWERS.head.startswith(head)  # a kill may have cut the head
        if is_begun:
            ANSWERS.check_head(path, head)
        self.done: dict[str, str] = {}
        for line in lines.splitlines():
            try:
                event_id, level = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            self.done[str(event_id)] = str(level)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        with naming(path):
            write_all(self._file, b"\n" if is_begun else f"{ANSWERS.head.removeprefix(head)}\n".encode())

    def keep(self, levels: Iterable[tuple[str, str]]) -> None:
        """Put answers on record."""
        level_by_event = dict(levels)
        with naming(self._path):
            write_all(
                self._file, "".join(json.dumps(pair) + "\n" for pair in level_by_event.items()).encode()
            )
            os.fsync(self._file)
        self.done.update(level_by_event)

    def close(self) -> None:
        os.close(self._file)


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
            if seconds:
                limit = f" of {self._max_tries}" if self._max_tries else ""
                no_limit = "" if limit else ", without a limit of tries (--tries)"
                self._print(f"try {tries + 1}{limit} in {seconds:g} s{no_limit}")
            self._sleep(seconds)

    def _send_all(self, chunks: Iterable[bytes]) -> bool:
        """Send everything once. Return whether an event waits; it holds back the later ones of its object."""
        waiting: set[str] = set()
        for number, items in _documents(split(chunks, self._max_event), self._refuse):
            self.has_events = True
            if not self._deliver(number, items, waiting):
                return True
        return bool(waiting)

    def _deliver(self, number: int, items: Sequence[Item], waiting: set[str]) -> bool:
        """Send a document, in halves if it is too large. Return whether the next one may be sent."""
        unsent = [i for i in items if i.event_id not in self._memory.done and i.association not in waiting]
        if not unsent:
            return True
        document = OutgoingDocument(_name(number, unsent), unsent)
        reply = Reply() if self._sink.knows(document.name) else next(self._sink.deliver([document]))
        if reply.divide:
            middle = len(unsent) // 2
            return all(self._deliver(number, half, waiting) for half in (unsent[:middle], unsent[middle:]))
        waiting |= self._record_reply(unsent, reply)
        if self.fatal:
            return False
        if not reply.arrived or reply.wait is not None:
            self._sleep(reply.wait or 0.0)
            return False
        return True

    def _record_reply(self, items: list[Item], reply: Reply) -> set[str]:
        """Record the answer. Return the objects that wait."""
        if reply.fault is not None:
            self._print(f"no answer: {reply.fault}")
        statuses = [Status(Level.RETRY, None, reply.fault)] if reply.fault is not None else reply.statuses
        answer = match((item.event_id for item in items), statuses)
        settled = {e: s for e, s in answer.statuses.items() if s.level is not Level.RETRY}
        self._memory.keep((event_id, status.level.name.lower()) for event_id, status in settled.items())
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
