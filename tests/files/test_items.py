"""Blocks come back by runs, and items sorted, from memory and from disk; a full disk names its folder."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.files.stores import SortedItems, SpoolFile

pytestmark = pytest.mark.quick


def test_a_run_is_read_while_others_grow() -> None:
    with closing(SpoolFile()) as spool:
        spool.write((0, number % 2, str(number).encode()) for number in range(100))
        for block in spool.read(0, 0):
            spool.write([(1, 0, block)])
        spool.delete(0)
        assert [*spool.read(0, 0), *spool.read(0, 1)] == []
        assert [*spool.read(1, 0)] == [str(number).encode() for number in range(0, 100, 2)]


def test_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(SpoolFile()) as spool:
        spool.write([(0, 0, b"x" * 100_000)])
        assert list(tmp_path.iterdir()) == []
        assert [*spool.read(0, 0)] == [b"x" * 100_000]


def test_a_disk_without_room_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(SpoolFile()) as spool:
        spool.write([(0, 0, b"")])
        assert isinstance(spool._disk, sqlite3.Connection)
        spool._disk.execute("pragma max_page_count = 10")
        with pytest.raises(OSError, match="No space left") as raised:
            spool.write([(0, 0, b"x" * 1_000_000)])
        assert raised.value.filename == str(tmp_path)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=30),
    st.sampled_from((1, 40_000)),  # one block on disk holds all items, or two
    st.integers(0, 10),
)
def test_what_memory_does_not_hold_comes_back_sorted(
    items: list[tuple[int, int]], size: int, memory: int
) -> None:
    with closing(
        SortedItems[tuple[int, int]](lambda item: item[0], lambda item: size, memory * size)
    ) as runs:
        for item in items:
            runs.add(item)
        expected = sorted(items, key=lambda item: item[0])
        assert list(runs.in_order()) == list(runs.in_order()) == expected
