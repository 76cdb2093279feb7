"""Long columns are the same in memory and on disk, where they leave no file."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest

from eventlog.files.long_columns import ColumnMemory, GrowingColumn

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("size", [0, 100, 1 << 20])
def test_a_column_is_the_same_wherever_it_is(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    memory = ColumnMemory(size, block=7)
    column = memory.full(30, 5, np.int64)
    column[3] = 4
    column.sort()
    assert column.tolist() == [4] + [5] * 29
    letters, numbers = GrowingColumn(memory, np.str_), GrowingColumn(memory, np.int32)
    for count in (0, 1, 20, 3):
        letters.extend(["S", "W", ""][:1] * count)
        numbers.extend(range(count))
    assert letters.numbers.tolist() == ["S"] * 24
    assert numbers.numbers.tolist() == [0, *range(20), *range(3)]
    even, same = memory.keep((numbers.numbers, letters.numbers), lambda part: numbers.numbers[part] % 2 == 0)
    assert even.tolist() == [0, *range(0, 20, 2), 0, 2]
    assert same.tolist() == ["S"] * 13
    assert [*memory.blocks(15)] == [slice(0, 7), slice(7, 14), slice(14, 15)]
    assert [*tmp_path.iterdir()] == []


def test_a_column_for_which_the_disk_is_too_small_is_an_error() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, hard))
    try:
        assert ColumnMemory(0).full(500, 1, np.int64).sum() == 500
        with pytest.raises(OSError, match="File too large") as fault:
            ColumnMemory(0).full(600, 1, np.int64)
        assert fault.value.filename == tempfile.gettempdir()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
