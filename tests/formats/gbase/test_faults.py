"""Corrupt streams: each fault is named with offset, field and value, and costs as little as it can."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core.change import Change, Op, Raw
from eventlog.core.errors import Refused
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import COMMON, LAYOUTS, BeginTx, CommTx, Number, moment, seconds_of
from tests.formats.gbase.helpers import T1, StreamBuilder, changes_of, read_all, refusals_of, write_changes
from tests.formats.gbase.mutants import WORDS, check_any_bytes, sound_stream
from tests.kit.commands import Shell
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick


def one_row() -> StreamBuilder:
    return StreamBuilder().table(7, T1).begin(1, 1).row(Number.INSERT, 2, 1, 7, (15, "abc")).commit(3, 1)


SCHEMA_END = 36 + 29
BEGIN_END = SCHEMA_END + 40
ROW_END = BEGIN_END + 40 + 4 + 4


def patched(at: int, data: bytes) -> bytes:
    stream = bytearray(one_row().data)
    stream[at : at + len(data)] = data
    return bytes(stream)


def u32(number: int) -> bytes:
    return struct.pack(">I", number)


@pytest.mark.parametrize(
    ("at", "data", "reason"),
    [
        (
            SCHEMA_END,
            u32(5),
            "byte 65: header size is 5: at least 16 are needed; 124 bytes from 65 on were not read",
        ),
        (
            SCHEMA_END + 4,
            u32(1 << 31),
            "byte 69: payload size is -2147483648: it is negative; 124 bytes from 65",
        ),
        (
            SCHEMA_END + 4,
            u32(1 << 30),
            "record size is 1073741864: the limit is 268435456; 124 bytes from 65 on",
        ),
        (SCHEMA_END + 8, u32(67), "byte 73: packetization scheme is 67: it is always 66"),
        (SCHEMA_END + 12, u32(99), "byte 77: record number is 99: no such record type"),
        (SCHEMA_END + 28, u32(1 << 30), "byte 93: time is 4611686020177387904: not a moment"),
    ],
)
def test_a_fault_says_offset_field_and_value(at: int, data: bytes, reason: str) -> None:
    answers = read_all([patched(at, data)])
    assert reason in refusals_of(answers)[0].reason
    assert refusals_of(answers)[0].where.startswith("in:")
    assert not changes_of(answers)


def test_a_record_of_the_largest_size_is_read() -> None:
    (change,) = read_all([one_row().data], settings=GbaseSettings(max_record=SCHEMA_END))
    assert isinstance(change, Change)
    (refused,) = refusals_of(read_all([one_row().data], settings=GbaseSettings(max_record=SCHEMA_END - 1)))
    assert f"record size is {SCHEMA_END}: the limit is {SCHEMA_END - 1}" in refused.reason


def test_a_row_whose_header_is_too_short_for_its_table_is_raw() -> None:
    refused, change = read_all([patched(BEGIN_END, u32(36) + u32(12))])
    assert isinstance(refused, Refused)
    assert "header size is 36: 40 are needed for this table" in refused.reason
    assert isinstance(change, Change)
    assert (change.fields, change.raw is not None) == ((), True)


def test_a_record_whose_header_is_too_short_for_its_kind_is_refused() -> None:
    refused, *others = read_all([patched(SCHEMA_END, u32(36) + u32(4))])
    assert isinstance(refused, Refused)
    assert "header size is 36: BEGINTX has 40" in refused.reason
    assert changes_of(others) == []


def test_a_moment_is_within_the_years_one_to_9999() -> None:
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
    assert [moment(seconds_of(text)) for text in (first, last)] == [first, last]
    assert [moment(seconds_of(first) - 1), moment(seconds_of(last) + 1)] == [None, None]


def test_a_commit_at_no_moment_leaves_its_transaction_open() -> None:
    stream = StreamBuilder().table(7, T1).begin(1, 1).row(Number.INSERT, 2, 1, 7, (15, "abc"))
    answers = read_all([stream.say(CommTx(3, 1, 1 << 56)).data])
    reasons = [refused.reason for refused in refusals_of(answers)]
    assert changes_of(answers) == []
    assert "not a moment between the years 1 and 9999" in reasons[0]
    assert "is unfinished: 1 record is left out" in reasons[-1]


def test_a_limit_of_records_reads_up_to_the_first_that_is_larger() -> None:
    built = StreamBuilder().table(7, T1)
    sizes = []
    for number in range(5):
        built.begin(3 * number, number)
        before = len(built.data)
        built.row(Number.INSERT, 3 * number + 1, number, 7, (number, "x" * (15 - number)))
        sizes.append(len(built.data) - before)
        built.commit(3 * number + 2, number)
    assert sizes == sorted(sizes, reverse=True)
    for limit in sizes + [size - 1 for size in sizes]:
        limited = GbaseSettings(max_record=max(limit, SCHEMA_END))
        answers = read_all([StreamBuilder().data + built.data], settings=limited)
        assert bool(refusals_of(answers)) == (sizes[0] > max(limit, SCHEMA_END))


def test_words_that_must_be_0_are_reported_and_nothing_more() -> None:
    refused, change = read_all([patched(20, u32(9))])
    assert isinstance(refused, Refused)
    assert not refused.fault
    assert "byte 20: flags is 9" in refused.reason
    assert isinstance(change, Change)


def test_a_corrupt_row_travels_raw_in_its_transaction() -> None:
    row_at = BEGIN_END + 40 + 4
    refused, change = read_all([patched(row_at, b"\x07")])
    assert isinstance(refused, Refused)
    assert refused.where == f"in:{BEGIN_END}"
    assert f"byte {row_at}: column c2 is 07616263: not the start of 4 bytes of varchar" in refused.reason
    assert isinstance(change, Change)
    assert (change.op, change.fields, change.key) == (Op.INSERT, (), ())
    assert change.raw == Raw(None, bytes.fromhex("0000000f07616263"))
    assert change.fact("decoded") is False
    assert changes_of(read_all([write_changes([change])])) == [change]


def test_sizes_that_do_not_add_up_are_a_corrupt_row() -> None:
    refused, change = read_all([patched(BEGIN_END + 36, u32(9))])
    assert (
        f"byte {BEGIN_END + 36}: sizes of variable columns is 00000009: they add up to 4 in neither"
        in str(refused)
    )
    assert changes_of([change])[0].raw is not None


def test_a_corrupt_half_leaves_the_other_half_decoded() -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1).row(Number.UPDBEF, 2, 1, 7, (1, "abc"))
    place = len(built.data) - 4
    built.row(Number.UPDAFT, 2, 1, 7, (2, "def")).commit(3, 1)
    stream = bytearray(built.data)
    stream[place] = 9
    (change,) = changes_of(read_all([bytes(stream)]))
    assert change.after == {"c1": 2, "c2": "def"}
    assert change.before == {}
    assert change.raw == Raw(bytes.fromhex("0000000109616263"), None)
    assert changes_of(read_all([write_changes([change])])) == [change]


@pytest.mark.parametrize("at", [24, 28, 32])
def test_a_schema_that_does_not_add_up_costs_its_table(at: int) -> None:
    refused, change = read_all([patched(at, u32(3))])
    assert "the header has" in str(refused)
    assert "the rows of table 7 are raw" in str(refused)
    assert changes_of([change])[0].raw == Raw(None, bytes.fromhex("0000000f03616263"))


def test_rows_of_a_table_never_described_are_raw_and_said_once() -> None:
    built = StreamBuilder().table(7, T1)
    start = len(built.data)
    built.begin(1, 1).row(Number.INSERT, 2, 1, 7, (15, "abc")).row(
        Number.INSERT, 3, 1, 7, (16, "abc")
    ).commit(4, 1)
    answers = read_all([built.data[start:]])
    assert ["no schema text of this table" in refused.reason for refused in refusals_of(answers)] == [True]
    assert [change.fact("decoded") for change in changes_of(answers)] == [False, False]


@pytest.mark.parametrize(
    ("at", "data", "reason"),
    [
        (24, u32(3), "the rows of table 7 are raw"),
        (BEGIN_END + 44, b"\x09", "byte 149: column c2 is"),
    ],
)
def test_rows_that_come_out_raw_are_not_counted_as_left_out(
    tmp_path: Path, shell: Shell, at: int, data: bytes, reason: str
) -> None:
    (tmp_path / "s.bin").write_bytes(patched(at, data))
    done = shell.run("convert", "--from", "gbase", "--to", "changes", "s.bin")
    assert (done.code, json.loads(done.stdout)["extra"]["decoded"]) == (0, False)
    assert reason in done.stderr
    assert "left out" not in done.stderr


def test_a_record_cut_off_at_the_end_is_reported() -> None:
    for size in range(1, 36):
        stream = one_row().data
        assert "it is cut off" in str(read_all([stream[:-size]]))


def test_more_header_than_is_known_is_skipped() -> None:
    stream = one_row().data
    header, payload, scheme, number = COMMON.unpack_from(stream, BEGIN_END)
    longer = COMMON.pack(header + 8, payload, scheme, number)
    row = longer + stream[BEGIN_END + 16 : BEGIN_END + 40] + bytes(8) + stream[BEGIN_END + 40 :]
    assert changes_of(read_all([stream[:BEGIN_END] + row])) == changes_of(read_all([stream]))


def test_a_payload_where_none_belongs_costs_the_record() -> None:
    commit = LAYOUTS[Number.COMMTX]
    stream = one_row().data
    last = stream[: -commit.size] + commit.pack(commit.make((3, 1, 0)), payload=b"?")
    answers = read_all([last])
    assert "payload size is 1: COMMTX has no payload" in str(answers[0])
    assert not changes_of(answers)


def test_a_table_described_anew_is_read_anew() -> None:
    built = (
        one_row()
        .table(7, "c1 integer, c3 char(2)")
        .begin(4, 1)
        .row(Number.DELETE, 5, 1, 7, (3, "xy"))
        .commit(6, 1)
    )
    first, second = changes_of(read_all([built.data]))
    assert (list(first.after), list(second.before)) == (["c1", "c2"], ["c1", "c3"])
    assert changes_of(read_all([write_changes([first, second])])) == [first, second]


def test_sizes_allocate_nothing_before_their_bytes_are_there() -> None:
    tracemalloc.start()
    try:
        read_all([COMMON.pack(16, 60 << 20, 66, 200) + bytes(1000)])
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_large_record_in_single_bytes_is_not_copied_for_each() -> None:
    stream = (
        StreamBuilder()
        .table(7, "c1 lvarchar(32000)")
        .begin(1, 1)
        .row(Number.INSERT, 2, 1, 7, ("x" * 32000,))
        .commit(3, 1)
        .data
    )
    (change,) = read_all(bytes((byte,)) for byte in stream)
    assert changes_of([change])[0].after == {"c1": "x" * 32000}


def test_the_limit_of_a_record_is_a_setting() -> None:
    stream = one_row().data
    assert "the limit is 40" in str(read_all([stream], settings=GbaseSettings(max_record=40)))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_sound_stream_passes_the_check(size: int) -> None:
    check_any_bytes(sound_stream(), size)


SOUND = sound_stream()
places = st.integers(0, len(SOUND) - 1)
mutations = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), places, st.integers(0, 255)),
        st.tuples(st.just("word"), places, st.sampled_from(WORDS)),
        st.tuples(st.just("cut"), places, st.integers(1, 60)),
        st.tuples(st.just("double"), places, st.integers(1, 200)),
    ),
    min_size=1,
    max_size=6,
)


def mutate(changes: list[tuple[str, int, int]]) -> bytes:
    stream = bytearray(SOUND)
    for kind, at, number in changes:
        if kind == "byte":
            stream[at : at + 1] = bytes((number,))
        elif kind == "word":
            stream[at & ~3 : (at & ~3) + 4] = u32(number)
        elif kind == "cut":
            del stream[at : at + number]
        else:
            stream[at:at] = stream[at : at + number]
    return bytes(stream)


def test_a_begin_that_cannot_be_read_ends_what_was_open_under_its_number() -> None:
    built = StreamBuilder().table(2, "c1 integer, c2 varchar(20,0)")
    built.begin(12, 2).row(Number.INSERT, 13, 2, 2, (1, "x"))  # and its end was lost
    built.say(BeginTx(19, 2, 1 << 56, 1001)).row(Number.INSERT, 20, 2, 2, (3, "")).commit(21, 2)
    found = read_all([built.data])
    assert changes_of(found) == []
    assert [one.reason.partition(": ")[2] for one in refusals_of(found)] == [
        f"time is {1 << 56}: not a moment between the years 1 and 9999",
        "its BEGINTX was not seen, so its records are left out",
    ]


@settings(max_examples=drawn(1500))
@example([("byte", 655, 1), ("cut", 456, 28)], 1)
@given(mutations, st.integers(1, 400))
def test_mutated_streams_are_read_safely(changes: list[tuple[str, int, int]], size: int) -> None:
    check_any_bytes(mutate(changes), size)


@settings(max_examples=drawn(300))
@given(st.binary(max_size=400))
@example(b"")
def test_noise_is_read_safely(data: bytes) -> None:
    check_any_bytes(data)
