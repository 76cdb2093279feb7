"""A queue that is read again and again: every committed change comes out once, whatever came meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import Change
from eventlog.core.errors import InvalidValue, Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.formats.linter.changes import QueueReader
from eventlog.formats.linter.columns import QueueRow, QueueRowReader
from eventlog.formats.linter.linter_settings import LinterSettings
from eventlog.formats.linter.queue_progress import (
    START,
    Commit,
    JournalPlace,
    QueueProgress,
    QueueState,
    dump_state,
    load_state,
)
from eventlog.transfer.sources.queues import rows
from tests.formats.linter.helpers import LAYOUT, NAMES, ROLLBACK, end, operation
from tests.kit.statements import run_statements
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

Cells = tuple[Any, ...]
BIG = LinterSettings()


class Queue:
    """A queue in a database table, and what was read of it so far."""

    def __init__(self) -> None:
        self.engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
        self.state = START
        self.notices: list[str] = []  # by the last run
        with self.engine.begin() as connection:
            types = {"OPER_DATE": "text", "SYSLOG_ADDR": "integer", "EXTDATA": "integer"}
            columns = [f"{name} {types.get(name, 'text')}" for name in NAMES]
            connection.exec_driver_sql(f"create table queue ({', '.join(columns)})")

    def close(self) -> None:
        self.engine.dispose()

    def add(self, *reported: Cells) -> None:
        with self.engine.begin() as connection:
            marks = ", ".join("?" * len(NAMES))
            connection.exec_driver_sql(f"insert into queue values ({marks})", list(reported))

    def remove(self, condition: str) -> None:
        run_statements(self.engine, f"delete from queue where {condition}")

    def read(self, reading: LinterSettings = BIG, max_answers: int | None = None) -> list[str]:
        """Return the names that a run delivers, which may be stopped; its state is kept as a file
        keeps it.
        """
        with self.engine.connect() as connection:
            reader, waiting = QueueReader(LAYOUT, reading, self.state), rows(connection, "queue", self.state)
            reader.pass_over(waiting.past)
            answers = list(islice(reader.read(waiting.source), max_answers))
        self.state = load_state(json.loads(json.dumps(dump_state(reader.mark()()))))
        reported = [answer for answer in answers if isinstance(answer, Refused)]
        assert not any(answer.fault for answer in reported), reported
        self.notices = [answer.reason for answer in reported]
        return [str(answer.after["fname"]) for answer in answers if isinstance(answer, Change)]


@pytest.fixture
def queue() -> Iterator[Queue]:
    with closing(Queue()) as open_queue:
        yield open_queue


def insert(name: str, address: int, transact: int = 5, second: int = 1, **other_cells: Any) -> Cells:
    image = bytes.fromhex("01000000") + name.ljust(8).encode()
    cells = {"SYSLOG_ADDR": address, "TRANSACT_ID": transact, "OPER_DATE": date(second), **other_cells}
    return operation(2, image, **cells)


def commit(address: int, transact: int = 5, second: int = 1, **other_cells: Any) -> Cells:
    return end(**{"SYSLOG_ADDR": address, "TRANSACT_ID": transact, "OPER_DATE": date(second), **other_cells})


def date(second: int) -> str:
    return f"{1_000_000_000 + second:08x}0000"


def test_a_transaction_that_was_open_comes_out_in_a_later_run(queue: Queue) -> None:
    queue.add(insert("long", 100, 5), insert("short", 110, 6), commit(120, 6))
    assert queue.read() == ["short"]
    assert queue.read() == []
    queue.add(insert("long2", 130, 5), commit(140, 5))
    assert queue.read() == ["long", "long2"]
    assert queue.read() == []


def test_databases_that_share_a_queue_have_journals_of_their_own(queue: Queue) -> None:
    queue.add(insert("high", 9000, DBNODE="A"), commit(9001, DBNODE="A"))
    assert queue.read() == ["high"]
    queue.add(insert("low", 10, DBNODE="B"), commit(11, DBNODE="B"))
    assert queue.read() == ["low"]
    assert queue.read() == []


def test_rows_that_stay_in_the_queue_are_not_delivered_again(queue: Queue) -> None:
    for number in range(5):
        queue.add(insert(f"n{number}", 100 + 10 * number), commit(105 + 10 * number))
        assert queue.read() == [f"n{number}"]
    queue.remove("SYSLOG_ADDR < 130")  # as the replication server does, once it has sent them
    assert queue.read() == []


def test_a_journal_file_that_is_used_again_begins_a_new_generation(queue: Queue) -> None:
    queue.add(insert("old", 9000, 5, 1), commit(9010, 5, 1), insert("open", 9020, 6, 2))
    assert queue.read() == ["old"]
    queue.add(insert("wrapped", 10, 5, 3), commit(20, 5, 3), commit(30, 6, 4))
    assert queue.read() == ["wrapped", "open"]
    assert queue.read() == []
    queue.add(insert("next", 9000, 5, 5), commit(9010, 5, 5))
    queue.remove("OPER_DATE < '3b9aca03'")
    assert queue.read() == ["next"]
    assert queue.read() == []


def test_what_was_rolled_back_never_comes(queue: Queue) -> None:
    queue.add(insert("gone", 100), insert("kept", 110, 6))
    assert queue.read() == []
    queue.add(end(ROLLBACK, SYSLOG_ADDR=120, OPER_DATE=date(2)), commit(130, 6))
    assert queue.read() == ["kept"]
    assert queue.read() == []


def test_a_state_of_another_byte_order_is_refused_with_its_name(queue: Queue) -> None:
    queue.add(insert("a", 100), commit(110))
    assert queue.read(LinterSettings(time_order="little")) == ["a"]
    with pytest.raises(Misuse, match="with time-order little, this run reads big: state time-order little"):
        queue.read()
    queue.add(insert("b", 120), commit(130))
    assert queue.read(LinterSettings(time_order="little")) == ["b"]


def test_a_part_whose_first_part_becomes_visible_later_is_read_with_it(queue: Queue) -> None:
    image = bytes.fromhex("01000000") + b"whole   "
    first, rest = (
        operation(2, part, EXTDATA=at, SYSLOG_ADDR=100, OPER_DATE=date(1), DATA=part.hex())
        for at, part in enumerate((image[:7], image[7:]))
    )
    queue.add(rest, insert("other", 110, 6), commit(120, 6))
    assert queue.read() == ["other"]
    queue.add(first, commit(130, 5))
    assert queue.read() == ["whole"]
    assert queue.read() == []


def test_a_row_that_cannot_be_read_is_reported_once_with_its_transaction(queue: Queue) -> None:
    queue.add(insert("bad", 100, DATA="zz"), insert("good", 105))
    assert queue.read() == []
    queue.add(commit(130, 5))
    with pytest.raises(AssertionError, match="'zz' is not at most 3400 bytes"):
        queue.read()
    assert queue.read() == []


@pytest.mark.parametrize(
    "found",
    [
        {"delivered": 5, "restart": 5},
        [],
        {"time-order": "x", "nodes": {}},
        {"time-order": "big", "nodes": {"A": 1}},
        {"time-order": "big", "nodes": {"A": {"start": [1, "00"], "delivered": []}}},
    ],
)
def test_what_is_no_state_is_refused(found: object) -> None:
    with pytest.raises(InvalidValue):
        load_state(found)


class Journal:
    """A journal of rising addresses that begin anew where its files may be used again.

    They are never those of an open transaction, and the queue is read in every round.
    """

    def __init__(self) -> None:
        self.address = 0
        self.open: dict[int, tuple[int, int, list[str]]] = {}  # generation, first address, names
        self.generation = 0
        self.top = 0  # where the next run begins to read
        self.read_in = -1  # the generation in which the queue was read last

    def write(self, transact: int, name: str) -> None:
        """A row of a transaction."""
        self.open.setdefault(transact, (self.generation, self.address, []))[2].append(name)

    def end(self, transact: int) -> list[str]:
        """Return the names of a transaction that is open no longer."""
        return self.open.pop(transact, (0, 0, []))[2]

    def advance(self) -> bool:
        """Go to the next address; whether the journal has room there."""
        self.address += 10
        taken = [first for generation, first, _ in self.open.values() if generation < self.generation]
        return self.address < min(taken + [self.top] * (self.read_in < self.generation), default=1 << 40)

    def wrap(self) -> None:
        """Begin at the first address, if that is possible."""
        if (
            self.read_in
            == self.generation
            == min((g for g, _, _ in self.open.values()), default=self.generation)
        ):
            self.generation, self.address = self.generation + 1, 0

    def was_read(self, state: QueueState) -> None:
        """Note what a run leaves to the next one."""
        start = state.of("DEMO").start
        if start is not None:
            self.read_in, self.top = self.generation, start.address


steps = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("iiccrwRRD")), max_size=60)


@settings(max_examples=drawn(150))
@given(steps)
def test_every_committed_change_comes_out_once(script: Sequence[tuple[int, str]]) -> None:
    """Deliver every committed change once.

    Transactions begin and end in any order, runs come anywhere, the journal returns to its first address, and
    rows may stay in the queue.
    """
    with closing(Queue()) as queue:
        check_script(queue, script)


def check_script(queue: Queue, script: Sequence[tuple[int, str]]) -> None:
    journal = Journal()
    expected: list[str] = []
    got: list[str] = []
    for second, (transact, action) in enumerate(script):
        if action in "icr" and not journal.advance():
            break
        if action == "i":
            journal.write(transact, f"n{second}")
            queue.add(insert(f"n{second}", journal.address, transact, second))
        elif action in "cr":
            names = journal.end(transact)
            expected += names if action == "c" else []
            ending = commit if action == "c" else roll_back
            queue.add(ending(journal.address, transact, second))
        elif action == "w":
            journal.wrap()
        else:
            got += queue.read()
            journal.read_in = journal.generation if queue.state.nodes else -1
            if action == "D":
                queue.remove(f"TRANSACT_ID not in ({', '.join(map(repr, map(str, journal.open))) or 0})")
    assert got + queue.read() == expected


def roll_back(address: int, transact: int, second: int) -> Cells:
    return end(ROLLBACK, SYSLOG_ADDR=address, TRANSACT_ID=transact, OPER_DATE=date(second))


def test_a_run_that_is_stopped_forgets_nothing_that_it_did_not_come_to(queue: Queue) -> None:
    """Keep what one database delivered in the state of a run that has read less of another."""
    queue.add(
        insert("open", 100, 5, DBNODE="B"), insert("out", 110, 6, DBNODE="B"), commit(900, 6, DBNODE="B")
    )
    assert queue.read() == ["out"]
    queue.add(insert("a", 200, 7, DBNODE="A"), commit(210, 7, DBNODE="A"))
    with queue.engine.connect() as connection:
        reader = QueueReader(LAYOUT, BIG, queue.state)
        first = next(reader.read(rows(connection, "queue", queue.state).source))
        assert isinstance(first, Change)
        assert first.after["fname"] == "a"
        queue.state = load_state(json.loads(json.dumps(dump_state(reader.mark()()))))
    queue.add(commit(910, 5, DBNODE="B"))
    assert queue.read() == ["open"]


def test_a_file_that_has_rows_of_before_is_read_from_the_state_on() -> None:
    """Pass over rows before the start, report what cannot be read of them, and refuse what came refused."""
    when = bytes.fromhex(date(1))
    state = QueueState("big", {"DEMO": QueueProgress(JournalPlace(200, when))})
    rows = [
        insert("old", 100),
        insert("odd", 110, LEN1="x"),
        commit(120),
        insert("new", 210, 6),
        commit(220, 6),
    ]
    records: list[Row | Refused] = [Row(where, cells) for where, cells in enumerate(rows, 2)]
    source = Source("q.csv", "q", NAMES, [*records, Refused("q.csv:9", "half a line")])
    reader = QueueReader(LAYOUT, BIG, state)
    answers = list(reader.read(source))
    assert [change.after["fname"] for change in answers if isinstance(change, Change)] == ["new"]
    assert [refused.where for refused in answers if isinstance(refused, Refused)] == ["q.csv:3", "q.csv:9"]
    assert reader.mark()().of("DEMO").start == JournalPlace(220, when)


@pytest.mark.parametrize(
    ("start", "row", "is_past"),
    [
        (None, (100, 1), False),
        ((200, 1), (100, 1), True),
        ((200, 1), (200, 1), False),
        ((200, 1), (300, 1), False),
        ((200, 1), (100, 2), False),  # the file was begun anew since
        ((200, 2), (100, 1), True),
        ((200, None), (100, 2), True),
        ((200, 1), (100, None), True),
        ((200, 1), (None, 1), False),
    ],
)
def test_a_row_is_past_by_its_address_unless_its_date_is_later(
    start: tuple[int, int | None] | None, row: tuple[int | None, int | None], is_past: bool
) -> None:
    def at(second: int | None) -> bytes:
        return b"" if second is None else bytes.fromhex(date(second))

    place = None if start is None else JournalPlace(start[0], at(start[1]))
    assert QueueProgress(place).is_past(row[0], at(row[1]), "big") == is_past


@pytest.mark.parametrize(("read_all", "remembered"), [(True, {7}), (False, {6, 7})])
def test_a_run_that_read_a_part_keeps_the_commits_of_before(read_all: bool, remembered: set[int]) -> None:
    """Forget those before the start alone, unless the queue lacks the others by now."""
    when = bytes.fromhex(date(1))
    before = QueueProgress(
        JournalPlace(100, when), frozenset(Commit(number, 100 * number, when) for number in (2, 6))
    )
    first = queue_part(SYSLOG_ADDR=500, OPER_DATE=date(1))
    after = before.advance([Commit(7, 700, when)], first, "big", read_all)
    assert after.start == JournalPlace(500, when)
    assert {commit.transact_id for commit in after.delivered} == remembered


def queue_part(**cells: Any) -> QueueRow:
    """Return a row of the queue as a run reads it."""
    row, _ = QueueRowReader(NAMES).read(operation(2, b"x", **cells))
    return row


@settings(max_examples=drawn(60))
@given(st.lists(st.integers(0, 4), max_size=40), st.integers(2, 4))
def test_runs_that_are_stopped_go_on_behind_their_last_answer(script: Sequence[int], most: int) -> None:
    """Read two databases, whose transactions hold a row each."""
    began: dict[int, str] = {}
    expected: list[str] = []
    with closing(Queue()) as queue:
        for place, transact in enumerate(script):
            more: dict[str, Any] = {"DBNODE": "AB"[transact // 4], "OPER_DATE": "404040400000"}
            if transact not in began:
                began[transact] = f"n{place}"
                queue.add(insert(f"n{place}", 10 * place, transact, **more))
            else:
                expected.append(began.pop(transact))
                queue.add(commit(10 * place, transact, **more))
        got: list[str] = []
        while found := queue.read(BIG, most):
            got += found
    assert got == expected
