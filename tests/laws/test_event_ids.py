"""An event-id is of one event: in a run all differ, and a second run over the same input has the same ones.

Inputs are written here as their sources describe them, and never by our writers. A record that comes twice is
the same event. So is a row of a full load that comes again with the same values.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventlog
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.formats.gbase.records import Number
from tests.formats.gbase.helpers import StreamBuilder
from tests.formats.linter.helpers import NAMES, end, operation
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

COLUMNS = {"id": "integer", "name": "varchar(8)"}
DESCRIBED = {"schema": "own", "key": ["id"], "number": 7, "columns": COLUMNS}
TABLES = eventlog.tables({"usr": DESCRIBED | {"linter": {"columns": {"id": "integer", "name": "char(8)"}}}})


# --- what happens


class Step(NamedTuple):
    """A row that is loaded, or that changes from one key and name to another."""

    number: int
    kind: str
    before: tuple[int, str]
    after: tuple[int, str]

    @property
    def events(self) -> list[object]:
        """Return the identities of the events; a row of a full load is identified by its values."""
        if self.kind == "load":
            return [self.after]
        return [(self.number, part) for part in range(1 + (self.kind == "move"))]


class History(NamedTuple):
    """The steps in the order in which their records come, perhaps again, and how a source states them."""

    sent: list[Step]
    choices: list[int]  # by the number of a step

    def choose(self, step: Step, count: int) -> int:
        """Return a number below `count`, always the same for a step."""
        return self.choices[step.number] % count


@st.composite
def histories(draw: st.DrawFn, *, repeats: bool = False, loads: bool = True) -> History:
    """Draw steps that can follow each other; with `repeats` the last ones may come again at any time."""
    rows: dict[int, str] = {}
    steps: list[Step] = []
    sent: list[Step] = []
    kinds = ("insert", "update", "delete", "move", *(("load",) if loads else ()))
    for number in range(draw(st.integers(1, 8))):
        kind, key, name = draw(st.sampled_from(kinds)), draw(st.integers(1, 3)), draw(st.sampled_from("ab"))
        if kind != "load" and key not in rows:
            kind = "insert"
        elif kind == "insert":
            kind = "update"
        old_name = rows.get(key, "")
        before, after = (key, old_name), (key, f"{old_name[:6]}{name}" if kind == "update" else name)
        if kind == "update" and after == before:
            after = key, "c"
        if kind == "move":
            after = next(new_key for new_key in range(4, 20) if new_key not in rows), old_name
        if kind in ("delete", "move"):
            del rows[key]
        if kind in ("insert", "update", "move"):
            rows[after[0]] = after[1]
        steps.append(Step(number, kind, before, after))
        sent.append(steps[-1])
        sent += steps[len(steps) - draw(st.integers(0, 2)) :] if repeats and draw(st.booleans()) else []
    return History(sent, draw(st.lists(st.integers(0, 11), min_size=len(steps), max_size=len(steps))))


# --- the records of each source


def _csv(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heading, *rows])
    return text.getvalue().encode()


def _lines(values: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _seq(step: Step) -> str:
    return f"2024010112000000{step.number + 1:019}"


def change_tables(history: History) -> bytes:
    """Return rows of a change table; a key change is a D and an I row in any order, or a B and a U row."""
    headers = ("change_seq", "change_oper", "change_mask", "transaction_id")
    rows = [row for step in history.sent for row in _change_rows(step, history.choose(step, 3))]
    return _csv([*(f"header__{name}" for name in headers), "id", "name"], rows)


def _change_rows(step: Step, choice: int) -> Iterator[Sequence[Any]]:
    deletion, insertion, image = ("D", "10", step.before), ("I", "30", step.after), ("B", "", step.before)
    stated = {
        "load": [("I", "", step.after)],
        "insert": [insertion],
        "update": [image, ("U", "20", step.after)],
        "delete": [deletion],
        "move": [[deletion, insertion], [insertion, deletion], [image, ("U", "10", step.after)]][choice],
    }[step.kind]
    for letter, mask, row in stated:
        seq, transaction = ("", "") if step.kind == "load" else (_seq(step), f"{step.number:032X}")
        yield seq, letter, mask, transaction, *row


def qlik_messages(history: History) -> bytes:
    """Return messages of Replicate; a key change is a DELETE and an INSERT, or an UPDATE."""
    return _lines(
        message
        for step in history.sent
        for message in _messages_of(step, is_update=history.choose(step, 2) == 0)
    )


def _messages_of(step: Step, *, is_update: bool) -> Iterator[dict[str, Any]]:
    before, after = (dict(zip(COLUMNS, row, strict=True)) for row in (step.before, step.after))
    if step.kind == "load":
        yield _message(step, "REFRESH", after)
    elif step.kind == "update":
        yield _message(step, "UPDATE", after, before, "02")
    elif step.kind == "move" and is_update:
        yield _message(step, "UPDATE", after, before, "01")
    else:
        if step.kind != "insert":
            yield _message(step, "DELETE", before, None, "01")
        if step.kind != "delete":
            yield _message(step, "INSERT", after, None, "03")


def _message(
    step: Step, operation: str, data: Any, before: Any = None, mask: str | None = None
) -> dict[str, Any]:
    is_load = mask is None
    headers = {
        "operation": operation,
        "changeSequence": "" if is_load else _seq(step),
        "timestamp": "" if is_load else "2024-01-01T12:00:00.000",
        "streamPosition": "" if is_load else "0003;4",
        "transactionId": "" if is_load else f"{step.number:032X}",
        "changeMask": mask,
        "columnMask": None if is_load else "03",
    }
    envelope = {"magic": "atMSG", "type": "DT", "headers": None, "messageSchemaId": None}
    message = {"data": data, "beforeData": before, "headers": headers}
    return envelope | {"messageSchema": None, "message": message}


def debezium_messages(history: History) -> bytes:
    """Return messages with their keys. All rows of a snapshot have one position, and so may several inserts
    and both messages of a key change have.
    """
    return _lines(line for step in history.sent for line in _debezium_lines(step, history.choices[0] % 3))


def _debezium_lines(step: Step, connector: int) -> Iterator[dict[str, Any]]:
    before, after = (dict(zip(COLUMNS, row, strict=True)) for row in (step.before, step.after))
    shared = 0 if step.kind == "load" else 1000 * (step.number // 2 + 1)  # also of two rows of a COPY
    lsn = shared if step.kind in ("load", "insert") else shared + 400 * (step.number % 2 + 1)
    place = (
        {"connector": "postgresql", "lsn": lsn},
        {"connector": "sqlserver", "change_lsn": f"27:9:{step.number + 1}", "commit_lsn": "27:9:99"},
        {"connector": "oracle", "scn": "7", "rs_id": "0x1.2.3", "ssn": step.number + 1},
    )[connector]
    source = {"schema": "own", "table": "usr", "ts_ms": 1700000000123, **place}
    if step.kind == "update":
        yield _debezium(after, {"op": "u", "before": before, "after": after, "source": source})
    if step.kind in ("delete", "move"):
        yield _debezium(before, {"op": "d", "before": before, "after": None, "source": source})
        yield _debezium(before, None)
    if step.kind in ("load", "insert", "move"):
        op = "r" if step.kind == "load" else "c"
        yield _debezium(after, {"op": op, "before": None, "after": after, "source": source})


def _debezium(row: dict[str, Any], value: Any) -> dict[str, Any]:
    return {"key": {"id": row["id"]}, "value": value}


def capture(history: History) -> bytes:
    """Return a stream of GBase with a transaction for each step; a key change is in its two images."""
    stream = StreamBuilder().table(7, "id integer, name varchar(8,0)")
    for step in history.sent:
        at, transaction = 10 * step.number + 1, step.number % 2 + 1
        stream.begin(at, transaction)
        if step.kind == "insert":
            stream.row(Number.INSERT, at + 1, transaction, 7, step.after)
        elif step.kind == "delete":
            stream.row(Number.DELETE, at + 1, transaction, 7, step.before)
        else:
            stream.row(Number.UPDBEF, at + 1, transaction, 7, step.before)
            stream.row(Number.UPDAFT, at + 2, transaction, 7, step.after)
        stream.commit(at + 3, transaction)
    return stream.data


def queue(history: History, nodes: Sequence[str] = ("DEMO",)) -> bytes:
    """Return a queue of LINTER; several nodes have journals of their own, with the same addresses."""
    rows: list[Sequence[Any]] = []
    for step in history.sent:
        before, after = (
            row[0].to_bytes(4, "little", signed=True) + row[1].ljust(8).encode()
            for row in (step.before, step.after)
        )
        typ, first, second = {
            "insert": (2, after, b""),
            "update": (3, before, after),
            "move": (3, before, after),
            "delete": (1, before, b""),
        }[step.kind]
        node = nodes[step.number % len(nodes)]
        address = 100 * (step.number // len(nodes) + 1)
        common: dict[str, Any] = {"TRANSACT_ID": step.number, "DBNODE": node}
        common |= {"DST_OWNER": "own", "DST_TABLE": "usr"}
        rows.append(operation(typ, first, second, **common, SYSLOG_ADDR=address))
        rows.append(end(**common, SYSLOG_ADDR=address + 50))
    return _csv(NAMES, [["" if cell is None else cell for cell in row] for row in rows])


def log(history: History) -> bytes:
    """Return rows of a log; a key change is a delete and an insert."""
    columns = ("event_type", "table_name", "table_key", "column_name", "old_value", "new_value")
    rows: list[Sequence[Any]] = []
    for step in history.sent:
        if step.kind in ("delete", "move"):
            rows.append((4, "usr", f"id={step.before[0]}", "", "", ""))
        if step.kind in ("insert", "move"):
            rows.append((1, "usr", f"id={step.after[0]}", "name", "", step.after[1]))
        if step.kind == "update":
            rows.append((2, "usr", f"id={step.after[0]}", "name", step.before[1], step.after[1]))
    return _csv(("record_id", *columns), ((number, *row) for number, row in enumerate(rows, 1)))


def neutral_changes(history: History) -> bytes:
    """Return changes; rows of a full load have no position, or all have one."""
    return _lines(_neutral(step, history.choices[0] % 2) for step in history.sent)


def _neutral(step: Step, choice: int) -> dict[str, Any]:
    op = {"load": "snapshot", "move": "update"}.get(step.kind, step.kind)
    sides = {"before": step.before, "after": step.after}
    if op != "update":
        del sides["after" if op == "delete" else "before"]
    fields = [
        {"column": name, **{side: row[place] for side, row in sides.items()}}
        for place, name in enumerate(COLUMNS)
    ]
    key = {"id": (step.before if op == "delete" else step.after)[0]}
    position = str(step.number) if step.kind != "load" else "7" if choice else None
    return {
        "op": op, "schema": "own", "table": "usr", "key": key, "fields": fields, "position": position
    }  # fmt: skip


# --- what runs make of them

Write = Callable[[History], bytes]
ALL, UNREPEATED = histories(repeats=True), histories()
STREAM = histories(loads=False)  # of a source that has neither loads nor repeats
SOURCES: dict[str, tuple[str, str, Write, st.SearchStrategy[History]]] = {
    "change tables": ("qlik-table", "usr__ct.csv", change_tables, ALL),
    "change tables as they are": ("qlik-table", "usr__ct.csv", change_tables, ALL),
    "messages": ("qlik-message", "usr.jsonl", qlik_messages, ALL),
    "messages as they are": ("qlik-message", "usr.jsonl", qlik_messages, ALL),
    "Debezium": ("debezium", "own.usr.jsonl", debezium_messages, ALL),
    "GBase": ("gbase", "usr.bin", capture, STREAM),
    "LINTER": ("linter", "queue.csv", queue, STREAM),
    "log": ("log", "log.csv", log, STREAM),
    "changes": ("changes", "changes.jsonl", neutral_changes, ALL),
}
NAMES_OF_TARGETS = {format_name: name for format_name, name, _, _ in SOURCES.values()}
PAIRS = [
    (source, target)
    for source in SOURCES
    for target in NAMES_OF_TARGETS
    if "as they are" not in source
    and (source, target) not in (("log", "gbase"), ("log", "linter"))  # which need whole rows
]


def changes_in(path: Path, format_name: Any, **options: Any) -> list[Change]:
    """Return the changes in a file, all of whose records can be read."""
    now: dict[str, Any] = {"now": "2024-01-01 12:00:00"} if format_name == "log" else {}
    return list(eventlog.read(path, format_name, tables=TABLES, refused=_no_fault, **now, **options))


def _no_fault(record: Refused) -> None:
    assert not record.fault, record


def event_ids(changes: Iterable[Change]) -> list[str]:
    """Return the event-ids of the documents of changes, in their order."""
    records = eventlog.records(changes, "xds", tables=TABLES)
    return [name for record in records for name in re.findall(r' event-id="(.*?)"', record.value.decode())]


def events_of(history: History, source: str) -> list[object]:
    """Return the events in the order of a run: in a sequence each change comes once, and a load follows what
    came before it.
    """
    if not ("tables" in source or "messages" in source) or "as they are" in source:
        return [event for step in history.sent for event in _in_order(step, history, source)]
    greatest = 0
    places: dict[tuple[int, int], Step] = {}
    for number, step in enumerate(history.sent, 1):
        sequence = 0 if step.kind == "load" else step.number + 1
        greatest = max(greatest, sequence)
        places.setdefault((sequence, 0) if sequence else (greatest, number), step)
    return [event for _, step in sorted(places.items()) for event in step.events]


def _in_order(step: Step, history: History, source: str) -> list[object]:
    is_turned = "tables" in source and step.kind == "move" and history.choose(step, 3) == 1
    return step.events[::-1] if is_turned else step.events


def check_ids(ids: Sequence[str], events: Sequence[object]) -> None:
    """Assert that each event has one event-id, and each event-id one event."""
    assert len(ids) == len(events)
    assert len({*zip(ids, events, strict=True)}) == len({*ids}) == len({*events}), (ids, events)


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=drawn(150))
@given(st.data(), st.integers(0, 20))
def test_an_event_id_is_of_one_event_in_each_run_and_part(
    source: str, data: st.DataObject, end_of_part: int
) -> None:
    format_name, name, write, drawn_histories = SOURCES[source]
    history = data.draw(drawn_histories)
    order = {"order": "as-is"} if "as they are" in source else {}
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(write(history))
        changes, again = (changes_in(path, format_name, **order) for _ in range(2))
    ids = event_ids(changes)
    if format_name == "log":  # which folds rows to events
        assert len({*ids}) == len(ids)
    else:
        check_ids(ids, events_of(history, source))
    assert event_ids(again) == ids
    assert event_ids(changes[:end_of_part]) + event_ids(changes[end_of_part:]) == ids


@pytest.mark.family
@pytest.mark.parametrize(("source", "target"), PAIRS)
@settings(max_examples=drawn(40))
@given(st.data())
def test_an_event_id_is_of_one_event_after_another_format(
    source: str, target: Any, data: st.DataObject
) -> None:
    """Convert to a target and on from there: whatever the target calls an event, no two share an id."""
    format_name, name, write, strategy = SOURCES[source]
    history = data.draw(STREAM if strategy is STREAM or target in ("gbase", "linter", "log") else UNREPEATED)
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(write(history))
        again = Path(folder, "again", NAMES_OF_TARGETS[target])
        again.parent.mkdir()
        runs: list[list[str]] = []
        for _ in range(2):
            changes = changes_in(path, format_name)
            eventlog.write(changes, again, target, tables=TABLES)
            runs.append(event_ids(changes_in(again, target)))
    assert runs[0] == runs[1]
    if "log" in (source, target):
        assert len({*runs[0]}) == len(runs[0])
    else:
        check_ids(runs[0], events_of(history, source))


@settings(max_examples=drawn(60))
@given(STREAM)
def test_nodes_of_linter_share_no_event_id(history: History) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "queue.csv")
        path.write_bytes(queue(history, ("A", "B")))
        ids = event_ids(changes_in(path, "linter"))
    check_ids(ids, events_of(history, "LINTER"))
