"""Small files that are replaced: whole, and never through a link that someone else prepared."""

from __future__ import annotations

import resource
import stat
from pathlib import Path

import pytest

from eventlog.files.durable import NamelessFile, write_whole
from eventlog.files.output_files import GrowingFile

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


def test_a_small_file_is_whole_when_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read what a process that is killed at the rename leaves."""
    texts: list[str] = []
    replace = Path.replace

    def read_and_replace(part: Path, target: Path) -> Path:
        texts.append(part.read_text())
        return replace(part, target)

    monkeypatch.setattr(Path, "replace", read_and_replace)
    write_whole(tmp_path / "state", "text")
    assert texts == ["text"]


def test_a_block_that_finds_room_for_a_part_is_an_error() -> None:
    file = NamelessFile()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, hard))
    try:
        assert file.read(file.append(b"x" * 4000)) == b"x" * 4000
        with pytest.raises(OSError, match="File too large"):
            file.append(b"y" * 4000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        file.close()


def test_a_file_that_grows_ends_with_what_was_flushed(tmp_path: Path) -> None:
    file = GrowingFile(str(tmp_path / "lines"), "jsonl")
    file.stream.write(b"{}\n")
    file.flush()
    file.stream.write(b"{")
    file.stream.flush()
    file.discard()
    assert (tmp_path / "lines").read_bytes() == b"{}\n"


def test_a_file_is_replaced_and_no_prepared_link_is_opened(tmp_path: Path) -> None:
    victim, state = tmp_path / "victim", tmp_path / "state.json"
    victim.write_text("mine")
    (tmp_path / ".state.json.part").symlink_to(victim)
    for text in ("one", "two"):
        write_whole(state, text)
        assert (state.read_text(), victim.read_text()) == (text, "mine")
    assert stat.S_ISREG(state.lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.json", "victim"]
