"""Items come back by parts and keys, or sorted, from memory and from disk; a full disk names its folder."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.files.stores import Key, KeyedItems, SortedItems

pytestmark = pytest.mark.quick

KEYS = st.one_of(st.integers(0, 2), st.integers(-(1 << 63), (1 << 63) - 1))
STEPS = st.lists(st.tuples(st.integers(0, 3), KEYS, st.integers(0, 80), st.booleans()), max_size=40)


def same_kind(key: int, kind: int) -> Key:
    text = f"é{key}"
    return (key, text, text.encode())[kind]


@given(STEPS, st.integers(0, 2))
def test_items_come_back_by_key_then_by_arrival(steps: list[tuple[int, int, int, bool]], kind: int) -> None:
    parts: dict[int, list[tuple[Key, int]]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    with closing(KeyedItems[int](100)) as store:
        for number, (part, drawn, size, take) in enumerate(steps):
            key = same_kind(drawn, kind)
            store.add(part, number, size, key)
            parts[part].append((key, number))
            sizes[part] += size
            expected = [item for _, item in sorted(parts[part])]
            if take:
                items = store.pop(part)
                assert list(items) == list(items) == expected
                assert items.count == len(expected)
                del parts[part], sizes[part]
                items.close()
            assert store.size == sum(sizes.values())
        assert list(store.pop("none")) == []


def test_a_part_on_disk_is_read_while_others_grow() -> None:
    with closing(KeyedItems[str](0)) as store:
        for number in range(100):
            store.add("read", str(number), 1)
        for item in store.pop("read"):
            store.add("written", item, 1)
        assert list(store.pop("written")) == [str(number) for number in range(100)]


def test_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(KeyedItems[bytes](0)) as store:
        store.add(0, b"x" * 100_000, 1)
        assert list(tmp_path.iterdir()) == []
        assert list(store.pop(0)) == [b"x" * 100_000]


def test_a_disk_without_room_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(KeyedItems[bytes](0)) as store:
        store.add(0, b"", 1)
        assert isinstance(store._disk, sqlite3.Connection)
        store._disk.execute("pragma max_page_count = 10")
        with pytest.raises(OSError, match="No space left") as raised:
            store.add(0, b"x" * 1_000_000, 1)
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
