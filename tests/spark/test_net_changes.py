"""The net changes of a random history make the table that its model is, batch by batch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import eventlog_spark
import pytest

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import InvalidTables, Misuse
from eventlog.formats.neutral import dumps
from tests.laws.lake_history import COLUMNS, TABLES, History

pytestmark = pytest.mark.quick

ROW = "id int, name string, age int, note string, amount decimal(12,2)"
Model = dict[int, dict[str, Any]]


def frame_of(spark: Any, changes: Iterable[Change], refused: Sequence[tuple[str, str]] = ()) -> Any:
    """Return changes as the function `changes` returns them, in no order."""
    rows: list[tuple[Any, ...]] = [
        (f"{n:020}", dumps(change), None, None) for n, change in enumerate(changes)
    ]
    rows += [(None, None, *refusal) for refusal in refused]
    random.Random(1).shuffle(rows)
    return spark.createDataFrame(rows, "order string, change string, refused string, record string")


def net(spark: Any, changes: Iterable[Change], current: Any = None, **how: Any) -> list[Any]:
    """Return the net changes of table t."""
    return list(
        eventlog_spark.net_changes(frame_of(spark, changes), TABLES, "t", current=current, **how).collect()
    )


def merged(table: Model, rows: Iterable[Any]) -> Model:
    """Return a table after net changes, as MERGE makes it."""
    rows = [row for row in rows if row.action is not None]
    after = {} if any(row.action == "truncate" for row in rows) else dict(table)
    for action, row, supplied, *_ in rows:
        if action == "truncate":
            continue
        cells = {column: row[column] for column in supplied}
        if action == "delete":
            after.pop(row.id, None)
        elif row.id in table:
            after[row.id] = {**table[row.id], **cells}
        elif action == "write":
            after[row.id] = dict.fromkeys(COLUMNS) | cells
    return after


def typed(table: Mapping[int, Mapping[str, Any]]) -> Model:
    def cell(column: str, value: Any) -> Any:
        return Decimal(value) if column == "amount" and value is not None else value

    return {key: {column: cell(column, row[column]) for column in COLUMNS} for key, row in table.items()}


def table_frame(spark: Any, table: Model) -> Any:
    """Return a table of the lake, with another order of columns and one that changes do not have."""
    frame = spark.createDataFrame([tuple(row[c] for c in COLUMNS) for row in table.values()], ROW)
    return frame.selectExpr("amount", "1 as added", "note", "id", "name", "age")


@pytest.mark.slow("Spark compiles each plan")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_each_batch_of_a_history_makes_its_table(spark: Any, seed: int) -> None:
    drawn, batch = random.Random(seed), list[Change]()
    table: Model = {}
    for transaction in History(seed, 30).transactions(300, 2):
        batch += transaction.changes
        if len(batch) < drawn.choice((60, 90, 200)):
            continue
        rows = net(spark, batch, table_frame(spark, table))
        keys = [row.row.id for row in rows if row.action != "truncate"]
        assert len(keys) == len(set(keys))
        assert not [row for row in rows if row.refused]
        table, batch = merged(table, rows), []
        assert table == typed(transaction.state["t"])


def update(key: int, *fields: Field, before: int | None = None) -> Change:
    first = Field("id", key if before is None else before, key)
    return Change(Op.UPDATE, "s", "t", (("id", key),), (first, *fields))


def insert(key: int, **cells: Any) -> Change:
    fields = [Field(column, ABSENT, cells.get(column)) for column in COLUMNS[1:]]
    return Change(Op.INSERT, "s", "t", (("id", key),), (Field("id", ABSENT, key), *fields))


NAME, NONE = Field("name", ABSENT, "a"), Field("note", "x", None)
EACH_COLUMN = [Field(column, ABSENT, None) for column in COLUMNS[1:]]


def actions(rows: Iterable[Any]) -> list[tuple[str, int, list[str]]]:
    return sorted((row.action, row.row.id, sorted(row.supplied)) for row in rows if row.action)


def test_null_is_supplied_and_a_lacking_column_is_not(spark: Any) -> None:
    rows = net(spark, [update(1, NAME), update(1, NONE), update(2, NAME), update(2, *EACH_COLUMN)])
    assert actions(rows) == [("update", 1, ["id", "name", "note"]), ("write", 2, sorted(COLUMNS))]
    assert [(row.row.name, row.row.note) for row in rows] in (
        [("a", None), (None, None)],
        [(None, None), ("a", None)],
    )


def test_parts_of_a_row_do_not_make_it(spark: Any) -> None:
    first, last = EACH_COLUMN[:2], EACH_COLUMN[2:]
    assert actions(net(spark, [update(1, *first), update(1, *last)])) == [("update", 1, sorted(COLUMNS))]
    inserted = net(spark, [update(1, *first)], missing_rows="insert")
    assert actions(inserted) == [("write", 1, ["age", "id", "name"])]


def test_two_rows_exchange_their_keys(spark: Any) -> None:
    table = {key: dict.fromkeys(COLUMNS) | {"id": key, "note": f"of {key}"} for key in (1, 2, 3)}
    changes = [update(9, before=1), update(1, NAME, before=2), update(2, before=9)]
    after = merged(table, net(spark, changes, table_frame(spark, table)))
    assert {key: (row["note"], row["name"]) for key, row in after.items()} == {
        1: ("of 2", "a"),
        2: ("of 1", None),
        3: ("of 3", None),
    }


def test_a_move_of_a_missing_row_is_refused(spark: Any) -> None:
    rows = net(spark, [update(5, before=4), insert(6)], table_frame(spark, typed({})))
    assert actions(rows) == [("write", 6, sorted(COLUMNS))]
    assert [(row.refused.partition(" (")[0], '"before":4' in row.record) for row in rows if row.refused] == [
        ("the row that it changes does not exist", True)
    ]
    ignored = net(spark, [update(5, before=4)], table_frame(spark, typed({})), missing_rows="ignore")
    assert ignored == []


def test_a_move_without_the_table_is_a_mistake(spark: Any) -> None:
    with pytest.raises(Misuse, match="current: a row takes another key"):
        net(spark, [update(5, before=4)])
    assert actions(net(spark, [update(5, *EACH_COLUMN, before=4)])) == [
        ("delete", 4, []),
        ("write", 5, sorted(COLUMNS)),
    ]


def test_a_truncate_leaves_what_comes_after_it(spark: Any) -> None:
    truncate = Change(Op.TRUNCATE, "s", "t")
    changes = [insert(1), truncate, insert(2, name="a"), update(3, before=2), update(4, NAME)]
    rows = net(spark, changes)
    assert [row.row for row in rows if row.action == "truncate"] == [None]
    assert merged(typed({}) | {7: {}}, rows) == {3: dict.fromkeys(COLUMNS) | {"id": 3, "name": "a"}}
    assert len([row for row in rows if row.refused]) == 1


def test_what_is_refused_is_a_row_with_its_reason(spark: Any) -> None:
    changes = [insert(1, amount="0.005"), insert(1), Change(Op.INSERT, "s", "u", (("id", 1),))]
    frame = frame_of(spark, changes, [("line 3: no change", "text")])
    rows = eventlog_spark.net_changes(frame, TABLES, "t").collect()
    assert actions(rows) == [("write", 1, sorted(COLUMNS))]
    reasons = sorted((row.refused, row.record[:12]) for row in rows if row.refused)
    assert [record for _, record in reasons] == ['{"op":"inser', "text"]
    assert reasons[0][0].startswith("amount: '0.005' has more digits")


def test_a_table_with_other_types_is_no_current_one(spark: Any) -> None:
    other = spark.createDataFrame([], ROW.replace("12,2", "12,1"))
    for frame, words in ((other, "amount is decimal"), (other.drop("note"), "the lake has no column note")):
        with pytest.raises(InvalidTables, match=words):
            net(spark, [update(5, before=4)], frame)
    with pytest.raises(Misuse, match="it has no column order"):
        eventlog_spark.net_changes(other, TABLES, "t")


def test_a_key_whose_changes_are_in_several_batches_is_one_row(spark: Any) -> None:
    changes = [update(key, NAME) for key in (*range(3000), *[3000] * 3000)]
    rows = net(spark, changes, partitions=1)
    assert sorted(row.row.id for row in rows) == list(range(3001))
