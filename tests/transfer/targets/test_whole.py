"""Messages are applied in whole transactions: one that is contradicted, or lacks a change, is not applied."""

from __future__ import annotations

import json

import pytest

from eventlog.sql.connect import connect
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import select_rows
from tests.transfer.targets.test_cli import TABLES

pytestmark = pytest.mark.quick

NAMES = ((1, "one", "a"), (3, "one", "c"), (2, "two", "b"), (4, "two", "d"))  # two transactions of one moment
FROM = ("--from", "qlik-message", "--table", "usr", "--tables", "t.toml")


@pytest.fixture
def shell(shell: Shell) -> Shell:
    lines = []
    for key, transaction, name in NAMES:
        fields = [{"column": "idu", "after": key}, {"column": "fname", "after": name}]
        line = {"op": "insert", "schema": None, "table": "usr", "key": {"idu": key}, "fields": fields}
        place = {"position": f"2025010100000000{key:019}", "transaction": transaction}
        lines.append(json.dumps(line | place) + "\n")
    shell.with_files({"t.toml": TABLES, "c.jsonl": "".join(lines)})
    words = ("--tables", "t.toml", "--no-metadata", "--to", "qlik-message", "-o", "all.jsonl", "c.jsonl")
    done = shell.run("convert", *words)
    assert done.code == 0, done.stderr
    return shell


def test_transactions_of_one_moment_are_not_split(shell: Shell, postgres: Database) -> None:
    """Each shares a transaction of the target with all of itself, however small groups are."""
    words = (*FROM, "--group", "1")
    done = shell.run("apply", "--to-url", postgres.address, *words, "all.jsonl")
    assert (done.code, done.stderr) == (0, "eventlog: 4 inserted, 0 updated, 0 deleted\n")
    together = "select string_agg(idu::text, ' ' order by idu) from usr group by xmin::text order by 1"
    assert select_rows(connect(postgres.url), together) == [("1 3",), ("2 4",)]


def test_a_contradicted_transaction_is_refused_as_a_whole(shell: Shell, postgres: Database) -> None:
    lines = (shell.folder / "all.jsonl").read_text().splitlines()
    (reported,) = (line for line in lines if '"fname":"c"' in line)
    (shell.folder / "bad.jsonl").write_text("\n".join([*lines, reported.replace('"c"', '"x"')]) + "\n")
    words = (*FROM, "--refused", "refused")
    done = shell.run("apply", "--to-url", postgres.address, *words, "bad.jsonl")
    assert done.code == 1
    assert done.stderr.endswith("eventlog: 2 inserted, 0 updated, 0 deleted\n")
    assert select_rows(connect(postgres.url), "select idu from usr order by idu") == [(2,), (4,)]
    assert len((shell.folder / "refused").read_text().splitlines()) == 3


def test_one_that_lacks_its_last_change_waits_for_it(shell: Shell, postgres: Database) -> None:
    lines = (shell.folder / "all.jsonl").read_text().splitlines()
    (shell.folder / "grown.jsonl").write_text("\n".join(lines[:3]) + "\n")
    words = ("apply", "--to-url", postgres.address, *FROM)
    done = shell.run(*words, "grown.jsonl")
    assert done.code == 1
    assert (
        "lacks its last change (grown.jsonl); --open-transactions refuse or deliver continues" in done.stderr
    )
    (shell.folder / "grown.jsonl").write_text("\n".join(lines) + "\n")
    done = shell.run(*words, "grown.jsonl")
    assert done.code == 0, done.stderr
    assert select_rows(connect(postgres.url), "select idu, fname from usr order by idu") == [
        (key, name) for key, _, name in sorted(NAMES)
    ]
