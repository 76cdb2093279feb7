"""Small files are whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.files.durable import write_whole

pytestmark = pytest.mark.quick


def test_a_small_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for text in ("one", "two"):
        write_whole(tmp_path / "state", text)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("state", "two")]


def test_a_small_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "state" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="state"):
        write_whole(tmp_path / "state", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
