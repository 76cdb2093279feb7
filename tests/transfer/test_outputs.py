"""Where output goes: a regular file appears when it is whole, a device or a pipe is written as it comes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from eventlog.files.durable import Overtaken
from eventlog.files.output_files import OutputFile
from tests.kit.commands import Shell, environment
from tests.kit.support import HEADER, USR

pytestmark = pytest.mark.quick

CONVERT = ("convert", "--from", "log", "--to", "xds", "--tables", "usr.toml")
# Before a command: root loses what lets it pass over modes.
UNPRIVILEGED = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.getuid() == 0 else ()
GOOD, BAD = "1,4,usr,idu=1,,,\n", "x,4,usr,idu=1,,,\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell for commands in a folder of their own."""
    folder = tmp_path / "here"
    folder.mkdir()
    return Shell(folder).with_files({"usr.toml": USR, "log.csv": HEADER + GOOD})


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_link_leads_to_its_target_whose_mode_is_kept(shell: Shell) -> None:
    elsewhere = shell.folder.parent / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "real.xml"
    target.write_text("old")
    target.chmod(0o640)
    link = shell.folder / "out.xml"
    link.symlink_to(target)
    assert shell.run(*CONVERT, "-o", "out.xml", "log.csv").code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("<nds")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert files(elsewhere) == {"real.xml"}


def test_a_file_of_which_another_run_began_anew_is_not_completed(tmp_path: Path) -> None:
    """Raise, because half of the file of the later run would get the name."""
    first, second = (OutputFile(str(tmp_path / "out.bin")) for _ in range(2))
    first.stream.write(b"first")
    second.stream.write(b"second")
    with pytest.raises(Overtaken, match=r"out\.bin: another run writes this file too"):
        first.complete()
    first.discard()
    second.complete()
    assert (tmp_path / "out.bin").read_bytes() == b"second"
    assert files(tmp_path) == {"out.bin"}


def test_what_fails_leaves_what_was_there_and_no_part(shell: Shell) -> None:
    (shell.folder / "out.xml").write_text("old")
    before = files(shell.folder)
    done = shell.run(*CONVERT, "--strict", "-o", "out.xml", stdin=HEADER + GOOD + BAD)
    assert done.code == 1
    assert (shell.folder / "out.xml").read_text() == "old"
    assert files(shell.folder) == before


def test_a_folder_that_is_not_there_is_said_before_anything_is_read(shell: Shell) -> None:
    done = shell.run(*CONVERT, "-o", "ghost/out.xml", stdin="no log at all")
    assert (done.code, done.stderr) == (
        2,
        f"eventlog: ghost/out.xml: there is no folder {shell.folder / 'ghost'}\n",
    )
    assert "ghost" not in files(shell.folder)


def test_a_folder_with_a_slash_is_made_but_not_its_parents(shell: Shell) -> None:
    to_log = ("convert", "--from", "log", "--to", "log", "--tables", "usr.toml", "log.csv", "-o")
    assert shell.run(*to_log, "out/").code == 0
    assert files(shell.folder / "out") == {"eventlog.csv"}
    assert shell.run(*to_log, "ghost/out/").code == 2


def test_a_pipe_gets_what_comes(shell: Shell) -> None:
    pipe = shell.folder / "pipe.xml"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    done = shell.run(*CONVERT, "-o", "pipe.xml", stdin=HEADER + GOOD + BAD)
    reader.join()
    assert done.code == 1  # the bad record: only the exit code shows that something is missing
    assert got[0].count("<nds ") == 1
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_one(shell: Shell) -> None:
    assert shell.run(*CONVERT, "-o", "/dev/null", "log.csv").code == 0
    assert Path("/dev/null").is_char_device()
    assert shell.run(*CONVERT, "-o", "/dev/stdout", "log.csv").stdout.count("<nds ") == 1


TO = {
    "xds": ("--to", "xds", "-o", "/dev/full"),
    "csv": ("--to", "log", "--output-as", "csv", "-o", "/dev/full"),
    "parquet": ("--to", "log", "--output-as", "parquet", "-o", "/dev/full"),
    "refused": ("--to", "xds", "-o", "out.xml", "--refused", "/dev/full"),
}


@pytest.mark.parametrize("to", TO)
def test_a_full_disk_is_reported_with_the_name_of_the_file(shell: Shell, to: str) -> None:
    (shell.folder / "log.csv").write_text(HEADER + GOOD + BAD)
    full = shell.run("convert", "--from", "log", "--tables", "usr.toml", *TO[to], "log.csv")
    assert (full.code, full.stderr.splitlines()[-1]) == (1, "eventlog: /dev/full: No space left on device")


def limited(shell: Shell, *words: str) -> str:
    """Return the output of a command that may only write 4 096 bytes to a file, and fails."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "eventlog", *words],  # else Python keeps half of a module's bytecode
        cwd=shell.folder,
        env=environment(TMPDIR=str(shell.folder)),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12)),
    )
    assert done.returncode == 1
    return done.stderr.replace(os.path.realpath(shell.folder), "HERE")


def test_a_file_that_cannot_grow_is_reported_by_name_also_a_temporary_one(shell: Shell) -> None:
    rows = "".join(f"{number},4,usr,idu={number},,,\n" for number in range(1, 5000))
    (shell.folder / "log.csv").write_text(HEADER + rows)
    there = files(shell.folder)
    assert limited(shell, *CONVERT, "-o", "out.xml", "log.csv") == "eventlog: HERE: File too large\n"
    assert files(shell.folder) == there

    changes = (*CONVERT[:4], "changes", *CONVERT[5:], "-o", "changes.jsonl", "log.csv")
    assert shell.run(*changes).code == 0
    again = ("convert", "--from", "changes", "--to", "changes", "-o", "out.jsonl", "changes.jsonl")
    assert limited(shell, *again) == "eventlog: HERE/out.jsonl: File too large\n"
    assert files(shell.folder) == {*there, "changes.jsonl"}


TO_CHANGES = ("convert", "--from", "changes", "--to", "changes", "--as", "jsonl")
# Before a command: its PID is 1, as in a container.
CONTAINED = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child")


@contextmanager
def reading(folder: Path, name: str, *within: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A command that writes NAME.jsonl, and what it reads; it has begun to read."""
    os.mkfifo(folder / f"{name}.fifo")
    command = [*within, sys.executable, "-m", "eventlog", *TO_CHANGES, "-o", f"{name}.jsonl", f"{name}.fifo"]
    with (
        subprocess.Popen(
            command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
        ) as process,
        (folder / f"{name}.fifo").open("w") as rows,
    ):
        yield process, rows


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_part(number: signal.Signals, shell: Shell) -> None:
    before = files(shell.folder)
    with reading(shell.folder, "out") as (process, rows):
        process.send_signal(number)
        assert process.wait() == 128 + number
        rows.close()
        assert process.stderr is not None
        assert process.stderr.read() == f"eventlog: stopped by {number.name}\n"
    assert files(shell.folder) == {*before, "out.fifo"}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no memory file system on this system")
def test_a_file_in_memory_appears_when_it_is_whole() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        target = Path(folder) / "out"
        place = OutputFile(str(target))
        assert not target.exists()
        place.complete()
        assert target.exists()


def test_the_part_of_a_killed_command_is_hidden_and_removed_by_the_next(shell: Shell) -> None:
    before = files(shell.folder)
    with reading(shell.folder, "out") as (process, rows):
        process.kill()
        assert process.wait() == -signal.SIGKILL
        rows.close()
    assert files(shell.folder) == {*before, "out.fifo", ".out.jsonl.part"}
    done = shell.run(*TO_CHANGES, "-o", "out.jsonl", "-", stdin=inserts((None, "usr")))
    assert (done.code, files(shell.folder)) == (0, {*before, "out.fifo", "out.jsonl"})


@pytest.mark.long
def test_two_containers_write_into_one_folder(shell: Shell) -> None:
    if subprocess.run([*CONTAINED, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no namespaces here")
    before = files(shell.folder)
    with (
        reading(shell.folder, "one", *CONTAINED) as (one, to_one),
        reading(shell.folder, "other", *CONTAINED) as (other, to_other),
    ):
        named = files(shell.folder) - before - {"one.fifo", "other.fifo"}
        assert named == {".one.jsonl.part", ".other.jsonl.part"}
        for process, rows, value in ((one, to_one, "Jack"), (other, to_other, "John")):
            rows.write(inserts((None, "usr"), value=value))
            rows.close()
            assert process.wait() == 0, process.stderr
    assert '"after":"Jack"' in (shell.folder / "one.jsonl").read_text()
    assert '"after":"John"' in (shell.folder / "other.jsonl").read_text()
    written = {f"{name}.{kind}" for name in ("one", "other") for kind in ("fifo", "jsonl")}
    assert files(shell.folder) == before | written


def inserts(*tables: tuple[str | None, str], value: str = "Jack", time: str = "2025-03-23T10:00:00Z") -> str:
    """Return an insert into each of these tables, as changes."""
    changes = (
        {"op": "insert", "schema": schema, "table": table, "key": {"idu": 1}, "time": time}
        | {"fields": [{"column": "idu", "after": 1}, {"column": "fname", "after": value}]}
        for schema, table in tables
    )
    return "".join(json.dumps(change) + "\n" for change in changes)


@pytest.mark.parametrize(
    ("schema", "table"),
    [(None, "../usr"), ("../../far", "usr"), (None, "a\0b"), (None, "\ud800"), (None, "é" * 121)],
)
def test_a_table_whose_name_leads_out_of_the_folder_is_refused(
    shell: Shell, schema: str | None, table: str
) -> None:
    """Refuse it, because a stranger's table name must not become a file outside the folder."""
    (shell.folder / "changes.jsonl").write_text(inserts((None, "usr"), (schema, table), (None, "usr")))
    (shell.folder / "s").mkdir()
    around = files(shell.folder.parent)
    done = shell.run("convert", "--to", "qlik-table", "-o", "out/", "changes.jsonl")
    assert (done.code, "cannot name a file of the folder out/" in done.stderr) == (1, True)
    assert "1 bad record was left out" in done.stderr
    assert files(shell.folder / "out") == {"usr__ct.csv"}
    assert (shell.folder / "out" / "usr__ct.csv").read_text().count(",INSERT,") == 2
    assert files(shell.folder.parent) == around


@pytest.mark.parametrize("target", ["log", "qlik-table"])
@pytest.mark.parametrize("container", ["csv", "parquet", "jsonl"])
def test_half_a_surrogate_pair_costs_its_change(shell: Shell, target: str, container: str) -> None:
    """Refuse it in rows of a table, which are UTF-8; JSON and messages can contain it."""
    changes = inserts((None, "usr")) + inserts((None, "usr"), value="\ud800") + inserts((None, "usr"))
    (shell.folder / "changes.jsonl").write_text(changes)
    words = ("convert", "--to", target, "--output-as", container, "-o", "out", "changes.jsonl")
    done = shell.run(*words)
    assert "half a surrogate pair, U+D800 at character 1 of a text" in done.stderr
    assert (done.code, "1 bad record was left out" in done.stderr) == (1, True)
    more = ("--table", "usr") if target == "qlik-table" else ()
    read = ("convert", "--from", target, "--as", container, "--tables", "usr.toml", *more)
    back = shell.run(*read, "--to", "changes", "out")
    assert back.stdout.count('"Jack"') == 2


def doubles(*values: object) -> str:
    """Return inserts with these values in the column `weight`."""
    changes = (
        {"op": "insert", "table": "scale", "key": {"id": i}, "time": "2025-03-23T10:00:00Z"}
        | {"fields": [{"column": "id", "after": i}, {"column": "weight", "after": value}]}
        for i, value in enumerate(values)
    )
    return "".join(json.dumps(change) + "\n" for change in changes)


@pytest.mark.parametrize("container", ["csv", "parquet", "jsonl"])
def test_numbers_at_the_ends_of_their_types_stand_in_change_tables(shell: Shell, container: str) -> None:
    (shell.folder / "scale.toml").write_text(
        '[tables.scale]\nkey = ["id"]\ncolumns = { id = "bigint", weight = "double" }\n'
    )
    numbers = ["NaN", "Infinity", "-Infinity", 1.5, -1e308]
    (shell.folder / "changes.jsonl").write_text(doubles(*numbers, "1e999", 10**400))
    described = ("--tables", "scale.toml")
    done = shell.run("convert", "--to", "qlik-table", "--output-as", container, *described, "-o", "out",
                     "changes.jsonl")  # fmt: skip
    assert (done.code, "2 bad records were left out" in done.stderr) == (1, True)
    assert "column weight: '1e999' is beyond REAL8" in done.stderr
    back = shell.run("convert", "--from", "qlik-table", "--table", "scale", "--as", container, *described,
                     "--to", "changes", "out")  # fmt: skip
    assert [json.loads(line)["fields"][1]["after"] for line in back.stdout.splitlines()] == numbers


def test_an_integer_of_more_than_64_bits_costs_its_change(shell: Shell) -> None:
    (shell.folder / "scale.toml").write_text(
        '[tables.scale]\nkey = ["id"]\ncolumns = { id = "bigint", weight = "bigint" }\n'
    )
    (shell.folder / "changes.jsonl").write_text(doubles(2**63 - 1, 2**63, -(2**63), -(2**63) - 1))
    into = ("--output-as", "parquet", "-o", "out")
    done = shell.run("convert", "--to", "qlik-table", "--tables", "scale.toml", *into, "changes.jsonl")
    assert done.code == 1
    assert done.stderr.count("column weight: an integer of more than 64 bits") == 2
    assert (shell.folder / "out").exists()


def test_an_event_time_that_is_none_costs_its_change(shell: Shell) -> None:
    changes = inserts((None, "usr"), time="yesterday") + inserts(
        (None, "usr"), time="2025-03-23T10:00:00.5+05:45"
    )
    (shell.folder / "changes.jsonl").write_text(changes)
    done = shell.run("convert", "--to", "log", "--output-as", "csv", "changes.jsonl")
    assert (done.code, "event_time: 'yesterday' is not a timestamp" in done.stderr) == (1, True)
    assert {line.split(",")[3] for line in done.stdout.splitlines()} == {
        "event_time",
        "2025-03-23 04:15:00.5",
    }


def test_a_file_that_is_read_is_not_replaced_in_the_folder_that_is_written(shell: Shell) -> None:
    folder = shell.folder / "out"
    folder.mkdir()
    to_log = ("convert", "--from", "log", "--to", "log", "--tables", "usr.toml")
    (folder / "eventlog.csv").write_text(HEADER + GOOD)
    (shell.folder / "link.csv").symlink_to(folder / "eventlog.csv")
    for name in ("out/eventlog.csv", "link.csv"):
        done = shell.run(*to_log, name, "-o", "out/")
        assert (done.code, done.stderr) == (
            2,
            "eventlog: out/eventlog.csv is read, and would be replaced: write to another folder\n",
        )
    assert (folder / "eventlog.csv").read_text() == HEADER + GOOD
    assert files(folder) == {"eventlog.csv"}
    assert shell.run(*to_log, "log.csv", "-o", "out/").code == 0  # one that is not read is
    assert (folder / "eventlog.csv").read_text() != HEADER + GOOD


@pytest.mark.skipif(bool(UNPRIVILEGED) and not shutil.which("setpriv"), reason="root is let in everywhere")
@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("-o", "shut/out.xml", "log.csv"), "{folder}/shut/out.xml: Permission denied"),
        (("--current", "usr=shut.csv", "log.csv"), "shut.csv: Permission denied"),
        (("shut.csv",), "shut.csv: Permission denied"),
    ],
)
def test_what_we_may_not_touch_is_reported_by_the_name_that_was_given(
    tmp_path: Path, words: tuple[str, ...], reported: str
) -> None:
    (tmp_path / "usr.toml").write_text(USR)
    (tmp_path / "log.csv").write_text(HEADER + GOOD)
    (tmp_path / "shut.csv").write_text("idu\n")
    (tmp_path / "shut.csv").chmod(0)
    (tmp_path / "shut").mkdir(mode=0o555)
    done = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-m", "eventlog", *CONVERT, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (2, f"eventlog: {reported.format(folder=tmp_path)}\n")
    assert not list((tmp_path / "shut").iterdir())


def test_refused_records_stay_lines_if_a_file_ends_within_one(shell: Shell) -> None:
    shell.with_files(
        {"log.csv": HEADER + GOOD + BAD.strip(), "more.csv": HEADER + BAD + GOOD.replace("1", "2")}
    )
    done = shell.run(*CONVERT, "-o", "out.xml", "--refused", "refused.csv", "log.csv", "more.csv")
    assert done.code == 1, done.stderr
    assert (shell.folder / "refused.csv").read_text() == BAD + BAD
