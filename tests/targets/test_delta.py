"""Changes become rows of Delta tables: held against the reference, with repeats, kills and large files."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.table import TableMerger
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.jobs.report import Report
from eventlog.sequence.delivery import by_transaction
from eventlog.targets.tables.delta import Delta
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.table_writer import TableWriter
from eventlog.targets.tables.tally import Tally
from tests.targets.model import Model, changed, transactions
from tests.targets.support import TABLES, places
from tests.tiers import drawn

pytestmark = pytest.mark.quick

_FOLDERS = count()


def apply(
    folder: Path, changes: Iterable[Change], *, tables: Tables = TABLES, **given: Any
) -> tuple[Tally, list[Refused]]:
    refused: list[Refused] = []
    chosen = ApplySettings(**given)
    with closing(Delta(folder, "test", tables, chosen, refused.append)) as target:
        rows = TableWriter(target, "test", "changes", chosen, refused.append)
        rows.write(Report(refused.append).good(by_transaction(changes)))
        return rows.tally, refused


def rows(folder: Path, table: str = "indirect/usr") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(folder / table).to_pyarrow_table().to_pylist()
    return found


@pytest.mark.parametrize("missing_rows", ["refuse", "insert", "ignore"])
def test_any_changes_in_any_groups_give_what_one_by_one_gives(tmp_path: Path, missing_rows: str) -> None:
    @settings(max_examples=drawn(10))
    @given(transactions(), st.sampled_from((1, 3, 100)))
    def check(changes: list[Change], group: int) -> None:
        folder = tmp_path / str(next(_FOLDERS))
        model = Model(missing_rows)
        tally, refused = apply(folder, changes, missing_rows=missing_rows, group=group)
        assert {row["idu"]: row for row in rows(folder)} == model.apply(changes).rows
        assert places(refused) == [f"usr:{change.position}" for change in model.refused]
        assert tally.refused == len(refused)

    check()


def test_where_a_run_ends_between_two_tables_the_next_one_does_the_rest(tmp_path: Path) -> None:
    """The last group is done again, and only in the tables that do not have it: nothing twice."""

    def change(table: str, n: int) -> Change:
        fields = (Field("id", ABSENT, 1), Field("n", ABSENT, n))
        return Change(Op.INSERT if n < 2 else Op.UPDATE, None, table, (("id", 1),), fields, transaction="t")

    first = [change("a", 0), change("b", 1)]
    more = [one._replace(transaction="u") for one in (change("a", 2), change("b", 3))]
    apply(tmp_path, first, tables=Tables())
    in_the_way = tmp_path / "b" / "_delta_log" / f"{DeltaTable(tmp_path / 'b').version() + 1:020}.json"
    in_the_way.mkdir()
    with pytest.raises(EventlogError, match="b: "):
        apply(tmp_path, [*first, *more], tables=Tables())
    in_the_way.rmdir()
    assert [rows(tmp_path, name)[0]["n"] for name in "ab"] == [2, 1]
    versions = DeltaTable(tmp_path / "a").version()
    later = change("a", 9)._replace(transaction="v")
    tally, _ = apply(tmp_path, [*first, *more, later], tables=Tables(), group=1)
    assert [rows(tmp_path, name)[0]["n"] for name in "ab"] == [9, 3]
    assert DeltaTable(tmp_path / "a").version() == versions + 1
    assert (tally.updated, tally.skipped) == (2, 3)
    assert apply(tmp_path, [*first, *more, later], tables=Tables())[0].updated == 0


def test_values_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    types = {"k": "varchar(9)", "d": "numeric(12,2)", "b": "blob", "s": "boolean", "f": "real"}
    types |= {"g": "double precision", "day": "date", "at": "timestamp", "clock": "time", "big": "bigint"}
    columns = ", ".join(f'{name} = "{of}"' for name, of in types.items())
    tables = tablesfile.read(f'[tables.t]\nkey = ["k"]\ncolumns = {{ {columns} }}\n')
    good: dict[str, Any] = {"k": "a'b", "d": "1234567890.10", "b": b"\0\xff", "s": True, "f": 0.1, "g": "NaN"}
    good |= {"day": "2025-02-28", "at": "2025-02-28T23:59:59.123456+01:00", "clock": "23:59:59.1"}
    good |= {"big": 2**62}
    bad: list[tuple[str, Any]] = [
        ("d", "0.123"),
        ("day", "2025-02-30"),
        ("at", "2025-02-28T10:00:00.1234567"),
    ]
    bad += [("big", 2**64), ("f", 0.123456789012), ("b", "text"), ("d", "1e30")]
    fields = tuple(Field(name, ABSENT, value) for name, value in good.items())
    made = [Change(Op.INSERT, None, "t", (("k", "a'b"),), fields)]
    for name, value in bad:
        made.append(made[0]._replace(fields=(Field("k", ABSENT, "x"), Field(name, ABSENT, value))))
    _, refused = apply(tmp_path, made, tables=tables)
    assert len(refused) == len(bad)
    ((row),) = rows(tmp_path, "t")
    assert str(row["d"]) == "1234567890.10"
    assert row["at"].isoformat() == "2025-02-28T22:59:59.123456+00:00"
    assert row["g"] != row["g"]
    assert (row["k"], row["b"], row["s"], row["clock"], row["big"]) == (
        "a'b",
        b"\0\xff",
        True,
        "23:59:59.1",
        2**62,
    )


KEYS: dict[str, tuple[Any, Any]] = {
    "varchar(9)": ("a'b", "c"),
    "text": ("", "ä"),
    "bigint": (-1, 2**62),
    "numeric(12,2)": ("-1.10", "1234567890.10"),
    "blob": (b"\0\xff", b"x"),
    "date": ("2025-02-28", "0001-01-01"),
    "timestamp": ("2025-02-28T23:59:59.123456", "1970-01-01T00:00:00"),
}


@pytest.mark.parametrize("missing_rows", ["refuse", "insert"])
@pytest.mark.parametrize("kind", KEYS)
def test_rows_are_found_again_by_keys_of_every_type(tmp_path: Path, kind: str, missing_rows: str) -> None:
    tables = tablesfile.read(f'[tables.t]\nkey = ["k"]\ncolumns = {{ k = "{kind}", n = "integer" }}\n')

    def change(op: Op, key: Any, n: int) -> Change:
        before, after = (ABSENT if op is Op.INSERT else key), (ABSENT if op is Op.DELETE else key)
        numbers = (ABSENT, ABSENT if op is Op.DELETE else n)
        return Change(op, None, "t", (("k", key),), (Field("k", before, after), Field("n", *numbers)))

    one, other = KEYS[kind]
    deeds = [(Op.INSERT, one), (Op.INSERT, other), (Op.UPDATE, one), (Op.UPDATE, other), (Op.DELETE, one)]
    made = [
        change(*deed, n)._replace(transaction=str(n // 2), position=str(n)) for n, deed in enumerate(deeds)
    ]
    tally, refused = apply(tmp_path, made, tables=tables, missing_rows=missing_rows, group=1)
    assert (tally.inserted, tally.updated, tally.deleted, refused) == (2, 2, 1, [])
    assert [row["n"] for row in rows(tmp_path, "t")] == [3]


@pytest.mark.long
@pytest.mark.parametrize("rows_of_a_file", [8_193, 100_000])
def test_files_of_many_rows_and_a_large_source_merge_rightly(tmp_path: Path, rows_of_a_file: int) -> None:
    """Merge without the false errors and lost rows that delta-rs had if files or sources exceed a batch."""
    numbers = list(range(rows_of_a_file))
    table = pa.table({"idu": numbers, "fname": [f"f{n}" for n in numbers], "lname": ["x"] * len(numbers)})
    for start in (0, 1):
        part = table.set_column(0, "idu", pa.array([n * 2 + start for n in numbers]))
        write_deltalake(
            str(tmp_path / "indirect" / "usr"), part.append_column("n", pa.array(numbers)), mode="append"
        )
    changes = [changed(Op.UPDATE, n * 3, n=-1) for n in range(rows_of_a_file // 3)]
    changes += [changed(Op.DELETE, n * 3 + 1) for n in range(rows_of_a_file // 3)]
    changes += [changed(Op.INSERT, 10**6 + n, fname="new", lname="y", n=0) for n in range(rows_of_a_file)]
    tally, _ = apply(tmp_path, changes, group=1_000_000)
    third = rows_of_a_file // 3
    assert (tally.updated, tally.deleted, tally.inserted, tally.refused) == (third, third, rows_of_a_file, 0)
    found = DeltaTable(tmp_path / "indirect" / "usr").to_pyarrow_table()
    assert len(found) == 3 * rows_of_a_file - third
    values = found["n"].to_pylist()
    assert (values.count(-1), values.count(0)) == (third, rows_of_a_file + (0 if third else 1))


def test_a_false_error_of_merge_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are then taken out and put in again, in one commit with the state."""
    apply(tmp_path, [changed(Op.INSERT, n, fname="a", lname=None, n=n) for n in range(4)])

    def wrong(*_: Any) -> None:
        raise DeltaError("MERGE matched a target row with multiple source rows")

    monkeypatch.setattr(TableMerger, "execute", wrong)
    before = DeltaTable(tmp_path / "indirect" / "usr").version()
    first = [changed(Op.INSERT, n, fname="a", lname=None, n=n) for n in range(4)]
    more = [changed(Op.UPDATE, 1, n=9), changed(Op.DELETE, 2), changed(Op.UPDATE, 7, n=1)]
    tally, refused = apply(tmp_path, [*first, *more])
    assert sorted((row["idu"], row["fname"], row["n"]) for row in rows(tmp_path)) == [
        (0, "a", 0),
        (1, "a", 9),
        (3, "a", 3),
    ]
    assert (tally.updated, tally.deleted, len(refused)) == (1, 1, 1)
    assert DeltaTable(tmp_path / "indirect" / "usr").version() == before + 1


@pytest.mark.parametrize("name", ["..", "a/b", "_delta_log", "", "a\0b", "\ud800"])
def test_a_table_whose_name_leads_elsewhere_is_none(tmp_path: Path, name: str) -> None:
    _, refused = apply(tmp_path / "lake", [changed(Op.INSERT, 1)._replace(schema=None, table=name)])
    assert ["cannot name anything" in one.reason for one in refused] == [True]
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("history", [False, True])
def test_a_table_whose_files_are_gone_is_an_error_with_its_folder(tmp_path: Path, history: bool) -> None:
    numbered = [
        changed(Op.INSERT, 7, fname="a")._replace(position="1", transaction="1"),
        changed(Op.UPDATE, 7, fname="b")._replace(position="2", transaction="2"),
    ]
    apply(tmp_path, numbered[:1], history=history, group=1)
    for part in (tmp_path / "indirect" / "usr").glob("*.parquet"):
        part.unlink()
    with pytest.raises(EventlogError, match="indirect/usr: "):
        apply(tmp_path, numbered, history=history, group=1)
