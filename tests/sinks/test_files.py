"""A folder of documents: each once, whatever stops the writer."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from eventlog.sinks import open_sink
from eventlog.sinks.files import FilesSink, FolderFailed
from eventlog.sinks.sink import ACCEPTED
from tests.laws.resume.power import Disk, unsynced
from tests.sinks.documents import make
from tests.world.smalldisk import NoSmallDisk, small_disk

pytestmark = pytest.mark.quick


def out(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.xml"))


def test_files_are_whole_and_known_at_the_next_start(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    sink.close()
    assert out(tmp_path) == ["1-1.xml", "2-2.xml"]
    assert (tmp_path / "1-1.xml").read_text() == make(1).text + "\n"
    (tmp_path / "1-1.xml").unlink()  # a reader took it away
    again = FilesSink(tmp_path)
    assert [again.knows(name) for name in ("1-1", "2-2", "3-3")] == [True, True, False]
    again.close()


def test_the_highest_row_is_that_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read it also if the record begins anew, with documents of lower rows."""
    sink = FilesSink(tmp_path)
    assert sink.highest() is None
    for numbers in ([3, 10], [9]):
        list(sink.deliver([make(number) for number in numbers]))
        assert sink.highest() == 10
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    list(sink.deliver([make(4)]))
    sink.close()
    again = FilesSink(tmp_path)
    assert sink.highest() == again.highest() == 4
    again.close()


def test_what_is_on_record_gets_its_place_and_what_is_not_never_was(tmp_path: Path) -> None:
    FilesSink(tmp_path).close()
    aside = tmp_path / ".eventlog"
    for name in ("1-1", "2-2", "unfinished"):
        (aside / name).write_text("<nds/>")
    with (aside / "record").open("a") as record:
        record.write("\n1-1 out\n\n2-2 o")  # the crash cut the second line
    sink = FilesSink(tmp_path)
    assert out(tmp_path) == ["1-1.xml"]
    assert [sink.knows("1-1"), sink.knows("2-2")] == [True, False]
    assert sorted(path.name for path in aside.iterdir()) == ["record"]
    sink.close()


def test_what_was_accepted_is_out_after_a_power_failure(tmp_path: Path) -> None:
    for seed in range(10):
        folder, disk = tmp_path / str(seed), Disk(seed)
        FilesSink(folder).close()
        with unsynced(disk), closing(FilesSink(folder)) as sink:
            assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
        disk.fail()
        with closing(FilesSink(folder)) as again:
            assert [again.knows(name) for name in ("1-1", "2-2")] == [True, True]
        assert [(folder / f"{name}.xml").read_text() for name in ("1-1", "2-2")] == [
            f"{make(number).text}\n" for number in (1, 2)
        ]


def test_documents_of_a_batch_in_one_file_are_out_together_or_not_at_all(tmp_path: Path) -> None:
    sink = open_sink("files", {"files_folder": str(tmp_path), "files_per_batch": True})
    assert list(sink.deliver([make(1), make(2), make(3)])) == [ACCEPTED] * 3
    assert list(sink.deliver([make(4)])) == [ACCEPTED]
    sink.close()
    assert out(tmp_path) == ["1-1.xml", "4-4.xml"]
    assert (tmp_path / "1-1.xml").read_text() == "".join(f"{make(n).text}\n" for n in (1, 2, 3))
    record = tmp_path / ".eventlog" / "record"
    whole = record.read_bytes()
    for kept in range(len(whole) + 1):  # a crash may cut the record anywhere
        record.write_bytes(whole[:kept])
        again = FilesSink(tmp_path, per_batch=True)
        assert len({again.knows(name) for name in ("1-1", "2-2", "3-3")}) == 1
        again.close()


def test_a_batch_that_meets_a_file_of_its_name_never_was(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path, per_batch=True)
    (tmp_path / "1-1.xml").write_text("mine")
    assert [reply.arrived for reply in sink.deliver([make(1), make(2)])] == [False]
    assert (tmp_path / "1-1.xml").read_text() == "mine"
    (tmp_path / "1-1.xml").unlink()
    assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    sink.close()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    with pytest.raises(FolderFailed, match="another process writes there"):
        FilesSink(tmp_path)
    sink.close()
    FilesSink(tmp_path).close()


def test_a_strange_file_of_the_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "1-1.xml").write_text("mine")
    sink = FilesSink(tmp_path)
    (reply,) = sink.deliver([make(1)])
    assert not reply.arrived
    assert "move it away" in str(reply.fault)
    assert (tmp_path / "1-1.xml").read_text() == "mine"
    sink.close()


@pytest.mark.parametrize("per_batch", [False, True])
def test_a_full_disk_is_reported_and_leaves_nothing_behind(tmp_path: Path, per_batch: bool) -> None:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "small", 40))
        except NoSmallDisk as fault:
            pytest.skip(f"no small disk can be mounted here: {fault}")
        sink = stack.enter_context(closing(FilesSink(disk.outside, per_batch=per_batch)))
        disk.fill()
        replies = list(sink.deliver([make(1), make(2)]))
        assert [reply.arrived for reply in replies] == [False]
        assert "No space left" in str(replies[0].fault)
        assert out(disk.outside) == []
        assert [path.name for path in (disk.outside / ".eventlog").iterdir()] == ["record"]
        disk.make_room()
        assert list(sink.deliver([make(1)])) == [ACCEPTED]


def test_no_prepared_link_is_opened(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    sink = FilesSink(tmp_path / "out")
    (tmp_path / "out" / ".eventlog" / "unfinished").symlink_to(victim)
    assert list(sink.deliver([make(1)])) == [ACCEPTED]
    sink.close()
    record = tmp_path / "out" / ".eventlog" / "record"
    record.unlink()
    record.symlink_to(victim)
    with pytest.raises(FolderFailed):
        FilesSink(tmp_path / "out")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("per_batch", [False, True])
def test_of_a_batch_that_finds_no_room_some_goes_out(tmp_path: Path, *, per_batch: bool) -> None:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "small", 40))
        except NoSmallDisk as fault:
            pytest.skip(f"no small disk can be mounted here: {fault}")
        sink = stack.enter_context(closing(FilesSink(disk.outside, per_batch=per_batch)))
        *gone, last = sink.deliver([make(number, "x" * 3_000) for number in range(1, 100)])
        assert gone
        assert set(gone) == {ACCEPTED}
        assert (last.arrived, "No space left" in str(last.fault)) == (False, True)
        assert out(disk.outside) == sorted(f"{n}-{n}.xml" for n in range(1, len(gone) + 1))
        assert [sink.knows(f"{n}-{n}") for n in (len(gone), len(gone) + 1)] == [True, False]
