"""A value is stored exactly, as another reader sees it, or its change is refused."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Value
from eventlog.core.tables import Tables
from tests.kit.lake import Duck, IcebergFolder, LakeFolder, apply_file, write_changes

pytestmark = pytest.mark.quick

REFUSED = object()
_UTC = dt.UTC


def insert(value: Value, number: int = 1) -> Change:
    return Change(
        Op.INSERT, None, "t", (("id", number),), (Field("id", ABSENT, number), Field("v", ABSENT, value))
    )


def typed(name: str) -> Tables:
    return tablesfile.read(f'[tables.t]\nkey = ["id"]\ncolumns = {{ id = "integer", v = "{name}" }}\n')


def stored(lake: LakeFolder, tables: Tables, *values: Value) -> tuple[list[Any], list[str]]:
    """Return the values of rows as DuckDB has them, and the reasons of what was refused."""
    path = lake.folder.parent / "changes.jsonl"
    write_changes(path, [insert(value, n) for n, value in enumerate(values)])
    applied = apply_file(lake, path, tables)
    rows = Duck().rows(lake, "t", "v, id") if "t" in lake.names else []
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
@pytest.mark.family
def test_a_value_is_stored_exactly_or_refused(
    lake: LakeFolder, type_name: str, value: Value, expected: Any
) -> None:
    check(lake, type_name, value, expected)


UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    ("type_name", "value", "in_delta", "in_iceberg"),
    [
        ("time", "23:59:59.123456", "23:59:59.123456", dt.time(23, 59, 59, 123456)),
        ("time", "24:00:00", "24:00:00", REFUSED),
        ("time", "10:00:00.1234567", "10:00:00.1234567", REFUSED),
        ("uuid", UUID, UUID, uuid.UUID(UUID)),
        ("uuid", UUID.upper(), UUID.upper(), uuid.UUID(UUID)),
        ("uuid", "550e8400", "550e8400", REFUSED),
    ],
)
@pytest.mark.family
def test_a_type_that_one_format_has(
    lake: LakeFolder, type_name: str, value: Value, in_delta: Any, in_iceberg: Any
) -> None:
    check(lake, type_name, value, in_iceberg if isinstance(lake, IcebergFolder) else in_delta)


def check(lake: LakeFolder, type_name: str, value: Value, expected: Any) -> None:
    """Check for a value as it is stored, and for a null."""
    values, reasons = stored(lake, typed(type_name), value, None)
    if expected is REFUSED:
        assert (values, len(reasons)) == ([None], 1)
    else:
        assert reasons == []
        assert values[1] is None
        assert repr(values[0]) == repr(expected) or values[0] == expected


def test_a_negative_zero_keeps_its_sign_and_is_no_key(lake: LakeFolder, tmp_path: Path) -> None:
    values, _ = stored(lake, typed("double precision"), -0.0, 0.0)
    assert [math.copysign(1, value) for value in values] == [-1, 1]
    keyed = tablesfile.read('[tables.f]\nkey = ["k"]\ncolumns = { k = "double precision" }\n')
    changes = [Change(Op.INSERT, None, "f", (("k", key),)) for key in (-0.0, 0.0, "NaN", 1.5)]
    write_changes(tmp_path / "keys.jsonl", changes)
    applied = apply_file(lake, tmp_path / "keys.jsonl", keyed, source="keys")
    assert len(applied.reasons) == 2
    assert sorted(Duck().rows(lake, "f")) == [(0.0,), (1.5,)]


def test_a_first_batch_of_nulls_makes_a_column_of_texts(lake: LakeFolder) -> None:
    assert stored(lake, Tables(), None, None) == ([None, None], [])
    described = Duck().query(f"describe from {lake.scan('t')}")
    assert [type_name for _, type_name, *_ in described] == ["BIGINT", "VARCHAR"]


def test_types_that_follow_values(lake: LakeFolder) -> None:
    assert stored(lake, Tables(), 2**70, 1) == ([2**70, 1], [])


@pytest.mark.parametrize("key", ["1.5", "1.50", 1.5, "01.5"])
def test_a_decimal_of_a_key_has_one_form(lake: LakeFolder, tmp_path: Path, key: Value) -> None:
    keyed = tablesfile.read('[tables.t]\nkey = ["id"]\ncolumns = { id = "numeric(9,3)", v = "text" }\n')
    first = Change(Op.INSERT, None, "t", (("id", "1.500"),), (Field("v", ABSENT, "a"),))
    write_changes(
        tmp_path / "c.jsonl", [first, first._replace(key=(("id", key),), fields=(Field("v", ABSENT, "b"),))]
    )
    apply_file(lake, tmp_path / "c.jsonl", keyed)
    assert Duck().rows(lake, "t") == [(Decimal("1.500"), "b")]
    moved = Change(Op.UPDATE, None, "t", (("id", "0.001"),), (Field("id", key, "0.001"),))
    write_changes(tmp_path / "d.jsonl", [moved])
    apply_file(lake, tmp_path / "d.jsonl", keyed, source="again")
    assert Duck().rows(lake, "t") == [(Decimal("0.001"), "b")]


def test_a_table_of_others_takes_what_its_columns_hold(lake: LakeFolder, tmp_path: Path) -> None:
    """The table is partitioned, and has a nested column, one that takes no null, and one of 16 bits."""
    nested, is_iceberg = pa.list_(pa.int32()), isinstance(lake, IcebergFolder)
    schema = pa.schema(
        [
            pa.field("id", pa.int32()),
            pa.field("v", pa.string(), nullable=False),
            pa.field("part", pa.int32()),
            pa.field("small", pa.int32() if is_iceberg else pa.int16()),
            pa.field("many", nested),
        ]
    )
    rows = pa.table([[1, 2], ["a", "b"], [7, 8], [0, 0], pa.array([[1], [2]], nested)], schema=schema)
    lake.make("t", rows, "part")

    def update(number: int, **after: Value) -> Change:
        fields = tuple(Field(name, ABSENT, value) for name, value in after.items())
        return Change(Op.UPDATE, None, "t", (("id", number),), fields)

    changes = [
        update(1, v="x", part=8),
        update(2, v=None),
        update(2, small=2**31 if is_iceberg else 2**15),
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
