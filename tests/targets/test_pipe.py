"""What comes through a pipe is counted, so another pipe under the same name is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eventlog.sql.connect import connect
from tests.kit.commands import Done, Shell
from tests.kit.databases import Database
from tests.targets.support import rows, run

pytestmark = pytest.mark.quick

TABLES = '[tables.usr]\nkey = ["idu"]\nnumber = 1\ncolumns = { idu = "integer", fname = "varchar(8)" }\n'


def line(key: int) -> str:
    fields = [{"column": "idu", "after": key}, {"column": "fname", "after": "x"}]
    return json.dumps({"op": "insert", "table": "usr", "key": {"idu": key}, "fields": fields}) + "\n"


def test_another_pipe_under_the_name_of_one_that_was_applied_is_an_error(
    tmp_path: Path, postgres: Database
) -> None:
    """Refuse it, because by counting it was applied already, like a capture with a state."""
    engine = connect(postgres.url)
    run(engine, "drop table if exists usr, eventlog_applied")
    run(engine, "create table usr (idu integer primary key, fname varchar(8))")
    (tmp_path / "t.toml").write_text(TABLES)
    shell = Shell(tmp_path)

    def apply(*words: str, stdin: str) -> Done:
        target = ("--to-url", postgres.address, "--tables", "t.toml")
        return shell.run("apply", *target, "--from", "changes", *words, "-", stdin=stdin)

    assert apply(stdin=line(1) + line(2)).code == 0
    done = apply(stdin=line(3))
    assert (done.code, "the input ends after 1 changes, and 2 were applied" in done.stderr) == (1, True), done
    assert apply("--source", "another", stdin=line(3)).code == 0
    assert [key for (key,) in rows(engine, "select idu from usr order by idu")] == [1, 2, 3]
