"""A receiver that misbehaves, what it made of what it took, and where its knowledge has a hole."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lxml import etree

from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.incoming import read
from tests.chaos.tracked import CALM, TrackedTable
from tests.proofs.replica import Replica
from tests.proofs.rig import events_of, first_row, last_row

MOODS = {  # how often, in percent
    "well": 76,
    "retry": 6,
    "error": 3,
    "fatal": 0.1,
    "500": 3,
    "cut": 3,
    "garbage": 3,
    "hang up": 3,
    "silence": 0.5,
    "well, then down": 4,
}
DOWN = 0.5, 2.0  # seconds
FOR_EVER = sys.maxsize
LATEST = 12  # events of an object that are shown with a contradiction
LINES = 200  # documents of one file


class Holes:
    """The holes: events of an object that never came to the receiver, and later ones that made up for them.

    After a refused, skipped or purged event, the object does not follow from documents up to its next delete.
    Only there may the receiver and the table differ.
    """

    def __init__(self) -> None:
        self._torn: dict[str, set[int]] = {}  # first rows of events that did not come, by object
        self._mended: dict[str, set[int]] = {}  # those of deletes that came

    def tear(self, key: str, row: int) -> None:
        """Note that an event of the object with that row does not come."""
        self._torn.setdefault(key, set()).add(row)

    def mend(self, key: str, row: int) -> None:
        """A delete of the object came."""
        self._mended.setdefault(key, set()).add(row)

    def open_at(self, key: str, rows: tuple[int, int] = (FOR_EVER, FOR_EVER)) -> bool:
        """Return whether a hole is open when an event with that first and last row comes, or at the end.

        A row between them may have been skipped.
        """
        first, last = rows
        latest = max((torn for torn in self._torn.get(key, ()) if torn <= last), default=None)
        if latest is None:
            return False
        return not any(latest < mended < first for mended in self._mended.get(key, ()))

    @property
    def count(self) -> int:
        """Return how many events did not come."""
        return sum(map(len, self._torn.values()))


class Witness(Replica):
    """A replica that knows of its holes, and writes what it took into files, for a second database."""

    def __init__(self, holes: Holes, folder: Path, table: TrackedTable) -> None:
        super().__init__(has_query_back=table.has_query_back)
        self.holes = holes
        self._table = table
        self.reported: list[tuple[str, tuple[int, int], str]] = []  # what did not fit: object, rows, words
        self._histories: dict[str, list[str]] = {}  # what came of each object, and whether it was refused
        self._refused: dict[str, set[int]] = {}  # the rows of refused events, by object
        self._read_back: set[str] = set()  # objects that are as new as a redriven event, or newer
        self._folder = folder
        self._lines: list[str] = []
        self._files = 0
        folder.mkdir()

    def take(self, event: Any) -> None:
        """Apply an event; one that does not fit is kept, with its place."""
        before = len(self.faults)
        repeats_before = self.counts["again"]
        key, row = object_of(event), first_row(event)
        if event.tag == "delete" and self._is_unsure(key):
            self.rows.setdefault(key, {})
        if self._is_redriven(event) and self.has_taken(event):  # it is read back each time that it goes
            self._event_texts[str(event.get("event-id"))] = etree.tostring(event, encoding="unicode")
        self._has_query_back = self._table.has_query_back or key in self._read_back
        if event.tag == "add" and key in self._read_back:  # the later life that a redriven event had read
            self.rows.pop(key, None)
        super().take(event)
        if event.tag == "delete":
            self._read_back.discard(key)
        elif self._is_redriven(event):
            self._read_back.add(key)
        history = self._note(event, "again" if self.counts["again"] > repeats_before else "")
        rows = row, last_row(event)
        self.reported += ((key, rows, f"{words}; came of it: {history}") for words in self.faults[before:])
        if event.tag == "delete":
            self.holes.mend(key, row)
            if int(key) >= CALM:
                self.reported.append((key, rows, f"no writer deleted {key}; came of it: {history}"))
        if self.counts["again"] == repeats_before:
            self._keep(event)

    def _is_redriven(self, event: Any) -> bool:
        """Return whether an event has rows of one that was refused."""
        rows = range(first_row(event), last_row(event) + 1)
        return not self._refused.get(object_of(event), set()).isdisjoint(rows)

    def _is_unsure(self, key: str) -> bool:
        """Return whether a publisher that compares cannot know if the object is there: its last event was
        refused."""
        return self._table.is_compared and self._histories.get(key, [""])[-1].endswith("refused")

    def may_refuse(self, event: Any) -> bool:
        """Return whether an event may be answered with error; if the publisher compares, not a taken one."""
        return not self._table.is_compared or not self.has_taken(event)

    def refuse(self, event: Any) -> None:
        """Answer an event with error: it is not applied, which makes no hole if the publisher compares.

        If the event was taken before, a later repeat of its rows changes nothing.
        """
        self._note(event, "refused")
        refused = self._refused.setdefault(object_of(event), set())
        refused.update(range(first_row(event), last_row(event) + 1))
        if not self._table.is_compared:
            self.holes.tear(object_of(event), first_row(event))

    def contradictions(self) -> list[tuple[str, tuple[int, int], str]]:
        """Return what did not fit without a hole: the object, the event's first and last row, and why."""
        return [reported for reported in self.reported if not self.holes.open_at(*reported[:2])]

    def files(self, *, all_of_them: bool = False) -> Sequence[Path]:
        """Return what was taken, in files that no longer change."""
        if all_of_them and self._lines:
            self._write()
        return sorted(self._folder.glob("*.xml"))

    def _note(self, event: Any, became: str) -> str:
        """Note what came of an object; the latest of it."""
        history = self._histories.setdefault(object_of(event), [])
        history.append(f"{event.tag} {event.get('event-id').partition(':')[2]} {became}".rstrip())
        return ", ".join(history[-LATEST:])

    def _keep(self, event: Any) -> None:
        body = etree.tostring(event, encoding="unicode", with_tail=False)
        self._lines.append(f'<nds dtdversion="4.0"><input>{body}</input></nds>\n')
        if len(self._lines) >= LINES:
            self._write()

    def _write(self) -> None:
        self._files += 1
        aside = self._folder / "unfinished"
        aside.write_text("".join(self._lines))
        aside.rename(self._folder / f"{self._files:08}.xml")
        self._lines = []


class Moody:
    """A moody receiver: it mostly answers well; sometimes it refuses, fails, hangs up, is silent or down."""

    def __init__(self, witness: Witness, dice: random.Random, errors: float, received: Archive) -> None:
        self._witness, self._dice, self._received = witness, dice, received
        self._moods = MOODS | {"error": errors}
        self._lock = threading.Lock()
        self.answers: Counter[str] = Counter()
        self.well = False  # from now on
        self._is_up_at = 0.0

    def __call__(self, handler: Any) -> None:
        with self._lock:
            is_down = time.monotonic() < self._is_up_at
            (mood,) = self._dice.choices([*self._moods], [*self._moods.values()])
            mood = "well" if self.well else "down" if is_down else mood
            if mood == "well, then down":
                self._is_up_at = time.monotonic() + self._dice.uniform(*DOWN)
            self.answers[mood] += 1
            taken, reported = self._judge(mood, events_of(handler.document))
            for event in taken:
                self._witness.take(event)
            statuses = "".join(f'<status level="{mood}" event-id="{name}"/>' for name in reported)
            if taken or reported:
                reply = f"<nds><output>{statuses}</output></nds>".encode() if reported else b""
                keep(
                    self._received,
                    handler.document.encode(),
                    "success" if mood.startswith("well") else "",
                    reply,
                )
        {
            "500": lambda: handler.reply(b"", status=500),
            "down": lambda: handler.reply(b"", status=503),
            "cut": lambda: handler.reply(b"<nds><out", length=100),
            "garbage": lambda: handler.reply(b"garbage"),
            "hang up": handler.connection.close,
            "silence": lambda: time.sleep(2.5),
        }.get(mood, lambda: handler.reply(f"<nds><output>{statuses}</output></nds>".encode()))()

    def _judge(self, mood: str, events: list[Any]) -> tuple[list[Any], list[str]]:
        """Return what is taken of a document, and the events that are reported."""
        if mood in ("retry", "error", "fatal"):
            reported_events = [event for event in events if self._dice.random() < 0.4] or events[:1]
            if mood != "retry":
                reported_events = [event for event in reported_events if self._witness.may_refuse(event)][:1]
                for event in reported_events:
                    self._witness.refuse(event)
            names = [str(event.get("event-id")) for event in reported_events]
            return [event for event in events if event not in reported_events], names
        if mood in ("500", "down") or (not mood.startswith("well") and self._dice.random() < 0.5):
            return [], []
        return events, []  # without an answer the publisher cannot know it


def keep(received: Archive, document: bytes, level: str, reply: bytes = b"") -> None:
    """Keep a document that was taken, with its answer, for the audit at the end."""
    received.keep(datetime.now(UTC).isoformat(), document, read(document), level, reply)


def object_of(event: Any) -> str:
    """Return the key of the object of an event."""
    return str(event.findtext("association")).partition(",")[0].partition("=")[2]
