"""A disk that is full in the middle of a command: the command reports it, and the next run does the rest.

In any room nothing is lost, nothing is cut in half, and what a state contains is there once.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from eventlog.sinks.sink import ACCEPTED, OutgoingDocument
from eventlog.sinks.stdout import StdoutSink
from tests.kit.commands import Done, Shell
from tests.kit.logs import Receiver, fail, key
from tests.world.smalldisk import PAGE, NoSmallDisk, SmallDisk, small_disk
from tests.world.world import World, call

pytestmark = pytest.mark.long

ROWS = 300
PAGES = 200
TABLES = """
[tables.usr]
key = ["idu"]
number = 7
columns = { idu = "integer", fname = "varchar(255)", lname = "varchar(64)" }
"""
KEYS = sorted(str(number) for number in range(1, ROWS + 1))


def keys_of(path: Path) -> list[str]:
    """Return the keys of the changes in a file; each is a whole line."""
    text = path.read_text()
    assert text.endswith("\n")
    return [str(json.loads(line)["key"]["idu"]) for line in text.splitlines()]


def check_complete(disk: Path, runs: list[Done]) -> None:
    assert keys_of(disk / "out.jsonl") == KEYS
    assert sorted(path.name for path in disk.iterdir()) == ["out.jsonl"]


def at_least_once(disk: Path, runs: list[Done]) -> None:
    """Check that all changes are there, with some of the first again: the state is older."""
    keys = keys_of(disk / "out.jsonl")
    repeat_count = len(keys) - ROWS
    assert keys[repeat_count:] == KEYS
    assert keys[:repeat_count] == KEYS[:repeat_count]


def once_in_parts(disk: Path, runs: list[Done]) -> None:
    parts = sorted((disk / "parts").iterdir())
    assert [key for part in parts for key in keys_of(part)] == KEYS


def check_kept_rows(disk: Path, runs: list[Done]) -> None:
    assert keys_of(disk / "out.jsonl") == KEYS
    kept_keys = pq.read_table(disk / "kept.parquet").column("idu").to_pylist()
    assert sorted(kept_keys) == KEYS
    assert sorted(path.name for path in disk.iterdir()) == ["kept.parquet", "out.jsonl"]


def delivered(disk: Path, runs: list[Done]) -> None:
    """Each event went out; at most the one whose answer could not be kept went out twice."""
    sent = [line for done in runs for line in done.stdout.splitlines()]
    assert len(set(sent)) == ROWS
    assert len(sent) <= ROWS + 1


class Work(NamedTuple):
    """A command in a folder on the small disk, and what has to be there in the end."""

    words: str
    holds: Callable[[Path, list[Done]], None]


WORKS = {
    "a file": Work("convert {src}/changes.jsonl -o out.jsonl", check_complete),
    "a file that grows": Work("convert --from gbase {src}/capture --state state -o out.jsonl", at_least_once),
    "parts of change tables": Work(
        "convert --from qlik-table --to changes {src}/tables/usr__ct.csv --state state -o parts/",
        once_in_parts,
    ),
    "parts of a capture": Work(
        "convert --from gbase --to changes {src}/capture --state state -o parts/", once_in_parts
    ),
    "a kept state": Work(
        "compare kept.parquet {src}/usr.csv --table usr --keep kept.parquet -o out.jsonl", check_kept_rows
    ),
    "the memory of a delivery": Work("deliver {src}/documents.xml --state memory --sink stdout", delivered),
}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with contextlib.ExitStack() as stack:
        try:
            new_disk = stack.enter_context(small_disk(tmp_path_factory.mktemp("small") / "disk", PAGES))
        except NoSmallDisk as fault:
            pytest.skip(f"no small disk can be mounted here: {fault}")
        yield new_disk


@pytest.fixture(scope="module")
def shell(disk: SmallDisk) -> Iterator[Shell]:
    with contextlib.closing(Shell(disk.path, disk.within)) as new_shell:
        yield new_shell


@pytest.fixture(scope="module")
def src(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the inputs, in each of the forms."""
    folder = tmp_path_factory.mktemp("src")
    (folder / "tables.toml").write_text(TABLES)
    head = "idu,fname,lname\n"
    rows = (f"{key},{'x' * 200},{'y' * 50}\n" for key in KEYS)
    (folder / "none.csv").write_text(head)
    (folder / "usr.csv").write_text(head + "".join(rows))
    name_of_form = {
        "changes": "changes.jsonl",
        "gbase": "capture",
        "log": "log.csv",
        "qlik-table": "tables/",
        "xds": "documents.xml",
    }
    for form, name in name_of_form.items():
        words = f"compare {folder}/none.csv {folder}/usr.csv --table usr --to {form} -o {folder}/{name}"
        done = shell.run(*words.split(), "--tables", str(folder / "tables.toml"))
        assert done.code == 0, done.stderr
    return folder


def rooms(words: list[str], disk: SmallDisk, shell: Shell) -> list[int]:
    """Return how many pages are left: almost none, half of what the command needs, and nearly all."""
    disk.clear()
    before = disk.room
    assert shell.run(*words).code == 0
    needed = before - disk.room
    return sorted({0, 1, 2, needed // 2, *range(max(needed - 3, 0), needed)})


@pytest.mark.parametrize("work", WORKS)
def test_what_a_full_disk_stopped_is_done_when_there_is_room(
    work: str, disk: SmallDisk, shell: Shell, src: Path
) -> None:
    words = WORKS[work].words.format(src=src).split()
    if words[0] != "deliver":
        words += ["--tables", str(src / "tables.toml")]
    stopped = 0
    for room in rooms(words, disk, shell):
        disk.clear()
        disk.fill(room)
        first = shell.run(*words)
        disk.make_room()
        runs = [first]
        if first.code:  # a page less than was needed once may be enough
            runs.append(shell.run(*words))
        said = "".join(run.stderr for run in runs)
        assert ("Traceback" in said, "a bug in eventlog" in said) == (False, False), said
        assert first.code == 0 or "No space left" in first.stderr, first.stderr
        assert runs[-1].code == 0, runs[-1].stderr
        WORKS[work].holds(disk.outside, runs)
        stopped += first.code
    assert stopped > 1


@pytest.fixture(scope="module", params=["", "1"], ids=["buffered", "unbuffered"])
def printing_shell(disk: SmallDisk, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell whose commands have Python's own buffer for standard output, or none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONUNBUFFERED", request.param)
        with contextlib.closing(Shell(disk.path, disk.within)) as new_shell:
            yield new_shell


class Printing(NamedTuple):
    """A shell, and a disk on which the standard output of its commands is."""

    shell: Shell
    disk: SmallDisk
    world: World

    def run(self, words: str, room: int) -> tuple[Done, bytes]:
        """Run a command with so many free pages; return its result, and what it wrote."""
        self.disk.clear()
        (self.disk.outside / "out").touch()
        self.disk.fill(room)
        url = {"EVENTLOG_URL": self.world.url, "EVENTLOG_SYNC_TABLES": "usr"}
        done = self.shell.run(*words.split(), stdout=str(self.disk.path / "out"), **url)
        return done, (self.disk.outside / "out").read_bytes()


@pytest.fixture
def printing(printing_shell: Shell, disk: SmallDisk, world: World) -> Printing:
    return Printing(printing_shell, disk, world)


PRINTED = (
    "convert {src}/changes.jsonl --to log --tables {src}/tables.toml",
    "convert {src}/changes.jsonl --to xds --tables {src}/tables.toml",
    "convert {src}/changes.jsonl --to gbase --tables {src}/tables.toml",
    "compare {src}/none.csv {src}/usr.csv --table usr --tables {src}/tables.toml --to changes",
    "compare {src}/none.csv {src}/usr.csv --table usr --tables {src}/tables.toml --to log",
    "explain {src}/log.csv --json --tables {src}/tables.toml",
    "install --sql --dialect oracle",
    "track usr --sql",
    "preview",
    "errors --json",
    "history --json",
    "status --json",
)


@pytest.mark.parametrize("words", PRINTED)
def test_output_that_a_full_disk_cut_is_no_success(words: str, printing: Printing, src: Path) -> None:
    words = words.format(src=src)
    world = printing.world
    world.write(*(key(number, event_type=4) for number in range(40)))
    world.cycle(Receiver(fail))
    call(world, "skip", *map(str, range(1, 21)), "--because", "x" * 200)
    world.write(*(key(number, event_type=4) for number in range(40, 80)))
    whole, output = printing.run(words, PAGES // 2)
    assert whole.code == 0, whole.stderr
    needed = -(-len(output) // PAGE)
    assert needed
    for room in sorted({0, needed // 2, needed - 1}):
        done, part = printing.run(words, room)
        assert (done.code, len(part)) == (1, room * PAGE), done.stderr
        assert "standard output: No space left on device" in done.stderr


def test_a_document_that_a_full_disk_cut_has_not_left(printing: Printing) -> None:
    world = printing.world
    world.write(*(key(number, event_type=4) for number in range(40)))
    lines: list[bytes] = []
    for room in (2, PAGES // 2):
        _, output = printing.run("run --once --retry-wait 0", room)
        lines += output.split(b"\n")[:-1]
        assert Counter(world.letters().values())["S"] == len(lines)
    assert len(set(lines)) == 40


def test_a_cut_document_is_completed_and_follows_once_more(disk: SmallDisk) -> None:
    disk.clear()
    disk.fill(1)
    with (disk.outside / "out").open("wb", buffering=1 << 16) as out:
        sink, document = StdoutSink(out), OutgoingDocument("1", [], "x" * (PAGE + 1))
        assert not any(reply.arrived for _ in range(3) for reply in sink.deliver([document]))
        disk.make_room()
        assert list(sink.deliver([document])) == [ACCEPTED]
    assert (disk.outside / "out").read_text().splitlines() == [document.text] * 2


def test_where_temporary_files_have_no_room_their_folder_is_named(
    disk: SmallDisk, shell: Shell, tmp_path: Path
) -> None:
    head, rows = "idu,fname,lname\n", [f"{number},{number:0200},\n" for number in range(5_000)]
    (tmp_path / "before.csv").write_text("".join([head, *rows]))
    (tmp_path / "after.csv").write_text("".join([head, *rows[1:]]))
    (tmp_path / "tables.toml").write_text(TABLES)
    disk.clear()
    words = ("compare", f"{tmp_path}/before.csv", f"{tmp_path}/after.csv", "--table", "usr")
    more = ("--to", "changes", "--tables", f"{tmp_path}/tables.toml", "--compare-memory", "1")
    done = shell.run(*words, *more, TMPDIR=str(disk.path))
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"eventlog: {disk.path}: "), done.stderr
    assert "No space left" in done.stderr
    assert list(disk.outside.iterdir()) == []
