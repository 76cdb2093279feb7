"""Documents folded by column are the rows of the plain fold, column by column, whatever the log is."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from eventlog_spark import fold, packing
from eventlog_spark.fold import BRIEF, FOLDED, FoldOutput, FoldToDocuments, FoldToRows
from eventlog_spark.log_rows import LogReading
from eventlog_spark.packing import Packing, by_object
from eventlog_spark.result_rows import Documents
from eventlog_spark.shuffle import current_row_key, pack_cells, spell
from eventlog_spark.unanswerable import Unanswerable
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify
from eventlog.fold import CurrentRow, QueryKey, Rules, query_key
from eventlog.fold.event_table import OPERATIONS
from eventlog.transfer.log_files.by_column.object_spool import ObjectTooLarge
from eventlog.xds.settings import XdsSettings
from tests.kit.tiers import drawn
from tests.spark.helpers import TABLES
from tests.spark.strategies import logs

pytestmark = pytest.mark.quick

CATALOGUE = tablesfile.read(TABLES)
SCHEMA = pa.schema(
    [("h", pa.int64()), ("record_id", pa.int64()), ("kind", pa.int8()), ("event_type", pa.int8())]
    + [
        (name, pa.string())
        for name in (
            *("table_name", "table_key", "column_name", "old_value", "new_value"),
            *("event_time", "perpetrator", "logged", "meets"),
        )
    ]
)
CURRENT: dict[tuple[str, QueryKey], list[CurrentRow]] = {
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


def shuffled(rows: Sequence[Cells]) -> list[Cells]:
    """Return rows of a log as they leave the shuffle, with the current rows of their objects among them."""
    unique = {row[0]: row for row in rows}
    keyed_rows: list[tuple[object, Cells]] = []
    asking: set[tuple[str, str]] = set()
    for row in unique.values():
        if row[2] not in range(1, 9) or (row[7] is None and row[2] not in (4, 5, 6)):
            cells = (row[0], -1, None, None, None, None, "it is unreadable", str(row), *[None] * 4)
            keyed_rows.append((f"{row[0]}", cells))
            continue
        name, key, column, logged = spell(CATALOGUE, *row[5:8])
        met_key = meeting(name, key)
        asking.add((name, met_key))
        cells = (
            row[0],
            row[2],
            row[2],
            name,
            key,
            column,
            *row[8:],
            row[3].replace(" ", "T"),
            row[4],
            logged,
            None if met_key == key else met_key,
        )
        keyed_rows.append(((name, met_key), cells))
    number = itertools.count(-1000)
    for (name, query), answers in CURRENT.items():
        table = CATALOGUE.get(name)
        together = CATALOGUE.name_of(table), current_row_key(table, query)
        for current in answers if together in asking else ():
            values = *together, None, *pack_cells(current), *[None] * 4
            keyed_rows.append((together, (next(number), 0, None, *values)))
    hashed = [(zlib.crc32(repr(together).encode()), *cells) for together, cells in keyed_rows]
    return sorted(hashed, key=lambda row: (row[0], row[1]))


def meeting(name: str, key: str) -> str:
    """Return the key of the current row that an object meets."""
    try:
        identity = identify(CATALOGUE, name, key)
        if identity.table is not None:
            return current_row_key(identity.table, query_key(identity.table, identity.pairs))
    except EventlogError:
        pass
    return key


def batches(rows: Sequence[Cells], size: int) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(rows), size):
        columns = zip(zip(*rows[at : at + size], strict=True), SCHEMA, strict=True)
        yield pa.record_batch([pa.array(cells, field.type) for cells, field in columns], schema=SCHEMA)


def packed(task: Any, rows: Sequence[Cells], size: int) -> list[pa.RecordBatch]:
    """Return the rows as tasks that read some of them each pack them for a task that folds."""
    schema = FOLDED[task.schema == BRIEF]
    pack = Packing(iter, schema, by_object, 16)
    parts = [part for batch in batches(rows, size) for part in pack([batch])]
    together: list[pa.RecordBatch] = pa.Table.from_batches(parts).sort_by("share").to_batches(size)
    return together


def run_task(task: Any, rows: Sequence[Cells], size: int) -> tuple[list[Cells], list[str]]:
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
    rows = shuffled(repeated)
    rules = Rules(insert_query_back=insert, max_changes=most, max_value=largest)
    answerable = frozenset(CATALOGUE) if asks else frozenset()
    reading = LogReading(CATALOGUE, rules, TIME, None, answerable)
    form = Documents(CATALOGUE, XdsSettings(insert_query_back=insert))
    expected = run_task(FoldToRows(reading, form), rows, size)
    assert run_task(FoldToDocuments(reading, form), rows, size) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "_PORTION", size)
        assert run_task(FoldToDocuments(reading, form), rows, size) == expected
    assert run_task(FoldToDocuments(reading, form, FoldOutput.REFUSED), rows, size) == ([], expected[1])
    documents = [dict(row) for row in expected[0]]
    task = FoldToDocuments(reading, form, FoldOutput.BRIEF)
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
    (batch,) = batches(shuffled(log), 9)
    reading = LogReading(CATALOGUE, Rules(), TIME, None, frozenset([CATALOGUE.get("usr")]))
    assert batch.filter(pa.array(Unanswerable(reading).find(batch))).column("record_id").to_pylist() == [4]
    unanswerable = Unanswerable(LogReading(CATALOGUE, Rules(), TIME, None, frozenset()))
    found = batch.filter(pa.array(unanswerable.find(batch)))
    assert sorted(found.column("record_id").to_pylist()) == [1, 4]
    assert {reason.split()[1] for reason in unanswerable.reasons(found).to_pylist()} == {
        "indirect.usr",
        "grp",
    }


def test_rows_of_many_lines_are_cut_between_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "_LINES", 1000)
    rows = shuffled([(n, "N", 2, TIME, None, "usr", f"idu={n}", "fname", "a", "é" * n) for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(), TIME, None, frozenset())
    form = Documents(CATALOGUE, XdsSettings())
    documents, _ = run_task(FoldToDocuments(reading, form), rows, 99)
    task = FoldToDocuments(reading, form, FoldOutput.BRIEF)
    pieces = [batch.column("document")[0].as_py() for batch in task(packed(task, rows, 99))]
    assert len(pieces) > 20
    assert sorted("\n".join(pieces).split("\n")) == sorted(dict(row)["document"] for row in documents)


def test_the_record_ids_of_many_parts_are_not_in_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "_IDS", 500)
    rows = shuffled([(n, "N", 2, TIME, None, "usr", "idu=1", "fname", "a", f"b{n}") for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(max_changes=2), TIME, None, frozenset())
    task = FoldToDocuments(reading, Documents(CATALOGUE, XdsSettings()))
    ids = [batch.column("record_ids").to_pylist() for batch in task(packed(task, rows, 99))]
    assert [part for parts in ids for part in parts] == [list(range(1, 99))] * 98
    assert max(sum(map(len, parts)) for parts in ids) <= 500 + 98


def test_rows_that_memory_cannot_hold_together_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_SHARE_BYTES", 1000)
    rows = shuffled([(n, "N", 2, TIME, None, "usr", "idu=1", "fname", "a", "b" * 20) for n in range(1, 99)])
    reading = LogReading(CATALOGUE, Rules(), TIME, None, frozenset())
    with pytest.raises(ObjectTooLarge, match="rows that belong together"):
        run_task(FoldToDocuments(reading, Documents(CATALOGUE, XdsSettings())), rows, 10)


@pytest.mark.parametrize("limit", [("_ROWS", 10), ("_BYTES", 1000)])
def test_whole_shares_are_unpacked_some_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(packing, *limit)
    rows = shuffled(
        [(n, "N", 2, TIME, None, "usr", f"idu={n % 40}", "fname", "a", "b") for n in range(1, 99)]
    )
    form = Documents(CATALOGUE, XdsSettings())
    task = FoldToDocuments(LogReading(CATALOGUE, Rules(), TIME, None, frozenset()), form)
    whole = list(packing.unpacked(packed(task, rows, 20), FOLDED[False]))
    hashes = [set(batch.column("h").to_pylist()) for batch in whole]
    ids = [number for batch in whole for number in batch.column("record_id").to_pylist()]
    assert sorted(number for number in ids if number > 0) == [*range(1, 99)]
    assert len(hashes) > 5
    assert sum(map(len, hashes)) == len(set().union(*hashes)) == 40
