"""A folder of documents: each once, whatever stops the writer."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from eventlog.core.state_versions import NewerState
from eventlog.files.document_folder import read_record
from eventlog.sinks import check_sink, open_sink
from eventlog.sinks.files import FilesSink, FolderFailed
from eventlog.sinks.sink import ACCEPTED, UNSENT
from tests.kit.support import patient
from tests.laws.resume.power import Disk, unsynced
from tests.sinks.documents import make
from tests.world.smalldisk import NoSmallDisk, small_disk

pytestmark = pytest.mark.quick
FIRST = "000000000000001-1-1.xml"
LOT = 64  # files that are brought to disk together
THREADS = 32  # that do it
LARGE = range(1, 2 * LOT + 23)  # documents of a batch that are two of these lots, and a third one


def out(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.xml"))


def aside(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / ".eventlog").iterdir())


def numbers(folder: Path) -> list[int]:
    """Return the numbers in the names of the files, in the order in which the documents were delivered."""
    paths = sorted(folder.glob("*.xml"), key=lambda path: int(path.stem.rpartition("-")[2]))
    return [int(path.name.partition("-")[0]) for path in paths]


def test_files_are_whole_and_known_at_the_next_start(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    sink.close()
    assert out(tmp_path) == [FIRST, "000000000000002-2-2.xml"]
    assert (tmp_path / FIRST).read_text() == make(1).text + "\n"
    (tmp_path / FIRST).unlink()  # a reader took it away
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
    folder = tmp_path / ".eventlog"
    for name in ("000000000000001-1-1", "000000000000002-2-2", ".number.part"):
        (folder / name).write_text("<nds/>")
    with (folder / "record").open("a") as record:
        # the crash cut the second line
        record.write("eventlog files 2\n\n000000000000001 1-1 out\n\n000000000000002 2-2 o")
    sink = FilesSink(tmp_path)
    assert out(tmp_path) == [FIRST]
    assert [sink.knows("1-1"), sink.knows("2-2")] == [True, False]
    assert aside(tmp_path) == ["record"]
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
        assert [(folder / name).read_text() for name in out(folder)] == [
            f"{make(number).text}\n" for number in (1, 2)
        ]


def test_a_large_batch_that_was_accepted_is_out_in_its_order_after_a_power_failure(tmp_path: Path) -> None:
    for seed in range(4):
        folder, disk = tmp_path / str(seed), Disk(seed)
        FilesSink(folder).close()
        with unsynced(disk), closing(FilesSink(folder)) as sink:
            assert list(sink.deliver([make(number) for number in LARGE])) == [ACCEPTED] * len(LARGE)
        disk.fail()
        FilesSink(folder).close()
        assert [(folder / name).read_text() for name in out(folder)] == [f"{make(n).text}\n" for n in LARGE]
        assert numbers(folder) == [*LARGE]


def test_files_of_a_batch_are_brought_to_disk_together_and_leave_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let syncs begin once each thread has one, and end after those of later files."""
    fsync, ended = os.fsync, threading.Condition()
    all_threads, syncing = threading.Barrier(THREADS), list[int]()

    def sync_last_first(descriptor: int) -> None:
        if threading.current_thread() is threading.main_thread():  # the record, and folders
            return fsync(descriptor)
        all_threads.wait(patient(30))
        syncing.append(descriptor)
        all_threads.wait(patient(30))
        with ended:
            assert ended.wait_for(lambda: descriptor == max(syncing), patient(30))
            fsync(descriptor)
            syncing.remove(descriptor)
            ended.notify_all()
        return None

    monkeypatch.setattr(os, "fsync", sync_last_first)
    documents = [make(number) for number in range(1, 2 * LOT + 1)]
    with closing(FilesSink(tmp_path)) as sink:
        assert list(sink.deliver(documents)) == [ACCEPTED] * len(documents)
    names = [f"{number:015}-{number}-{number}" for number in range(1, 2 * LOT + 1)]
    assert out(tmp_path) == [f"{name}.xml" for name in names]
    assert [file.stem for file in read_record(tmp_path) or []] == names


@pytest.mark.parametrize("bad_sync", [0, 1, LOT - 1, LOT, 2 * LOT, LARGE[-1] - 1, LARGE[-1]])
def test_a_sync_that_fails_fails_its_lot_and_is_not_repeated(tmp_path: Path, bad_sync: int) -> None:
    """Fail the sync of one file, or of the record; each document is out once, after a power failure, too."""
    before = bad_sync - bad_sync % LOT if bad_sync < len(LARGE) else 0
    disk, documents = Disk(bad_sync, bad_sync), [make(number) for number in LARGE]
    FilesSink(tmp_path).close()
    with unsynced(disk), closing(FilesSink(tmp_path)) as sink:
        replies = list(sink.deliver(documents))
        failed = replies[before]
        assert replies == [*[ACCEPTED] * before, failed, *[UNSENT] * (len(documents) - before - 1)]
        assert (failed.arrived, failed.fault) == (False, f"folder {tmp_path}: Input/output error")
        assert (len(out(tmp_path)), aside(tmp_path)) == (before, ["record"])
        assert list(sink.deliver(documents[before:])) == [ACCEPTED] * (len(LARGE) - before)
    disk.fail()
    FilesSink(tmp_path).close()
    assert [(tmp_path / name).read_text() for name in out(tmp_path)] == [f"{make(n).text}\n" for n in LARGE]


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Let the process open ten more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def few_threads() -> Iterator[None]:
    """Let the process start ten more threads."""
    start, allowed = threading.Thread.start, iter(range(10))

    def start_some(thread: threading.Thread) -> None:
        if next(allowed, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_some)
        yield


@pytest.mark.parametrize("few", [few_descriptors, few_threads])
def test_a_process_that_may_do_little_at_once_writes_one_by_one(
    tmp_path: Path, few: Callable[[], AbstractContextManager[None]]
) -> None:
    with closing(FilesSink(tmp_path)) as sink, few():
        assert list(sink.deliver([make(number) for number in LARGE])) == [ACCEPTED] * len(LARGE)
    assert numbers(tmp_path) == [*LARGE]
    assert aside(tmp_path) == ["record"]


def test_documents_of_a_batch_in_one_file_are_out_together_or_not_at_all(tmp_path: Path) -> None:
    sink = open_sink("files", {"files_folder": str(tmp_path), "files_per_batch": True})
    assert list(sink.deliver([make(1), make(2), make(3)])) == [ACCEPTED] * 3
    assert list(sink.deliver([make(4)])) == [ACCEPTED]
    sink.close()
    assert out(tmp_path) == [FIRST, "000000000000002-4-4.xml"]
    assert (tmp_path / FIRST).read_text() == "".join(f"{make(n).text}\n" for n in (1, 2, 3))
    record = tmp_path / ".eventlog" / "record"
    whole = record.read_bytes()
    for kept in range(len(whole) + 1):  # a crash may cut the record anywhere
        record.write_bytes(whole[:kept])
        again = FilesSink(tmp_path, per_batch=True)
        assert len({again.knows(name) for name in ("1-1", "2-2", "3-3")}) == 1
        again.close()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    with pytest.raises(FolderFailed, match="another process writes there"):
        FilesSink(tmp_path)
    sink.close()
    FilesSink(tmp_path).close()


def test_a_strange_file_of_the_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FIRST).write_text("mine")
    with closing(FilesSink(tmp_path)) as sink:
        (tmp_path / "000000000000003-2-2.xml").write_text("mine, too")
        assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    assert [(tmp_path / name).read_text()[:4] for name in out(tmp_path)] == ["mine", "<nds", "mine", "<nds"]


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
        assert [reply.arrived for reply in replies] == [False, False]
        assert replies[1] == UNSENT
        assert "No space left" in str(replies[0].fault)
        assert out(disk.outside) == []
        assert aside(disk.outside) == ["record"]
        disk.make_room()
        assert list(sink.deliver([make(1)])) == [ACCEPTED]


def test_no_prepared_link_is_opened(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    sink = FilesSink(tmp_path / "out")
    prepared = tmp_path / "out" / ".eventlog" / FIRST.removesuffix(".xml")
    prepared.symlink_to(victim)
    assert [reply.arrived for reply in sink.deliver([make(1)])] == [False]
    assert list(sink.deliver([make(1)])) == [ACCEPTED]
    prepared.with_name("000000000000004-3-3").symlink_to(victim)
    assert [reply.arrived for reply in sink.deliver([make(2), make(3)])] == [False, False]
    assert list(sink.deliver([make(2), make(3)])) == [ACCEPTED, ACCEPTED]
    sink.close()
    record = tmp_path / "out" / ".eventlog" / "record"
    record.unlink()
    record.symlink_to(victim)
    with pytest.raises(FolderFailed):
        FilesSink(tmp_path / "out")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("per_batch", [False, True])
@pytest.mark.parametrize("pages", [40, 90])
def test_of_a_batch_that_finds_no_room_some_goes_out(tmp_path: Path, *, pages: int, per_batch: bool) -> None:
    """Let the room end within the first files that are brought to disk together, or within later ones."""
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "small", pages))
        except NoSmallDisk as fault:
            pytest.skip(f"no small disk can be mounted here: {fault}")
        sink = stack.enter_context(closing(FilesSink(disk.outside, per_batch=per_batch)))
        replies = list(sink.deliver([make(number, "x" * 3_000) for number in LARGE]))
        gone, last = replies[: replies.count(ACCEPTED)], replies[replies.count(ACCEPTED)]
        assert gone
        assert replies[len(gone) + 1 :] == [UNSENT] * (len(LARGE) - 1 - len(gone))
        assert set(gone) == {ACCEPTED}
        assert (last.arrived, "No space left" in str(last.fault)) == (False, True)
        # the number of the batch in one file is not given again
        names = [f"{n + per_batch:015}-{n}-{n}.xml" for n in range(1, len(gone) + 1)]
        assert out(disk.outside) == names
        assert [sink.knows(f"{n}-{n}") for n in (len(gone), len(gone) + 1)] == [True, False]


def test_a_sort_by_name_is_the_order_of_delivery(tmp_path: Path) -> None:
    """Number documents on over starts, over files that were taken away, and over a record that was lost."""
    for number in (8, 10, 9, 11):
        with closing(FilesSink(tmp_path)) as sink:
            assert list(sink.deliver([make(number), make(100 - number)])) == [ACCEPTED, ACCEPTED]
    names = ["8-8", "92-92", "10-10", "90-90", "9-9", "91-91", "11-11", "89-89"]
    assert out(tmp_path) == [f"{number:015}-{name}.xml" for number, name in enumerate(names, 1)]
    for name in out(tmp_path)[2:]:
        (tmp_path / name).unlink()
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(1)]))
    assert out(tmp_path)[2:] == ["000000000000009-1-1.xml"]
    shutil.rmtree(tmp_path / ".eventlog")
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(2)]))
    assert out(tmp_path)[3:] == ["000000000000010-2-2.xml"]


def test_the_number_goes_on_if_the_record_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(1), make(2)]))
        monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
        list(sink.deliver([make(3)]))
        assert [sink.knows(name) for name in ("1-1", "3-3")] == [False, True]
        list(sink.deliver([make(3)]))  # of another log
    for path in tmp_path.glob("*.xml"):
        path.unlink()
    record = tmp_path / ".eventlog" / "record"
    assert record.read_text() == "eventlog files 2\n\n000000000000004 3-3 out\n"
    record.write_text("eventlog fi")  # a crash cut the record as it began
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(4)]))
    assert out(tmp_path) == ["000000000000005-4-4.xml"]
    assert record.read_text() == "eventlog files 2\n\n000000000000005 4-4 out\n"


@pytest.mark.parametrize("seed", range(10))
def test_no_number_comes_again_after_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 50)
    disk, folder, taken = Disk(seed), tmp_path / "out", tmp_path / "taken"
    FilesSink(folder).close()
    taken.mkdir()
    with unsynced(disk), closing(FilesSink(folder)) as sink:
        for number in range(1, 6 + seed):
            assert list(sink.deliver([make(number)])) == [ACCEPTED]
    disk.fail()
    FilesSink(folder).close()
    for path in folder.glob("*.xml"):  # a reader takes all away
        path.rename(taken / path.name)
    with closing(FilesSink(folder)) as sink:
        assert list(sink.deliver([make(100)])) == [ACCEPTED]
    assert numbers(taken) == list(range(1, 6 + seed))
    assert numbers(folder) == [6 + seed]


def test_a_record_that_cannot_begin_anew_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(1)]))
        (tmp_path / ".eventlog" / "number").mkdir()
        assert [reply.arrived for reply in sink.deliver([make(2), make(3)])] == [False, False]
        assert aside(tmp_path) == ["number", "record"]
        assert sink.knows("1-1")
        (tmp_path / ".eventlog" / "number").rmdir()
        assert list(sink.deliver([make(2), make(3)])) == [ACCEPTED, ACCEPTED]
    names = [name.partition("-")[2] for name in out(tmp_path)]
    assert names == ["1-1.xml", "2-2.xml", "3-3.xml"]


def test_a_document_without_its_place_stays_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, target: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    with closing(FilesSink(tmp_path)) as sink, monkeypatch.context() as patched:
        patched.setattr(os, "rename", fail)
        for number in (1, 2):  # the second would begin the record anew
            assert [reply.arrived for reply in sink.deliver([make(number)])] == [False]
        with pytest.raises(FolderFailed):
            sink.knows("1-1")
        assert out(tmp_path) == []
    with closing(FilesSink(tmp_path)) as sink:
        assert [sink.knows(name) for name in ("1-1", "2-2")] == [True, False]
    assert out(tmp_path) == [FIRST]


def test_a_folder_of_the_first_version_goes_on(tmp_path: Path) -> None:
    """Know what it delivered, give a recorded document its place, and number what comes."""
    (tmp_path / ".eventlog").mkdir()
    (tmp_path / ".eventlog" / "record").write_text("\n9-9 out\n\n10-10/11-11 out\n")
    (tmp_path / ".eventlog" / "10-10").write_text("<nds/>")
    with closing(FilesSink(tmp_path)) as sink:
        assert [sink.knows(name) for name in ("9-9", "10-10", "11-11", "12-12")] == [True, True, True, False]
        assert sink.highest() == 11
        list(sink.deliver([make(12)]))
    assert out(tmp_path) == ["000000000000001-12-12.xml", "10-10.xml"]
    with closing(FilesSink(tmp_path)) as sink:
        assert [sink.knows(name) for name in ("9-9", "12-12")] == [True, True]


def test_a_folder_of_a_later_version_is_refused(tmp_path: Path) -> None:
    FilesSink(tmp_path).close()
    (tmp_path / ".eventlog" / "record").write_text("eventlog files 3\n1-1\n")
    for _ in range(2):  # it is not locked
        with pytest.raises(NewerState, match="is a record of files of version 3, from a newer eventlog"):
            FilesSink(tmp_path)
    with pytest.raises(NewerState):
        check_sink("files", {"files_folder": str(tmp_path)})
