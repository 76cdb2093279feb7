"""Captured bytes, and the four flavours in which sizes and lengths are written."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.change import Change, Op
from eventlog.core.tables import Tables
from eventlog.core.tablesfile import read as read_tables
from eventlog.formats.gbase.changes import StreamReader
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.hex_dump import DumpedRead, read_dump
from eventlog.formats.gbase.stream import Failed, Fault, RowRecord, SchemaRecord, Stream
from eventlog.formats.gbase.transactions import Position
from tests.formats.gbase.helpers import HERE, changes_of, cut, facts, read_all, refusals_of, write_changes

pytestmark = pytest.mark.quick

CAPTURED = facts("captured.json")
FLAVOURS = facts("flavours.json")
CAPTURED_STREAM = b"".join(bytes.fromhex(record["hex"]) for record in CAPTURED)


def flavour_records(order: str, prefix: int) -> list[bytes]:
    hexes = (record["hex"] for record in FLAVOURS["records"])
    return [bytes.fromhex(text if isinstance(text, str) else text[f"{order} {prefix}"]) for text in hexes]


BIG = b"".join(flavour_records("big", 1))
EXPECTED_BIG = read_all([BIG])
each_flavour = pytest.mark.parametrize(
    "flavour", FLAVOURS["flavours"], ids=lambda f: f"{f['order']}-{f['prefix']}"
)


def facts_of(item: object) -> dict[str, Any]:
    """Return a record by the words of the facts."""
    if isinstance(item, SchemaRecord):
        head = item.head._asdict()
        names = {"fixed_columns": "n_fixed", "variable_columns": "n_variable"}
        text = item.schema.text if item.schema else None
        return {names.get(name, name): value for name, value in head.items()} | {"columns": text}
    if isinstance(item, RowRecord):
        assert item.schema is not None
        row = dict(zip(item.schema.names, item.values, strict=True))
        return {**{n: getattr(item, n) for n in ("sequence", "transaction", "table", "flags")}, "row": row}
    if isinstance(item, Failed):
        return {"flags": item.head.flags, "error": item.head.code}
    return item._asdict()  # type: ignore[no-any-return,attr-defined]


def expected(fields: dict[str, Any]) -> dict[str, Any]:
    names = {"userdata": "table", "txid": "transaction", "userid": "user"}
    left_out = ("record_number", "varlen_order", "varlen_sizes")
    return {names.get(name, name): value for name, value in fields.items() if name not in left_out}


def test_each_captured_record_says_what_its_fields_are() -> None:
    items = list(Stream().feed(CAPTURED_STREAM))
    assert [facts_of(item) for item in items] == [expected(record["fields"]) for record in CAPTURED]


@each_flavour
def test_each_record_of_a_flavour_says_what_its_fields_are(flavour: dict[str, Any]) -> None:
    items = list(Stream().feed(b"".join(flavour_records(**flavour))))
    assert [facts_of(item) for item in items] == [
        expected(record["fields"]) for record in FLAVOURS["records"]
    ]


@each_flavour
def test_a_flavour_is_written_as_it_was_read(flavour: dict[str, Any]) -> None:
    """The rows of the committed transactions, byte for byte."""
    changes = changes_of(read_all([b"".join(flavour_records(**flavour))]))
    stream = write_changes(changes)
    kept = (
        0,
        2,
        3,
        8,
        9,
        11,
        12,
        13,
        14,
        15,
    )  # neither the rolled back, nor the discarded, nor TIMEOUT and ERROR
    records = flavour_records(**flavour)
    whole = b"".join(records[at] for at in kept)
    assert stream == whole
    assert changes_of(read_all([stream])) == changes


def test_the_original_insert_comes_out() -> None:
    tables = read_tables(
        '[tables.t1]\nkey = ["c1"]\nnumber = 111\ncolumns = { c1 = "integer", c2 = "varchar(10)" }'
    )
    (change,) = read_all([CAPTURED_STREAM], tables)
    assert change == Change(
        Op.INSERT,
        None,
        "t1",
        (("c1", 15),),
        change.fields,  # type: ignore[union-attr]
        position="47269044304",
        transaction="39@47269044248",
        time="2025-03-23T10:57:19Z",
        user="2005",
        extra=(
            ("number", 111),
            ("columns", "c1 integer, c2 varchar(20,0)"),
            ("size-order", "little"),
            ("varchar-prefix", 2),
            ("begin", "2025-03-23T10:57:19Z"),
            ("commit", 47269044384),
        ),
    )
    assert change.after == {"c1": 15, "c2": "abcabcabc"}
    assert change.before == {}


def test_an_unknown_table_is_called_by_its_number() -> None:
    (change,) = changes_of(read_all([CAPTURED_STREAM]))
    assert (change.schema, change.table, change.key) == (None, "table_111", ())


def test_only_what_was_committed_and_not_discarded_comes_out() -> None:
    reported = [
        (c.op, c.before.get("id"), c.after.get("id"), c.transaction) for c in changes_of(EXPECTED_BIG)
    ]
    assert reported == [
        (Op.INSERT, None, 101, "77@90194616344"),
        (Op.UPDATE, 101, 101, "77@90194616344"),
        (Op.DELETE, 101, None, "79@90194628632"),
        (Op.TRUNCATE, None, None, "79@90194628632"),
    ]


def test_errors_of_the_server_are_reported() -> None:
    usable, over = refusals_of(EXPECTED_BIG)
    assert "-83713 CDC_E_LSN" in usable.reason
    assert "session continues" in usable.reason
    assert "-83790" in over.reason
    assert (usable.fault, over.fault) == (False, True)
    assert "is over" in over.reason


@each_flavour
def test_byte_by_byte_is_the_same(flavour: dict[str, Any]) -> None:
    stream = b"".join(flavour_records(**flavour))
    assert read_all(stream[at : at + 1] for at in range(len(stream))) == read_all([stream])


@given(st.sets(st.integers(0, len(BIG))))
def test_cut_anywhere_is_the_same(places: set[int]) -> None:
    assert read_all(cut(BIG, places)) == EXPECTED_BIG


def test_the_restart_position_is_the_oldest_open_begin_else_the_last_commit() -> None:
    records = flavour_records("big", 1)
    reader = StreamReader(Tables())
    list(reader.feed(b"".join(records[:11])))
    assert reader.position == Position(FLAVOURS["restart"]["lowest_begin_sequence_of_open_txs"], 0)
    list(reader.feed(b"".join(records[11:])))
    last = FLAVOURS["restart"]["after_all"]
    assert reader.position == Position(last, last)


def test_a_restart_repeats_nothing_and_loses_nothing() -> None:
    records = flavour_records("big", 1)
    everything = changes_of(EXPECTED_BIG)
    for stop in range(len(records)):
        first = StreamReader(Tables())
        done = changes_of(first.feed(b"".join(records[:stop])))
        again = StreamReader(Tables(), since=first.position)
        assert done + changes_of(again.feed(BIG)) == everything


STALE = [bytes.fromhex(record["hex"] + record["stale"]) for record in CAPTURED]


@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_buffers_as_hex_lines_are_cut_at_the_record(case: Any) -> None:
    lines = "\n".join(case(buffer.hex()) for buffer in STALE).encode()
    assert read_all([lines], settings=GbaseSettings(framed=True)) == read_all([CAPTURED_STREAM])


def test_the_typed_dump_is_read_with_its_notes_and_stale_tails() -> None:
    dump = (HERE / "dump.txt").read_bytes()
    reads = list(read_dump([dump], 1 << 20))
    assert [len(read.data) for read in reads if isinstance(read, DumpedRead)] == [68, 68, 64, 64, 64]
    assert reads == [DumpedRead(buffer) for buffer in STALE]
    assert read_all([dump], settings=GbaseSettings(framed=True)) == read_all([CAPTURED_STREAM])


@given(st.sets(st.integers(0, 2000)))
def test_a_dump_may_be_cut_anywhere(places: set[int]) -> None:
    dump = (HERE / "dump.txt").read_bytes()
    assert list(read_dump(cut(dump, places), 1 << 20)) == [DumpedRead(buffer) for buffer in STALE]


def test_a_dump_reports_lines_that_are_no_hex() -> None:
    lines = CAPTURED_STREAM[:65].hex() + "\nnot hex\n" + "00" * 3
    wrong, short = refusals_of(read_all([lines.encode()], settings=GbaseSettings(framed=True)))
    assert wrong.where == "in:2"
    assert "not hex" in wrong.reason
    assert short.where == "in:read 2:0"
    assert "16 bytes are needed" in short.reason


def test_no_item_of_a_sound_stream_is_a_fault() -> None:
    assert not any(isinstance(item, Fault) for item in Stream().feed(BIG))
    ends = list(accumulate(len(record) for record in flavour_records("big", 1)))
    assert ends[-1] == len(BIG)
