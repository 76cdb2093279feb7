"""`eventlog apply` as people call it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.sql.connect import connect
from tests.apply.support import rows
from tests.commands import Shell
from tests.databases import Database

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
def shell(tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "tables.toml").write_text(TABLES)
    (folder / "log.csv").write_text(LOG)
    (folder / "usr.csv").write_text("idu,fname\n2,Jane\n")
    (folder / "changes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in CHANGES))
    made = Shell(folder)
    yield made
    made.close()


def url(database: Database) -> str:
    return database.url.render_as_string(hide_password=False)


def test_every_format_goes_into_one_table_once(shell: Shell, postgres: Database) -> None:
    engine, to = connect(postgres.url), ("--to-url", url(postgres), "--tables", "tables.toml")
    current = ("--current", "usr=usr.csv")
    for name in ("changes", "xds", "qlik-table", "qlik-message"):
        made = f"{name}.{'csv' if name == 'qlik-table' else 'xml' if name == 'xds' else 'jsonl'}"
        told = shell.run("convert", "--from", "log", "--to", name, *to[2:], *current, "-o", made, "log.csv")
        assert told.code == 0, told.stderr
        source = ("--from", name, "--table", "usr") if name == "qlik-table" else ("--from", name)
        done = shell.run("apply", *source, *to, made)
        assert done.code == 0, done.stderr
        assert rows(engine, "select * from usr order by idu") == [(1, "John"), (2, "Jane")]
        again = shell.run("apply", *source, *to, made)
        assert again.stderr.startswith("eventlog: 0 inserted, 0 updated, 0 deleted,"), again.stderr
        assert again.stdout == done.stdout == ""
        with engine.begin() as connection:
            connection.exec_driver_sql("delete from usr")
    log = shell.run("apply", "--from", "log", *to, *current, "log.csv")
    assert (log.code, log.stderr) == (0, "eventlog: 2 inserted, 1 updated, 0 deleted\n")


def test_refused_changes_are_told_kept_and_the_exit_is_1(shell: Shell, postgres: Database) -> None:
    to = ("--to-url", url(postgres), "--tables", "tables.toml", "--schema-changes", "refuse")
    connect(postgres.url)
    with connect(postgres.url).begin() as connection:
        connection.exec_driver_sql("create table usr (idu integer primary key, fname text)")
    done = shell.run("apply", *to, "--refused", "refused.jsonl", "changes.jsonl")
    assert done.code == 1
    assert done.stderr == (
        "usr: public.usr has no column x (--schema-changes apply adds it)\n"
        "usr: the row that it changes is not there"
        " (--missing-rows insert makes it of what the change tells)\n"
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("changes.jsonl",), "name the target: --to-url URL"),
        (("--to-url", "{url}", "--state", "s", "changes.jsonl"), "the target itself remembers"),
        (("--to-url", "{url}", "--mask-order", "big", "changes.jsonl"), "takes no part here"),
        (("--to-url", "{url}", "--group", "0", "changes.jsonl"), "between 1 and"),
        (("--to-url", "{url}", "gone.jsonl"), "gone.jsonl: no such file"),
        (("--to-url", "{url}", "--url", "{url}", "changes.jsonl"), "--url: changes does not stand there"),
        (("--to-url", "sqlite://", "changes.jsonl"), "'sqlite' is no database that eventlog knows"),
        (("--to-url", "{url}", "--as", "csv", "changes.jsonl"), "--as csv"),
    ],
)
def test_misuse_is_exit_2(shell: Shell, postgres: Database, words: tuple[str, ...], told: str) -> None:
    done = shell.run("apply", *(word.replace("{url}", url(postgres)) for word in words))
    assert done.code == 2
    assert told in done.stderr
