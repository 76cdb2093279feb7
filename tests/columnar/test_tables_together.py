"""Tables that are read back together come to what each of them comes to row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.columnar import CurrentColumns, Engine, one_by_one
from eventlog.columnar.engine import plain_way
from eventlog.core import tablesfile
from eventlog.core.entry import Entry
from eventlog.core.tablekey import read
from eventlog.core.tables import Table
from eventlog.fold import Answer, QueryKey, Rules, query_key
from eventlog.xds.settings import XdsSettings
from eventlog.xds.skeleton import Skeletons
from eventlog.xds.write import EventWriter
from tests.columnar.test_parity import as_rows, check_alike
from tests.tiers import drawn

pytestmark = pytest.mark.quick

TABLES = tablesfile.read("""
[tables.a]
key = ["k"]
columns = { k = "integer", x = "varchar(9)", n = "integer" }
[tables.b]
key = ["k"]
columns = { k = "integer", n = "integer", x = "char(4)" }
[tables.c]
key = ["k"]
columns = { k = "integer", d = "date", r = "integer" }
references = { r = "a" }
[tables.d]
key = ["k"]
columns = { k = "integer", x = "varchar(9)" }
[tables.e]
key = ["k"]
columns = { k = "integer" }
""")
CELLS = {
    "x": st.sampled_from((None, "", "a ", "<b>", "5")),
    "n": st.sampled_from((None, "7", "-1", "no number")),
    "d": st.sampled_from((None, "2024-02-29", "no day")),
    "r": st.sampled_from((None, "1")),
}
Current = dict[tuple[str, QueryKey], list[tuple[str | None, ...]]]


@st.composite
def current_rows(draw: st.DrawFn) -> Current:
    """Return the current rows of some objects: mostly one, sometimes none or several."""
    current: Current = {}
    for table in TABLES:
        for key in range(3):
            rows = st.tuples(*(CELLS[column.name] for column in table.data))
            answers = st.lists(rows, min_size=1, max_size=draw(st.sampled_from((1, 1, 1, 2))))
            current[table.name, (key,)] = draw(st.one_of(answers, answers, answers, st.just([])))
    return current


ROWS = st.tuples(
    st.sampled_from((6, 6, 6, 5, 8, 7, 4, 3, 2, 1)),
    st.sampled_from(("a", "b", "c", "d", "e", "A", "nowhere")),
    st.sampled_from(("k=0", "k=1", "k=2", "k=3", 'k="1"')),
    st.sampled_from(("x", "n", "d", "r", "ghost")),
    st.sampled_from((None, "7")),
    st.sampled_from((None, "7", "8")),
)


@settings(max_examples=drawn(300))
@given(
    current_rows(),
    st.lists(st.lists(ROWS, min_size=1, max_size=30), min_size=1, max_size=2),
    st.sampled_from((0, 1, 200)),
    st.sampled_from((1, 4, 400)),
    st.sampled_from(("modify", "add")),
)
def test_both_ways_say_the_same(
    current: Current, logs: list[list[tuple[Any, ...]]], few: int, together: int, insert: str
) -> None:
    groups: list[Sequence[Table]] = []

    def lookup(table: Table, key: QueryKey) -> Answer:
        return current.get((table.name, key), ())

    def read_table(table: Table, keys: pa.Array) -> CurrentColumns:
        answers = [current.get((table.name, query_key(table, read(text))), []) for text in keys.to_pylist()]
        objects = [number for number, answer in enumerate(answers) for _ in answer]
        rows = [row for answer in answers for row in answer]
        columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(len(table.data))]
        return CurrentColumns(np.array(objects, np.int64), columns, np.empty(0, np.int64))

    def read_back(tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
        groups.append(tables)
        return one_by_one(read_table)(tables, keys)

    rules, wanted = Rules(insert_query_back=insert), XdsSettings(insert_query_back=insert)
    engine = Engine(
        TABLES,
        rules,
        Skeletons(TABLES, wanted),
        answerable=set(TABLES),
        read_back=read_back,
        ask=lambda _: lookup,
    )
    plain = plain_way(TABLES, rules, set(TABLES), lambda _: lookup, EventWriter(TABLES, wanted))
    for log in logs:
        entries = [
            Entry(at, "N", kind, "2025-03-23T10:57:19", None, table, key, column, old, new)
            for at, (kind, table, key, column, old, new) in enumerate(log, 1)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("eventlog.columnar.current.FEW", few)
            patch.setattr("eventlog.columnar.current.TOGETHER", together)
            check_alike(engine.events(as_rows(entries)), plain(entries), entries)
    assert all(len({(len(table.data), table.view) for table in group}) == 1 for group in groups)
    assert all(len(group) == 1 or len(group) * len(group[0].data) <= together for group in groups)


def test_each_table_is_treated_by_its_own_columns() -> None:
    """No object is in doubt, because the texts of a column are checked by its own type alone."""
    rows = {"a": ["a <", "7"], "b": ["7", "a  "], "c": ["2024-02-29", "1"]}

    def read_table(table: Table, keys: pa.Array) -> CurrentColumns:
        columns = [pa.array([cell] * len(keys)) for cell in rows[table.name]]
        return CurrentColumns(np.arange(len(keys)), columns, np.empty(0, np.int64))

    engine = Engine(
        TABLES,
        Rules(),
        Skeletons(TABLES, XdsSettings()),
        answerable=set(TABLES),
        read_back=one_by_one(read_table),
    )
    log = [(name, f"k={number}") for number in range(3) for name in rows]
    found = engine.events(
        as_rows([Entry(at, "N", 6, "", None, *name, None, None, None) for at, name in enumerate(log, 1)])
    )
    assert (len(found.texts), found.reasons) == (9, {})
