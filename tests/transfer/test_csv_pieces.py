"""CSV read by pieces equals CSV read row by row: rows, their lines and bytes, and what is refused."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core.errors import Refused
from eventlog.core.formats import Row
from eventlog.files import csv
from eventlog.transfer.log_files.by_column.row_batches import MixedRows, RowBatch, read_pieces
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

NAMES = ["a", "b"]
LONGEST = 60  # bytes of a record
GOOD = b"1,2\n"


class Trickle(io.BytesIO):
    """A file that returns few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._size)


def by_row(data: bytes) -> list[Row | Refused]:
    return list(csv.rows(csv.Lines(io.BytesIO(data), LONGEST, 1), "f", len(NAMES)))


def by_piece(data: bytes, size: int) -> Iterator[Row | Refused]:
    for piece in read_pieces(Trickle(data, size), 1, "f", NAMES, LONGEST):
        if isinstance(piece, RowBatch):
            rows = list(piece.rows())
            assert piece.where.tolist() == [row.where for row in rows]
            cells = zip(*(column.to_pylist() for column in piece.columns.values()), strict=True)
            assert list(cells) == [row.cells for row in rows]
            yield from rows
        else:
            yield from piece.one_by_one() if isinstance(piece, MixedRows) else piece


def compare(data: bytes, size: int) -> None:
    assert list(by_piece(data, size)) == by_row(data)


@settings(max_examples=drawn(600))
@given(
    st.lists(
        st.sampled_from(
            (
                *[GOOD] * 6,
                *(b'"', b'"', b",", b"\n", b"\r", b"\r\n", b"x", b"\xc3\xa9", b"\xff"),
                *(b"1,2,3\n", b'a"b,c\n', b'"a\nb",c\n', b'"a""b",""\n'),
                *(b"y" * 30, b'"' + b"z" * 50 + b'",1\n'),
            )
        ),
        max_size=40,
    ),
    st.sampled_from((7, 50, 200, 1 << 20)),
)
@example([GOOD, b'"a', GOOD, b'b\xff",1\n', GOOD], 1 << 20)
@example([GOOD, b'"' + b"x\n" * LONGEST + b'",1\n', b"1,2,3\n", GOOD], 1 << 20)
@example([GOOD, b'"a"\r,', GOOD, b'"\n', GOOD], 1 << 20)
@example([b'x"1,2\n', GOOD, b'"', GOOD, b'",1\n'], 1 << 20)
def test_pieces_have_the_rows_that_are_read_one_by_one(parts: list[bytes], size: int) -> None:
    compare(b"".join(parts), size)


IRREGULAR = {
    "a cell too many": b"1,2,3\n",
    "a cell too few": b"1\n",
    "a quote in a cell": b'a"b,1\n',
    "text after a quote": b'"a"b,1\n',
    "a quote that is never closed": b'"open,1\n',
    "a wrong byte on a second line": b'"1\n2",x\xff\n',
    "a wrong byte": b"\xff,1\n",
    "a lone return": b"a\rb,1\n",
    "a lone return after a quote": b'"a"\rb,1\n',
    "a cell too many on two lines": b'"a\nb",1,2\n',
    "a long line": b"x" * LONGEST + b",1\n",
    "a long record": b'"' + b"x\n" * LONGEST + b'",1\n',
    "blanks": b"  \n",
}


@pytest.mark.parametrize("bad", IRREGULAR)
def test_a_record_that_is_not_regular_is_read_alone(bad: str) -> None:
    data = GOOD * 5 + IRREGULAR[bad] + b'"\nx",2\r\n\n' + GOOD * 5
    compare(data, len(data))
    pieces = read_pieces(io.BytesIO(data), 1, "f", NAMES, LONGEST)
    assert sum(len(piece.where) for piece in pieces if isinstance(piece, RowBatch | MixedRows)) >= 10


def test_records_whose_quotes_go_on_in_the_next_piece_are_read_with_it() -> None:
    data = GOOD * 3 + b"1,2,3\n" + b'"a' + GOOD * 8 + b'",1\n' + GOOD
    for size in range(20, 60):
        compare(data, size)
