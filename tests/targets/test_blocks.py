"""Many changes at once, by column, do what each of them does by itself, and are refused where it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Raw, Undecoded
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.mariadb import MARIADB
from eventlog.sql.oracle import ORACLE
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.targets.tables.cells import to_cell, to_column
from eventlog.targets.tables.table import RowChange, TableTarget, blocks_of, row_changes_of

pytestmark = pytest.mark.quick

TYPES = {
    "k": "integer",
    "l": "varchar(3)",
    "t": "varchar(4)",
    "p": "char(2)",
    "c": "text",
    "d": "date",
    "s": "timestamp(3)",
    "m": "time",
    "n": "numeric(6,2)",
    "w": "numeric(6)",
    "u": "numeric",
    "f": "double precision",
    "g": "real",
    "b": "boolean",
    "o": "bytea",
}
COLUMNS = ", ".join(f'{name} = "{of}"' for name, of in TYPES.items())
TABLE = tablesfile.read(f'[tables.t]\nkey = ["k", "l"]\ncolumns = {{ {COLUMNS} }}\n').get("t")
DIALECTS = (POSTGRESQL, MARIADB, ORACLE)

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**7),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(("", "a", "ab ", "é€", "\ud800", "a\0", "a\n", "1\n2", "\\N", "abcd", "abcde", b"\xff")),
    st.sampled_from(("0", "1.5", "-12.345", "1.", "007", "12.3400", "1e3", "NaN", "9" * 120)),
    st.sampled_from(("2025-03-23", "2025-03-23T10:57:19", "2025-03-23 10:57:19.123", "10:57:19")),
    st.sampled_from(("2025-03-23T10:57:19.1234", "2025-03-23T10:57:19Z", "٢025-03-23")),
    st.sampled_from((("a", "b"), Undecoded(b"\xff"))),
)


@st.composite
def columns(draw: Any) -> list[Any]:
    """Draw values mostly of one kind, like those of a column."""
    usual = draw(st.lists(values, min_size=1, max_size=2))
    reported = st.lists(st.one_of(st.sampled_from(usual), st.just(ABSENT)), max_size=6)
    return [*draw(reported), *draw(st.lists(values, max_size=1))]


def goal_at(dialect: Dialect) -> TableTarget:
    """Return the table as a target has it."""
    every = TABLE.columns.values()
    cells, to_columns = (tuple(make(column, dialect) for column in every) for make in (to_cell, to_column))
    return TableTarget(TABLE, "t", cells, source=SOURCE, to_columns=to_columns)  # type: ignore[arg-type]


SOURCE = Table(None, "t", {name: TABLE.columns[name] for name in ("k", "l", "t", "n")}, ("k", "l"))


@given(columns(), st.sampled_from(list(TYPES)), st.sampled_from(DIALECTS))
def test_the_cells_of_a_column_are_those_of_its_values(
    reported: list[Any], name: str, dialect: Dialect
) -> None:
    column = TABLE.columns[name]
    at_once = to_column(column, dialect)(reported)
    if at_once is not None:
        one_by_one = [one if one is ABSENT else to_cell(column, dialect)(one) for one in reported]
        assert [(type(cell), cell) for cell in at_once] == [(type(cell), cell) for cell in one_by_one]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("k", [1, None, ABSENT]),
        ("t", ["a", "é", None, "abcd"]),
        ("d", ["2025-03-23", "1970-01-01"]),
        ("s", ["2025-03-23T10:57:19.123", None]),
        ("n", ["-1.25", "0", None]),
        ("f", [1.5]),
        ("b", [True, None]),
        ("o", [b"\x00"]),
        ("n", [None, ABSENT]),
    ],
)
def test_what_sources_tell_is_plain(name: str, plain: list[Any]) -> None:
    assert to_column(TABLE.columns[name], POSTGRESQL)(plain) is not None


_SHAPES = st.lists(st.sampled_from([*TYPES, "K", "unknown"]), max_size=5)


@st.composite
def changes(draw: Any) -> list[Change]:
    """Draw changes of few shapes, with keys and values of any kind."""
    shapes = draw(st.lists(_SHAPES, min_size=1, max_size=2))
    usual = draw(st.lists(values, min_size=1, max_size=4))
    side = st.one_of(st.sampled_from([*usual, ABSENT]), st.sampled_from([1, "a", ABSENT]), values)
    keys = st.sampled_from((("k", "l"), ("L", "K"), ("k",), ()))
    drawn_changes = []
    for _ in range(draw(st.integers(1, 6))):
        fields = tuple(Field(name, draw(side), draw(side)) for name in draw(st.sampled_from(shapes)))
        key = tuple((name, draw(st.sampled_from((1, "1", "a", None)))) for name in draw(keys))
        raw = draw(st.sampled_from([None] * 5 + [Raw()]))
        drawn_changes.append(Change(draw(st.sampled_from(Op)), None, "t", key, fields, raw=raw))
    return drawn_changes


@given(changes(), st.sampled_from(DIALECTS), st.booleans())
def test_changes_together_do_what_each_does(reported: list[Change], dialect: Dialect, lenient: bool) -> None:
    target = goal_at(dialect)
    object.__setattr__(target, "lenient", lenient)
    met = 0
    for block in blocks_of(reported):
        for number, change, row_change in zip(
            block.numbers, block.changes, row_changes_of(target, block), strict=True
        ):
            assert reported[number] is change
            met += 1
            if row_change is None:
                continue
            (expected,) = target.steps(change)
            assert isinstance(expected, RowChange)
            assert [*row_change[:2], row_change.key, list(row_change.cells)] == [
                *expected[:2],
                expected.key,
                list(expected.cells),
            ]
            assert list(map(type, row_change.cells)) == list(map(type, expected.cells))
    assert met == len(reported)


def test_plain_changes_go_together() -> None:
    fields = (Field("k", 1, 1), Field("L", ABSENT, "a"), Field("n", ABSENT, "1.50"), Field("f", 1.0, ABSENT))
    reported = [Change(op, None, "t", (("k", 1), ("l", "a")), fields) for op in Op if op is not Op.TRUNCATE]
    (insert, *_) = blocks = blocks_of([*reported, *reported])
    assert len(blocks) == 4
    assert len(insert.changes) == 2
    assert all(
        row_change is not None
        for block in blocks
        for row_change in row_changes_of(goal_at(POSTGRESQL), block)
    )


def test_a_refused_change_costs_no_other_one() -> None:
    reported = [
        Change(Op.INSERT, None, "t", (("k", n), ("l", "a")), (Field("t", ABSENT, "x" * n),)) for n in range(9)
    ]
    target = goal_at(POSTGRESQL)
    (block,) = blocks_of(reported)
    row_changes = row_changes_of(target, block)
    assert [row_change is None for row_change in row_changes] == [n > 4 for n in range(9)]
    with pytest.raises(EventlogError, match="longer than"):
        target.steps(reported[5])
