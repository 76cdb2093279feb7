"""A value is stored exactly, as another reader sees it, or its change is refused."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Value
from eventlog.core.tables import Tables
from tests.kit.lake import Duck, apply_file, write_changes

pytestmark = pytest.mark.quick

REFUSED = object()
_UTC = dt.UTC


def insert(value: Value, number: int = 1) -> Change:
    return Change(
        Op.INSERT, None, "t", (("id", number),), (Field("id", ABSENT, number), Field("v", ABSENT, value))
    )


def typed(name: str) -> Tables:
    return tablesfile.read(f'[tables.t]\nkey = ["id"]\ncolumns = {{ id = "integer", v = "{name}" }}\n')


def stored(folder: Path, tables: Tables, *values: Value) -> tuple[list[Any], list[str]]:
    """Return the values of rows as DuckDB has them, and the reasons of what was refused."""
    write_changes(folder / "changes.jsonl", [insert(value, n) for n, value in enumerate(values)])
    applied = apply_file(folder / "lake", folder / "changes.jsonl", tables)
    rows = Duck().rows(folder / "lake", "t", "v, id") if (folder / "lake" / "t").exists() else []
    return [value for value, _ in sorted(rows, key=lambda row: row[1])], applied.reasons


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        ("integer", 2**31 - 1, 2**31 - 1),
        ("integer", 2**31, REFUSED),
        ("integer", -(2**31) - 1, REFUSED),
        ("bigint", -(2**63), -(2**63)),
        ("bigint", 2**63, REFUSED),
        ("bigint unsigned", 2**64 - 1, 2**64 - 1),
        ("numeric(12,2)", "-1.5", Decimal("-1.50")),
        ("numeric(12,2)", "1.505", REFUSED),
        ("numeric(12,2)", "12345678901", REFUSED),
        ("numeric(12,2)", "NaN", REFUSED),
        ("numeric(38,38)", "0." + "1" * 38, Decimal("0." + "1" * 38)),
        ("numeric(38,0)", 10**38 - 1, 10**38 - 1),
        ("numeric(38,0)", 10**38, REFUSED),
        ("numeric(39,2)", "1" * 37 + ".50", "1" * 37 + ".50"),  # wider ones are texts
        ("numeric", "1.10", "1.10"),  # so are those of any scale
        ("real", 0.1, pytest.approx(0.1)),
        ("real", 0.12345678901, REFUSED),
        ("double precision", 1e308, 1e308),
        ("double precision", "NaN", math.nan),
        ("double precision", "-Infinity", -math.inf),
        ("boolean", True, True),
        ("date", "0001-01-01", dt.date(1, 1, 1)),
        ("date", "1582-10-10", dt.date(1582, 10, 10)),
        ("date", "2025-02-30", REFUSED),
        ("date", "0000-01-01", REFUSED),
        ("timestamp", "1500-02-28T10:00:00.123456", dt.datetime(1500, 2, 28, 10, 0, 0, 123456)),
        ("timestamp", "2025-01-01 10:00:00", dt.datetime(2025, 1, 1, 10)),
        ("timestamp", "2025-01-01T10:00:00.1234567", REFUSED),
        ("timestamp", "2025-01-01T10:00:00.1234560", dt.datetime(2025, 1, 1, 10, 0, 0, 123456)),
        ("timestamp", "2025-01-01T24:00:00", REFUSED),
        ("timestamp", "infinity", REFUSED),
        ("timestamp with time zone", "2025-01-01T10:00:00+02:00", dt.datetime(2025, 1, 1, 8, tzinfo=_UTC)),
        ("time", "24:00:00", "24:00:00"),  # Delta has no times of day
        ("time with time zone", "10:00:00.1234567+02", "10:00:00.1234567+02"),
        ("bytea", b"\x00\xff", b"\x00\xff"),
        ("bytea", "text", REFUSED),
        ("varchar(8)", "", ""),
        ("varchar(8)", "a\0\n\U0001f600", "a\0\n\U0001f600"),
        ("varchar(8)", "\ud800", REFUSED),
        ("char(4)", "a   ", "a   "),
        ("jsonb", '{"a": [1, null]}', '{"a": [1, null]}'),
        ("varchar(8)", ("a", "b"), REFUSED),
    ],
)
def test_a_value_is_stored_exactly_or_refused(
    tmp_path: Path, type_name: str, value: Value, expected: Any
) -> None:
    values, reasons = stored(tmp_path, typed(type_name), value, None)
    if expected is REFUSED:
        assert (values, len(reasons)) == ([None], 1)
    else:
        assert reasons == []
        assert values[1] is None
        assert repr(values[0]) == repr(expected) or values[0] == expected


def test_a_negative_zero_keeps_its_sign_and_is_no_key(tmp_path: Path) -> None:
    values, _ = stored(tmp_path, typed("double precision"), -0.0, 0.0)
    assert [math.copysign(1, value) for value in values] == [-1, 1]
    keyed = tablesfile.read('[tables.f]\nkey = ["k"]\ncolumns = { k = "double precision" }\n')
    changes = [Change(Op.INSERT, None, "f", (("k", key),)) for key in (-0.0, 0.0, "NaN", 1.5)]
    write_changes(tmp_path / "keys.jsonl", changes)
    applied = apply_file(tmp_path / "keys", tmp_path / "keys.jsonl", keyed)
    assert len(applied.reasons) == 2
    assert sorted(Duck().rows(tmp_path / "keys", "f")) == [(0.0,), (1.5,)]


def test_a_first_batch_of_nulls_makes_a_column_of_texts(tmp_path: Path) -> None:
    assert stored(tmp_path, Tables(), None, None) == ([None, None], [])
    assert [
        str(field.type.type) for field in deltalake.DeltaTable(tmp_path / "lake" / "t").schema().fields
    ] == [
        "long",
        "string",
    ]


def test_types_that_follow_values(tmp_path: Path) -> None:
    assert stored(tmp_path, Tables(), 2**70, 1) == ([2**70, 1], [])


@pytest.mark.parametrize("key", ["1.5", "1.50", 1.5, "01.5"])
def test_a_decimal_of_a_key_has_one_form(tmp_path: Path, key: Value) -> None:
    keyed = tablesfile.read('[tables.t]\nkey = ["id"]\ncolumns = { id = "numeric(9,3)", v = "text" }\n')
    first = Change(Op.INSERT, None, "t", (("id", "1.500"),), (Field("v", ABSENT, "a"),))
    write_changes(
        tmp_path / "c.jsonl", [first, first._replace(key=(("id", key),), fields=(Field("v", ABSENT, "b"),))]
    )
    apply_file(tmp_path / "lake", tmp_path / "c.jsonl", keyed)
    assert Duck().rows(tmp_path / "lake", "t") == [(Decimal("1.500"), "b")]
    moved = Change(Op.UPDATE, None, "t", (("id", "0.001"),), (Field("id", key, "0.001"),))
    write_changes(tmp_path / "d.jsonl", [moved])
    apply_file(tmp_path / "lake", tmp_path / "d.jsonl", keyed, source="again")
    assert Duck().rows(tmp_path / "lake", "t") == [(Decimal("0.001"), "b")]


def test_a_table_of_others_takes_what_its_columns_hold(tmp_path: Path) -> None:
    """The table is partitioned, and has a nested column, one that takes no null, and one of 16 bits."""
    lake, nested = tmp_path / "lake", pa.list_(pa.int32())
    schema = pa.schema(
        [
            pa.field("id", pa.int32()),
            pa.field("v", pa.string(), nullable=False),
            pa.field("part", pa.int32()),
            pa.field("small", pa.int16()),
            pa.field("many", nested),
        ]
    )
    rows = pa.table([[1, 2], ["a", "b"], [7, 8], [0, 0], pa.array([[1], [2]], nested)], schema=schema)
    deltalake.write_deltalake(str(lake / "t"), rows, partition_by=["part"])

    def update(number: int, **after: Value) -> Change:
        fields = tuple(Field(name, ABSENT, value) for name, value in after.items())
        return Change(Op.UPDATE, None, "t", (("id", number),), fields)

    changes = [
        update(1, v="x", part=8),
        update(2, v=None),
        update(2, small=2**15),
        update(2, many="1"),
        update(2, small=-(2**15)),
        update(2)._replace(key=(("id", 3),), fields=(Field("id", 2, 3),)),
    ]
    write_changes(tmp_path / "c.jsonl", changes)
    applied = apply_file(lake, tmp_path / "c.jsonl", Tables(), keys=(("", ("id",)),))
    assert sorted(Duck().rows(lake, "t", "id, v, part, small, many")) == [
        (1, "x", 8, 0, [1]),
        (3, "b", 8, -(2**15), [2]),
    ]
    assert len(applied.reasons) == 3
