"""Tables that are read back together come to what each of them comes to row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.fold import CurrentOrError, QueryKey, Rules
from eventlog.fold.by_column import CurrentAnswer, CurrentColumns, Engine
from eventlog.fold.by_column.current import Keys
from eventlog.fold.plan import Lookup
from eventlog.publisher.asked_keys import AskedKeys, groups_of
from eventlog.xds.skeleton import Skeletons
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings
from tests.fold.by_column.ways import by_column, check_alike, row_by_row
from tests.kit.tiers import drawn

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
CurrentRows = dict[tuple[str, QueryKey], list[tuple[str | None, ...]]]


@st.composite
def current_rows(draw: st.DrawFn) -> CurrentRows:
    """Return the current rows of some objects: mostly one, sometimes none or several."""
    current: CurrentRows = {}
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
    current: CurrentRows, logs: list[list[tuple[Any, ...]]], few: int, together: int, insert: str
) -> None:
    groups: list[list[AskedKeys]] = []

    def lookup(table: Table, key: QueryKey) -> CurrentOrError:
        return current.get((table.name, key), ())

    def read_groups(keys: Keys, lookup: Lookup) -> CurrentAnswer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("eventlog.publisher.asked_keys.FEW", few)
            patch.setattr("eventlog.publisher.asked_keys.TOGETHER", together)
            of_keys = groups_of(keys)
        groups.extend(of_keys)
        return CurrentAnswer([read_group(group, keys, lookup) for group in of_keys], lookup=lookup)

    rules, wanted = Rules(insert_query_back=insert), XdsSettings(insert_query_back=insert)
    engine = Engine(TABLES, rules, Skeletons(TABLES, wanted), answerable=set(TABLES))
    writer = EventWriter(TABLES, wanted)
    for log in logs:
        entries = [
            Entry(at, "N", kind, "2025-03-23T10:57:19", None, table, key, column, old, new)
            for at, (kind, table, key, column, old, new) in enumerate(log, 1)
        ]
        result = by_column(engine, entries, lookup, read_groups)
        check_alike(result, row_by_row(TABLES, rules, writer, entries, lookup), entries)
    assert all(
        len({(len(of_table.table.data), of_table.table.view) for of_table in group}) == 1 for group in groups
    )
    assert all(len(group) == 1 or len(group) * len(group[0].table.data) <= together for group in groups)


def read_group(group: list[AskedKeys], keys: Keys, lookup: Lookup) -> CurrentColumns:
    """Return the current rows of several tables in the same columns."""
    numbers = np.concatenate([of_table.numbers for of_table in group])
    answers = [lookup(*need) for need in keys.needs(numbers)]
    rows = [row for answer in answers if not isinstance(answer, EventlogError) for row in answer]
    counts = [0 if isinstance(answer, EventlogError) else len(answer) for answer in answers]
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(len(group[0].table.data))]
    return CurrentColumns(np.repeat(numbers, counts), columns)


def test_each_table_is_treated_by_its_own_columns() -> None:
    """No object is in doubt, because the texts of a column are checked by its own type alone."""
    rows = {"a": ["a <", "7"], "b": ["7", "a  "], "c": ["2024-02-29", "1"]}

    def lookup(table: Table, key: QueryKey) -> CurrentOrError:
        return [rows[table.name]]

    engine = Engine(TABLES, Rules(), Skeletons(TABLES, XdsSettings()), answerable=set(TABLES))
    log = [(name, f"k={number}") for number in range(3) for name in rows]
    entries = [Entry(at, "N", 6, "", None, *name, None, None, None) for at, name in enumerate(log, 1)]
    result = by_column(engine, entries, lookup)
    assert (len(result.texts), result.reasons) == (9, {})
