"""What comes through a pipe is applied as it arrives, in whole transactions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from eventlog.sql.connect import connect
from tests.commands import Done, Shell, environment
from tests.databases import Database
from tests.targets.support import rows, run
from tests.targets.test_cli import url
from tests.targets.test_meeting import until

pytestmark = pytest.mark.quick

TABLES = '[tables.usr]\nkey = ["idu"]\nnumber = 1\ncolumns = { idu = "integer", fname = "varchar(8)" }\n'


class Piped:
    """The command `apply`, with a pipe that stays open."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.engine = connect(database.url)
        run(self.engine, "drop table if exists usr, eventlog_applied")
        run(self.engine, "create table usr (idu integer primary key, fname varchar(8))")
        (folder / "t.toml").write_text(TABLES)
        self._command = [sys.executable, "-m", "eventlog"]
        self._target = ("--to-url", url(database), "--tables", "t.toml")
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*self._command, "apply", *self._target, *words],
            cwd=self._folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str, stdin: str) -> Done:
        """Run the command on an input that is whole."""
        return Shell(self._folder).run("apply", *self._target, *words, stdin=stdin)

    def stream(self, name: str, *lines: str) -> bytes:
        """Return the GBase stream of these changes."""
        words = ("--from", "changes", "--to", "gbase", "--tables", "t.toml", "-o", name, "-")
        done = Shell(self._folder).run("convert", *words, stdin="".join(lines))
        assert done.code == 0, done.stderr
        return (self._folder / name).read_bytes()

    @property
    def pipe(self) -> IO[bytes]:
        assert self.process is not None
        assert self.process.stdin is not None
        return self.process.stdin

    def write(self, data: str | bytes) -> None:
        self.pipe.write(data.encode() if isinstance(data, str) else data)
        self.pipe.flush()

    def wait(self, *keys: int) -> None:
        """Wait until the table has these rows, and the command goes on."""
        until(lambda: self.keys() == [*keys] or self._has_ended())
        assert not self._has_ended(), self.end()
        assert self.keys() == [*keys]

    def keys(self) -> list[int]:
        return [key for (key,) in rows(self.engine, "select idu from usr order by idu")]

    def end(self) -> tuple[int, str]:
        """Close the pipe; return how the command ended, and its output."""
        assert self.process is not None
        said = self.process.communicate(timeout=60)[1].decode()
        return self.process.returncode, said

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None


@pytest.fixture
def piped(tmp_path: Path, postgres: Database) -> Iterator[Piped]:
    made = Piped(tmp_path, postgres)
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.communicate()


def line(key: int, transaction: str | None = None) -> str:
    fields = [{"column": "idu", "after": key}, {"column": "fname", "after": "x"}]
    change = {
        "op": "insert",
        "table": "usr",
        "key": {"idu": key},
        "fields": fields,
        "transaction": transaction,
    }
    return json.dumps(change) + "\n"


def test_a_change_without_a_transaction_is_applied_as_it_arrives(piped: Piped) -> None:
    piped.start("--from", "changes", "-")
    for key in (1, 2):
        piped.write(line(key))
        piped.wait(*range(1, key + 1))
    assert piped.end() == (0, "eventlog: 2 inserted, 0 updated, 0 deleted\n")


def test_a_transaction_is_applied_once_the_next_one_begins(piped: Piped) -> None:
    """Wait for half a line; an open transaction is applied at the end of the input."""
    piped.start("--from", "changes", "-")
    piped.write(line(1, "a") + line(2, "a") + line(3, "b"))
    piped.wait(1, 2)
    piped.write(line(4, "b") + line(5, "c")[:-9])
    assert piped.keys() == [1, 2]
    piped.write(line(5, "c")[-9:])
    piped.wait(1, 2, 3, 4)
    assert piped.end() == (0, "eventlog: 5 inserted, 0 updated, 0 deleted\n")
    assert piped.keys() == [1, 2, 3, 4, 5]


def test_a_transaction_of_a_stream_of_gbase_is_applied_with_its_commit(piped: Piped) -> None:
    one = piped.stream("one", line(1, "1"))
    two = piped.stream("two", line(1, "1"), line(2, "2"))
    piped.start("--from", "gbase", "-")
    piped.write(one)
    piped.wait(1)
    piped.write(two[len(one) :])
    piped.wait(1, 2)
    assert piped.end() == (0, "eventlog: 2 inserted, 0 updated, 0 deleted\n")


def test_another_pipe_under_the_name_of_one_that_was_applied_is_an_error(piped: Piped) -> None:
    """Refuse it, because by counting it was applied already, like a capture with a state."""
    words = ("--from", "changes")
    assert piped.run(*words, "-", stdin=line(1) + line(2)).code == 0
    done = piped.run(*words, "-", stdin=line(3))
    assert (done.code, "the input ends after 1 changes, and 2 were applied" in done.stderr) == (1, True), done
    done = piped.run(*words, "--source", "another", "-", stdin=line(3))
    assert (done.code, piped.keys()) == (0, [1, 2, 3])
