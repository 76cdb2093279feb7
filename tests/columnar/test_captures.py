"""A capture by column has the changes and refusals of the record-wise reader, in the same order."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eventlog
from bench import gbase as bench
from eventlog.columnar.captures import BatchReader
from eventlog.columnar.captures.column_values import NotPlain, VariableCells, fixed_column, variable_column
from eventlog.columnar.change_batch import ChangeBatch
from eventlog.core.change import Change, Undecoded, Value
from eventlog.core.errors import InvalidValue, Refused
from eventlog.core.tables import Tables
from eventlog.core.tablesfile import read as read_tables
from eventlog.gbase.changes import StreamReader
from eventlog.gbase.columns import ColumnType, Text
from eventlog.gbase.records import CommTx, Discard, Number, RbTx, Timeout, Truncate
from eventlog.gbase.schema import read_schema
from eventlog.gbase.settings import GbaseSettings
from tests.gbase import typed
from tests.gbase.helpers import T1, StreamBuilder, cut, read_all
from tests.gbase.mutants import sound_stream
from tests.tiers import drawn

pytestmark = pytest.mark.quick

USR = read_tables(
    '[tables.usr]\nnumber = 1\nkey = ["c1"]\ncolumns = { c1 = "integer", c2 = "varchar(20)" }\n'
)


_ROWS = {"I": Number.INSERT, "U": Number.UPDBEF, "D": Number.DELETE}
Step = tuple[str, int, int, int]
steps = st.lists(
    st.tuples(st.sampled_from("TBIIUDCCRXNt"), st.integers(1, 3), st.integers(1, 2), st.integers(0, 3)),
    max_size=40,
)


def stream_of(said: list[Step]) -> bytes:
    """Return a stream of steps, in which transactions may overlap, lack their ends and begin twice."""
    built = StreamBuilder()
    for table in (1, 2):
        built.table(table, T1)
    described, built.data = built.data, b""
    for sequence, (step, slot, table, more) in enumerate(said, 100):
        if step == "T":
            built.table(table, T1 if more else "c1 integer, c3 varchar(20,0)")
        elif step == "B":
            built.begin(sequence, slot)
        elif step in _ROWS:
            built.row(_ROWS[step], sequence, slot, table, (sequence, "a"))
        elif step == "C":
            built.say(CommTx(sequence, slot, 1 << 60 if more == 3 else 1_750_000_000))
        elif step == "N":
            built.data += b"\0\0\0\x10\0\0\0\0\0\0\0\x42\0\0\0\x63"  # of an unknown number
        else:
            built.say({"R": RbTx(sequence, slot), "X": Discard(sequence - more, slot)}.get(step)
                     or Truncate(sequence, slot, table))  # fmt: skip
    return (described if said and said[0][3] else b"") + built.data


def by_column(
    chunks: Iterable[bytes], tables: Tables | None = None, least_rows: int = 1
) -> tuple[list[Change | Refused], int]:
    """Return all answers with the changes of each batch one by one, and how many changes were in batches."""
    text = GbaseSettings().text
    reader = BatchReader(StreamReader(tables or Tables(), lambda where: f"in:{where}", text), least_rows)
    answers = [answer for chunk in chunks for answer in reader.feed(chunk)] + list(reader.close())
    built: list[Change | Refused] = []
    batched = 0
    for answer in answers:
        if isinstance(answer, ChangeBatch):
            answer.rows.validate(full=True)
            built += answer.changes()
            batched += len(answer.rows)
        else:
            built.append(answer)
    return built, batched


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("name", bench.TABLES)
def test_all_changes_of_the_benchmark_are_in_batches(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(bench, "TRANSACTIONS", 5)
    data = bench.make_stream(*bench.TABLES[name])
    assert by_column([data], least_rows=16) == (read_all([data]), 5 * bench.ROWS_EACH)


@settings(max_examples=drawn(100))
@given(steps, st.integers(1, 300))
@example([(step, 1, 1, 1) for step in "BIDICBtC"], 7)
@example([(step, 1, 1, 1) for step in "BIRBICXIC"], 1000)
@example([("I", 1, 1, 1), ("B", 1, 1, 1), ("I", 1, 1, 1), ("C", 1, 1, 1), ("I", 1, 1, 1)], 1000)
@example([(step, 1, 1, 1) for step in "BIBIC"], 1000)
@example([("B", 1, 1, 1), ("B", 2, 1, 1), ("I", 1, 1, 1), ("D", 2, 2, 1), ("C", 2, 1, 1), ("C", 1, 1, 1)], 9)
def test_any_stream_has_the_same_answers(said: list[Step], size: int) -> None:
    data = stream_of(said)
    assert by_column(chunks(data, size))[0] == read_all(chunks(data, size))


@settings(max_examples=drawn(100))
@given(st.integers(0, len(sound_stream()) - 1), st.integers(0, 255), st.integers(1, 400))
def test_a_broken_stream_has_the_same_answers(at: int, byte: int, size: int) -> None:
    data = bytearray(sound_stream() * 2)
    data[at] = byte
    built, _ = by_column(chunks(bytes(data), size))
    assert built == read_all(chunks(bytes(data), size))


@settings(max_examples=drawn(60))
@given(st.integers(0, len(sound_stream())), st.integers(1, 400))
def test_a_stream_that_is_cut_off_has_the_same_answers(end: int, size: int) -> None:
    data = sound_stream()[:end]
    assert by_column(chunks(data, size))[0] == read_all(chunks(data, size))


_KINDS = {"insert": (Number.INSERT,), "delete": (Number.DELETE,), "update": (Number.UPDBEF, Number.UPDAFT)}


@settings(max_examples=drawn(300))
@given(st.data(), typed.tables(), st.sampled_from(("big", "little")), st.sampled_from((1, 2)))
def test_values_of_every_type_are_the_same(
    data: st.DataObject, table: tuple[str, list[st.SearchStrategy[Value]]], order: str, prefix: int
) -> None:
    text, values = table
    built = StreamBuilder(order=order, prefix=prefix).table(7, text).begin(100, 1)
    made = data.draw(st.lists(st.tuples(st.sampled_from(sorted(_KINDS)), st.tuples(*values)), max_size=8))
    for sequence, (kind, row) in enumerate(made, 101):
        for number in _KINDS[kind]:
            built.row(number, sequence, 1, 7, row)
    whole = built.commit(200, 1).data
    assert by_column([whole]) == (read_all([whole]), len(made))


SCHEMA = read_schema(
    "s smallint, i integer, q bigint, d date, ok boolean, c char(5), n decimal(9,2), odd decimal(7,3), "
    "w decimal(4,0), deep decimal(9,8), wide decimal(32,2), m money(12,2), t datetime year to second, "
    "f float, v varchar(30,0), l lvarchar(99)",
    Text(),
)
VALUES: dict[str, tuple[Value, ...]] = {
    "s": (0, -5, 32767),
    "i": (0, -5, 2**31 - 1),
    "q": (0, -5, 2**63 - 1),
    "d": ("2024-02-29", "0001-01-01", "0999-12-31", "1000-01-01", "9999-12-31", "1899-12-31"),
    "ok": (True, False),
    "c": ("", "a", "abcde", " a", "ü"),
    "n": ("0.00", "-0.01", "0.10", "-12.50", "9999999.99", "-9999999.99", "100.00", "-100.00"),
    "odd": ("0.000", "-0.001", "0.100", "-12.500", "9999.999", "-10.010"),
    "w": ("0", "-1", "10", "9999", "-9900"),
    "deep": ("0.00000000", "0.00000001", "-9.00000000"),
    "wide": ("0.00", "-123456789012345678901234567890.12"),
    "m": ("0.00", "-1.05", "1234567890.12"),
    "t": ("2024-02-29T00:00:00", "2023-02-28T23:59:59", "2000-02-29T12:00:00", "0001-01-01T00:00:00"),
    "f": (1.5, "NaN", "-Infinity"),
    "v": ("", "name", "日本", "x" * 30),
    "l": ("", "name", "日本", "x" * 99),
}


EDGES = (0, 1, 2, 29, 30, 31, 60, 99, 100, 255)


def cells_of(at: int, dice: random.Random) -> list[bytes]:
    """Return the bytes of values of a column, sound ones and ones with other bytes."""
    column = SCHEMA.columns[at]
    found = []
    for value in (*VALUES[column.name], None):
        dumped = column.type.dump(value)
        cell = struct.pack(">" + column.type.code, dumped) if column.type.code else dumped
        found.append(cell)
        for _ in range(drawn(300)):
            broken = bytearray(cell)
            broken[dice.randrange(len(cell))] = dice.choice((*EDGES, dice.randrange(256)))
            found.append(bytes(broken))
    return found


@pytest.mark.parametrize("at", range(len(SCHEMA.columns)), ids=SCHEMA.names)
def test_any_bytes_of_a_column_are_what_its_type_loads(at: int) -> None:
    """A cell that its type refuses, or cannot decode, is never in a column."""
    kind = SCHEMA.columns[at].type
    sound: list[bytes] = []
    values: list[Value] = []
    for cell in cells_of(at, random.Random(at)):
        try:
            value = kind.load(struct.unpack(">" + kind.code, cell)[0] if kind.code else cell)
        except InvalidValue:
            value = Undecoded(cell)
        if isinstance(value, Undecoded):
            with pytest.raises(NotPlain):
                column_of(kind, [cell])
        else:
            sound.append(cell)
            values.append(float(value) if kind.holds is float and isinstance(value, str) else value)
    assert repr(column_of(kind, sound).to_pylist()) == repr(values)


def column_of(kind: ColumnType, cells: list[bytes]) -> pa.Array:
    joined = np.frombuffer(b"".join(cells), np.uint8)
    if kind.code:
        return fixed_column(kind, joined.reshape(len(cells), -1))
    sizes = np.array([len(cell) for cell in cells])
    return variable_column(kind, VariableCells(joined, np.cumsum(sizes) - sizes, sizes))


def test_a_row_with_flags_is_read_by_record() -> None:
    built = (
        StreamBuilder()
        .table(1, T1)
        .begin(10, 1)
        .row(Number.INSERT, 11, 1, 1, (1, "a"), flags=1)
        .commit(12, 1)
    )
    assert by_column([built.data]) == (read_all([built.data]), 0)


def test_what_is_plain_after_another_record_is_in_batches() -> None:
    built = StreamBuilder().table(1, T1).row(Number.INSERT, 9, 1, 1, (1, "a")).say(Timeout(9))
    for at in (10, 20):
        built.begin(at, 1).row(Number.INSERT, at + 1, 1, 1, (1, "a")).commit(at + 2, 1)
    built.row(Number.INSERT, 30, 1, 1, (1, "a"))
    answers, batched = by_column([built.data])
    assert (answers, batched) == (read_all([built.data]), 2)
    assert sum(isinstance(answer, Refused) for answer in answers) == 2


def test_interleaved_transactions_come_in_the_order_of_their_commits() -> None:
    built = StreamBuilder().table(1, T1).begin(10, 1).begin(11, 2).begin(12, 3)
    for at in range(20, 40):
        built.row(Number.INSERT, at, at % 3 + 1, 1, (at, "a"))
    built.row(Number.UPDBEF, 40, 2, 1, (1, "a")).row(Number.INSERT, 41, 1, 1, (4, "b"))
    built.row(Number.UPDAFT, 40, 2, 1, (1, None)).commit(50, 2).say(RbTx(51, 3)).commit(52, 1)
    answers, batched = by_column([built.data], USR)
    assert answers == read_all([built.data], USR)
    assert batched == len(answers) == 15
    first, last = answers[0], answers[-1]
    assert isinstance(first, Change)
    assert isinstance(last, Change)
    assert (first.transaction, last.transaction, last.key) == ("2@11", "1@10", (("c1", 4),))


def test_short_runs_of_tables_are_read_record_by_record() -> None:
    built = StreamBuilder().table(1, T1).table(2, T1).begin(10, 1)
    for at in range(20, 80):
        built.row(Number.INSERT, at, 1, at % 2 + 1, (at, "a"))
    built.commit(90, 1)
    assert by_column([built.data], least_rows=16) == (read_all([built.data]), 0)
    assert by_column([built.data]) == (read_all([built.data]), 60)


def test_a_transaction_waits_for_its_end_wherever_it_is_cut() -> None:
    built = StreamBuilder().table(1, T1).begin(10, 1)
    for at in range(20, 60):
        built.row(Number.INSERT, at, 1, 1, (at, "a"))
    built.commit(90, 1)
    for place in range(0, len(built.data), 41):
        assert by_column(cut(built.data, [place])) == (read_all([built.data]), 40)


def test_the_library_gives_batches(tmp_path: Path) -> None:
    built = StreamBuilder().table(1, T1).begin(10, 1)
    for at in range(20, 220):
        built.row(Number.INSERT, at, 1, 1, (at, "a"))
    file = tmp_path / "usr.cdc"
    file.write_bytes(built.commit(290, 1).begin(300, 2).data)
    refused: list[Refused] = []
    (batch,) = eventlog.batches(file, "gbase", tables=USR, refused=refused.append)
    assert isinstance(batch, ChangeBatch)
    assert (batch.table, batch.key, batch.rows.num_rows) == ("usr", ("c1",), 200)
    assert batch.rows.column("after").field("c1").to_pylist() == list(range(20, 220))
    assert list(batch.changes()) == list(eventlog.read(file, "gbase", tables=USR, refused=refused.append))
    assert [refusal.fault for refusal in refused] == [False, False]


def test_a_source_without_batches_gives_its_changes_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "usr.jsonl"
    eventlog.write([Change(eventlog.Op.DELETE, None, "usr", (("idu", 1),))], file, "changes")
    assert list(eventlog.batches(file, "changes")) == list(eventlog.read(file, "changes"))
