"""`eventlog apply --to-lake` and `eventlog rounds` as people call them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import deltalake
import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.tables import Tables
from eventlog.sql.connect import connect
from eventlog.transfer.apply import apply_to_lake
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from eventlog.transfer.targets.lake.lake_settings import LakeSettings
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from tests.kit.commands import Done, Shell
from tests.kit.databases import Database
from tests.kit.lake import CLOCK, Duck, IcebergFolder, Killed, at_each_commit, queries_of_page, write_changes
from tests.kit.statements import run_statements
from tests.transfer.targets.test_folders import TABLES, fill, make
from tests.world.smalldisk import NoSmallDisk, small_disk

pytestmark = pytest.mark.quick

HEAD = "header__change_seq,header__change_oper,header__change_mask,idu,n\n"


def line(number: int, oper: str, key: int, n: int) -> str:
    return f"20250101000000{number:021},{oper},,{key},{n}\n"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"tables.toml": TABLES})


def apply(shell: Shell, *words: str) -> Done:
    return shell.run("apply", "--to-lake", "delta:lake", "--tables", "tables.toml", *words)


def rows(folder: Path) -> list[tuple[int, int]]:
    return sorted(Duck().rows(folder / "lake", "usr", "idu, n"))


def test_change_tables_go_on_where_they_were_left(shell: Shell) -> None:
    path = shell.folder / "usr__ct.csv"
    path.write_text(HEAD + line(1, "I", 1, 10) + line(2, "I", 2, 20))
    words = ("--from", "qlik-table", "--settle", "0", "usr__ct.csv")
    assert apply(shell, *words).stderr == "eventlog: 2 inserted, 0 updated, 0 deleted\n"
    path.write_text(path.read_text() + line(3, "D", 1, 10))
    assert apply(shell, *words).stderr == "eventlog: 0 inserted, 0 updated, 1 deleted\n"
    assert apply(shell, *words).stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"
    assert rows(shell.folder) == [(2, 20)]
    shown = shell.run("rounds", "delta:lake", "--source", "qlik-table")
    assert (shown.code, shown.stdout) == (0, "round 2\n  usr  version 2\n")
    shown = shell.run("rounds", "delta:lake", "--source", "qlik-table", "--round", "1", "--json")
    facts = json.loads(shown.stdout)
    assert (facts["round"], facts["changes"], facts["tables"]) == (1, 2, {"usr": 1})


def test_a_round_lasts_a_tenth_of_a_second_or_longer(shell: Shell) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    words = ("--from", "qlik-table", "--settle", "0", "usr__ct.csv")
    refused = apply(shell, "--round-time", "0", *words)
    assert (refused.code, "--round-time" in refused.stderr, (shell.folder / "lake").exists()) == (
        2,
        True,
        False,
    )
    assert (
        apply(shell, "--round-time", "0.1", *words).stderr == "eventlog: 1 inserted, 0 updated, 0 deleted\n"
    )


def test_the_queries_of_the_page_read_a_round(shell: Shell) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    apply(shell, "--from", "qlik-table", "usr__ct.csv")
    queries = queries_of_page(shell.folder / "lake", "lake")
    assert [Duck().query(query) for query in queries] == [[("usr", 1)], [(1, 10)]]


def test_a_history_is_in_its_round_and_has_no_receipt(shell: Shell) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    apply(shell, "--keep", "both", "--from", "qlik-table", "usr__ct.csv")
    words = ("rounds", "delta:lake", "--source", "qlik-table")
    assert shell.run(*words).stdout == "round 1\n  usr  version 1\n  usr_history  version 1\n"
    receipts = shell.run(*words, "--against", "delta:lake").stdout.splitlines()
    assert [receipt.split()[0] for receipt in receipts] == ["round", "usr"]


def test_a_full_disk_is_one_sentence_and_the_run_resumes(shell: Shell, tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "small", 100))
        except NoSmallDisk as fault:
            pytest.skip(f"no small disk can be mounted here: {fault}")
        inside, lake = Shell(shell.folder, disk.within), f"delta:{disk.path}/lake"
        stack.callback(inside.close)
        path = shell.folder / "usr__ct.csv"
        words = ("--to-lake", lake, "--tables", "tables.toml", "--from", "qlik-table", "usr__ct.csv")
        path.write_text(HEAD + line(1, "I", 1, 10))
        assert inside.run("apply", *words).code == 0
        path.write_text(path.read_text() + line(2, "I", 2, 20))
        disk.fill()
        done = inside.run("apply", *words)
        *_, reported = done.stderr.splitlines()  # the library may report a panic of its own before
        assert (done.code, reported.isprintable()) == (1, True), done.stderr
        assert reported.startswith("eventlog: the table ")
        assert "No space left on device" in reported
        disk.make_room()
        assert inside.run("apply", *words).stderr == "eventlog: 1 inserted, 0 updated, 0 deleted\n"
        assert inside.run("rounds", lake, "--source", "qlik-table").stdout.startswith("round 2\n")


@pytest.mark.parametrize("words", [("--source", "none"), ("--source", "qlik-table", "--round", "7")])
def test_a_round_that_is_not_there(shell: Shell, words: tuple[str, ...]) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    apply(shell, "--from", "qlik-table", "usr__ct.csv")
    shown = shell.run("rounds", "delta:lake", *words)
    assert (shown.code, shown.stdout, " of the source " in shown.stderr) == (1, "", True)


@pytest.mark.parametrize("name", ["log.csv", "documents.xml"])
def test_files_that_have_only_marks_are_refused_by_name(shell: Shell, name: str) -> None:
    shell.with_files({name: ""})
    done = apply(shell, "--from", "log" if name == "log.csv" else "xds", name)
    assert (done.code, "only marks of single events" in done.stderr) == (2, True)
    assert not (shell.folder / "lake").exists()


@pytest.mark.parametrize("place", ["iceberg:lake", "iceberg:lake/a..b", "delta:", "lake"])
def test_another_kind_of_lake_is_misuse(shell: Shell, place: str) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD)
    done = shell.run("apply", "--to-lake", place, "usr__ct.csv")
    assert (done.code, "a lake is delta:PLACE" in done.stderr) == (2, True)


def test_one_target_is_named(shell: Shell) -> None:
    done = apply(shell, "--to-url", "postgresql://nobody@localhost/none", "usr__ct.csv")
    assert (done.code, "Give --to-url, or --to-lake" in done.stderr) == (2, True)


def test_no_secret_of_a_store_is_printed(shell: Shell) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    options = "aws_access_key_id=ME,aws_secret_access_key=HIDDEN,aws_endpoint_url=http://127.0.0.1:1"
    options += ",aws_allow_http=true,aws_region=x,max_retries=0,retry_timeout=1s"
    words = ("--to-lake", "delta:s3://bucket/lake?sig=HIDDEN", "--lake-options", options)
    done = shell.run("apply", *words, "--from", "qlik-table", "usr__ct.csv")
    assert (done.code, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.startswith("eventlog: the table eventlog_rounds of the lake: ")
    assert "HIDDEN" not in done.stderr


def test_a_folder_is_applied_by_its_numbers(shell: Shell) -> None:
    """A group ends within a file, and a document that cannot be read is passed over."""
    folder = shell.folder / "out"
    fill(folder, [make(1, "1", 1), make(2, "none", 2), make(3, "3", 3)])
    done = apply(shell, "--group", "1", "out")
    assert (done.code, done.stderr.splitlines()[-1]) == (1, "eventlog: 2 inserted, 0 updated, 0 deleted")
    assert rows(shell.folder) == [(1, 1), (3, 3)]
    fill(folder, [make(4, None, 1), make(5, "5", 5)])
    assert apply(shell, "out").stderr == "eventlog: 1 inserted, 0 updated, 1 deleted\n"
    assert apply(shell, "out").stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"
    assert rows(shell.folder) == [(3, 3), (5, 5)]


def several(folder: Path, *files: list[tuple[int, int]]) -> None:
    """Fill a folder of the files sink with files of several documents."""
    fill(folder, [make(number, "0", 99) for number, _ in enumerate(files, 1)])
    for path, documents in zip(sorted(folder.glob("*.xml")), files, strict=True):
        text = path.read_text()
        event = text[text.index("<add") : text.index("</add>") + 6]
        events = (
            event.replace("idu=99", f"idu={key}")
            .replace(">0<", f">{value}<")
            .replace("eventlog:", f"eventlog:{key}")
            for key, value in documents
        )
        path.write_text(text.replace(event, "".join(events)))


def test_a_file_of_which_a_part_was_applied_goes_on_within(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shell.folder / "out"
    several(folder, [(1, 1), (2, 2), (3, 3)], [(4, 4), (5, 5)])
    for number in (3, 6, 4):
        commits = 0

        def step(is_after: bool, last: int = number) -> None:
            nonlocal commits
            commits += is_after
            if commits == last and is_after:
                raise Killed

        with pytest.raises(Killed), at_each_commit(monkeypatch, step):
            follow(shell.folder, folder, iter(()), group=1)
    follow(shell.folder, folder, iter(()), group=3)
    assert rows(shell.folder) == [(n, n) for n in range(1, 6)]
    rounds = Duck().rows(shell.folder / "lake", "eventlog_rounds", "changes, state")
    assert sum(changes or 0 for changes, state in rounds if state == "begun") == 5


def follow(
    folder: Path,
    source: Path,
    looks: Iterator[object],
    source_format: str = "xds",
    tables: Tables | None = None,
    group: int = 10_000,
) -> list[float]:
    """Follow a source; between two looks something happens. Return how long each wait was meant to be."""
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return next(looks, None) is not None

    apply_to_lake(
        Job(source_format, "changes", (str(source),), tables=tables or tablesfile.read(TABLES)),
        f"delta:{folder / 'lake'}",
        LakeSettings(),
        ApplySettings(group=group),
        Report(lambda refused: None),
        CLOCK,
        lambda size: None,
        RunLength(True, wait),
    )
    return waits


def test_a_quiet_source_makes_no_round(shell: Shell) -> None:
    folder, seen = shell.folder / "out", []

    def looks() -> Iterator[bool]:
        for number in range(4):
            seen.append(len(Duck().rows(shell.folder / "lake", "eventlog_rounds")))
            if number == 1:
                fill(folder, [make(2, "2", 2)])
            yield True

    fill(folder, [make(1, "1", 1)])
    follow(shell.folder, folder, looks())
    assert seen == [2, 2, 4, 4]
    assert rows(shell.folder) == list(chain([(1, 1)], [(2, 2)]))


DEPT = """\
[tables.dept]
key = ["id"]
[tables.dept.columns]
id = "integer"
name = "varchar(20)"
amount = "numeric(12,2)"
at = "timestamp"
is_open = "boolean"
photo = "bytea"
weight = "double precision"
"""
ROWS = [
    (1, "Ärzte", "1.50", "2025-01-01 10:00:00.5", True, b"\x00", 0.1),
    (2, None, "-7.00", "1999-12-31 23:59:59", False, b"", -1e300),
    (3, "", None, None, None, None, None),
]


@pytest.fixture
def departments(shell: Shell, postgres: Database) -> Engine:
    """A table of a database, and the lake that has its rows."""
    engine = connect(postgres.url)
    columns = (
        "id integer primary key, name text, amount numeric(12,2), at timestamp, is_open boolean, photo bytea"
    )
    run_statements(engine, f"create table dept ({columns}, weight double precision)")
    names = ("id", "name", "amount", "at", "is_open", "photo", "weight")
    with engine.begin() as connection:
        for row in ROWS:
            marks = ", ".join(f":{name}" for name in names)
            statement = f"insert into dept values ({marks})"
            connection.execute(text(statement), dict(zip(names, row, strict=True)))
    changes = (
        Change(Op.INSERT, None, "dept", (("id", row[0]),), tuple(map(Field, names, [ABSENT] * 7, row)))
        for row in ROWS
    )
    write_changes(shell.folder / "dept.jsonl", changes)
    shell.with_files({"dept.toml": DEPT})
    words = ("--tables", "dept.toml", "--from", "changes", "dept.jsonl")
    assert shell.run("apply", "--to-lake", "delta:lake", *words).code == 0
    return engine


def test_a_receipt_proves_that_a_table_equals_its_source(
    shell: Shell, departments: Engine, postgres: Database
) -> None:
    words = ("rounds", "delta:lake", "--source", "changes", "--against", postgres.address)
    done = shell.run(*words)
    assert (done.code, done.stderr) == (0, "")
    assert re.fullmatch(r"round 1\n  dept  version 1  3 rows  digest [0-9a-f]{32}  equal\n", done.stdout)
    run_statements(departments, "update dept set amount = 1.51 where id = 1", "delete from dept where id = 3")
    differing = shell.run(*words, "--json", "--record")
    (receipt,) = json.loads(differing.stdout)["receipts"]
    assert (differing.code, receipt["differing"], receipt["keys"]) == (1, 2, ["id=1", "id=3"])
    properties = deltalake.DeltaTable(str(shell.folder / "lake" / "dept")).metadata().configuration
    assert json.loads(properties["eventlog.receipt"]) == {"round": 1, **receipt}
    assert receipt["digest"] in done.stdout  # of the same rows


def test_a_second_lake_has_the_same_receipt(shell: Shell, departments: Engine) -> None:
    words = ("--tables", "dept.toml", "--from", "changes", "--group", "1", "dept.jsonl")
    assert shell.run("apply", "--to-lake", "delta:second", *words).code == 0
    shown = [
        shell.run("rounds", f"delta:{lake}", "--source", "changes", "--against", f"delta:{other}")
        for lake, other in (("lake", "second"), ("second", "lake"))
    ]
    assert [done.code for done in shown] == [0, 0]
    digests = [re.search("digest (.*)", done.stdout) for done in shown]
    assert len({match and match[1] for match in digests}) == 1
    dept = deltalake.DeltaTable(str(shell.folder / "second" / "dept"))
    dept.delete("id = 2")
    done = shell.run("rounds", "delta:lake", "--source", "changes", "--against", "delta:second")
    assert (done.code, "1 differ: id=2" in done.stdout) == (1, True)
    done = shell.run("rounds", "delta:second", "--source", "changes", "--against", "delta:lake")
    assert (done.code, "equal" in done.stdout) == (0, True)  # its round is older than that delete


def test_only_a_receipt_is_recorded(shell: Shell) -> None:
    done = shell.run("rounds", "delta:lake", "--source", "changes", "--record")
    assert (done.code, "--against" in done.stderr) == (2, True)


@pytest.fixture
def iceberg(shell: Shell) -> Iterator[IcebergFolder]:
    with IcebergFolder(shell.folder) as lake:
        yield lake


def test_tables_of_iceberg_by_the_configuration_of_its_library(shell: Shell, iceberg: IcebergFolder) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    (shell.folder / "tables.toml").write_text(TABLES)
    words = ("--to-lake", iceberg.address, "--lake-options", iceberg.lake_options, "--tables", "tables.toml")
    done = shell.run("apply", *words, "--from", "qlik-table", "usr__ct.csv")
    assert done.stderr == "eventlog: 1 inserted, 0 updated, 0 deleted\n"
    asked = ("rounds", iceberg.address, "--lake-options", iceberg.lake_options, "--source", "qlik-table")
    (version,) = json.loads(shell.run(*asked, "--json").stdout)["tables"].values()
    assert Duck().rows(iceberg, "usr", "idu, n", version) == [(1, 10)]
    receipt = shell.run(*asked, "--against", iceberg.address)
    assert (receipt.code, "equal" in receipt.stdout) == (0, True)


def test_a_catalogue_that_is_not_configured_is_misuse(shell: Shell) -> None:
    (shell.folder / "usr__ct.csv").write_text(HEAD + line(1, "I", 1, 10))
    options = "uri=nothing://user:HIDDEN@here"
    done = shell.run("apply", "--to-lake", "iceberg:none/hr", "--lake-options", options, "usr__ct.csv")
    assert (done.code, len(done.stderr.splitlines()), "HIDDEN" in done.stderr) == (2, 1, False), done.stderr
    assert "the catalogue none cannot be opened" in done.stderr
