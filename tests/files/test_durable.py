"""Small files that are replaced: whole, and never through a link that someone else prepared."""

from __future__ import annotations

import stat
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


def test_a_file_is_replaced_and_no_prepared_link_is_opened(tmp_path: Path) -> None:
    victim, state = tmp_path / "victim", tmp_path / "state.json"
    victim.write_text("mine")
    (tmp_path / ".state.json.part").symlink_to(victim)
    for text in ("one", "two"):
        write_whole(state, text)
        assert (state.read_text(), victim.read_text()) == (text, "mine")
    assert stat.S_ISREG(state.lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.json", "victim"]
