"""Versions of rows in Delta tables: held against the reference that goes one by one, as in databases."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Tables
from eventlog.targets.tables.errors import NoHistory
from tests.commands import Shell
from tests.targets.model import COLUMNS, Model, changed, transactions
from tests.targets.support import places
from tests.targets.test_delta import apply, rows
from tests.targets.test_history import expected
from tests.tiers import drawn

pytestmark = pytest.mark.quick

_FOLDERS = count()
SPAN = ("_from_seq", "_to_seq", "_op")


@pytest.mark.parametrize("missing_rows", ["refuse", "insert"])
def test_any_changes_make_the_versions_that_one_by_one_makes(tmp_path: Path, missing_rows: str) -> None:
    @settings(max_examples=drawn(12))
    @given(transactions(), st.sampled_from((1, 3, 100)))
    def check(changes: list[Change], group: int) -> None:
        folder = tmp_path / str(next(_FOLDERS))
        given: dict[str, Any] = {"missing_rows": missing_rows, "group": group, "history": True}
        tally, refused = apply(folder, changes, **given)
        model = Model(missing_rows).apply(changes)
        found = [tuple(row[name] for name in (*COLUMNS, *SPAN)) for row in rows(folder)]
        assert sorted(found, key=str) == expected(changes, missing_rows)
        current = {row[0]: row[: len(COLUMNS)] for row in found if row[-2] is None}
        assert current == {key: tuple(row.values()) for key, row in model.rows.items()}
        assert tally.refused == len(refused)
        assert places(refused) == [f"usr:{change.position}" for change in model.refused]
        version = DeltaTable(folder / "indirect" / "usr").version()
        apply(folder, changes, **given)
        assert DeltaTable(folder / "indirect" / "usr").version() == version

    check()


def test_a_version_says_when_and_a_second_one_from_one_place_is_refused(tmp_path: Path) -> None:
    changes = [
        changed(Op.SNAPSHOT, 1, fname="a", lname="b", n=1)._replace(position="9"),
        changed(Op.UPDATE, 1, n=2)._replace(position="10", time="2025-03-23T10:57:19.123456789+02:00"),
        changed(Op.UPDATE, 1, n=7)._replace(position="10"),
        changed(Op.UPDATE, 1, n=3)._replace(position=None, time="yesterday"),
        changed(Op.DELETE, 1)._replace(position="12", time="2025-03-23T10:57:20"),
    ]
    tally, refused = apply(tmp_path, changes, history=True)
    assert str(tally) == "1 inserted, 2 updated, 1 deleted, 1 refused"
    assert "has a version from" in refused[0].reason
    nine, ten, twelve, none = ("9".zfill(20), "10".zfill(20), "12".zfill(20), f"{1:020}.{3:09}")
    at, end = "2025-03-23 08:57:19.123456+00:00", "2025-03-23 10:57:20+00:00"
    found = [
        tuple(str(row[name]) for name in ("fname", "n", "_from_seq", "_to_seq", "_from_time", "_to_time"))
        for row in sorted(rows(tmp_path), key=lambda row: str(row["n"]))
    ]
    assert found == [
        ("a", "1", nine, ten, "None", at),
        ("a", "2", ten, none, at, "None"),
        ("a", "3", none, twelve, "None", end),
    ]


def test_the_command_keeps_versions_and_columns_that_come_later(tmp_path: Path) -> None:
    def line(number: int, op: str, **after: Any) -> str:
        fields = [{"column": name, "after": value} for name, value in after.items()]
        reported = {"op": op, "table": "t", "key": {"id": 1}, "fields": fields, "position": str(number)}
        return json.dumps(reported | {"transaction": str(number)}) + "\n"

    shell = Shell(tmp_path)
    try:
        path = tmp_path / "c.jsonl"
        path.write_text(line(1, "insert", id=1, a="x"))
        words = ("apply", "--to-delta", "lake", "c.jsonl")
        assert shell.run(*words, "--history").code == 0
        path.write_text(path.read_text() + line(2, "update", b="y") + line(3, "update", _op="z"))
        done = shell.run(*words, "--history")
        assert (done.code, "no column _op" in done.stderr) == (1, True)
        found = rows(tmp_path / "lake", "t")
        assert sorted((r["a"], r["b"], r["_from_seq"][-1], r["_op"]) for r in found if r["b"]) == [
            ("x", "y", "2", "update")
        ]
        plain = shell.run(*words, "--source", "plain")
        assert (plain.code, "keeps versions" in plain.stderr) == (2, True)
    finally:
        shell.close()


def test_a_table_that_keeps_no_versions_is_misuse(tmp_path: Path) -> None:
    apply(tmp_path, [changed(Op.INSERT, 1, fname="a", lname=None, n=1)])
    with pytest.raises(NoHistory, match="usr keeps no versions"):
        apply(tmp_path, [changed(Op.INSERT, n, fname="a", lname=None, n=1) for n in (1, 2)], history=True)


def test_where_a_run_ends_between_two_tables_the_next_one_makes_each_version_once(tmp_path: Path) -> None:
    def change(table: str, n: int) -> Change:
        fields = (Field("id", ABSENT, 1), Field("n", ABSENT, n))
        return Change(Op.INSERT if n < 2 else Op.UPDATE, None, table, (("id", 1),), fields, transaction="t")

    first = [change("a", 0), change("b", 1)]
    more = [*first, *(one._replace(transaction="u") for one in (change("a", 2), change("b", 3)))]
    apply(tmp_path, first, tables=Tables(), history=True)
    in_the_way = tmp_path / "b" / "_delta_log" / f"{DeltaTable(tmp_path / 'b').version() + 1:020}.json"
    in_the_way.mkdir()
    with pytest.raises(EventlogError, match="b: "):
        apply(tmp_path, more, tables=Tables(), history=True)
    in_the_way.rmdir()
    for _ in range(2):
        apply(tmp_path, more, tables=Tables(), history=True)
        reported = [sorted((r["n"], r["_to_seq"] is None) for r in rows(tmp_path, name)) for name in "ab"]
        assert reported == [[(0, False), (2, True)], [(1, False), (3, True)]]
