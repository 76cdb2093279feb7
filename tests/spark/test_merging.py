"""A random history is merged into tables of Delta Lake and Iceberg by a stream that is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark import merge

from eventlog.core.errors import Misuse
from eventlog.formats.neutral import dumps
from eventlog.sql.connect import connect
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.installed import ROOT
from tests.kit.statements import run_statements
from tests.kit.support import patient
from tests.laws.lake_history import COLUMNS, TABLES, History, State

pytestmark = pytest.mark.quick

JARS = os.environ.get("EVENTLOG_TEST_LAKE_JARS", "")
BATCHES = 5


def arrive(folder: Path) -> list[State]:
    """Write batches as files, which may end within a transaction; return both tables after the last
    transaction that ended in each, as a change of another one shows.
    """
    transactions = list(History(3, 30).transactions(300, 2))
    changes = [(n, change) for n, of in enumerate(transactions) for change in of.changes]
    size = -(-len(changes) // BATCHES)
    states = []
    (folder / "arriving").mkdir()
    for number in range(BATCHES):
        batch = changes[number * size : (number + 1) * size]
        path = folder / "arriving" / f"{number}.txt"
        path.write_text("".join(f"{dumps(change)}\n" for _, change in batch))
        os.utime(path, (1_700_000_000 + number,) * 2)  # by which Spark orders them
        states.append(transactions[batch[-1][0] - 1].state)
    return states


def expected(state: State) -> list[list[str | None]]:
    """Return the rows of table t as texts."""

    def text(column: str, value: Any) -> str | None:
        return None if value is None else f"{Decimal(value):.2f}" if column == "amount" else str(value)

    return sorted([text(column, row[column]) for column in COLUMNS] for row in state["t"].values())


def run(name: str, folder: Path, stop: str = "") -> list[dict[str, Any]]:
    """Run the stream, until it dies or there is no more; return what it did with each batch."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'spark'}"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.merge_job", name, str(folder), JARS, *filter(None, [stop])],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(600),
    )
    assert ran.returncode == (-9 if stop[:1].isdigit() else 0), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


NEEDS_JARS = pytest.mark.skipif(
    not JARS, reason="EVENTLOG_TEST_LAKE_JARS names no folder with the jars of Delta and Iceberg"
)


@pytest.mark.long
@NEEDS_JARS
@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_each_batch_is_merged_once_despite_kills(name: str, shell: Shell, postgres: Database) -> None:
    tmp_path = shell.folder
    states = arrive(tmp_path)
    results = []
    for stop in ("1", "2:3", ""):  # dies after a commit, in the midst of a batch, not at all
        results += run(name, tmp_path, stop)
    for result in results:
        assert result["rows"] == expected(states[result["number"]]), result["number"]
    assert {result["number"] for result in results} == set(range(BATCHES))
    committed = [result["number"] for result in results if result["is_new"]]
    assert len(committed) == len(set(committed))
    assert all(result["position"] for result in results if result["is_new"])
    check_receipts(name, shell, postgres, states)


def check_receipts(name: str, shell: Shell, postgres: Database, states: Sequence[State]) -> None:
    """The last round equals the last state, in which the round before lacks rows."""
    lake = ["delta:delta"]
    if name == "iceberg":
        uri = f"sqlite:///{shell.folder}/catalogue.db"
        lake = ["iceberg:ice/db", "--lake-options", f"uri={uri},warehouse=file://{shell.folder}/ice"]
    command = ("rounds", *lake, "--source", "law")
    engine = connect(postgres.url)
    columns = "id integer primary key, name text, age integer, note text, amount numeric(12,2)"
    rows = ", ".join(
        str(tuple(row[column] for column in COLUMNS)).replace("None", "null")
        for row in states[-1]["t"].values()
    )
    run_statements(
        engine, "create schema s", f"create table s.t ({columns})", f"insert into s.t values {rows}"
    )
    rounds = [json.loads(shell.run(*command, "--json", "--round", str(n)).stdout) for n in range(BATCHES)]
    assert [each["round"] for each in rounds] == list(range(BATCHES))
    assert all(each["changes"] and each["position"] for each in rounds), rounds
    url = engine.url.render_as_string(hide_password=False)
    receipt = shell.run(*command, "--against", url, "--record")
    assert (receipt.code, receipt.stdout.splitlines()[0]) == (0, f"round {BATCHES - 1}"), receipt
    assert f"{len(states[-1]['t'])} rows" in receipt.stdout
    former = shell.run(*command, "--against", url, "--round", str(BATCHES - 2))
    assert (former.code, "differ" in former.stdout) == (1, True), former
    same_lake = shell.run(*command, "--against", lake[0])
    assert (same_lake.code, "equal" in same_lake.stdout) == (0, True), same_lake


@pytest.mark.long
@NEEDS_JARS
@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_settings_are_left_as_they_were(name: str, tmp_path: Path) -> None:
    *attempts, last_attempt = [each for each in run(name, tmp_path, "settings") if "outcome" in each]
    outcomes = [each["outcome"] for each in attempts]
    assert outcomes[:5] == ["True", "ChangesRefused", "True", "False", "True"]
    assert outcomes[5:] == ["ChangesRefused", "True", "True"]  # a batch, that batch again, and the next one
    assert last_attempt["outcome"] not in ("True", "False")
    for each in (*attempts, last_attempt):
        assert each["settings"] == ["mine", "mine", None]
        assert each["views"] == 0


def test_a_table_of_another_format_is_a_mistake(spark: Any, tmp_path: Path) -> None:
    changes = spark.createDataFrame([], "order string, change string, refused string, record string")
    spark.sql(f"create table plain (id int) using parquet location '{tmp_path}/plain'")
    try:
        with pytest.raises(Misuse, match="plain is a table of parquet; merge writes those of Delta"):
            merge(changes, "plain", TABLES, "t", number=1)
        with pytest.raises(Misuse, match='stream: "a\'b" has other characters'):
            merge(changes, "plain", TABLES, "t", number=1, stream="a'b")
        for name in ("hr.rounds", "delta.`/hr/eventlog_rounds/x`"):
            with pytest.raises(Misuse, match=f"rounds: {name} is not the table eventlog_rounds next to"):
                merge(changes, "plain", TABLES, "t", number=1, rounds=name)
        for name in ("hr.eventlog_rounds", "`eventlog_rounds`", "delta.`/hr/eventlog_rounds`"):
            with pytest.raises(Misuse, match="plain is a table of parquet"):
                merge(changes, "plain", TABLES, "t", number=1, rounds=name)
    finally:
        spark.sql("drop table plain")
