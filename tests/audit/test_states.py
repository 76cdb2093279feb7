"""What documents make of objects: the comparison by column finds what a replay of each object finds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from sqlalchemy import text

from eventlog.audit.state import StateComparison, rows_in
from eventlog.fold import Rules
from eventlog.opening.publisher_tables import read_readable
from eventlog.xds.text import content
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import key
from tests.laws.judge.event_steps import read_event
from tests.world.world import World

pytestmark = pytest.mark.quick

TEXTS = ("a", "b", "A&B", "<x>", "", "é ", "two\nlines", '"', None)
COLUMNS = ("fname", "lname")
LEVELS = ("success", "success", "success", "warning", "error", "")
OBJECTS = 300
State = dict[str, set[str]]


class Event(NamedTuple):
    idu: int
    text: bytes
    level: str
    is_late: bool


def events_of(idu: int, draw: random.Random, row: Sequence[str | None] | None) -> list[Event]:
    """Return events of an object; most of them leave what the table has."""
    events = [Event(idu, text_of(idu, draw), draw.choice(LEVELS), False) for _ in range(draw.randrange(4))]
    if row is None and draw.random() < 0.7:
        events.append(Event(idu, delete(idu), "success", False))
    if row is not None and draw.random() < 0.7:
        values = list(zip(COLUMNS, row, strict=True))
        attributes = "".join(replaced(name, value) for name, value in values)
        texts = [event("modify", idu, attributes)]
        if draw.random() < 0.3:
            of_row = "".join(added(name, value) for name, value in values if value is not None)
            texts = [delete(idu), event("add", idu, of_row)]
        events += [Event(idu, text, "success", False) for text in texts]
    return [each._replace(is_late=draw.random() < 0.02) for each in events]


def text_of(idu: int, draw: random.Random) -> bytes:
    kind = draw.choice(("add", "modify", "modify", "delete"))
    if kind == "delete":
        return delete(idu)
    names = draw.sample((*COLUMNS, "other"), 2)
    if kind == "add":
        return event("add", idu, "".join(added(name, draw.choice(TEXTS[:-1])) for name in names))
    return event("modify", idu, "".join(modified(name, draw) for name in names))


def event(kind: str, idu: int, attributes: str) -> bytes:
    association = f"<association>idu={idu},table=usr</association>"
    name = f'class-name="usr" event-id="eventlog:{idu}"'
    return f"<{kind} {name}>{association}{attributes}</{kind}>".encode()


def delete(idu: int) -> bytes:
    return event("delete", idu, "")


def value_of(text: str) -> str:
    return f'<value type="string">{content(text)}</value>'


def added(name: str, text: str) -> str:
    return f'<add-attr attr-name="{name}">{value_of(text)}</add-attr>'


def replaced(name: str, text: str | None) -> str:
    new = "" if text is None else f"<add-value>{value_of(text)}</add-value>"
    return f'<modify-attr attr-name="{name}"><remove-all-values/>{new}</modify-attr>'


def modified(name: str, draw: random.Random) -> str:
    former_value, next_value = (value_of(draw.choice(TEXTS[:-1])) for _ in range(2))
    removal = draw.choice(("", "<remove-all-values/>", f"<remove-value>{former_value}</remove-value>"))
    addition = draw.choice(
        ("", f"<add-value>{next_value}</add-value>", f"<add-value>{former_value}{next_value}</add-value>")
    )
    return f'<modify-attr attr-name="{name}">{removal}{addition}</modify-attr>'


def why_different(
    events: Sequence[Event], present: Sequence[str | None] | None, rows: Sequence[str], *, is_purged: bool
) -> str:
    """Return how documents and table differ about an object, by reading one event after another."""
    if "open" in rows or any(event.is_late for event in events):
        return ""
    state: State | None = {}
    operations = set[str]()
    for each in (each for each in events if each.level in ("success", "warning")):
        operation = each.text[1:2].decode()
        state = {} if state is None else state
        for name, kind, value, *_ in read_event(each.text)[2]:
            values = state.setdefault(name, set()) if kind in ("add", "remove", "clear") else set[str]()
            if kind == "add":
                values.add(value)
            elif kind == "remove":
                values.discard(value)
            else:
                values.clear()
        state = None if operation == "d" else state
        operations.add(operation)
    if not operations:
        never_left = present is not None and "finished" in rows and not events and not is_purged
        return "no document has it, and the table does" if never_left else ""
    if present is None:
        return "" if state is None else "the documents leave it, and the table does not have it"
    if state is None:
        return "the documents delete it, and the table has it"
    now = {name: {text} for name, text in zip(COLUMNS, present, strict=True) if text is not None}
    compared = (state.keys() | (now if operations != {"m"} else set())) & {*COLUMNS}
    for name in sorted(compared):
        if state.get(name, set()) != now.get(name, set()):
            return f"attribute {name} is not what the table has"
    return ""


def test_an_object_that_was_deleted_begins_again_without_its_values(world: World) -> None:
    world.user(1, fname="Jack", lname=None)
    texts = [
        event("add", 1, added("fname", "Joe") + added("lname", "Frost")),
        delete(1),
        event("add", 1, added("fname", "Jack")),
    ]
    tables = world.reader(("usr",), Rules(), XdsSettings()).tables
    with StateComparison(tables, XdsSettings(), None) as comparison, world.store.snapshot() as snapshot:
        comparison.read(
            snapshot, rows_in(snapshot, read_readable(world.engine, world.log, tables)), frozenset()
        )
        comparison.add(texts, ["success"] * 3, np.zeros(3, np.bool_))
        assert list(comparison.breaches(is_purged=False)) == []


@pytest.mark.parametrize("is_purged", [False, True])
def test_a_comparison_by_column_finds_what_a_replay_finds(world: World, *, is_purged: bool) -> None:
    draw = random.Random(is_purged)
    objects = range(1, OBJECTS + 1)
    present = {n: tuple(draw.choice(TEXTS) for _ in COLUMNS) for n in objects if draw.random() < 0.8}
    with world.engine.begin() as connection:
        values = [{"n": n, "f": row[0], "l": row[1]} for n, row in present.items()]
        connection.execute(text("insert into usr values (:n, :f, :l)"), values)
    log_rows = [
        {"status": draw.choice("SSSSW" if draw.random() < 0.95 else "NEF"), "column_name": name}
        | key(n, event_type=draw.choice((1, 8)), new_value="x")
        for n in objects
        for name in draw.sample((*COLUMNS, "idu"), draw.randrange(3))
    ]
    world.write(*log_rows)
    words: dict[int, list[str]] = {n: [] for n in objects}
    for row in log_rows:
        is_open, is_key = row["status"] in "NEF", row["column_name"] == "idu"
        words[int(row["table_key"][4:])].append("open" if is_open else "silent" if is_key else "finished")
    histories = {n: events_of(n, draw, present.get(n)) for n in objects}
    expected = {
        f"usr idu={n}": found
        for n in objects
        if (found := why_different(histories[n], present.get(n), words[n], is_purged=is_purged))
    }
    tables = world.reader(("usr",), Rules(), XdsSettings()).tables
    with StateComparison(tables, XdsSettings(), None) as comparison, world.store.snapshot() as snapshot:
        comparison.read(
            snapshot, rows_in(snapshot, read_readable(world.engine, world.log, tables)), frozenset()
        )
        unsent = {n: [*events] for n, events in histories.items() if events}
        while unsent:  # some of them at a time, those of an object in order
            portion = [unsent[n].pop(0) for n in sorted(unsent) if draw.random() < 0.9]
            unsent = {n: events for n, events in unsent.items() if events}
            are_late = np.array([each.is_late for each in portion], np.bool_)
            comparison.add([each.text for each in portion], [each.level for each in portion], are_late)
        breaches = {breach.object: breach.words for breach in comparison.breaches(is_purged=is_purged)}
    assert breaches == expected
    assert {words.split()[0] for words in expected.values()} >= {"attribute", "the"}
    assert ("no document has it, and the table does" in expected.values()) is not is_purged
