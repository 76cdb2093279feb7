"""What is packed for the way to Python comes out as it went in."""

from __future__ import annotations

import pyarrow as pa
import pytest
from eventlog_spark.shuffle import pack_cells, pack_name, unpack_all_cells, unpack_cells, unpack_name
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.quick

TEXTS = st.text(max_size=5) | st.sampled_from(("", " ", "=", "1 a", "é=中", "\U0001f600"))
ROWS = st.lists(st.lists(st.none() | TEXTS, max_size=4), min_size=1, max_size=5)


@given(TEXTS, TEXTS)
def test_a_name_is_packed_and_unpacked(table: str, key: str) -> None:
    assert unpack_name(pack_name(table, key)) == (table, key)


@given(ROWS)
def test_cells_are_packed_and_unpacked(rows: list[list[str | None]]) -> None:
    packed = [pack_cells(row) for row in rows]
    assert [list(unpack_cells(*row)) for row in packed] == rows
    lengths, texts = (pa.array(side, pa.string()) for side in zip(*packed, strict=True))
    found, counts = unpack_all_cells(lengths, texts)
    found.validate(full=True)
    assert found.to_pylist() == [cell for row in rows for cell in row]
    assert counts.tolist() == [len(row) for row in rows]
