"""A capture that is read in stretches between cuts gives what it gives when it is read from its start."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.gbase.changes import StreamReader
from eventlog.gbase.cuts import Cut, CutFinder
from eventlog.gbase.records import CommTx, Discard, Number, RbTx, Truncate
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream_sources import read_source, reader
from tests.gbase.helpers import T1, StreamBuilder, read_all
from tests.gbase.mutants import sound_stream
from tests.tiers import drawn

pytestmark = pytest.mark.quick

SETTINGS = GbaseSettings()


def cuts_of(data: bytes, apart: int = 1, chunk: int = 1000) -> list[Cut]:
    """Return the cuts, of a stream that comes in chunks."""
    found = CutFinder(apart)
    return [cut for at in range(0, len(data), chunk) for cut in found.feed(data[at : at + chunk])]


def by_stretches(data: bytes, cuts: list[Cut]) -> list[Change | Refused]:
    """Return what readers of the parts return, one after the other."""
    built: list[Change | Refused] = []
    ends = [*(cut.offset for cut in cuts), len(data)]
    for cut, end in zip([Cut(0), *cuts], ends, strict=True):
        source = Source("in", "in", (), [data[cut.offset : end]])
        stream: StreamReader = reader(SETTINGS, Tables(), source)
        stream.start_at(cut)
        built += read_source(stream, source, SETTINGS)
    return built


def transaction(built: StreamBuilder, sequence: int, slot: int, name: str, table: int = 1) -> StreamBuilder:
    """Return one insert, and its commit."""
    built.begin(sequence, slot).row(Number.INSERT, sequence + 1, slot, table, (sequence, name))
    return built.commit(sequence + 2, slot)


def test_cuts_stand_where_no_transaction_is_open() -> None:
    built = StreamBuilder().table(1, T1)
    described = built.data
    first = len(transaction(built, 10, 1, "a").data)
    built.begin(20, 2)
    transaction(built, 30, 3, "b")
    second = len(built.commit(40, 2).data)
    assert [(cut.offset, cut.described, cut.named) for cut in cuts_of(built.data)] == [
        (len(described), (described,), ()),
        (first, (described,), (described,)),
    ]
    assert [cut.offset for cut in cuts_of(built.data + b"\0" * 16)][-1] == second


def test_what_was_said_once_is_not_said_again() -> None:
    built = StreamBuilder().table(1, T1)
    built.schemas[2] = built.schemas[1]
    for at in range(3):
        transaction(built, 10 * at + 10, 1, "a", table=2)
    whole = read_all([built.data])
    (refused,) = [answer for answer in whole if isinstance(answer, Refused)]
    assert "no schema text of this table was seen" in refused.reason
    assert by_stretches(built.data, cuts_of(built.data)) == whole


def test_a_table_that_is_emptied_in_a_later_stretch_keeps_its_columns() -> None:
    built = transaction(StreamBuilder().table(1, T1), 10, 1, "a")
    built.begin(20, 1).say(Truncate(21, 1, 1)).commit(22, 1)
    whole = read_all([built.data])
    assert isinstance(whole[-1], Change)
    assert whole[-1].fact("columns") == T1
    assert by_stretches(built.data, cuts_of(built.data)) == whole


def test_a_transaction_that_never_ends_allows_no_cut() -> None:
    built = StreamBuilder().table(1, T1).begin(5, 9)
    for at in range(5):
        transaction(built, 10 * at + 10, 1, "a")
    assert len(cuts_of(built.data)) == 1, "but before it"
    assert cuts_of(built.data, apart=len(built.data)) == []


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
        elif step in _KINDS:
            built.row(_KINDS[step], sequence, slot, table, (sequence, "a"))
        elif step == "C":
            built.say(CommTx(sequence, slot, 1 << 60 if more == 3 else 1_750_000_000))
        elif step == "N":
            built.data += b"\0\0\0\x10\0\0\0\0\0\0\0\x42\0\0\0\x63"  # of an unknown number
        else:
            built.say({"R": RbTx(sequence, slot), "X": Discard(sequence - more, slot)}.get(step)
                     or Truncate(sequence, slot, table))  # fmt: skip
    return (described if said and said[0][3] else b"") + built.data


_KINDS = {"I": Number.INSERT, "U": Number.UPDBEF, "D": Number.DELETE}


@given(steps, st.integers(1, 400), st.integers(1, 300))
@example([(step, 1, 1, 1) for step in "BICBtC"], 1, 7)
@example([(step, 1, 1, 1) for step in "BIXCBtC"], 1, 7)
@example([(step, 1, 1, 1) for step in "ICBtC"], 1, 7)
@example([(step, 1, 1, 0) for step in "BICBICT"], 1, 7)
@example([(step, 1, 1, 0) for step in "BIRBIRBIC"], 1, 7)
@example([("B", 1, 1, 1), ("I", 1, 1, 0), ("C", 1, 1, 3), ("I", 1, 1, 0), ("C", 1, 1, 0)], 1, 7)
def test_stretches_give_what_the_whole_gives(said: list[Step], apart: int, chunk: int) -> None:
    data = stream_of(said)
    assert by_stretches(data, cuts_of(data, apart, chunk)) == read_all([data])


@settings(max_examples=drawn(60))
@given(st.integers(0, len(sound_stream()) - 1), st.integers(0, 255), st.integers(1, 60))
def test_so_do_those_of_a_broken_stream(at: int, byte: int, apart: int) -> None:
    data = bytearray(sound_stream() * 2)
    data[at] = byte
    assert by_stretches(bytes(data), cuts_of(bytes(data), apart)) == read_all([bytes(data)])


@pytest.mark.parametrize("chunk", [1, 15, 17, 1000])
def test_however_the_bytes_come_the_cuts_are_the_same(chunk: int) -> None:
    data = sound_stream() * 3
    assert cuts_of(data, chunk=chunk) == cuts_of(data)
