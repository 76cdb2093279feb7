"""A receipt reads of a database only the ranges of keys whose sums are others than the lake's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.compare.batch_side import BatchSide
from eventlog.compare.lines import differences
from eventlog.compare.segments import Segments, TableSide, differing_rows
from eventlog.compare.table_snapshot import at_hand, snapshot
from eventlog.core.tables import Tables
from eventlog.transfer.targets.lake.delta_table import DeltaPlace
from tests.kit.databases import Database
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

FORM = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("photo", pa.binary()),
        ("weight", pa.float64()),
    ]
)
TYPES = {
    "postgresql": (
        "bigint primary key",
        "varchar(40)",
        "numeric(12,2)",
        "date",
        "timestamp",
        "bytea",
        "float8",
    ),
    "mariadb": ("bigint primary key", "varchar(40)", "decimal(12,2)", "date", "datetime", "blob", "double"),
}
NOON = dt.datetime(2025, 1, 1, 12, 0, 0)
VALUES: list[tuple[Any, ...]] = [
    ("Ärzte, und | andere;", Decimal("1.50"), dt.date(2025, 1, 1), NOON, b"\x00\xff", 0.1),
    (None, None, None, None, None, None),
    ("", Decimal("-7.00"), dt.date(1, 1, 1), dt.datetime(1999, 12, 31), b"", -2.5),
    (",;", Decimal("0.00"), dt.date(9999, 12, 31), dt.datetime(1500, 1, 1, 0, 0, 1), b",", 0.0),
    (",|", Decimal("9999999999.99"), dt.date(1582, 10, 15), NOON, b"abc", 123456789.0),
]


def fill(engine: Engine, folder: Path, rows: Sequence[tuple[Any, ...]]) -> DeltaPlace:
    """Make a table of a database and one of a lake with the same rows."""
    types = TYPES[engine.dialect.name]
    columns = ", ".join(f"{name} {of}" for name, of in zip(FORM.names, types, strict=True))
    run_statements(engine, f"create table usr ({columns})")
    marks = ", ".join(f":{name}" for name in FORM.names)
    with engine.begin() as connection:
        bound = [dict(zip(FORM.names, row, strict=True)) for row in rows]
        connection.execute(text(f"insert into usr values ({marks})"), bound)
    arrays = [pa.array(column, of) for column, of in zip(zip(*rows, strict=True), FORM.types, strict=True)]
    deltalake.write_deltalake(str(folder / "usr"), pa.table(arrays, schema=FORM))
    return DeltaPlace(str(folder), {})


def sides(connection: Connection, place: DeltaPlace) -> tuple[TableSide, BatchSide]:
    """Return the table of the database and that of the lake."""
    readable = at_hand(connection, "usr")
    in_database = TableSide(connection, readable.table, readable, readable.table, is_digested=True)
    table_snapshot = place.open("usr")
    assert table_snapshot is not None
    types = {field.name: field.type.arrow for field in table_snapshot.fields}
    return in_database, BatchSide(table_snapshot, types, readable.table)


@pytest.fixture
def summed(engine: Engine, database: Database) -> Engine:
    """A database that makes sums."""
    if not database.dialect.values.escaped:
        pytest.skip("this database makes no sums")
    return engine


def test_both_sides_have_the_same_sums_of_the_same_rows(summed: Engine, tmp_path: Path) -> None:
    place = fill(summed, tmp_path, [(number - 2, *row) for number, row in enumerate(VALUES)])
    with snapshot(summed) as moment:
        in_database, in_lake = sides(moment.connection, place)
        segments = Segments(-2, 1, "salt")
        assert in_lake.sums(segments) == in_database.sums(segments)
        assert in_lake.bounds() == in_database.bounds() == (-2, 2)


def test_only_ranges_that_differ_are_read(summed: Engine, tmp_path: Path) -> None:
    place = fill(summed, tmp_path, [(number, *VALUES[number % 5]) for number in range(2_000)])
    run_statements(
        summed,
        "update usr set name = 'Jack' where id = 7",
        "delete from usr where id = 1300",
        "insert into usr (id) values (-5)",
    )
    with snapshot(summed) as moment:
        in_database, in_lake = sides(moment.connection, place)
        before, after = (list(rows) for rows in differing_rows(in_database, in_lake))
        table = in_database.table
        lines = list(differences(Tables([table]), table, before, after))
    assert all(sum(rows.num_rows for rows in side) <= 200 for side in (before, after))
    assert sorted(key for each in lines for key in each.keys.to_pylist()) == ["id=-5", "id=1300", "id=7"]
    assert in_lake.all_rows.count == 2_000
