"""What commits comes out, in commit order, and nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Value
from eventlog.core.tables import Tables
from eventlog.formats.gbase.changes import StreamReader
from eventlog.formats.gbase.records import COMMON, Discard, Number, RbTx, Truncate
from eventlog.formats.gbase.schema import LAYOUT_FACTS, RowLayout
from eventlog.formats.gbase.transactions import Position
from tests.formats.gbase import typed
from tests.formats.gbase.helpers import (
    T1,
    StreamBuilder,
    changes_of,
    cut,
    read_all,
    refusals_of,
    write_changes,
)
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick


def built() -> StreamBuilder:
    return StreamBuilder().table(7, T1)


def ops(data: bytes) -> list[tuple[str, Any]]:
    return [
        (change.op.value, change.after.get("c1", change.before.get("c1")))
        for change in changes_of(read_all([data]))
    ]


def test_commit_order_is_the_order() -> None:
    stream = (
        built()
        .begin(1, 1)
        .begin(2, 2)
        .row(Number.INSERT, 3, 1, 7, (1, "a"))
        .row(Number.INSERT, 4, 2, 7, (2, "b"))
    )
    assert ops(stream.commit(5, 2).commit(6, 1).data) == [("insert", 2), ("insert", 1)]


def test_a_rollback_forgets() -> None:
    stream = built().begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a")).say(RbTx(3, 1))
    assert read_all([stream.data]) == []


def test_a_slot_is_used_again() -> None:
    stream = built().begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a")).say(RbTx(3, 1))
    stream.begin(4, 1).row(Number.INSERT, 5, 1, 7, (2, "b")).commit(6, 1)
    (change,) = changes_of(read_all([stream.data]))
    assert (change.transaction, change.after["c1"]) == ("1@4", 2)


def test_a_discard_voids_from_its_sequence_on_in_its_own_transaction() -> None:
    stream = built().begin(1, 1).begin(2, 2)
    stream.row(Number.INSERT, 3, 1, 7, (1, "a")).row(Number.INSERT, 5, 1, 7, (2, "a")).row(
        Number.INSERT, 5, 2, 7, (3, "a")
    )
    stream.say(Discard(5, 1)).row(Number.INSERT, 6, 1, 7, (4, "a")).commit(7, 1).commit(8, 2)
    assert ops(stream.data) == [("insert", 1), ("insert", 4), ("insert", 3)]


def test_halves_pair_by_table_and_a_lone_one_is_an_update_with_one_side() -> None:
    stream = built().table(8, "k integer").begin(1, 1)
    stream.row(Number.UPDBEF, 2, 1, 7, (1, "a")).row(Number.UPDBEF, 3, 1, 8, (5,)).row(
        Number.UPDAFT, 4, 1, 7, (1, "b")
    )
    stream.row(Number.UPDAFT, 5, 1, 7, (9, "c")).commit(6, 1)
    lone_before, pair, lone_after = changes_of(read_all([stream.data]))
    assert pair.fields == (Field("c1", 1, 1), Field("c2", "a", "b"))
    assert (pair.position, pair.fact("sequence-before")) == ("4", 2)
    assert lone_before.fields == (Field("k", 5, ABSENT),)
    assert lone_after.fields == (Field("c1", ABSENT, 9), Field("c2", ABSENT, "c"))
    assert {change.op for change in (pair, lone_before, lone_after)} == {Op.UPDATE}


def test_a_truncation_is_part_of_its_transaction() -> None:
    stream = built().begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a")).say(Truncate(3, 1, 7)).commit(4, 1)
    assert ops(stream.data) == [("insert", 1), ("truncate", None)]


def test_an_unfinished_transaction_is_said_and_is_no_failure() -> None:
    stream = built().begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a"))
    (refused,) = refusals_of(read_all([stream.data]))
    assert not refused.fault
    assert "transaction 1, begun at 1, is unfinished: 1 record is" in refused.reason
    assert "restarts at 1 " in refused.reason


def test_rows_without_a_beginning_are_reported_once_and_left_out() -> None:
    stream = built().row(Number.INSERT, 2, 9, 7, (1, "a")).row(Number.INSERT, 3, 9, 7, (2, "a")).commit(4, 9)
    (refused,) = read_all([stream.data])
    assert "transaction 9: its BEGINTX was not seen" in str(refused)


def test_a_transaction_that_begins_again_loses_what_it_had() -> None:
    stream = built().begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a")).begin(3, 1).commit(4, 1)
    (refused,) = read_all([stream.data])
    assert "began again" in str(refused)


def test_commits_that_an_earlier_run_delivered_are_skipped() -> None:
    stream = built().begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a")).commit(3, 1)
    stream.begin(4, 1).row(Number.INSERT, 5, 1, 7, (2, "a")).commit(6, 1)
    reader = StreamReader(Tables(), since=Position(3, 3))
    assert [change.after["c1"] for change in changes_of(reader.feed(stream.data))] == [2]
    assert reader.position == Position(6, 6)


def test_a_restart_that_saw_nothing_yet_keeps_the_position() -> None:
    since = Position(restart=10, delivered=22)
    reader = StreamReader(Tables(), since=since)
    assert reader.position == since
    list(reader.feed(built().begin(10, 1).data))
    list(reader.feed(StreamBuilder().begin(15, 2).say(RbTx(16, 2)).data))
    assert reader.position == since
    list(reader.feed(StreamBuilder().begin(30, 3).data))
    assert reader.position == since
    list(reader.feed(StreamBuilder().commit(31, 1).data))
    assert reader.position == Position(30, 31)


def test_a_restart_says_nothing_of_transactions_that_ended_before_it() -> None:
    """Report nothing about transactions that began before the restart position."""
    stream = built().row(Number.INSERT, 11, 9, 7, (1, "a")).commit(22, 9)
    assert list(StreamReader(Tables(), since=Position(10, 22)).feed(stream.data)) == []


@settings(max_examples=drawn(300))
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(("row", "commit", "rollback"))), min_size=4, max_size=30
    ),
    st.lists(st.integers(1, 30), max_size=3),
)
@example([(1, "row"), (2, "row"), (1, "row"), (1, "commit"), (2, "row"), (2, "commit")], [4])
@example([(1, "row"), (2, "row"), (1, "row"), (1, "rollback"), (2, "row"), (2, "commit")], [4])
def test_a_stream_that_is_read_in_several_runs_gives_each_commit_once(
    script: list[tuple[int, str]], cuts: list[int]
) -> None:
    """Let each run begin at the record that the position names, and end anywhere after it."""
    records: list[tuple[int, bytes]] = []  # with their sequences
    opened: dict[int, list[int]] = {}
    expected: list[int] = []
    for sequence, (slot, kind) in enumerate(script, 100):
        record = built()
        if slot not in opened:
            opened[slot] = []
            record.begin(sequence, slot)
        elif kind == "commit":
            expected += opened.pop(slot)
            record.commit(sequence, slot)
        elif kind == "rollback":
            del opened[slot]
            record.say(RbTx(sequence, slot))
        else:
            opened[slot].append(sequence)
            record.row(Number.INSERT, sequence, slot, 7, (sequence, "x"))
        records.append((sequence, record.data))
    position, rows = Position(), list[object]()
    for end in [*sorted(cuts), len(records)]:
        reader = StreamReader(Tables(), since=position)
        start = next((at for at, (number, _) in enumerate(records) if number >= position.restart), end)
        for _, record_data in records[start:end]:
            answers = list(reader.feed(record_data))
            assert refusals_of(answers) == []
            rows += [change.after["c1"] for change in changes_of(answers)]
        position = reader.position
    assert rows == expected


POSITIONS: list[tuple[StreamBuilder, Position]] = [  # a record, and the position after it
    (StreamBuilder().begin(12, 2), Position(10, 22)),
    (StreamBuilder().say(RbTx(14, 2)), Position(10, 22)),
    (StreamBuilder().begin(15, 3), Position(10, 22)),
    (StreamBuilder().commit(20, 3), Position(10, 22)),  # it was delivered
    (StreamBuilder().begin(21, 1), Position(10, 22)),
    (StreamBuilder().commit(23, 1), Position(23, 23)),
    (StreamBuilder().begin(24, 2), Position(24, 23)),
    (StreamBuilder().begin(25, 3), Position(24, 23)),
    (StreamBuilder().commit(26, 2), Position(25, 26)),
    (StreamBuilder().say(RbTx(27, 3)), Position(25, 26)),  # else its rows come without their BEGINTX
    (StreamBuilder().begin(28, 2), Position(25, 26)),
    (StreamBuilder().begin(29, 3), Position(25, 26)),
    (StreamBuilder().commit(30, 3), Position(28, 30)),
]


def test_a_position_is_before_all_that_is_open_or_has_not_come_again() -> None:
    reader = StreamReader(Tables(), since=Position(10, 22))
    for record, position in POSITIONS:
        assert list(reader.feed(record.data)) == []
        assert reader.position == position, record


class Step(NamedTuple):
    kind: str
    transaction: int
    number: int = 0


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(("begin", "row", "row", "row", "update", "discard", "commit", "rollback")),
        st.integers(1, 4),
        st.integers(0, 5),
    ),
    max_size=60,
)


@settings(max_examples=drawn(200))
@given(steps, st.data())
def test_interleaved_transactions_follow_a_plain_model(script: list[Step], data: st.DataObject) -> None:
    stream, expected, opened = built(), [], {}  # type: ignore[var-annotated]
    for sequence, step in enumerate(script, 100):
        slot = step.transaction
        if step.kind == "begin" and slot not in opened:
            opened[slot] = []
            stream.begin(sequence, slot)
        elif slot not in opened:
            continue
        elif step.kind == "row":
            opened[slot].append((sequence, "insert", sequence))
            stream.row(Number.INSERT, sequence, slot, 7, (sequence, "x"))
        elif step.kind == "update":
            opened[slot].append((sequence, "update", sequence))
            stream.row(Number.UPDBEF, sequence, slot, 7, (0, None)).row(
                Number.UPDAFT, sequence, slot, 7, (sequence, "")
            )
        elif step.kind == "discard":
            limit = sequence - step.number
            opened[slot] = [row for row in opened[slot] if row[0] < limit]
            stream.say(Discard(limit, slot))
        elif step.kind == "commit":
            expected += opened.pop(slot)
            stream.commit(sequence, slot)
        elif step.kind == "rollback":
            del opened[slot]
            stream.say(RbTx(sequence, slot))
    places = data.draw(st.sets(st.integers(0, len(stream.data)), max_size=10))
    answers = read_all(cut(stream.data, places))
    found = [(int(c.position or 0), c.op.value, c.after["c1"]) for c in changes_of(answers)]
    assert found == expected
    assert len(refusals_of(answers)) == len(opened)


@st.composite
def transactions(draw: st.DrawFn) -> list[Change]:
    """Draw changes as a reader of some stream would return them."""
    described = [draw(typed.tables(max_columns=4)) for _ in range(2)]
    stream = StreamBuilder(
        order=draw(st.sampled_from(("big", "little"))), prefix=draw(st.sampled_from((1, 2)))
    )
    sequence = 100
    for number, (text, _) in enumerate(described):
        stream.table(number, text)
    for slot in range(draw(st.integers(1, 3))):
        stream.begin(sequence, slot)
        for _ in range(draw(st.integers(0, 4))):
            number = draw(st.integers(0, 1))
            sequence += 1
            kinds = draw(st.sampled_from(((40,), (41,), (42,), (43,), (42, 43), ())))
            for kind in kinds:
                values: tuple[Value, ...] = tuple(draw(column) for column in described[number][1])
                stream.row(Number(kind), sequence, slot, number, values, draw(st.sampled_from((0, 0, 5))))
            if not kinds:
                stream.say(Truncate(sequence, slot, number))
        sequence += 1
        stream.commit(sequence, slot)
    answers = read_all([stream.data])
    assume(not refusals_of(answers))  # halves of updates that no key brings together
    return changes_of(answers)


@settings(max_examples=drawn(200))
@given(transactions(), st.sampled_from(("big", "little")), st.sampled_from((1, 2)))
def test_changes_written_and_read_are_the_same_changes(
    changes: list[Change], order: str, prefix: int
) -> None:
    """Write what was read, in the layout in which it was read and in another one."""
    assert read_all([write_changes(changes)]) == changes
    stream = write_changes(in_layout(change, order, prefix) for change in changes)
    assert [without_layout(c) for c in changes_of(read_all([stream]))] == list(map(without_layout, changes))


def in_layout(change: Change, order: str, prefix: int) -> Change:
    return change._replace(extra=(*without_layout(change).extra, *RowLayout(order, prefix).facts()))


def without_layout(change: Change) -> Change:
    facts = tuple(fact for fact in change.extra if fact[0] not in LAYOUT_FACTS)
    return change._replace(extra=facts)


@pytest.mark.parametrize(("order", "prefix"), [("big", 1), ("big", 2), ("little", 1), ("little", 2)])
def test_a_layout_that_was_read_is_written(order: str, prefix: int) -> None:
    built = StreamBuilder(order=order, prefix=prefix).table(7, T1).begin(100, 1)
    data = built.row(Number.INSERT, 101, 1, 7, (1, "abc")).commit(102, 1).data
    changes = changes_of(read_all([data]))
    assert write_changes(changes) == data
    usual = write_changes(map(without_layout, changes))
    assert (usual == data) == ((order, prefix) == ("big", 1))


def numbers_of(stream: bytes) -> list[int]:
    """Return the record numbers of a stream."""
    numbers, at = [], 0
    while at < len(stream):
        header, payload, _, number = COMMON.unpack_from(stream, at)
        numbers.append(number)
        at += header + payload
    return numbers


def of_tables(*tables: int, text: str = "abc") -> list[Change]:
    """Return the changes of a transaction with a row of each of these tables."""
    built = StreamBuilder()
    for table in tables:
        built.table(table, T1)
    built.begin(100, 1)
    for sequence, table in enumerate(tables, 101):
        built.row(Number.INSERT, sequence, 1, table, (1, text))
    return changes_of(read_all([built.commit(999, 1).data]))


def test_tables_are_described_before_their_transaction_begins() -> None:
    """Describe them as servers do: no TABSCHEM is between a BEGINTX and its COMMTX."""
    changes = of_tables(7, 8)
    assert numbers_of(write_changes(changes)) == [200, 200, 1, 40, 40, 2]
    other = [change._replace(transaction="2@200", position="201") for change in of_tables(8, 9)[1:]]
    assert numbers_of(write_changes(changes + other)) == [200, 200, 1, 40, 40, 2, 200, 1, 40, 2]


def test_a_table_that_is_altered_within_a_transaction_is_described_between_its_rows() -> None:
    altered = StreamBuilder().table(7, T1).begin(100, 1).row(Number.INSERT, 101, 1, 7, (1, "abc"))
    altered.table(7, "c1 integer").row(Number.INSERT, 102, 1, 7, (2,)).commit(103, 1)
    changes = changes_of(read_all([altered.data]))
    assert write_changes(changes) == altered.data


def test_a_table_that_comes_late_in_a_large_transaction_is_described_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("eventlog.formats.gbase.writer.MAX_BUFFERED", 50)
    changes = of_tables(7, 8, 9)
    stream = write_changes(changes)
    assert numbers_of(stream) == [200, 200, 1, 40, 40, 200, 40, 2]
    assert read_all([stream]) == changes


KEYED = tablesfile.read('[tables.t]\nnumber = 7\nkey = ["c1"]\ncolumns = { c1 = "integer", c2 = "text" }\n')


def halves(*records: tuple[Number, int, str]) -> bytes:
    """Return a transaction of halves of updates of one table."""
    stream = built().begin(1, 1)
    for sequence, (number, key, text) in enumerate(records, 2):
        stream.row(number, sequence, 1, 7, (key, text))
    return stream.commit(99, 1).data


def updates(answers: list[Any]) -> list[tuple[Any, Any]]:
    return [(c.before.get("c2"), c.after.get("c2")) for c in changes_of(answers)]


B, A = Number.UPDBEF, Number.UPDAFT
TWO = ((B, 1, "a"), (B, 2, "b"), (A, 1, "A"), (A, 2, "B"))


def test_several_first_halves_of_a_table_pair_by_key() -> None:
    answers = read_all([halves(*TWO)], KEYED)
    assert updates(answers) == [("a", "A"), ("b", "B")]
    assert refusals_of(answers) == []


def test_halves_of_one_key_pair_in_their_order() -> None:
    answers = read_all([halves((B, 1, "a"), (B, 1, "b"), (A, 1, "A"), (A, 1, "B"))], KEYED)
    assert updates(answers) == [("a", "A"), ("b", "B")]


def test_halves_under_two_schemas_are_one_update_with_the_names_of_both() -> None:
    stream = built().begin(1, 1).row(B, 2, 1, 7, (1, "a"))
    stream.table(7, "d1 integer, d2 varchar(20,0)").row(A, 2, 1, 7, (2, "b")).commit(3, 1)
    (change,) = changes_of(read_all([stream.data]))
    assert (change.before, change.after) == ({"c1": 1, "c2": "a"}, {"d1": 2, "d2": "b"})


def test_a_half_is_read_by_the_schema_of_its_moment() -> None:
    """Let the table have the same columns in another order by the second half."""
    stream = StreamBuilder().table(7, "a integer, b integer").begin(1, 1).row(B, 2, 1, 7, (1, 2))
    stream.table(7, "b integer, a integer").row(A, 2, 1, 7, (3, 4)).commit(3, 1)
    (change,) = changes_of(read_all([stream.data]))
    assert (change.before, change.after) == ({"a": 1, "b": 2}, {"a": 4, "b": 3})


def test_the_two_halves_left_are_one_update_of_the_key() -> None:
    answers = read_all([halves((B, 1, "a"), (B, 2, "b"), (A, 2, "B"), (A, 3, "A"))], KEYED)
    assert updates(answers) == [("b", "B"), ("a", "A")]


def test_without_a_key_several_halves_are_not_guessed_but_reported() -> None:
    answers = read_all([halves(*TWO)])
    assert updates(answers) == [("a", None), ("b", None), (None, "A"), (None, "B")]
    (refused,) = refusals_of(answers)
    assert "transaction 1@1: several UPDBEF of table table_7" in refused.reason
    assert "key in the tables file" in refused.reason


def test_a_stray_first_half_leaves_the_pairs_behind_it_alone() -> None:
    answers = read_all([halves((B, 9, "x"), (B, 1, "a"), (A, 1, "A"), (B, 2, "b"), (A, 2, "B"))])
    assert updates(answers) == [("x", None), ("a", "A"), ("b", "B")]
    assert refusals_of(answers) == []
