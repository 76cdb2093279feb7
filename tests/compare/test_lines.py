"""Differences that are written by column equal those of the plain way, one by one."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.compare.changes import Difference, change_of
from eventlog.compare.files import texts_of
from eventlog.compare.lines import differences, in_order
from eventlog.compare.ordering import Phase, ranks
from eventlog.compare.rows import in_batches
from eventlog.core import tablekey, tablesfile
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Table
from eventlog.files import parquet
from eventlog.files.current_files import cell_text
from eventlog.formats.neutral import dumps
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

# A name with a question mark, one that RE2 would read, a reference to itself, and every kind of value.
TABLES = tablesfile.read(r"""
[tables."t?"]
schema = 's"\'
key = ["k.", "number?"]
columns = { "k." = "text", "number?" = "integer", "a?" = "text", c = "char(4)", small = "smallint", n = "numeric(9,2)", d = "double", f = "real", b = "boolean", day = "date", at = "time", moment = "timestamp", photo = "blob", boss = "text" }
references = { boss = "t?" }
[tables.many]
key = ["k."]
columns = { "k." = "text", v = "integer", w = "text" }
multivalued = ["v", "w"]
[tables.bare]
key = ["k."]
columns = { "k." = "text" }
""")  # noqa: E501
TEXTS = [
    "",
    "a",
    "a ",
    " ",
    "ä",
    "a\u0308",
    'a"b',
    "\\",
    "\t",
    "\n",
    "\x01",
    "\x7f",
    "\ufffd",
    "\ufffe",
    "\U0001f600",
]
VALUES: Mapping[str, Sequence[str]] = {
    "k.": [*TEXTS, "O'Brien", "a+b", "x" * 300],
    "number?": ["1", "05", "-3", "+1", "9" * 20, "x", ""],
    "a?": TEXTS,
    "c": ["ab", "ab  ", "ab\t ", *TEXTS],
    "small": ["1", "01", "-1", "32767", "32768", "9999", "x", " 1"],
    "n": [
        "1.0",
        "1.00",
        "1",
        "1.10",
        "1.1",
        "-0.0",
        "0",
        "0.",
        "-0.10",
        "-.1",
        "01",
        "1e0",
        "NaN",
        "x",
        "1" * 40,
    ],
    "d": ["NaN", "nan", "0.1", "1e-1", "-0.0", "0.0", "inf", "Infinity"],
    "f": ["0.1", "0.10000000149", "16777217", "16777216"],
    "b": ["true", "false", "t", "TRUE", "1", "yes"],
    "day": ["2024-02-28", "2024-02-29", "2023-02-29", "0001-01-01", "2024-13-01", "10000-01-01", "2024-1-1"],
    "at": ["10:57:19", "10:57:19.5", "24:00:00", "10:57:19Z", "10:57:19+01", "10:57"],
    "moment": [
        "2025-03-23 10:57:19",
        "2025-03-23T10:57:19",
        "2025-03-23 10:57:19.120",
        "2025-03-23 10:57:19+01:00",
        "2025-03-31 10:57:19",
        "2025-02-30 10:57:19",
        "2025-03-23  10:57:19",
    ],
    "photo": ["", "qqo=", "qqp=", "qq o=", "qqo", "qqoA", "ä"],
    "boss": ["", "a", "\ufffe"],
    "v": ["1", "01", "2", "x"],
    "w": ["", "a", '"'],
}
State = dict[tuple[str, ...], tuple[str | None, ...]]


def states_of(table: Table) -> st.SearchStrategy[tuple[State, State]]:
    """Draw two states; the second has many objects of the first."""
    wild = st.sampled_from([1, 2, 99])  # how many of the values are drawn from

    def of(value_count: int) -> st.SearchStrategy[tuple[State, State]]:
        keys = st.tuples(*(st.sampled_from(VALUES[name]) for name in table.key))
        cells = st.tuples(*(st.none() | st.sampled_from(VALUES[c.name][:value_count]) for c in table.data))
        state = st.dictionaries(keys, cells, max_size=8)
        return st.tuples(state, state, st.booleans()).map(
            lambda drawn: (drawn[0], drawn[0] | drawn[1] if drawn[2] else drawn[1])
        )

    return wild.flatmap(of)


def batches(table: Table, state: State) -> Iterator[pa.RecordBatch]:
    return in_batches(table, (("here", key, cells) for key, cells in state.items()))


def plainly(table: Table, old_state: State, new_state: State) -> list[tuple[Any, ...]]:
    """Return each difference in the form of the plain way."""
    table_ranks = ranks(TABLES)
    circular = [table_ranks.circular(table, column) for column in table.data]
    phased_differences: list[tuple[Phase, Difference]] = []
    for key in old_state.keys() | new_state.keys():
        name = tablekey.write(zip(table.key, key, strict=True))
        before, after = old_state.get(key), new_state.get(key)
        if after is None:
            phased_differences.append((Phase.DELETED, Difference(name, before, None)))
        elif before is not None:
            if before == after:
                continue
            phased_differences.append((Phase.CHANGED, Difference(name, before, after)))
        else:
            first = tuple(None if late else cell for late, cell in zip(circular, after, strict=True))
            phased_differences.append((Phase.NEW, Difference(name, None, first)))
            if first != after:
                phased_differences.append((Phase.CHANGED, Difference(name, first, after)))
    reported: list[tuple[Any, ...]] = []
    position = 0
    for _, difference in sorted(phased_differences, key=lambda pair: (pair[0], pair[1].key.encode())):
        try:
            change = change_of(table, difference)
        except EventlogError as fault:
            reported.append((f"{table} {difference.key}", str(fault)))
            continue
        if change is not None:
            position += 1
            reported.append((dumps(change._replace(position=str(position))),))
    return reported


def by_column(table: Table, old_state: State, new_state: State, memory: int) -> list[tuple[Any, ...]]:
    sides = batches(table, old_state), batches(table, new_state)
    table_lines = ((table, reported) for reported in differences(TABLES, table, *sides, memory))
    lines = in_order(TABLES, table_lines, memory)
    return [(line.where, line.reason) if isinstance(line, Refused) else (line,) for line in lines]


T, BARE = TABLES.get("t?"), TABLES.get("bare")
_ROW = (
    "a",
    "ab",
    "1",
    "1.0",
    "0.1",
    "0.1",
    "true",
    "2024-02-28",
    "10:57:19",
    "2025-03-23 10:57:19",
    "qqo=",
    "a",
)


@settings(max_examples=drawn(40))
@given(states_of(T), st.sampled_from([700, 1 << 20]))
@example(({("a", "1"): _ROW}, {("a", "1"): ("a", "ab  ", "01", "1.00", "1e-1", *_ROW[5:])}), 1 << 20)
@example(({}, {("a", "1"): _ROW, ("O'Brien", "05"): _ROW}), 1 << 20)
def test_lines_are_those_of_the_plain_way(states: tuple[State, State], memory: int) -> None:
    assert by_column(T, *states, memory) == plainly(T, *states)


@pytest.mark.parametrize("name", [column.name for column in T.data])
def test_every_value_becomes_every_other(name: str) -> None:
    """All others of the object being as they were."""
    at = [column.name for column in T.data].index(name)
    pairs = itertools.product((None, *VALUES[name]), repeat=2)
    rows: dict[tuple[str, ...], Any] = {("k", str(n)): pair for n, pair in enumerate(pairs)}
    old, new = (
        {key: (*_ROW[:at], pair[side], *_ROW[at + 1 :]) for key, pair in rows.items()} for side in (0, 1)
    )
    assert by_column(T, old, new, 1 << 20) == plainly(T, old, new)


@given(states_of(BARE))
def test_tables_that_are_all_key(states: tuple[State, State]) -> None:
    assert by_column(BARE, *states, 1 << 20) == plainly(BARE, *states)


@given(states_of(TABLES.get("many")))
def test_attributes_of_many_values(states: tuple[State, State]) -> None:
    """Compare attributes of many values, which come as a row for each value."""
    table = TABLES.get("many")
    sides = [{key: [(None, None), cells] for key, cells in state.items()} for state in states]
    old, new = (_rows(table, side) for side in sides)
    found = list(differences(TABLES, table, old, new))
    lists: list[State] = [
        {key: tuple(None if c is None else json.dumps([c], ensure_ascii=False) for c in rows[1])
         for key, rows in side.items()} for side in sides
    ]  # fmt: skip
    reported = [(one.where, one.reason) if isinstance(one, Refused) else (one,)
            for one in in_order(TABLES, ((table, one) for one in found))]  # fmt: skip
    assert reported == plainly(table, *lists)


def _rows(table: Table, side: dict[Any, Any]) -> Iterator[pa.RecordBatch]:
    return in_batches(table, (("here", key, cells) for key, rows in side.items() for cells in rows))


@pytest.mark.long
def test_long_values_become_lines_some_at_a_time() -> None:
    old: State = {(f"{n}", "1"): ("x" * (5 << 20), *_ROW[1:]) for n in range(7)}
    new: State = {key: (f"{cells[0]}y", *cells[1:]) for key, cells in old.items()}
    sides = batches(T, old), batches(T, new)
    found = list(differences(TABLES, T, *sides, 1 << 30))
    assert len(found) > 2
    reported = list(in_order(TABLES, ((T, reported) for reported in found), 1 << 30))
    assert reported == [line for (line,) in plainly(T, old, new)]


_DAYS = st.dates() | st.sampled_from([dt.date.min, dt.date.max])
_MOMENTS = st.datetimes() | st.sampled_from([dt.datetime.min, dt.datetime.max, dt.datetime(2025, 3, 23)])
_MICROSECONDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**17), 10**17).map(lambda n: n - n % 10**6)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda n: decimal.Decimal(n).scaleb(-scale))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), st.booleans()),
        (pa.uint64(), st.integers(0, 2**64 - 1)),
        (pa.float64(), st.floats() | st.just(-0.0)),
        (pa.date32(), _DAYS),
        (pa.decimal128(9, 0), _decimals(9, 0)),
        (pa.decimal128(9, 2), _decimals(9, 2)),
        (pa.decimal128(9, 9), _decimals(4, 9)),
        (pa.decimal128(38, 6), _decimals(18, 6)),
        (pa.timestamp("us"), _MOMENTS),
        (pa.timestamp("us", "UTC"), _MICROSECONDS),
        (pa.timestamp("us", "+05:30"), _MICROSECONDS),
        (pa.timestamp("us", "Europe/Berlin"), _MICROSECONDS),
        (pa.timestamp("ns"), st.integers(-(2**63), 2**63 - 1)),
        (pa.binary(), st.binary(max_size=9)),
        (pa.large_string(), st.sampled_from(TEXTS)),
        (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(TEXTS)),
    ],
    ids=str,
)
def test_texts_by_column_are_those_of_each_value(kind: pa.DataType, values: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=drawn(30))
    @given(st.lists(st.none() | values, max_size=6))
    def hold(drawn: list[Any]) -> None:
        if any(type(value) is int for value in drawn) and pa.types.is_timestamp(kind):
            column = pa.array(drawn, pa.int64()).cast(kind)
        else:
            column = pa.array(drawn, kind)
        assert texts_of(column).to_pylist() == [cell_text(cell) for cell in parquet.cells(column)]

    hold()
