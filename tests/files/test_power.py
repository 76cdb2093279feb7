"""What files hold after a power failure, a kill or a full disk: all that was complete or flushed, no more."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from eventlog.core.errors import EventlogError, Misuse
from eventlog.files.document_folder import in_order, read_record
from eventlog.files.durable import NamelessFile, WholeFile, open_to_append, write_whole
from eventlog.files.output_files import GrowingFile, OutputFile
from eventlog.sinks.files import FilesSink
from tests.laws.resume.power import Disk, unsynced
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

SEEDS = range(6)


def write_output(path: Path) -> None:
    file = OutputFile(str(path))
    file.stream.write(b"one\n")
    file.complete()


def write_growing(path: Path) -> None:
    file = GrowingFile(str(path), "jsonl")
    file.stream.write(b"one\n")
    file.flush()
    file.stream.write(b"two")
    file.stream.flush()
    file.complete()
    file.discard()


def write_small(path: Path) -> None:
    write_whole(path, "one\n")


WRITERS: dict[str, tuple[Callable[[Path], None], bytes]] = {
    "whole": (write_output, b"one\n"),
    "growing": (write_growing, b"one\ntwo"),
    "small": (write_small, b"one\n"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_complete_is_there_after_a_power_failure(tmp_path: Path, writer: str, is_new: bool) -> None:
    write, content = WRITERS[writer]
    for seed in SEEDS:
        path, disk = tmp_path / f"{seed}.txt", Disk(seed)
        if not is_new:
            path.write_bytes(b"" if writer == "growing" else b"before")
        with unsynced(disk):
            write(path)
        disk.fail()
        assert path.read_bytes() == content


def test_what_was_flushed_is_there_after_a_power_failure(tmp_path: Path) -> None:
    for seed in SEEDS:
        path, disk = tmp_path / str(seed), Disk(seed)
        with unsynced(disk):
            file = GrowingFile(str(path), "jsonl")
            for line in (b"one\n", b"two\n"):
                file.stream.write(line)
                file.flush()
            file.stream.write(b"three\n")
            file.stream.flush()
        disk.fail()
        assert path.read_bytes().startswith(b"one\ntwo\n")
        file.discard()


@pytest.mark.parametrize("container", ["jsonl", "csv", "messages"])
def test_a_run_that_fails_leaves_what_it_had_flushed(tmp_path: Path, container: str) -> None:
    path = tmp_path / "grown"
    contents = []
    for number in range(3):
        file = GrowingFile(str(path), container)
        if container == "csv":
            file.begin(b"a\n")
        file.stream.write(b"\0\0\0\1%d" % number if container == "messages" else b"%d\n" % number)
        file.flush()
        contents.append(path.read_bytes())
        file.stream.write(b"\0\0\0\4half")
        file.stream.flush()
        file.discard()
        assert path.read_bytes() == contents[-1]
    assert [len(content) for content in contents] == sorted({len(content) for content in contents})


@pytest.mark.parametrize("container", ["jsonl", "csv", "lines"])
def test_half_a_line_gets_a_line_of_its_own(tmp_path: Path, container: str) -> None:
    path = tmp_path / "grown"
    path.write_bytes(b"a\none\nhal")
    if container == "lines":
        with open_to_append(path) as lines:
            lines.write(b"two\n")
    else:
        file = GrowingFile(str(path), container)
        if container == "csv":
            file.begin(b"a\n")
        file.stream.write(b"two\n")
        file.complete()
        file.discard()
    assert path.read_bytes() == b"a\none\nhal\ntwo\n"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_that_is_replaced_keeps_who_may_read_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_text("before")
    path.chmod(mode)
    for text in ("one", "two"):
        file = WholeFile(path)
        assert stat.S_IMODE((tmp_path / ".secret.part").stat().st_mode) == mode  # before it has content
        file.raw.write(text.encode())
        file.complete()
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (text, mode)


@contextmanager
def room(size: int) -> Iterator[None]:
    """Let files grow up to a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("place", range(4090, 4097))
def test_blocks_on_disk_are_whole_or_an_error(place: int) -> None:
    """Let the room end within a block, so that the system takes a part of it."""
    with closing(NamelessFile()) as file, room(4096):
        first = file.append(b"x" * place)
        rest = 4096 - place
        second = file.append(b"y" * rest)
        with pytest.raises(OSError, match="File too large"):
            file.append(b"z" * (place % 7 + 1))
        assert (file.read(first), file.read(second)) == (b"x" * place, b"y" * rest)
    with closing(NamelessFile()) as file, room(4096):
        file.append(b"x" * place)
        with pytest.raises(OSError, match="File too large"):
            file.append(b"y" * (rest + 1))


def test_documents_are_out_in_their_order_after_any_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the record begin anew with each delivery, and another writer come after each failure."""
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    for seed in SEEDS:
        folder, accepted = tmp_path / str(seed), list[int]()
        FilesSink(folder).close()
        for first in (1, 4, 7):
            disk = Disk(10 * seed + first)
            with unsynced(disk), closing(FilesSink(folder)) as sink:
                with pytest.raises(Exception, match="another process"):
                    FilesSink(folder)
                for number in range(first, first + 3):
                    accepted += [number for reply in sink.deliver([make(number)]) if reply.arrived]
            disk.fail()
            FilesSink(folder).close()
        paths = sorted(folder.glob("*.xml"))
        assert [path.read_text() for path in paths] == [f"{make(number).text}\n" for number in accepted]
        names = [str(path) for path in paths]
        assert in_order(names[::-1]) == names
        assert in_order(names[::-1], [str(folder)]) == names


def test_files_without_numbers_have_their_order_after_any_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the record of their order begin anew, and stop the machine before or after it is cut."""
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    truncate = os.ftruncate
    for seed in SEEDS:
        for allowed in range(2):
            folder, disk, left = tmp_path / f"{seed}-{allowed}", Disk(seed), iter(range(allowed))

            def truncate_then_stop(file: int, size: int, left: Iterator[int] = left) -> None:
                if next(left, None) is not None:
                    truncate(file, size)
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            (folder / ".eventlog").mkdir(parents=True)
            (folder / ".eventlog" / "record").write_text("\n9-9 out\n\n10-10 out\n\n8-8 out\n")
            before = [str(folder / name) for name in ("9-9.xml", "10-10.xml", "8-8.xml")]
            for name in before:
                Path(name).write_text("<nds/>")
            with monkeypatch.context() as patched, unsynced(disk), closing(FilesSink(folder)) as sink:
                patched.setattr(os, "ftruncate", truncate_then_stop)
                for number in (11, 12):
                    with suppress(Misuse, EventlogError):
                        list(sink.deliver([make(number)]))
            disk.fail()
            FilesSink(folder).close()
            after = sorted(str(path) for path in folder.glob("0*.xml"))
            assert in_order(sorted([*before, *after])) == [*before, *after]


def test_a_line_of_the_record_counts_if_it_is_whole(tmp_path: Path) -> None:
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(1)]))
        list(sink.deliver([make(2)]))
    record = tmp_path / ".eventlog" / "record"
    content = record.read_bytes()
    head = content.index(b"\n") + 1
    for size in range(head, len(content) + 1):  # a crash cut it there
        record.write_bytes(content[:size])
        expected = [number for number, end in ((1, b"1-1 out"), (2, b"2-2 out")) if end in content[:size]]
        assert [file.number for file in read_record(tmp_path) or []] == expected, content[:size]


@pytest.mark.parametrize("is_recorded", [False, True])
def test_files_have_an_order_by_their_numbers_or_by_the_record(tmp_path: Path, is_recorded: bool) -> None:
    """Refuse a name without a number that the record lacks, if there is another file."""
    with closing(FilesSink(tmp_path)) as sink:
        list(sink.deliver([make(1), make(2)]))
    names = [str(path) for path in sorted(tmp_path.glob("*.xml"))]
    bare = tmp_path / "7-7.xml"
    bare.write_text("<nds/>")
    if is_recorded:
        with (tmp_path / ".eventlog" / "record").open("a") as record:
            record.write("\n7-7 out\n")
        assert in_order([str(bare), *names[::-1]]) == [*names, str(bare)]
        return
    assert in_order([str(bare)]) == [str(bare)]
    for others in ([names[0]], names):
        with pytest.raises(Misuse, match=r"shows when 7-7\.xml left"):
            in_order([*others, str(bare)])


def test_a_record_begins_anew_once_all_that_it_names_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the first documents find no way to their places, until the record is over its size."""
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    rename, failures = os.rename, iter(range(3))

    def fail_at_first(path: str, target: str) -> None:
        if next(failures, None) is not None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(path, target)

    monkeypatch.setattr(os, "rename", fail_at_first)
    with closing(FilesSink(tmp_path)) as sink:
        for number in range(1, 6):
            list(sink.deliver([make(number)]))
    with closing(FilesSink(tmp_path)):
        rows = [int(path.stem.rpartition("-")[2]) for path in sorted(tmp_path.glob("*.xml"))]
    assert 1 in rows
