"""Many changes at once, by column, do what each of them does by itself, and are refused where it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Raw, Undecoded, Value
from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.core.tables import Table
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.mariadb import MARIADB
from eventlog.sql.oracle import ORACLE
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.transfer.targets.tables.cells import Cell, to_cell, to_column
from eventlog.transfer.targets.tables.outcomes import NoColumn
from eventlog.transfer.targets.tables.table import (
    BlockReading,
    KeyChange,
    RowAction,
    RowChange,
    RowKey,
    Step,
    TableTarget,
    Truncation,
    blocks_of,
)

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
    "h": "numeric(6,-2)",
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
    return TableTarget(TABLE, "t", cells, to_columns, source=SOURCE)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("name", "value", "cell"),
    [
        ("k", True, 1),
        ("k", 2.0, 2),
        ("k", " +7 ", 7),
        ("b", None, None),
        ("b", False, False),
        ("b", 1, True),
        ("b", "FALSE", False),
        ("o", None, None),
        ("o", b"\xff", b"\xff"),
        ("n", None, None),
        ("n", True, "1"),
        ("n", "1.5", "1.5"),
        ("n", "12.3400", "12.3400"),
        ("n", "1e3", "1000"),
        ("w", "5", 5),
        ("h", "1200", "1200"),
        ("u", "NaN", "NaN"),
        ("u", "-inf", "-Infinity"),
        ("f", None, None),
        ("f", "Infinity", "Infinity"),
        ("g", 0.1, 0.1),
        ("g", "nan", math.nan),
        ("d", None, None),
        ("s", "2025-03-23T10:57:19.120000", "2025-03-23 10:57:19.120000"),
        ("s", "2025-03-23T10:57:19.5+02:00", "2025-03-23 08:57:19.5"),
        ("m", "23:30:00-01:00", "00:30:00"),
        ("p", "ab  ", "ab  "),
        ("c", 1.5, "1.5"),
    ],
)
def test_a_column_takes_what_it_holds_exactly(name: str, value: Value, cell: Cell) -> None:
    column = TABLE.columns[name]
    assert repr(to_cell(column, POSTGRESQL)(value)) == repr(cell)
    assert repr(to_column(column, POSTGRESQL)([value])) in ("None", repr([cell]))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("k", "007", "'007' begins with a zero, which the column's integers would lose"),
        ("k", 1.5, "1.5 is no integer, as the column holds"),
        ("b", 2, "2 is neither true nor false"),
        ("o", "a", "'a' is no binary value, as the column holds"),
        ("n", b"\xff", r"b'\xff' is no number"),
        ("n", "five", "'five' is no number"),
        ("n", "1.505", "'1.505' has more digits after the point than numeric(6,2) holds"),
        ("h", "1250", "'1250' has more digits after the point than numeric(6,-2) holds"),
        ("f", b"\xff", r"b'\xff' is no number"),
        ("f", "five", "'five' is no number that the column holds"),
        ("f", (1 << 53) + 1, "9007199254740993 has more digits than the column holds"),
        ("g", 0.123456789012, "0.123456789012 has more digits than the column holds"),
        ("g", 1e39, "1e+39 has more digits than the column holds"),
        ("d", 5, "5 is not a date (yyyy-mm-dd)"),
        (
            "s",
            "2025-03-23T10:57:19.1234",
            "'2025-03-23T10:57:19.1234' has more than the 3 digits that timestamp(3) holds",
        ),
        (
            "s",
            "1742727439",
            (
                "'1742727439' may be seconds since 1970, and the column is timestamp(3): state its type in a"
                " tables file (--tables), or publish documents with --time-syntax 3"
            ),
        ),
        ("t", b"\xff", r"b'\xff' is binary, and the column holds text"),
        ("t", "a\0", r"'a\x00' holds a zero character, and no text of the target can"),
        ("p", "abc", "'abc' is longer than char(2) holds"),
    ],
)
def test_a_column_refuses_what_it_would_change(name: str, value: Value, reason: str) -> None:
    column = TABLE.columns[name]
    with pytest.raises(NotExpressible) as refused:
        to_cell(column, POSTGRESQL)(value)
    assert str(refused.value) == reason
    assert to_column(column, POSTGRESQL)([value]) is None


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


@st.composite
def updates(draw: Any) -> list[Change]:
    """Draw updates of the same columns, with plain values; some change the key."""
    names = draw(st.lists(st.sampled_from(("k", "K", "l", "t", "n")), max_size=6))
    numbers = st.sampled_from((1, 2, None, ABSENT, ABSENT))
    texts = st.sampled_from(("1", "2.5", None, ABSENT, ABSENT))
    sides = [numbers if name in ("k", "K") else texts for name in names]
    drawn_changes = []
    for _ in range(draw(st.integers(1, 4))):
        fields = tuple(Field(name, draw(of), draw(of)) for name, of in zip(names, sides, strict=True))
        drawn_changes.append(Change(Op.UPDATE, None, "t", (("k", 1), ("l", draw(texts))), fields))
    return drawn_changes


class ValueByValue:
    """The plain reading of one change: the reference for blocks."""

    def __init__(self, target: TableTarget, change: Change) -> None:
        self.target = target
        self.change = change
        places = [self._place(name) for name, _, _ in change.fields]
        both = zip(places, change.fields, strict=True)
        self.sides = [(place, before, after) for place, (_, before, after) in both if place is not None]
        self.missing = [
            name for place, (name, _, _) in zip(places, change.fields, strict=True) if place is None
        ]

    def steps(self) -> list[Step]:
        """Return what the change does."""
        target, change = self.target, self.change
        if change.op is Op.TRUNCATE:
            return [Truncation(target, change)]
        if change.raw is not None:
            raise NotExpressible("its row images could not be decoded")
        key = self._key()
        if change.op is Op.DELETE:
            return [RowChange(RowAction.DELETE, target, key, (), change)]
        if self.missing and not target.lenient:
            raise NoColumn(str(target), ", ".join(dict.fromkeys(self.missing)))
        cells = self._cells() | dict(zip(target.key, key, strict=True))
        row = [cells.get(place, ABSENT) for place in range(len(target.columns))]
        key_before = self._key_before(key)
        complete = change.op is not Op.UPDATE or target.complete_places <= cells.keys()
        if key_before == key:
            return [RowChange(RowAction.WRITE if complete else RowAction.UPDATE, target, key, row, change)]
        if not complete:
            return [KeyChange(target, key_before, key, row, change)]
        delete = RowChange(RowAction.DELETE, target, key_before, (), change)
        return [delete, RowChange(RowAction.WRITE, target, key, row, change)]

    def _place(self, name: str) -> int | None:
        column = self.target.table.column(name)
        return None if column is None else self.target.places[column.name]

    def _cell(self, place: int, value: Any) -> Cell:
        try:
            return self.target.to_cells[place](value)
        except EventlogError as fault:
            raise NotExpressible(f"{self.target.columns[place]}: {fault}") from None

    def _key(self) -> RowKey:
        named: dict[int | None, Any] = {self._place(name): value for name, value in self.change.key}
        for place, before, after in self.sides:
            named.setdefault(place, before if after is ABSENT else after)
        key: list[Cell] = []
        for place in self.target.key:
            key.append(None if named.get(place, ABSENT) is ABSENT else self._cell(place, named[place]))
            if key[-1] is None:
                raise NotExpressible(f"it has no value for {self.target.columns[place]}, a key column of t")
        return tuple(key)

    def _cells(self) -> dict[int, Cell]:
        cells: dict[int, Cell] = {}
        for place, _, after in self.sides:
            if after is ABSENT:
                continue
            cell = self._cell(place, after)
            if self.change.op is not Op.UPDATE and cells.get(place, cell) != cell:
                several = "a column holds one value, and the change has several"
                raise NotExpressible(f"{self.target.columns[place]}: {several}")
            cells[place] = cell
        return cells

    def _key_before(self, key: RowKey) -> RowKey:
        cells = dict(zip(self.target.key, key, strict=True))
        if self.change.op is Op.UPDATE:
            for place, before, _ in self.sides:
                if place in cells and before is not ABSENT and before is not None:
                    cells[place] = self._cell(place, before)
        return tuple(cells.values())


def plain(steps: Sequence[Step]) -> list[Any]:
    """Return steps with each cell next to its type."""
    return [(type(step), [_typed(part) for part in step]) for step in steps]


def _typed(part: Any) -> Any:
    is_row = isinstance(part, list | tuple) and not isinstance(part, Change)
    return [(type(cell), cell) for cell in part] if is_row else part


NAMED_TWICE = (Field("t", ABSENT, "a"), Field("T", "b", ABSENT))
TWICE = [Change(op, None, "t", (("k", 1), ("l", "a")), NAMED_TWICE) for op in (Op.INSERT, Op.UPDATE)]


@example(TWICE, POSTGRESQL, False)
@example([TWICE[0]._replace(fields=(Field("no such", ABSENT, "a"),))], POSTGRESQL, True)
@given(st.one_of(changes(), updates()), st.sampled_from(DIALECTS), st.booleans())
def test_changes_together_do_what_each_does(reported: list[Change], dialect: Dialect, lenient: bool) -> None:
    target = goal_at(dialect)
    object.__setattr__(target, "lenient", lenient)
    met = []
    for block in blocks_of(reported):
        reading = BlockReading(target, block)
        for number, (at, steps) in enumerate(zip(block.numbers, reading.steps(), strict=True)):
            met.append(at)
            expected: Sequence[Step] = ()
            fault = ""
            try:
                expected = ValueByValue(target, reported[at]).steps()
            except EventlogError as reason:
                fault = str(reason)
            assert plain(steps) == plain(expected)
            assert str(reading.faults.get(number, "")) == fault
    assert sorted(met) == list(range(len(reported)))


def test_plain_changes_go_together() -> None:
    fields = (Field("k", 1, 1), Field("L", ABSENT, "a"), Field("n", ABSENT, "1.50"), Field("f", 1.0, ABSENT))
    reported = [Change(op, None, "t", (("k", 1), ("l", "a")), fields) for op in Op if op is not Op.TRUNCATE]
    (insert, *_) = blocks = blocks_of([*reported, *reported])
    assert len(blocks) == 4
    assert len(insert.changes) == 2
    assert not any(BlockReading(goal_at(POSTGRESQL), block).faults for block in blocks)


def test_a_refused_change_costs_no_other_one() -> None:
    reported = [
        Change(Op.INSERT, None, "t", (("k", n), ("l", "a")), (Field("t", ABSENT, "x" * n),)) for n in range(9)
    ]
    (block,) = blocks_of(reported)
    reading = BlockReading(goal_at(POSTGRESQL), block)
    assert [len(steps) for steps in reading.steps()] == [n <= 4 for n in range(9)]
    assert "longer than" in str(reading.faults[5])
