"""A table that writers change in every way, and a receiver's replica of it, made of events alone."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

from lxml import etree
from sqlalchemy import text

from eventlog.sql.capture.track import track
from eventlog.sql.relation import Choice
from tests.world.rig import Rig, events_of

COLUMNS = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
KEYS = 12
Row = dict[str, str]  # values by column; what is null is not in it


class WritersOfRows(Rig):
    """A set of writers that insert, change, rename, delete and insert again the rows of a few hot keys."""

    keys = KEYS
    choice: Choice | None = Choice(insert=1, update=2)  # None: a table without triggers

    def prepare(self) -> None:
        columns = ", ".join(f"{column} varchar(40)" for column in COLUMNS)
        with self.engine.begin() as connection:
            connection.execute(text(f"create table usr (idu integer primary key, {columns})"))
        if self.choice is not None:
            track(self.engine, self.log, "usr", self.choice)

    def transaction(self, connection: Any, dice: random.Random) -> None:
        for _ in range(dice.randint(1, 4)):
            self._step(connection, dice)
            if dice.random() < 0.2:
                undone = connection.begin_nested()
                self._step(connection, dice)
                undone.rollback()
            time.sleep(dice.random() * 0.03)
        connection.rollback() if dice.random() < 0.15 else connection.commit()
        time.sleep(dice.random() * 0.2)

    def _step(self, connection: Any, dice: random.Random) -> None:
        """One statement; a key that is there already costs the transaction."""
        columns = value_by_column(dice)
        columns_to_change = dice.sample(COLUMNS, dice.randint(1, 3))
        changed = ", ".join(f"{column} = :{column}" for column in columns_to_change)
        marks = ", ".join(f":{column}" for column in COLUMNS)
        statement = dice.choices(
            (
                f"insert into usr values (:idu, {marks})",
                f"update usr set {changed} where idu = :idu",
                "update usr set idu = :other where idu = :idu",
                "delete from usr where idu = :idu",
                f"update usr set {changed} where idu between :idu and {self.keys}",
            ),
            (5, 6, 1, 3, 0.3),
        )[0]
        keys = {"idu": int(dice.random() ** 2 * self.keys), "other": dice.randrange(self.keys)}
        parameters = {name: value for name, value in (columns | keys).items() if f":{name}" in statement}
        connection.execute(text(statement), parameters)

    def rows(self) -> dict[str, Row]:
        """Return the rows of the table."""
        with self.engine.connect() as connection:
            rows = connection.execute(text("select * from usr")).all()
        return {str(idu): _without_nulls(zip(COLUMNS, values, strict=True)) for idu, *values in rows}


class Replica:
    """A receiver's copy of the table. Each event must fit; repeats are passed over."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._event_texts: dict[str, str] = {}
        self._lock = threading.Lock()

    def take(self, event: Any) -> None:
        """Apply an event; what does not fit is kept as a fault."""
        event_id, body = str(event.get("event-id")), etree.tostring(event, encoding="unicode")
        with self._lock:
            if event_id in self._event_texts:
                self.counts["again"] += 1
                is_same = body == self._event_texts[event_id]
                self._expect(is_same, f"{event_id} came again with another content")
                return
            self._event_texts[event_id] = body
            self.counts[event.tag] += 1
            key = event.findtext("association").partition(",")[0].partition("=")[2]
            getattr(self, f"_{event.tag}")(key, event, event_id)

    def _add(self, key: str, event: Any, event_id: str) -> None:
        self._expect(key not in self.rows, f"{event_id} adds {key}, which is there")
        values = {attr.get("attr-name"): attr.findtext("value") for attr in event.iterfind("add-attr")}
        self.rows[key] = values

    def _modify(self, key: str, event: Any, event_id: str) -> None:
        row = self.rows.setdefault(key, {})
        for attr in event.iterfind("modify-attr"):
            name = attr.get("attr-name")
            removed, added = attr.findtext("remove-value/value"), attr.findtext("add-value/value")
            fits = self._removes(attr, row.get(name))
            self._expect(fits, f"{event_id} removes {removed}, {name} is {row.get(name)}")
            self.counts["removed values"] += removed is not None
            row.pop(name, None)
            if added is not None:
                row[name] = added

    def _delete(self, key: str, event: Any, event_id: str) -> None:
        self._expect(key in self.rows, f"{event_id} deletes {key}, which is not there")
        self.rows.pop(key, None)

    @staticmethod
    def _removes(attr: Any, value: str | None) -> bool:
        """Return whether a change of an attribute removes exactly the value that it has."""
        return attr.find("remove-all-values") is not None or attr.findtext("remove-value/value") == value

    def _expect(self, fits: bool, otherwise: str) -> None:
        if not fits:
            self.faults.append(otherwise)


class Moody:
    """A receiver that sometimes asks for a retry, fails, hangs up, or is silent."""

    def __init__(self, replica: Replica, dice: random.Random) -> None:
        self._replica, self._dice = replica, dice
        self.answers: Counter[str] = Counter()

    def __call__(self, handler: Any) -> None:
        moods = ("well", "retry", "500", "cut", "garbage", "hang up", "silence")
        mood = self._dice.choices(moods, (70, 8, 4, 5, 4, 5, 1))[0]
        self.answers[mood] += 1
        events = events_of(handler.document)
        if mood == "retry":
            waiting = {str(event.get("event-id")) for event in events if self._dice.random() < 0.5}
            self._take(event for event in events if event.get("event-id") not in waiting)
            reported = "".join(f'<status level="retry" event-id="{name}"/>' for name in sorted(waiting))
            handler.reply(f"<nds><output>{reported}</output></nds>".encode())
            return
        if mood != "500" and (mood == "well" or self._dice.random() < 0.5):
            self._take(events)  # without an answer the publisher cannot know it
        {
            "well": lambda: handler.reply(b"<nds><output/></nds>"),
            "500": lambda: handler.reply(b"", status=500),
            "cut": lambda: handler.reply(b"<nds><out", length=100),
            "garbage": lambda: handler.reply(b"garbage"),
            "hang up": handler.connection.close,
            "silence": lambda: time.sleep(2.5),
        }[mood]()

    def _take(self, events: Any) -> None:
        for event in events:
            self._replica.take(event)


def value_by_column(dice: random.Random) -> dict[str, str | None]:
    """Return a value for each column."""
    return {column: _value(dice) for column in COLUMNS}


def _value(dice: random.Random) -> str | None:
    return None if dice.random() < 0.15 else f"{dice.choice(('a', 'b'))}{dice.randrange(10_000)}"


def _without_nulls(pairs: Any) -> Row:
    return {name: value for name, value in pairs if value is not None}
