"""`eventlog apply` as people call it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.sql.connect import connect
from eventlog.transfer.apply import apply_to_database
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from tests.kit.commands import Done, Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows

pytestmark = pytest.mark.quick

TABLES = '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(8)" }\n'
LOG = """\
record_id,event_type,event_time,table_name,table_key,column_name,old_value,new_value
1,1,2025-03-23 10:57:19,usr,idu=1,fname,,Jack
2,2,2025-03-23 10:57:20,usr,idu=1,fname,Jack,John
3,5,2025-03-23 10:57:21,usr,idu=2,,,
"""
CHANGES = [
    {"op": "insert", "table": "usr", "key": {"idu": 1}, "fields": [{"column": "fname", "after": "Jack"}]},
    {"op": "update", "table": "usr", "key": {"idu": 7}, "fields": [{"column": "x", "after": "y"}]},
    {
        "op": "update",
        "table": "usr",
        "key": {"idu": 8},
        "fields": [{"column": "idu", "before": 9, "after": 8}],
    },
]


@pytest.fixture
def shell(shell: Shell) -> Shell:
    changes = "".join(json.dumps(line) + "\n" for line in CHANGES)
    current = "idu,fname\n2,Jane\n"
    return shell.with_files(
        {"tables.toml": TABLES, "log.csv": LOG, "usr.csv": current, "changes.jsonl": changes}
    )


def test_a_column_whose_bit_is_clear_keeps_its_value(shell: Shell, postgres: Database) -> None:
    """Both rows of an update hold null for an unchanged LOB."""
    engine, position = connect(postgres.url), "20231114221320" + "00" + "0" * 18
    heading = ",".join(f"header__change_{name}" for name in ("seq", "oper", "mask")) + ",idu,fname,photo"
    lines = [f"{position}1,I,38,1,Jack,long", f"{position}2,B,,1,Jack,", f"{position}2,U,10,1,John,"]
    (shell.folder / "usr__ct.csv").write_text("\n".join([heading, *lines, ""]))
    done = shell.run("apply", "--tables", "tables.toml", "--to-url", postgres.address, "usr__ct.csv")
    assert done.code == 0, done.stderr
    assert select_rows(engine, "select fname, photo from usr") == [("John", "long")]


@pytest.mark.slow("it runs a command for each format")
def test_every_format_goes_into_one_table_once(shell: Shell, postgres: Database) -> None:
    engine, to = connect(postgres.url), ("--to-url", postgres.address, "--tables", "tables.toml")
    current = ("--current", "usr=usr.csv")
    for name in ("changes", "xds", "qlik-table", "qlik-message"):
        made = f"{name}.{'csv' if name == 'qlik-table' else 'xml' if name == 'xds' else 'jsonl'}"
        reported = shell.run(
            "convert", "--from", "log", "--to", name, *to[2:], *current, "-o", made, "log.csv"
        )
        assert reported.code == 0, reported.stderr
        source = ("--from", name, "--table", "usr") if name == "qlik-table" else ("--from", name)
        done = shell.run("apply", *source, *to, made)
        assert done.code == 0, done.stderr
        assert select_rows(engine, "select * from usr order by idu") == [(1, "John"), (2, "Jane")]
        again = shell.run("apply", *source, *to, made)
        assert again.stderr.startswith("eventlog: 0 inserted, 0 updated, 0 deleted"), again.stderr
        assert again.stdout == done.stdout == ""
        run_statements(engine, "delete from usr")
    log = shell.run("apply", "--from", "log", *to, *current, "log.csv")
    assert (log.code, log.stderr) == (0, "eventlog: 2 inserted, 1 updated, 0 deleted\n")


def test_change_tables_go_on_where_they_were_left_in_files_and_in_a_database(
    shell: Shell, postgres: Database
) -> None:
    """Each change is applied once; tables that come in separate runs are sources of their own."""
    engine, to = connect(postgres.url), ("--to-url", postgres.address, "--tables", "two.toml")
    (shell.folder / "two.toml").write_text(TABLES + TABLES.replace("usr", "dept"))
    plan = [("usr", "insert", 1), ("dept", "insert", 1), ("usr", "update", 1), ("dept", "update", 1)]
    plan += [("dept", "insert", 2), ("usr", "delete", 1), ("usr", "insert", 3), ("dept", "delete", 1)]
    lines = [line_of(number, *one) for number, one in enumerate(plan)]
    (shell.folder / "all.jsonl").write_text("".join(lines))
    ct = ("convert", "--to", "qlik-table", "--tables", "two.toml", "all.jsonl")
    assert shell.run(*ct, "-o", "ct/").code == 0
    for name in ("usr", "dept", "dept"):
        done = shell.run("apply", *to, "--source", name, f"ct/{name}__ct.csv")
        assert done.code == 0, done.stderr
    assert done.stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"
    assert select_rows(engine, "select * from usr") == [(3, "n6")]
    assert select_rows(engine, "select * from dept") == [(2, "n4")]
    assert shell.run(*ct, "--url", postgres.address).code == 0
    place = ("--from", "qlik-table", "--url", postgres.address, "--source", "place")
    run_statements(engine, "truncate usr")
    done = shell.run("apply", *place, *to, "usr", "dept")
    assert (done.code, done.stderr) == (0, "eventlog: 4 inserted, 2 updated, 2 deleted\n")
    assert select_rows(engine, "select * from usr") == [(3, "n6")]
    again = shell.run("apply", *place, *to, "usr", "dept")
    assert again.stderr == "eventlog: 0 inserted, 0 updated, 0 deleted\n"


def test_a_row_that_cannot_be_read_is_reported_by_one_run(shell: Shell, postgres: Database) -> None:
    """The state passes over it, though nothing of it is in a table."""
    heading = "header__change_seq,header__change_oper,idu,fname\n"
    shell.with_files({"usr__ct.csv": f"{heading}20231114221320{1:021},I,one,Jack\n"})
    words = ("apply", "--tables", "tables.toml", "--to-url", postgres.address, "usr__ct.csv")
    applied = "eventlog: 0 inserted, 0 updated, 0 deleted\n"
    reported = f"usr__ct.csv:2: column idu: 'one' is not an integer (INT4)\n{applied}"
    assert shell.run(*words) == (1, "", reported)
    assert shell.run(*words) == (0, "", applied)


def line_of(number: int, table: str, op: str, key: int) -> str:
    """Return a change of the neutral format."""
    fields = [{"column": "idu", "after": key}, {"column": "fname", "after": f"n{number}"}]
    line: dict[str, Any] = {"op": op, "table": table, "key": {"idu": key}}
    line |= {"position": f"20250101000000{number:021}", "transaction": str(number)}
    return json.dumps(line | {"fields": fields if op != "delete" else []}) + "\n"


def test_refused_changes_are_reported_kept_and_the_exit_is_1(shell: Shell, postgres: Database) -> None:
    to = ("--to-url", postgres.address, "--tables", "tables.toml", "--schema-changes", "refuse")
    connect(postgres.url)
    run_statements(connect(postgres.url), "create table usr (idu integer primary key, fname text)")
    done = shell.run("apply", *to, "--refused", "refused.jsonl", "changes.jsonl")
    assert done.code == 1
    assert done.stderr == (
        "usr: public.usr has no column x (--schema-changes apply adds it)\n"
        "usr: the row that it changes does not exist"
        " (--missing-rows insert creates it from the change's values)\n"
        "eventlog: 1 inserted, 0 updated, 0 deleted, 2 refused\n"
    )
    kept = [json.loads(line) for line in (shell.folder / "refused.jsonl").read_text().splitlines()]
    assert [line["key"] for line in kept] == [{"idu": 7}, {"idu": 8}]
    strict = shell.run("apply", *to, "--source", "other", "--strict", "changes.jsonl")
    assert (strict.code, strict.stderr.splitlines()[-1]) == (1, "eventlog: stopped at the first bad record")
    less = shell.run(
        "apply", *to, "--source", "third", "--missing-rows", "ignore", "--group", "1", "changes.jsonl"
    )
    assert less.stderr.endswith("eventlog: 1 inserted, 0 updated, 0 deleted, 1 ignored, 1 refused\n")


def test_what_is_refused_is_out_before_the_target_passes_it_over(shell: Shell, postgres: Database) -> None:
    """Apply nothing of the group in which a run ends; the next run reports all.

    What is kept stays when the command is repeated, after half a line that a kill left.
    """
    to = ("apply", "--to-url", postgres.address, "--tables", "tables.toml")
    words = (*to, "--refused", "refused.jsonl", "changes.jsonl")
    moves = [{**CHANGES[2], "key": {"idu": n}} for n in (8, 9)]
    lines = [json.dumps(line) + "\n" for line in (CHANGES[0], *moves)]
    (shell.folder / "changes.jsonl").write_text("".join(lines))
    strict = shell.run(*words, "--strict")
    assert (strict.code, strict.stderr.splitlines()[-1]) == (1, "eventlog: stopped at the first bad record")
    (shell.folder / "refused.jsonl").write_text('{"half')
    for reported in ("1 inserted, 0 updated, 0 deleted, 2 refused", "0 inserted, 0 updated, 0 deleted"):
        assert reported in shell.run(*words).stderr
        half, *kept = (shell.folder / "refused.jsonl").read_text().splitlines()
        assert half == '{"half'
        assert [json.loads(line)["key"] for line in kept] == [{"idu": 8}, {"idu": 9}]


def test_what_cannot_be_kept_is_not_passed_over(shell: Shell, postgres: Database) -> None:
    to = ("apply", "--to-url", postgres.address, "--tables", "tables.toml")
    lines = [json.dumps(line) + "\n" for line in (CHANGES[0], {**CHANGES[2], "key": {"idu": 8}})]
    (shell.folder / "changes.jsonl").write_text("".join(lines))
    full = shell.run(*to, "--refused", "/dev/full", "changes.jsonl")
    assert (full.code, "No space left on device" in full.stderr) == (1, True)
    again = shell.run(*to, "--refused", "refused.jsonl", "changes.jsonl")
    assert "1 inserted, 0 updated, 0 deleted, 1 refused" in again.stderr


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("changes.jsonl",), "Give --to-url, or --to-lake"),
        (("--to-url", "{url}", "--state", "s", "changes.jsonl"), "the target itself remembers"),
        (("--to-url", "{url}", "--mask-order", "big", "changes.jsonl"), "takes no part here"),
        (("--to-url", "{url}", "--group", "0", "changes.jsonl"), "between 1 and"),
        (("--to-url", "{url}", "gone.jsonl"), "gone.jsonl: no such file"),
        (("--to-url", "{url}", "--url", "{url}", "changes.jsonl"), "--url is no place for changes"),
        (("--to-url", "sqlite://", "changes.jsonl"), "'sqlite' is not a supported database"),
        (("--to-url", "{url}", "--as", "csv", "changes.jsonl"), "--as csv"),
    ],
)
def test_misuse_is_exit_2(shell: Shell, postgres: Database, words: tuple[str, ...], reported: str) -> None:
    done = shell.run("apply", *(word.replace("{url}", postgres.address) for word in words))
    assert done.code == 2
    assert reported in done.stderr


def test_a_table_that_no_source_describes_has_the_types_of_its_values_and_is_reported(
    shell: Shell, postgres: Database
) -> None:
    """Make a column of texts of any text, because a number in a text may begin with a zero."""
    fields = [
        {"column": "id", "after": 7},
        {"column": "price", "after": 1.5},
        {"column": "zip", "after": "01234"},
    ]
    change = {"op": "insert", "table": "item", "key": {}, "fields": fields}
    (shell.folder / "item.jsonl").write_text(json.dumps(change) + "\n")
    words = ("apply", "--to-url", postgres.address, "item.jsonl")
    asked = shell.run(*words)
    assert asked.code == 1
    assert "item has no known key: name it (--key item=COLUMN,...)" in asked.stderr
    done = shell.run(*words, "--source", "again", "--key", "item=id")
    guess = "eventlog: item takes columns with types that follow their first values: id bigint, price double"
    assert (done.code, done.stderr.splitlines()) == (
        0,
        [
            f"{guess} precision, zip text; a tables file (--tables FILE) states others",
            "eventlog: 1 inserted, 0 updated, 0 deleted",
        ],
    )
    assert select_rows(connect(postgres.url), "select id, price, zip from item") == [(7, 1.5, "01234")]


def line(key: int) -> str:
    fields = [{"column": "idu", "after": key}, {"column": "fname", "after": "x"}]
    return json.dumps({"op": "insert", "table": "usr", "key": {"idu": key}, "fields": fields}) + "\n"


def test_another_pipe_under_the_name_of_one_that_was_applied_is_an_error(
    tmp_path: Path, postgres: Database
) -> None:
    """Refuse it, because by counting it was applied already, like a capture with a state."""
    engine = connect(postgres.url)
    run_statements(engine, "drop table if exists usr, eventlog_applied")
    run_statements(engine, "create table usr (idu integer primary key, fname varchar(8))")
    (tmp_path / "t.toml").write_text(TABLES)
    shell = Shell(tmp_path)

    def apply(*words: str, stdin: str) -> Done:
        target = ("--to-url", postgres.address, "--tables", "t.toml")
        return shell.run("apply", *target, "--from", "changes", *words, "-", stdin=stdin)

    assert apply(stdin=line(1) + line(2)).code == 0
    done = apply(stdin=line(3))
    assert (done.code, "the input ends after 1 changes, and 2 were applied" in done.stderr) == (1, True), done
    assert apply("--source", "another", stdin=line(3)).code == 0
    assert [key for (key,) in select_rows(engine, "select idu from usr order by idu")] == [1, 2, 3]


HEAD = "header__change_seq,header__change_oper,header__stream_position,header__timestamp,idu,fname\n"


@pytest.mark.parametrize("tables", [1, 3])
def test_every_byte_of_change_tables_is_reported_once(
    postgres: Database, tmp_path: Path, tables: int
) -> None:
    names = []
    for number in range(tables):
        lines = [
            f"20250101000000{number * 9 + n:021},I,1,2025-01-01 00:00:00,{number * 9 + n},n\n"
            for n in range(9)
        ]
        path = tmp_path / str(number) / "usr__ct.csv"
        path.parent.mkdir()
        path.write_text(HEAD + "".join(lines))
        names.append(str(path))
    reported: list[int] = []
    refused: list[Refused] = []
    job = Job("qlik-table", "changes", tuple(names), tables=tablesfile.read(TABLES))
    url = postgres.address
    report = Report(refused.append, io.BytesIO(), False)
    tally = apply_to_database(
        job, url, ApplySettings(), report, "2025-01-02 00:00:00.000000", reported.append
    )
    assert (refused, tally.inserted) == ([], 9 * tables)
    assert sum(reported) == sum(Path(name).stat().st_size for name in names)
