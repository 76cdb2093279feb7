"""A folder of the files sink is applied in its order, on from the number that was reached."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.engine import Engine

from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import Item, OutgoingDocument
from eventlog.sql.connect import connect
from tests.kit.commands import Done, Shell, environment
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows
from tests.kit.support import patient, until

pytestmark = pytest.mark.quick

TABLES = '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", n = "integer" }\n'


def make(number: int, value: str | None, key: int = 1) -> OutgoingDocument:
    """Return a document that gives a row a value, or deletes it."""
    attr = f'<add-attr attr-name="n"><value type="int">{value}</value></add-attr>'
    name, content = ("delete", "") if value is None else ("add", attr)
    association = f"<association>idu={key},table=usr</association>"
    text = f'<{name} class-name="usr" event-id="eventlog:{number}">{association}{content}</{name}>'
    return OutgoingDocument(f"{number}-{number}", [Item(f"eventlog:{number}", text)])


def fill(folder: Path, documents: Iterable[OutgoingDocument]) -> None:
    with closing(FilesSink(folder)) as sink:
        for document in documents:
            list(sink.deliver([document]))


@pytest.fixture
def engine(postgres: Database) -> Engine:
    return connect(postgres.url)


@pytest.fixture
def target(shell: Shell, postgres: Database) -> Target:
    return Target(shell.with_files({"tables.toml": TABLES}), postgres)


class Target:
    """A shell that applies a folder to a database."""

    def __init__(self, shell: Shell, postgres: Database) -> None:
        self.folder = shell.folder / "out"
        self._shell = shell
        self.words = ("--tables", "tables.toml", "--to-url", postgres.address)

    def apply(self, *words: str) -> Done:
        return self._shell.run("apply", *self.words, *(words or ("out",)))


def numbers(engine: Engine) -> list[int]:
    return [number for (number,) in select_rows(engine, "select n from usr order by idu")]


def reached(engine: Engine) -> int:
    ((state,),) = select_rows(engine, "select state from eventlog_applied")
    return int(json.loads(json.loads(state)["read"])["number"])


def test_a_folder_is_applied_in_its_order_and_goes_on(target: Target, engine: Engine) -> None:
    """Read no file again, also after the record began anew or files were taken away."""
    fill(target.folder, [make(9, "9"), make(10, None), make(8, "8")])
    done = target.apply()
    assert (done.code, done.stderr) == (0, "eventlog: 2 inserted, 0 updated, 1 deleted\n")
    assert (numbers(engine), reached(engine)) == ([8], 3)
    for path in sorted(target.folder.glob("*.xml"))[:2]:
        path.unlink()
    fill(target.folder, [make(7, "7", 2)])
    assert target.apply().stderr == "eventlog: 1 inserted, 0 updated, 0 deleted\n"
    assert (numbers(engine), reached(engine)) == ([8, 7], 4)
    assert target.apply().stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"


def test_a_record_that_began_anew_hides_no_file(
    target: Target, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    fill(target.folder, [make(1, "1", 1), make(2, "2", 2)])
    assert target.apply().code == 0
    fill(target.folder, [make(n, str(n), n) for n in range(3, 7)])
    assert target.apply().stderr == "eventlog: 4 inserted, 0 updated, 0 deleted\n"
    (target.folder / ".eventlog" / "record").write_text("")  # a crash as it began
    assert target.apply().stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"
    assert numbers(engine) == [1, 2, 3, 4, 5, 6]


def test_another_folder_of_the_same_name_is_read_from_its_beginning(target: Target, engine: Engine) -> None:
    fill(target.folder, [make(n, str(n), n) for n in range(1, 4)])
    assert target.apply().code == 0
    for count in (2, 5):  # it has fewer files, or another one under the number
        target.folder.rename(target.folder.with_name(f"before-{count}"))
        fill(target.folder, [make(10 * count + n, "5", n) for n in range(1, count)])
        done = target.apply()
        assert f"{count - 1} " in done.stderr.replace("inserted", ""), done.stderr
        assert reached(engine) == count - 1
    assert numbers(engine) == [5, 5, 5, 5]


def test_files_that_are_named_one_by_one_are_applied_as_before(target: Target, engine: Engine) -> None:
    """Skip events by their ids, whichever way the files were named."""
    fill(target.folder, [make(1, "1", 1), make(2, "2", 2)])
    names = sorted(f"out/{path.name}" for path in target.folder.glob("*.xml"))
    assert target.apply(names[0]).stderr == "eventlog: 1 inserted, 0 updated, 0 deleted\n"
    assert target.apply().stderr == "eventlog: 1 inserted, 0 updated, 0 deleted, 1 skipped\n"
    assert target.apply(*names).stderr == "eventlog: 0 inserted, 0 updated, 0 deleted, 2 skipped\n"
    done = target.apply("--follow", *names)
    assert (done.code, "have no positions" in done.stderr) == (2, True)


def test_refused_events_of_a_folder_are_tried_again(target: Target, engine: Engine) -> None:
    run_statements(engine, "create table usr (idu integer primary key, n integer check (n < 5))")
    fill(target.folder, [make(1, "7"), make(2, "2", 2)])
    assert target.apply().code == 1
    assert reached(engine) == 2
    run_statements(engine, "alter table usr drop constraint usr_n_check")
    assert target.apply().stderr == "eventlog: 1 inserted, 0 updated, 0 deleted, 1 skipped\n"
    assert target.apply().stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"
    assert numbers(engine) == [7, 2]


def test_a_document_that_cannot_be_read_is_read_again_by_the_next_run(target: Target, engine: Engine) -> None:
    fill(target.folder, [make(1, "1", 1), make(2, "none", 2), make(3, "3", 3)])
    for _ in range(2):
        done = target.apply()
        assert (done.code, "none" in done.stderr) == (1, True), done.stderr
        assert reached(engine) == 1
    assert numbers(engine) == [1, 3]


def test_a_document_without_its_place_ends_the_round(target: Target, engine: Engine) -> None:
    fill(target.folder, [make(n, str(n), n) for n in range(1, 5)])
    second, aside = target.folder / "000000000000002-2-2.xml", target.folder / ".eventlog"
    second.rename(aside / second.stem)
    assert target.apply().code == 0
    assert numbers(engine) == [1]
    fill(target.folder, [])  # the next start of the sink
    assert target.apply().code == 0
    assert numbers(engine) == [1, 2, 3, 4]


def test_files_without_numbers_come_first(target: Target, engine: Engine) -> None:
    (target.folder / ".eventlog").mkdir(parents=True)
    (target.folder / ".eventlog" / "record").write_text("\n9-9 out\n\n10-10 out\n")
    for document in (make(9, "9"), make(10, "10")):
        (target.folder / f"{document.name}.xml").write_text(document.text)
    assert target.apply().stderr == "eventlog: 2 inserted, 0 updated, 0 deleted\n"
    assert numbers(engine) == [10]
    fill(target.folder, [make(11, "11")])
    assert target.apply().code == 0
    assert (numbers(engine), reached(engine)) == ([11], 1)


@pytest.mark.slow("a process follows the folder")
def test_a_folder_is_followed(target: Target, engine: Engine) -> None:
    run_statements(engine, "create table usr (idu integer primary key, n integer)")
    fill(target.folder, [make(1, "1")])
    words = ("apply", *target.words, "--follow", "--follow-interval", "0.1", "out")
    following = subprocess.Popen(
        [sys.executable, "-m", "eventlog", *words],
        cwd=target.folder.parent,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )

    def has(number: int) -> bool:
        return following.poll() is not None or numbers(engine) == [number]

    try:
        for number in range(1, 4):
            if number > 1:
                fill(target.folder, [make(number, str(number))])
            until(partial(has, number))
        following.send_signal(signal.SIGTERM)
        _, words_of_run = following.communicate(timeout=patient(60))
    finally:
        following.kill()
    assert (following.returncode, words_of_run) == (0, "eventlog: 3 inserted, 0 updated, 0 deleted\n")
