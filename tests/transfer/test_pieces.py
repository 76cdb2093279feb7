"""A large text file is read in pieces as it is read in one, record by record and place by place."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.files.inputs import ROW_CONTAINERS
from eventlog.files.limits import Limits
from eventlog.transfer.log_files.by_column import pieces, record_ends
from eventlog.transfer.log_files.by_column.pieces import WrongCut
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, Slabs
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

LIMITS = Limits(max_record=200)
LINE_ENDS = st.sampled_from(("\n", "\r\n"))
CELLS = st.none() | st.text('ab"\n\r,é ', max_size=8)
FRAGMENTS = st.sampled_from(
    (b"1,2\n", b'"a\nb",c\n', b'"', b"\n", b"\r\n", b",", b'""', b"x", b"\xff", b'"a""\n",b\n', b"y" * 210)
)
VALUES = st.sampled_from(
    (
        b'{"a":1,"b":"x"}\n',
        b'{"a":"\\n\\"{","b":2}\r\n',
        b'{"a":\n1}\n',
        b"[\n",
        b'{"a":1},\n',
        b"]\n",
        b"{\n",
        b'"a":2\n',
        b"}\n",
        b"\n",
        b"7\n",
        b'{"a":',
        b"\xff\n",
    )
)


def record_of(record: Any) -> tuple[Any, ...]:
    if isinstance(record, Refused):
        return record.where, record.reason, record.raw
    return record.where, record.cells


def records(slabs: Slabs) -> Iterator[tuple[Any, ...]]:
    for slab in slabs:
        if isinstance(slab, Refused):
            yield record_of(slab)
        else:
            yield from map(record_of, slab.rows() if isinstance(slab, RowBatch) else slab)


def read_in_one(data: bytes, container: str) -> list[tuple[Any, ...]]:
    _, rows = ROW_CONTAINERS[container](io.BytesIO(data), "f", LIMITS)
    return sorted(map(record_of, rows), key=repr)  # what is refused may come before the rows of its slab


def in_pieces(data: bytes, container: str, block: int, at_least: int) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many pieces there are, and their records; -1 where the file is not cut."""
    head = pieces.read_head(io.BytesIO(data), "f", container, LIMITS)
    if head is None:
        return -1, read_in_one(data, container)
    starts = range(head.begin, len(data), block)
    ends = [pieces.look_at(data[at : at + block], container) for at in starts]
    cuts = pieces.cut(head, len(data), ends, at_least, block)
    assert b"".join(data[cut.begin : cut.end] for cut in cuts) == data[head.begin :]
    read = (pieces.read_piece(io.BytesIO(data), "f", container, head.columns, cut, LIMITS) for cut in cuts)
    return len(cuts), sorted((record for slabs in read for record in records(slabs)), key=repr)


def written(rows: list[tuple[str | None, ...]], end: str) -> bytes:
    """Return well-formed CSV."""
    cells = [
        ",".join("" if cell is None else '"' + cell.replace('"', '""') + '"' for cell in row) for row in rows
    ]
    return "".join(f"{line}{end}" for line in ("a,b", *cells)).encode()


@settings(max_examples=drawn(100))
@given(st.lists(st.tuples(CELLS, CELLS), max_size=30), LINE_ENDS, st.integers(1, 40), st.booleans())
@example([("\n", '"')] * 9, "\n", 3, True)
def test_well_formed_csv_is_cut_at_every_record_that_may_begin_a_piece(
    rows: list[tuple[str | None, ...]], end: str, block: int, has_mark: bool
) -> None:
    data = (b"\xef\xbb\xbf" if has_mark else b"") + written(rows, end)
    count, found = in_pieces(data, "csv", block, 1)
    assert found == read_in_one(data, "csv")
    longest = max(block, *(len(written([row], end)) for row in [*rows, ()]))
    assert count >= (len(data) - len(written([], end))) // (2 * longest)  # the next record ends in this block


@settings(max_examples=drawn(300))
@given(st.lists(FRAGMENTS, max_size=40).map(b"".join), st.integers(1, 30), st.integers(1, 40))
def test_malformed_csv_is_read_as_in_one_or_the_cut_is_found_wrong(
    data: bytes, block: int, at_least: int
) -> None:
    try:
        _, found = in_pieces(b"a,b\n" + data, "csv", block, at_least)
    except WrongCut:
        assert b'"' in data
        return
    assert found == read_in_one(b"a,b\n" + data, "csv")


@settings(max_examples=drawn(300))
@given(st.lists(VALUES, max_size=30).map(b"".join), st.integers(1, 30), st.integers(1, 40))
@example(b'{"a":1,"b":"x"}\n' * 9, 7, 1)
def test_json_lines_are_read_as_in_one_or_the_cut_is_found_wrong(
    data: bytes, block: int, at_least: int
) -> None:
    data = b'{"a":0,"b":null}\n' + data
    try:
        _, found = in_pieces(data, "jsonl", block, at_least)
    except (WrongCut, InvalidDocument):
        return
    assert found == read_in_one(data, "jsonl")


def test_values_on_lines_of_their_own_are_cut() -> None:
    data = b"".join(json.dumps({"a": n, "b": 'x\n"{'}).encode() + b"\n" for n in range(50))
    count, found = in_pieces(data, "jsonl", 16, 100)
    assert count == 12
    assert found == read_in_one(data, "jsonl")


# --- pieces that begin where a look at the middle of a file shows the end of a record


def in_rough_parts(data: bytes, container: str, step: int) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many parts have records, and the records without their places."""
    head = pieces.read_head(io.BytesIO(data), "f", container, LIMITS)
    if head is None:
        return -1, without_places(read_in_one(data, container))
    rough = record_ends.rough_parts(head, len(data), step)
    parts = [record_ends.exact_part(part, io.BytesIO(data), container, len(data)) for part in rough]
    cuts = [part.piece for part in parts if part.piece is not None and part.piece.begin < part.piece.end]
    assert b"".join(data[cut.begin : cut.end] for cut in cuts) == data[head.begin :]
    read = (part.read(io.BytesIO(data), "f", container, LIMITS)[1] for part in parts)
    return len(cuts), without_places([record for slabs in read for record in records(slabs)])


def without_places(read: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((record[1:] for record in read), key=repr)


@settings(max_examples=drawn(40))
@given(st.lists(FRAGMENTS, max_size=40).map(b"".join), st.integers(5, 60))
@example(b'1,2\n"a\nb",c\n' * 9, 20)
@example(b'"' + b"1,2\n" * 9 + b'",c\n', 10)  # a cell that looks like records
def test_csv_whose_beginning_nobody_reads_is_read_as_in_one_or_the_cut_is_found_wrong(
    data: bytes, step: int
) -> None:
    try:
        _, found = in_rough_parts(b"a,b\n" + data, "csv", step)
    except WrongCut:
        assert b'"' in data
        return
    assert found == without_places(read_in_one(b"a,b\n" + data, "csv"))


@settings(max_examples=drawn(40))
@given(st.lists(VALUES, max_size=30).map(b"".join), st.integers(5, 60))
def test_json_whose_beginning_nobody_reads_is_read_as_in_one_or_the_cut_is_found_wrong(
    data: bytes, step: int
) -> None:
    data = b'{"a":0,"b":null}\n' + data
    try:
        _, found = in_rough_parts(data, "jsonl", step)
    except (WrongCut, InvalidDocument):
        return
    assert found == without_places(read_in_one(data, "jsonl"))


NESTED = 'one,"two"\nthree,four\n' * 3  # CSV in a cell of CSV


@pytest.mark.parametrize("cell", ["x,\ny", ',"\n"', NESTED, "", ",", "\r\n"])
def test_the_quotes_of_some_records_show_where_records_end(cell: str) -> None:
    data = written([(str(n), cell) for n in range(400)], "\n")
    assert all(in_rough_parts(data, "csv", step)[0] > 3 for step in (800, 801, 807))


def test_a_line_that_is_counted_from_a_place_can_be_looked_up() -> None:
    data = b"a,b\n" + b"".join(b'%d,"x\ny"\n' % n for n in range(300_000)) + b"odd\n"
    head = pieces.read_head(io.BytesIO(data), "f", "csv", LIMITS)
    assert head is not None
    *_, last = record_ends.rough_parts(head, len(data), record_ends.UNIT)
    part = record_ends.exact_part(last, io.BytesIO(data), "csv", len(data))
    (refused,) = (
        slab for slab in part.read(io.BytesIO(data), "f", "csv", LIMITS)[1] if isinstance(slab, Refused)
    )
    place = re.fullmatch(
        r"f: after byte (\d+) line (\d+): why", record_ends.with_place(f"{refused.where}: why")
    )
    assert place is not None
    assert data[int(place[1]) :].split(b"\n")[int(place[2]) - 1] == b"odd"
    assert (
        record_ends.with_place("f:12: line 7:9999999999999999: why") == "f:12: line 7:9999999999999999: why"
    )
