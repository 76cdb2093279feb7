"""A damaged Parquet file: a row group that cannot be read costs its own rest alone."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Row
from eventlog.files import parquet

pytestmark = pytest.mark.quick

ROWS = 20  # of a row group


def written(groups: int, **columns: Any) -> bytes:
    """Return a file whose row groups have these columns."""
    table = pa.table(columns or {"k": list(range(ROWS)), "v": [f"text {n}" for n in range(ROWS)]})
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema, compression="none") as writer:
        for _ in range(groups):
            writer.write_table(table)
    return file.getvalue()


def read(content: bytes) -> list[Row | Refused]:
    _, rows = parquet.read(io.BytesIO(content), "t.parquet")
    return list(rows)


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_row_group_that_is_damaged_costs_itself(broken: int) -> None:
    content = bytearray(written(3))
    column = pq.read_metadata(io.BytesIO(bytes(content))).row_group(broken).column(0)
    begin = column.dictionary_page_offset or column.data_page_offset
    content[begin : begin + 12] = b"\xff" * 12
    answers = read(bytes(content))
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert [one.where for one in refused] == [f"t.parquet:{ROWS * broken + 1}"]
    assert refused[0].reason.startswith("the rest of the row group cannot be read: ")
    numbers = [answer.where for answer in answers if isinstance(answer, Row)]
    assert numbers == [n for n in range(1, 3 * ROWS + 1) if (n - 1) // ROWS != broken]


def test_row_groups_are_read_together_by_their_bytes() -> None:
    content = written(5)
    size = pq.read_metadata(io.BytesIO(content)).row_group(0).total_byte_size
    portions = [sorted(groups) for groups in parquet.row_groups(io.BytesIO(content), size + 1)]
    assert [number for numbers in portions for number in numbers] == [*range(5)]
    assert all(len(numbers) > 1 for numbers in portions[:-1])
    assert list(parquet.row_groups(io.BytesIO(content[:-20]), size)) == []


def test_chosen_row_groups_have_the_numbers_of_their_rows() -> None:
    names, batches = parquet.read_batches(io.BytesIO(written(4)), "t.parquet", {1, 3})
    rows = [row for batch in batches if not isinstance(batch, Refused) for row in parquet.rows_of(batch)]
    assert names == ("k", "v")
    assert [row.where for row in rows] == [*range(ROWS + 1, 2 * ROWS + 1), *range(3 * ROWS + 1, 4 * ROWS + 1)]


def test_times_that_python_does_not_have_come_as_texts() -> None:
    far = pa.array([0, 10**17], pa.timestamp("us"))  # the year 5138, and
    later = pa.array([0, 4 * 10**17], pa.timestamp("us"))  # one after 9999
    fine = pa.array([1, 1_000_000_001], pa.timestamp("ns"))
    cells = [row.cells for row in read(written(1, far=far, later=later, fine=fine)) if isinstance(row, Row)]
    assert [str(cell)[:4] for cell in cells[1]] == ["5138", "1464", "1970"]
    assert str(cells[0][2]) == "1970-01-01 00:00:00.000000001"


def test_a_file_of_lists_or_without_a_footer_is_refused() -> None:
    for content in (written(1, k=[[1], [2]]), written(1)[:-9], b"PAR1"):
        with pytest.raises(InvalidDocument, match=r"t\.parquet: |and cells hold single values"):
            read(content)
