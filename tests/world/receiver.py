"""A receiver that misbehaves, and keeps what it took: for the audit, and for a second database."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lxml import etree

from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.incoming import read
from tests.world.rig import events_of

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
_SILENT = ("500", "cut", "garbage", "hang up", "silence")  # without an answer the publisher cannot know
DOWN = 0.5, 2.0  # seconds
LINES = 200  # documents of one file


class Taken:
    """A record of what was taken: documents in the receiver's file, and events in files for `apply`."""

    def __init__(self, folder: Path) -> None:
        self.archive = Archive(folder / "received", keep=1 << 40)
        self.counts: Counter[str] = Counter()
        self._folder = folder / "taken"
        self._folder.mkdir()
        self._event_texts: dict[str, str] = {}
        self._lines: list[str] = []
        self._files = 0

    def take(self, document: str, events: Iterable[Any], level: str, reply: bytes = b"") -> None:
        """Keep a document with its answer, and the events of it that are taken; a repeat is passed over."""
        body = document.encode()
        self.archive.keep(datetime.now(UTC).isoformat(), body, read(body), level, reply)
        for event in events:
            name, text = event.get("event-id"), etree.tostring(event, encoding="unicode", with_tail=False)
            if self._event_texts.get(name) == text:
                self.counts["again"] += 1
                continue
            self._event_texts[name] = text
            self.counts[event.tag] += 1
            self._lines.append(f'<nds dtdversion="4.0"><input>{text}</input></nds>\n')
        if len(self._lines) >= LINES:
            self._write()

    def knows(self, event: Any) -> bool:
        """Return whether an event with that event-id was taken."""
        return event.get("event-id") in self._event_texts

    def files(self) -> Sequence[Path]:
        """Return what was taken, in files that no longer change."""
        if self._lines:
            self._write()
        return sorted(self._folder.glob("*.xml"))

    def _write(self) -> None:
        self._files += 1
        lines, self._lines = self._lines, []
        aside = self._folder / "unfinished"
        aside.write_text("".join(lines))
        aside.rename(self._folder / f"{self._files:08}.xml")


class Moody:
    """A moody receiver: it mostly answers well; sometimes it refuses, fails, hangs up, is silent or down."""

    def __init__(self, taken: Taken, dice: random.Random, errors: float) -> None:
        self._taken, self._dice = taken, dice
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
            events, names = self._judge(mood, events_of(handler.document))
            statuses = "".join(f'<status level="{mood}" event-id="{name}"/>' for name in names)
            reply = f"<nds><output>{statuses}</output></nds>".encode()
            if events or names:
                level = "" if mood in _SILENT else "success"
                self._taken.take(handler.document, events, level, reply if names else b"")
        {
            "500": lambda: handler.reply(b"", status=500),
            "down": lambda: handler.reply(b"", status=503),
            "cut": lambda: handler.reply(b"<nds><out", length=100),
            "garbage": lambda: handler.reply(b"garbage"),
            "hang up": handler.connection.close,
            "silence": lambda: time.sleep(2.5),
        }.get(mood, lambda: handler.reply(reply))()

    def _judge(self, mood: str, events: list[Any]) -> tuple[list[Any], list[str]]:
        """Return what is taken of a document, and the names of the events that are reported.

        What was taken before, without an answer, is not refused.
        """
        if mood in ("retry", "error", "fatal"):
            reported_events = [event for event in events if self._dice.random() < 0.4] or events[:1]
            if mood != "retry":
                reported_events = [event for event in reported_events if not self._taken.knows(event)][:1]
            names = [str(event.get("event-id")) for event in reported_events]
            return [event for event in events if event not in reported_events], names
        if mood in ("500", "down") or (mood in _SILENT and self._dice.random() < 0.5):
            return [], []
        return events, []
