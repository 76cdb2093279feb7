"""Clock corrections, late rows and reloads: convert with a state, apply and Spark end with the same rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import eventlog_spark
import pytest

from eventlog.core import tablesfile
from eventlog.sql.connect import connect
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.transfer.targets.support import rows

pytestmark = pytest.mark.long
TABLES = '[tables.usr]\nkey = ["id"]\ncolumns = { id = "integer", v = "varchar(9)" }\n'
HEADING = ["header__change_seq", "header__change_oper", "header__change_mask", "id", "v"]
WRITTEN = 1_700_100_000  # when the files were written, long after their changes


def row(time: int, number: int, letter: str, key: int, value: str) -> tuple[str, ...]:
    mask = {"I": "18", "U": "10", "D": "08"}[letter]
    seq = f"20231114221320{time:02}{number:019}" if time else ""
    return seq, letter, mask, str(key), value


LOADED = [row(0, 0, "I", 1, "a"), row(0, 0, "I", 2, "a")]
FIRST = [row(1, 1, "U", 1, "b"), row(5, 3, "I", 3, "a"), row(5, 4, "U", 1, "c")]
CORRECTED = [row(5, 5, "U", 1, "d"), row(5, 6, "D", 3, "a"), row(5, 7, "I", 3, "z")]  # under the same time
LATE = [row(3, 2, "U", 2, "late")]
FINAL_ROWS = [(1, "d"), (2, "late"), (3, "z"), (4, "again")]
RELOADED = [row(0, 0, "I", *cells) for cells in FINAL_ROWS]
ROUNDS = [LOADED + FIRST, LOADED + FIRST + CORRECTED, LOADED + FIRST + LATE + CORRECTED + RELOADED]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "tables.toml").write_text(TABLES)
    own_shell = Shell(tmp_path)
    yield own_shell
    own_shell.close()


def written(shell: Shell, lines: Iterable[tuple[str, ...]]) -> str:
    path = shell.folder / "usr__ct.csv"
    path.write_text("\n".join([",".join(HEADING), *map(",".join, lines), ""]))
    os.utime(path, (WRITTEN, WRITTEN))
    return path.name


def folded(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Return the rows that changes leave."""
    values_by_key: dict[int, str] = {}
    for change in map(json.loads, lines):
        key = change["key"]["id"]
        values = {field["column"]: field.get("after") for field in change["fields"]}
        if change["op"] == "delete":
            del values_by_key[key]
        else:
            values_by_key[key] = values["v"]
    return sorted(values_by_key.items())


def test_convert_apply_and_spark_end_with_the_same_rows(shell: Shell, postgres: Database, spark: Any) -> None:
    url = postgres.address
    common = ("--from", "qlik-table", "--tables", "tables.toml", "--accept-late")
    for lines in ROUNDS:
        name = written(shell, lines)
        done = shell.run("convert", *common, "--to", "changes", "--state", "state", "-o", "out/", name)
        assert done.code == 0, done.stderr
        done = shell.run("apply", *common, "--reload", "replace", "--to-url", url, name)
        assert done.code == 0, done.stderr
    parts = sorted((shell.folder / "out").glob("part-*"))
    converted = [line for part in parts for line in part.read_text().splitlines()]
    assert len(converted) == len(ROUNDS[-1])
    assert folded(converted) == FINAL_ROWS
    frame = spark.createDataFrame(ROUNDS[-1], ", ".join(f"{name} string" for name in HEADING))
    made = eventlog_spark.changes(
        frame, "qlik-table", tables=tablesfile.read(TABLES), partitions=3, name="usr__ct"
    )
    assert folded(r.change for r in made.coalesce(1).orderBy("order").collect()) == FINAL_ROWS
    assert rows(connect(postgres.url), "select id, v from usr order by id") == FINAL_ROWS
