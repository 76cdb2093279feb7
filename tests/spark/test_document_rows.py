"""Documents folded by column are the rows of the plain fold, column by column, whatever the log is."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from eventlog_spark import fold, packing
from eventlog_spark.current_rows import current_row
from eventlog_spark.fold import BRIEF, FOLDED, FoldToDocuments, FoldToRows
from eventlog_spark.log_rows import LogReading, unreadable
from eventlog_spark.packing import Exchange, FileBytes, Packing, RowFeed, ShareTooLarge, by_key, by_object
from eventlog_spark.result_rows import Documents
from eventlog_spark.shuffle import CURRENT, LOG
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as f

from eventlog.core import tablesfile
from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify
from eventlog.core.tables import Table
from eventlog.fold import CurrentRow, QueryKey, Rules, query_key
from eventlog.fold.by_column.key_patterns import current_key
from eventlog.fold.by_column.unanswerable import Unanswerable
from eventlog.fold.event_table import OPERATIONS
from eventlog.transfer.log_files.by_column.object_spool import (
    ObjectTooLarge,
    numbers_of_keys,
    object_numbers,
)
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.tiers import drawn
from tests.spark.helpers import TABLES
from tests.spark.strategies import logs

pytestmark = pytest.mark.quick

CATALOGUE = tablesfile.read(TABLES)
ALL_TABLES = frozenset(CATALOGUE)
ANSWERS: dict[tuple[str, QueryKey], list[CurrentRow]] = {
    ("usr", (1,)): [["John", "Doe  ", "u7s=", "2024-02-29", "true", "11"]],
    ("usr", (2,)): [[None, "", None, None, None, None]],
    ("usr", (4,)): [["a", "b", None, None, None, None], ["c", None, None, None, None, None]],
    ("grp", ("a", "b")): [["m1", "1"], ["m2", "1"]],
    ("grp", ("a,b", "")): [["x<y", None]],
}
Cells = tuple[Any, ...]
TIME = "2025-03-23 10:57:19"
CUT = [(n, "N", 2, TIME, None, "usr", "idu=1", f"c{n % 3}", "a", f"b{n}") for n in range(1, 9)]
KEYS = (
    ("usr", "idu=1"),
    ("usr", "idu=2"),
    ("usr", "idu=4"),
    ("grp", "org=a+name=b"),
    ("grp", 'org="a,b"+name='),
)
ALL_CURRENT = [(n, "N", 6, TIME, None, *key, None, None, None) for n, key in enumerate(KEYS, 1)]
INSERTED = [(1, "N", 5, TIME, None, "usr", "idu=1", None, None, None)]


class Rows(NamedTuple):
    """The rows of a log as tasks read them, and the current rows of all objects."""

    log: list[Cells]
    current: list[Cells]


def read(rows: Sequence[Cells]) -> Rows:
    """Return rows of a log as they enter the shuffle, with the current rows of their tables."""
    log: list[Cells] = []
    for row in {row[0]: row for row in rows}.values():
        if row[2] not in range(1, 9) or (row[7] is None and row[2] not in (4, 5, 6)):
            log.append(unreadable("it is unreadable", str(row), row[0]))
        else:
            log.append((row[0], row[2], row[2], *row[5:], row[3].replace(" ", "T"), row[4]))
    number = itertools.count()
    current = [
        current_row(next(number), CATALOGUE.name_of(table), current_key(table, query), cells)
        for (name, query), answers in ANSWERS.items()
        for table in (CATALOGUE.get(name),)
        for cells in answers
    ]
    return Rows(log, current)


def batches(rows: Sequence[Cells], size: int, schema: pa.Schema = LOG) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(rows), size):
        columns = zip(zip(*rows[at : at + size], strict=True), schema, strict=True)
        yield pa.record_batch([pa.array(cells, field.type) for cells, field in columns], schema=schema)


def packed(
    task: Any, rows: Rows, size: int, answerable: Container[Table] = ALL_TABLES
) -> list[pa.RecordBatch]:
    """Return the rows as tasks that read some of them each pack them for a task that folds."""
    schema = FOLDED[task.schema == BRIEF]
    kinds = (
        (rows.log, LOG, Packing(iter, 0, schema, partial(by_object, CATALOGUE, answerable), 16)),
        (
            rows.current,
            CURRENT,
            Packing(iter, 1, CURRENT, by_key, 16),
        ),
    )
    parts = [
        part for cells, schema, pack in kinds for of in batches(cells, size, schema) for part in pack([of])
    ]
    together: list[pa.RecordBatch] = pa.Table.from_batches(parts).sort_by("share").to_batches(size)
    return together


def run_task(task: Any, rows: Rows, size: int) -> tuple[list[Cells], list[str]]:
    """Return the documents in their order, and what is refused."""
    document_rows = [row for batch in task(packed(task, rows, size)) for row in batch.to_pylist()]
    good = sorted((row for row in document_rows if row["refused"] is None), key=lambda row: row["order"])
    return [tuple(row.items()) for row in good], sorted(
        str(row) for row in document_rows if row["refused"] is not None
    )


@settings(max_examples=drawn(200), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(logs(max_rows=25), min_size=1, max_size=4),
    st.integers(1, 60),
    st.sampled_from(("modify", "add")),
    st.sampled_from((1000, 2)),
    st.sampled_from((1 << 20, 5)),
    st.booleans(),
)
@example([ALL_CURRENT], 60, "modify", 1000, 1 << 20, True)
@example([INSERTED], 60, "modify", 1000, 1 << 20, True)
@example([CUT], 3, "modify", 2, 1 << 20, False)
def test_the_rows_are_those_of_the_plain_fold(
    several: list[list[Cells]], size: int, insert: str, most: int, largest: int, asks: bool
) -> None:
    repeated = [
        (row[0] + 1000 * n, *row[1:6], row[6] + suffix, *row[7:])
        for n, (log, suffix) in enumerate(itertools.product(several, ("", "", "7")))
        for row in log
    ]
    rows = read(repeated)
    rules = Rules(insert_query_back=insert, max_changes=most, max_value=largest)
    answerable = frozenset(CATALOGUE) if asks else frozenset()
    reading = LogReading(CATALOGUE, rules, TIME, None, answerable)
    form = Documents(CATALOGUE, XdsSettings(insert_query_back=insert))
    expected = run_task(FoldToRows(reading, form), rows, size)
    assert run_task(FoldToDocuments(reading, form), rows, size) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "_PORTION", size)
        assert run_task(FoldToDocuments(reading, form), rows, size) == expected
    documents = [dict(row) for row in expected[0]]
    task = FoldToDocuments(reading, form, brief=True)
    brief = [row for batch in task(packed(task, rows, size)) for row in batch.to_pylist()]
    lines = [line for row in brief if row["refused"] is None for line in row["document"].split("\n")]
    assert sorted(lines) == sorted(row["document"] for row in documents)
    counts = [{op: count for op, count in row.items() if op in OPERATIONS and count} for row in brief]
    assert sum(map(Counter, counts), Counter()) == Counter(row["op"] for row in documents)
    assert sum(row["refused"] is not None for row in brief) == len(expected[1])


def test_query_backs_without_current_rows_are_refused_by_column() -> None:
    names = [
        ("usr", "idu=1", None),
        ("usr", "idu=x", None),
        ("USR", "idu=1", None),
        ("grp", "org=a+name=b", "boss"),
    ]
    log = [(n, "N", 8 if name[2] else 6, TIME, None, *name, None, None) for n, name in enumerate(names, 1)]
    (batch,) = batches(read(log).log, 9)
    rows = fold.rows_of(batch)
    answerable = frozenset([CATALOGUE.get("usr")])
    found = Unanswerable(CATALOGUE, Rules(), answerable).find(rows)
    assert rows.ids[found].tolist() == [4]
    unanswerable = Unanswerable(CATALOGUE, Rules(), frozenset())
    refused = rows.take(np.flatnonzero(unanswerable.find(rows)))
    assert sorted(refused.ids.tolist()) == [1, 4]
    assert {reason.split()[1] for reason in unanswerable.reasons(refused).to_pylist()} == {
        "indirect.usr",
        "grp",
    }


def test_rows_of_many_lines_are_cut_between_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "_LINES", 1000)
    rows = read([(n, "N", 2, TIME, None, "usr", f"idu={n}", "fname", "a", "é" * n) for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(), TIME, None, frozenset())
    form = Documents(CATALOGUE, XdsSettings())
    documents, _ = run_task(FoldToDocuments(reading, form), rows, 99)
    task = FoldToDocuments(reading, form, brief=True)
    pieces = [batch.column("document")[0].as_py() for batch in task(packed(task, rows, 99))]
    assert len(pieces) > 20
    assert sorted("\n".join(pieces).split("\n")) == sorted(dict(row)["document"] for row in documents)


def test_the_record_ids_of_many_parts_are_not_in_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "_IDS", 500)
    rows = read([(n, "N", 2, TIME, None, "usr", "idu=1", "fname", "a", f"b{n}") for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(max_changes=2), TIME, None, frozenset())
    task = FoldToDocuments(reading, Documents(CATALOGUE, XdsSettings()))
    ids = [batch.column("record_ids").to_pylist() for batch in task(packed(task, rows, 99))]
    assert [part for parts in ids for part in parts] == [list(range(1, 99))] * 98
    assert max(sum(map(len, parts)) for parts in ids) <= 500 + 98


def test_rows_that_memory_cannot_hold_together_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_SHARE_BYTES", 1000)
    rows = read([(n, "N", 2, TIME, None, "usr", "idu=1", "fname", "a", "b" * 20) for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(), TIME, None, frozenset())
    with pytest.raises(ObjectTooLarge, match="rows that belong together"):
        run_task(FoldToDocuments(reading, Documents(CATALOGUE, XdsSettings())), rows, 10)


def test_a_share_of_many_objects_that_memory_cannot_hold_is_no_large_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "MAX_SHARE_BYTES", 1000)
    rows = read([(n, "N", 2, TIME, None, "usr", f"idu={n}", "fname", "a", "b" * 200) for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(), TIME, None, frozenset())
    with pytest.raises(ShareTooLarge, match=r"rows of \d objects, .*: use more --partitions"):
        run_task(FoldToDocuments(reading, Documents(CATALOGUE, XdsSettings())), rows, 10)


@pytest.mark.parametrize(
    ("tasks", "size", "shares"),
    [
        (None, 1 << 30, (1024, 1)),
        (None, 1 << 40, (8192, 1)),
        (200, 1 << 40, (8200, 41)),
        (2, 1 << 20, (256, 128)),
        (0, 1 << 10, (256, 256)),
    ],
)
def test_shares_follow_the_bytes_of_files_whatever_the_session_says(
    spark: Any, tasks: int | None, size: int, shares: tuple[int, int]
) -> None:
    feeds = [RowFeed(spark.range(1), iter)]
    exchange = Exchange.of(feeds, tasks, FileBytes(1 << 40, size))
    assert exchange.tasks == tasks
    assert exchange.shares == shares


def test_shares_follow_what_a_data_frame_reads(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expect ten times its files, and not the product by which Spark estimates a join."""
    spark.range(1000).write.parquet(str(tmp_path / "log"))
    size = sum(path.stat().st_size for path in tmp_path.glob("log/part-*"))
    monkeypatch.setattr(packing, "_SHARE_BYTES", 1)
    frame = spark.read.parquet(str(tmp_path / "log"))
    joined = frame.join(frame.withColumnRenamed("id", "other"), f.col("id") == f.col("other"))
    assert Exchange.of([RowFeed(joined, iter)], 2).shares == (2 * 10 * size, 10 * size)


@pytest.mark.parametrize("limit", [("_ROWS", 10), ("_BYTES", 1000)])
def test_whole_shares_are_unpacked_some_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(packing, *limit)
    rows = read([(n, "N", 2, TIME, None, "usr", f"idu={n % 40}", "fname", "a", "b") for n in range(1, 99)])
    form = Documents(CATALOGUE, XdsSettings())
    task = FoldToDocuments(LogReading(CATALOGUE, Rules(), TIME, None, frozenset()), form)
    portions = list(packing.unpacked(packed(task, rows, 20), FOLDED[False], CURRENT))
    keys = [set(log.column("table_key").to_pylist()) for log, _ in portions]
    ids = [number for log, _ in portions for number in log.column("record_id").to_pylist()]
    assert sorted(ids) == [*range(1, 99)]
    assert len(keys) > 5
    assert sum(map(len, keys)) == len(set().union(*keys)) == 40


@given(logs(max_rows=25))
def test_a_row_has_the_number_of_its_current_row(rows: list[Cells]) -> None:
    for name, key in {(row[5], row[6]) for row in rows}:
        try:
            identity = identify(CATALOGUE, name, key)
            assert identity.table is not None
            current = current_key(identity.table, query_key(identity.table, identity.pairs))
        except (EventlogError, AssertionError):
            continue
        (number,) = numbers_of_keys(pa.array([current]))
        named = pa.record_batch([[name], [key]], names=["table_name", "table_key"])
        assert object_numbers(named, CATALOGUE, ALL_TABLES).tolist() == [number]
