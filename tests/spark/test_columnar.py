"""The columnar fold writes what the plain one writes, byte for byte, whatever the rows are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from eventlog_spark.backlog.fold_tasks import FoldToParts
from eventlog_spark.io.batches import unpack
from eventlog_spark.io.folder_files import LocalFiles
from eventlog_spark.io.part_files import PartLayout
from eventlog_spark.io.shuffle import pack_cells, pack_name, unpack_name, unreadable_row
from eventlog_spark.io.spelling import spell
from eventlog_spark.io.task import Summary, Task
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from eventlog.columnar import oversized_object, templates
from eventlog.core import tablekey, tablesfile
from eventlog.core.errors import EventlogError
from eventlog.core.formats import Shape
from eventlog.fold import CurrentRow, QueryKey, Rules, query_key
from tests.spark.helpers import TABLES, by_object
from tests.spark.strategies import COLUMNS, KEYS, VALUES, logs
from tests.tiers import drawn

pytestmark = pytest.mark.quick

_NUMBERS = itertools.count()
SCHEMA = pa.schema(
    [("record_id", pa.int64()), ("kind", pa.int8())]
    + [(name, pa.string()) for name in ("name", "table_key", "old_value", "new_value", "logged")]
)
CURRENT: dict[tuple[str, QueryKey], list[CurrentRow]] = {
    ("usr", (1,)): [["John", "Doe  ", "u7s=", "2024-02-29", "true", "11"]],
    ("usr", (2,)): [[None, "", None, None, None, None]],
    ("grp", ("a", "b")): [["m1", "1"], ["m2", "1"]],
    ("grp", ("a,b", "")): [["x<y", None]],
    ("usr", (3,)): [unreadable_row("the database refused it")],
    ("usr", (17,)): [unreadable_row("")],
}


_RULES = ("insert_query_back", "max_changes", "max_value", "association")


class Plain(Task):
    """The same task, the plain way."""

    writes_lines = False


READ_BACK = (1, "N", 6, "2025-03-23T10:57:19", None, "usr", "idu=1", None, None, None)


def make(kind: type[Task], folder: Path, **given: Any) -> Task:
    tables = tablesfile.read(TABLES)
    folder.mkdir(parents=True)
    return kind(
        tables,
        Rules(**{k: v for k, v in given.items() if k in _RULES}),
        None,
        frozenset(tables),
        {},
        "xds",
        given,
        PartLayout(LocalFiles(str(folder)), Shape.BYTES, "blob"),
    )


def shuffled(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows of a log as after the shuffle, with the requested current rows first."""
    tables = tablesfile.read(TABLES)
    seen: dict[int, tuple[Any, ...]] = {row[0]: row for row in rows}
    found: list[tuple[Any, ...]] = []
    for row in seen.values():
        if row[2] in range(1, 9) and (row[7] is not None or row[2] in (4, 5, 6)):
            name, key, column, logged = spell(tables, *row[5:8])
            found.append((row[0], row[2], pack_name(name, column), key, *row[8:], logged))
    asking = {(unpack_name(row[2]).table, row[3]) for row in found if row[1] > 4}
    for table, key in asking:
        for n, answer in enumerate(answers_to(table, key)):
            found.append((n - 100, 0, pack_name(table, None), key, *pack_cells(answer), None))
    return sorted(found, key=lambda row: (unpack_name(row[2]).table, row[3], row[0]))


def answers_to(name: str, key: str) -> list[CurrentRow]:
    """Return the current rows of an object, however it is spelled."""
    try:
        table = tablesfile.read(TABLES).get(name)
        return CURRENT.get((table.name, query_key(table, tablekey.read(key))), [])
    except EventlogError:
        return []


def batches(rows: Sequence[tuple[Any, ...]], size: int) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(rows), size):
        arrays = [
            pa.array(column, f.type)
            for column, f in zip(zip(*rows[at : at + size], strict=True), SCHEMA, strict=True)
        ]
        yield pa.record_batch(arrays, schema=SCHEMA)


def written(
    task: Task, rows: Sequence[tuple[Any, ...]], size: int
) -> tuple[str, Summary, set[tuple[int, str]]]:
    """Return the documents, the counts, and what was refused."""
    import pyarrow.parquet as pq

    (reported,) = FoldToParts(task)(batches(rows, size))
    found: Summary = unpack(reported.column(0)[0].as_py())
    layout = task.layout
    refused = pq.read_table(layout.work.name(found.refused)).to_pylist() if found.refused else []
    text = "".join(layout.folder.text(file.file) or "" for file in found.files)
    assert text.count("\n") == sum(file.records for file in found.files)
    return text, found, {(row["record_id"], row["reason"]) for row in refused}


def lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


@settings(
    max_examples=drawn(250),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    st.lists(logs(most=25), min_size=1, max_size=4),
    st.integers(1, 60),
    st.sampled_from(("modify", "add")),
    st.sampled_from((1000, 2)),
    st.sampled_from((1 << 20, 5)),
    st.sampled_from((1, 2, 3)),
    st.sampled_from((1, 4, 100)),
    st.sampled_from(("canonical", "as-logged")),
)
@example([[READ_BACK]], 60, "modify", 1000, 1 << 20, 1, 100, "canonical")
def test_both_ways_write_the_same(
    tmp_path: Path,
    several: list[list[tuple[Any, ...]]],
    size: int,
    insert: str,
    most: int,
    largest: int,
    syntax: int,
    longest: int,
    association: str,
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    wanted: dict[str, Any] = {
        "insert_query_back": insert,
        "max_changes": most,
        "max_value": largest,
        "time_syntax": syntax,
    }
    wanted["association"] = association
    # the same log again and again under other keys: what was learnt of one batch serves the next
    repeated = [
        (row[0] + 1000 * n, *row[1:6], row[6] + suffix, *row[7:])
        for n, (log, suffix) in enumerate(itertools.product(several, ("", "", "7", "8")))
        for row in log
    ]
    rows = shuffled(repeated)
    if not rows:
        return
    expected, counted, refused = written(make(Plain, folder / "plain", **wanted), rows, size)
    found, counts, left_out = written(
        replace(make(Task, folder / "fast", **wanted), longest=longest), rows, size
    )
    assert by_object(lines(found), repeated) == by_object(lines(expected), repeated)
    assert left_out == refused
    assert (counts.fates, counts.events, counts.rows) == (counted.fates, counted.events, counted.rows)


@st.composite
def updates(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Return rows of one object as after the shuffle: updates, sometimes a delete or one that is not new."""
    kinds = st.sampled_from((2, 2, 2, 2, 2, 3, 3, 11, *draw(st.sampled_from(((), (4,), (1,), (8,))))))
    columns = st.sampled_from(draw(st.sampled_from((("fname", "extra"), COLUMNS["usr"]))))
    values = (
        st.one_of(st.none(), st.sampled_from(("a", "b", "<&>", "x ", "7"))) if draw(st.booleans()) else VALUES
    )
    key = spell(tablesfile.read(TABLES), "usr", draw(st.sampled_from(KEYS["usr"])), None).table_key
    rows = []
    for number in range(1, draw(st.integers(1, 40)) + 1):
        kind = draw(kinds)
        column = None if kind == 4 else draw(columns)
        logged = draw(st.sampled_from((None, None, None, None, pack_name("USR", "IDU=1"))))
        logged = None if key != "idu=1" else logged
        rows.append((number, kind, pack_name("usr", column), key, draw(values), draw(values), logged))
    return rows


@pytest.mark.long
@settings(
    max_examples=drawn(300),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    updates(),
    st.integers(1, 12),
    st.sampled_from((1000, 3, 2, 1)),
    st.integers(1, 8),
    st.sampled_from(("canonical", "as-logged")),
)
def test_a_long_life_of_updates_is_the_same(
    tmp_path: Path, rows: list[tuple[Any, ...]], size: int, most: int, longest: int, association: str
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    wanted: dict[str, Any] = {"max_changes": most, "association": association}
    expected, counted, refused = written(make(Plain, folder / "plain", **wanted), rows, size)
    task = replace(make(Task, folder / "fast", **wanted), longest=longest)
    found, counts, left_out = written(task, rows, size)
    assert (found, left_out) == (expected, refused)
    assert (counts.fates, counts.events, counts.rows) == (counted.fates, counted.events, counted.rows)


def test_a_long_life_of_ever_new_columns_goes_on_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "_MOST", 5)
    rows = [(n, 2, pack_name("usr", f"c{n}"), "idu=1", None, "a", None) for n in range(1, 30)]
    expected, *_ = written(make(Plain, tmp_path / "plain"), rows, 4)
    found, *_ = written(replace(make(Task, tmp_path / "fast"), longest=2), rows, 4)
    assert found == expected


def test_a_query_back_stands_before_rows_that_it_does_not_read_and_its_event_is_cut(tmp_path: Path) -> None:
    key = "org=a+name=b"
    said = [(1, "name", None), (2, "ghost", "x"), (2, "ghost", "y"), (5, None, None)]
    rows = shuffled(
        [
            (number, "N", kind, "2025-03-23 10:57:19", None, "grp", key, column, None, new)
            for number, (kind, column, new) in enumerate(said, 1)
        ]
    )
    expected, *_ = written(make(Plain, tmp_path / "plain", max_changes=2), rows, 2)
    found, *_ = written(replace(make(Task, tmp_path / "fast", max_changes=2), longest=1), rows, 2)
    assert found == expected
    assert [document.count("modify-attr attr-name") for document in lines(found)] == [1, 2, 2, 1]


@pytest.mark.parametrize("kinds", [(1,), (1, 2), (2, 2, 8)])
def test_a_long_life_is_filled_in_slice_by_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[int, ...]
) -> None:
    monkeypatch.setattr(oversized_object, "_SLICE", 7)
    reported = itertools.cycle(kinds)
    rows = []
    for n in range(1, 200):
        old, new = None if n % 7 == 0 else f"a{n}", "\x01" if n % 50 == 0 else f"b{n}"
        column = pack_name("usr", "lname" if n % 3 == 0 else "fname")
        rows.append((n, next(reported), column, "idu=4", old, new, None))
    expected, counted, refused = written(make(Plain, tmp_path / "plain", max_changes=9), rows, 40)
    task = replace(make(Task, tmp_path / "fast", max_changes=9), longest=30)
    found, counts, left_out = written(task, rows, 40)
    assert (found, counts.fates, counts.events) == (expected, counted.fates, counted.events)
    assert left_out == refused
    assert len(refused) in (2, 3)
