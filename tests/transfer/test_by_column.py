"""A log read by column equals the log read row by row: documents, their order, and what is refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import starmap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape
from eventlog.files.current_files import CurrentFiles, load_current
from eventlog.files.inputs import Input, open_sources
from eventlog.fold import Rules
from eventlog.formats.log import SHEET
from eventlog.transfer.log_files.by_column import BulkPickup, row_batches
from eventlog.transfer.log_files.by_column.object_spool import ObjectTooLarge
from eventlog.transfer.log_files.by_row import Pickup
from eventlog.xds.documents import write
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.tiers import drawn
from tests.spark.helpers import TABLES, write_log
from tests.spark.strategies import CURRENT, logs

pytestmark = pytest.mark.quick

_NUMBERS = itertools.count()
CLOCK = "2025-01-01 00:00:00"
Inputs = Sequence[tuple[str, str]]
Outcome = tuple[bytes, list[tuple[str, str, bytes | None]]]
UPDATE = ("N", 2, "2025-03-23 10:57:19", None, "nowhere")
OF_THE_KEY = [(1, *UPDATE, "x=a+y=1", "x", "b", "c"), (2, *UPDATE, "x=a+y=1", "z", "b", "c")]
OF_ANOTHER_KEY = [(1, *UPDATE, "x=a", "z", "b", "c"), (2, *UPDATE, "z=a", "x", "b", "c")]

DELETE = ("N", 4, "2025-03-23 10:57:19", None, "grp")
OF_TWO_SPELLINGS = [
    (1, *DELETE, "org=a+name=b", None, None, None),
    (2, *DELETE, "name=b+org=a", None, None, None),
]


def current_rows(folder: Path) -> CurrentFiles:
    files = {table: folder / f"{table}.csv" for table in CURRENT}
    for table, path in files.items():
        path.write_text(CURRENT[table], "utf-8")
    return load_current(tablesfile.read(TABLES), ((table, str(path)) for table, path in files.items()))


def by_row(folder: Path, inputs: Inputs, rules: Rules, xds_settings: XdsSettings) -> Outcome:
    refused: list[Refused] = []
    tables = tablesfile.read(TABLES)
    with current_rows(folder) as current:
        pickup = Pickup(tables, rules, current, CLOCK, None, refused.append)
        opened = (
            source
            for name, container in inputs
            for source in open_sources([name], Shape.ROWS, container)
            if not isinstance(source, Refused)
        )
        records = list(write((event.change for event in pickup.events(opened)), tables, xds_settings))
    return outcome(records, refused)


def by_column(folder: Path, inputs: Inputs, rules: Rules, xds_settings: XdsSettings, memory: int) -> Outcome:
    refused: list[Refused] = []
    with current_rows(folder) as current:
        tables = tablesfile.read(TABLES)
        pickup = BulkPickup(tables, rules, xds_settings, current, CLOCK, refused.append, memory=memory)
        records = list(pickup.documents(list(starmap(Input, inputs)), lambda size: None))
    return outcome(records, refused)


def outcome(records: Sequence[bytes | Refused], refused: Sequence[Refused]) -> Outcome:
    """Return the documents, and what was refused, whatever came first."""
    all_refused = [*refused, *(record for record in records if isinstance(record, Refused))]
    documents = b"".join(record for record in records if not isinstance(record, Refused))
    return documents, sorted((bad.where, bad.reason, bad.raw) for bad in all_refused)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut pieces of a few lines, so that records and faults cross their borders."""
    monkeypatch.setattr(row_batches, "_PIECE", 300)


@settings(max_examples=drawn(150))
@given(
    st.lists(logs(max_rows=40), min_size=1, max_size=2),
    st.sampled_from(("csv", "parquet")),
    st.sampled_from((100, 1 << 13, 1 << 20)),
    st.sampled_from((1, 2, 5)),
    st.sampled_from(("modify", "add")),
    st.sampled_from(("canonical", "as-logged")),
    st.sampled_from((None, "driver")),
    st.sampled_from(("error", "string")),
)
@example([OF_THE_KEY], "csv", 100, 1, "modify", "as-logged", None, "string")
@example([OF_TWO_SPELLINGS], "csv", 100, 5, "modify", "as-logged", None, "error")
@example([OF_ANOTHER_KEY], "parquet", 100, 1, "modify", "as-logged", None, "string")
def test_both_ways_say_the_same(
    tmp_path: Path,
    several: list[list[tuple[Any, ...]]],
    container: str,
    memory: int,
    size: int,
    insert: str,
    association: str,
    driver: str | None,
    unknown: str,
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    folder.mkdir()
    rules = Rules(
        insert_query_back=insert,
        association=association,
        driver_user=driver,
        max_changes=3,
        unknown_tables=unknown,
    )
    wanted = XdsSettings(insert_query_back=insert, batch_size=size)
    inputs = [
        (str(write_log(folder / f"{number}.{container}", rows)), container)
        for number, rows in enumerate(several)
    ]
    assert by_column(folder, inputs, rules, wanted, memory) == by_row(folder, inputs, rules, wanted)


LINES = (
    "{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,a,b",
    '{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,"a ""q""\n\n,x",""',
    '{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,a"b,c',
    '{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,"open,c',
    '{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,"a" ,c',
    "{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,\rx,c\r",
    '{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,"\r\n",c\r',
    "{n},N,2,2025-03-23 10:57:19,,usr,idu={n},fname,\xff,c",
    "{n},N,2,2025-03-23 10:57:19,,usr,idu={n}",
    "+{n},N,02,2025-02-29 10:57:19,,usr,idu={n},fname,a,b",
    "0{n},N,4,2025-03-23T10:57:19.5Z,,usr,idu={n},,,",
    "",
    "  ",
    '""',
    ",,,,,,,,,",
)


@settings(max_examples=drawn(300))
@given(st.lists(st.sampled_from(LINES), max_size=30), st.booleans(), st.sampled_from((60, 300, 1 << 20)))
def test_any_lines_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], ended: bool, piece: int
) -> None:
    monkeypatch.setattr(row_batches, "_PIECE", piece)
    text = "\n".join(
        [",".join(c.name for c in SHEET.columns), *(line.format(n=n) for n, line in enumerate(lines, 1))]
    )
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("latin-1") + b"\n" * ended)
    inputs = [(str(path), "csv")]
    rules, wanted = Rules(), XdsSettings()
    assert by_column(tmp_path, inputs, rules, wanted, 1 << 20) == by_row(tmp_path, inputs, rules, wanted)


TYPES = {
    "numbers": (pa.decimal128(38, 0), pa.timestamp("us", "UTC"), pa.string()),
    "floats": (pa.float64(), pa.timestamp("ns"), pa.large_string()),
    "small": (pa.uint64(), pa.timestamp("s"), pa.dictionary(pa.int32(), pa.string())),
}


@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
def test_columns_of_other_types_are_read_alike(tmp_path: Path, types: tuple[Any, Any, Any]) -> None:
    number, moment, text = types
    rows = {
        "record_id": pa.array([3, 1, 2], pa.int64()).cast(number),
        "status": pa.array(["N"] * 3).cast(text),
        "event_type": pa.array([2, 1, 4], pa.int64()).cast(number),
        "event_time": pa.array([0, 86_400, 1_700_000_000], pa.int64()).cast(pa.timestamp("s")).cast(moment),
        "perpetrator": pa.array([None, "ann", ""]).cast(text),
        "table_name": pa.array(["usr"] * 3).cast(text),
        "table_key": pa.array(["idu=1"] * 3).cast(text),
        "column_name": pa.array(["fname", "fname", None]).cast(text),
        "old_value": pa.array([1, None, None], pa.int64()),
        "new_value": pa.array([2, 1, None], pa.int64()),
    }
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows), path)
    inputs = [(str(path), "parquet")]
    rules, wanted = Rules(), XdsSettings()
    found = by_column(tmp_path, inputs, rules, wanted, 1 << 20)
    assert found == by_row(tmp_path, inputs, rules, wanted)
    assert found[0].count(b"<nds ") == 3


@pytest.mark.parametrize("column", ["record_id", "event_type"])
def test_decimals_of_more_than_64_bits_are_no_other_numbers(tmp_path: Path, column: str) -> None:
    over = [Decimal(number) for number in (2**64 + 4, 4 - 2**64, 2**63, -4, 10**38 - 1)]
    known = pa.array([Decimal(4)] * len(over), pa.decimal128(38, 0))
    rows = {
        "record_id": pa.array(range(1, 6), pa.int64()).cast(pa.decimal128(38, 0)),
        "event_type": known,
        "table_name": pa.array(["usr"] * 5),
        "table_key": pa.array(["idu=1"] * 5),
        **{name: pa.nulls(5, pa.string()) for name in ("column_name", "old_value", "new_value")},
        column: pa.array(over, pa.decimal128(38, 0)),
    }
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows), path)
    inputs = [(str(path), "parquet")]
    found = by_column(tmp_path, inputs, Rules(), XdsSettings(), 1 << 20)
    assert found == by_row(tmp_path, inputs, Rules(), XdsSettings())
    assert found[0] == b""
    assert len(found[1]) == len(over)


def test_rows_that_memory_cannot_hold_together_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.transfer.log_files.by_column.object_spool.MAX_SHARE_BYTES", 1000)
    rows = [(n, "N", 2, CLOCK, None, "usr", "idu=1", "fname", "a", "b" * 20) for n in range(1, 99)]
    inputs = [(str(write_log(tmp_path / "log.csv", rows)), "csv")]
    with pytest.raises(ObjectTooLarge, match="98 rows that belong together"):
        by_column(tmp_path, inputs, Rules(), XdsSettings(), 100)


@pytest.mark.parametrize("container", ["csv", "jsonl", "parquet"])
def test_rows_of_key_columns_of_an_unknown_table_send_nothing(tmp_path: Path, container: str) -> None:
    """Send other columns, also those that are the key of another object."""
    rules, path = Rules(unknown_tables="string"), tmp_path / f"log.{container}"
    for rows, columns in ((OF_THE_KEY[:1], []), (OF_THE_KEY, [b"z"]), (OF_ANOTHER_KEY, [b"z", b"x"])):
        inputs = [(str(write_log(path, rows)), container)]
        documents, refused = by_row(tmp_path, inputs, rules, XdsSettings())
        assert re.findall(rb'<modify-attr attr-name="(.)"', documents) == columns
        assert (documents.count(b"event-id="), refused) == (len(columns), [])


def test_a_null_at_the_end_of_a_file_without_a_last_line_end_is_null() -> None:
    """Read the last cell as null, which Arrow takes for an empty text after a quoted cell."""
    read = row_batches.read_piece(b'"a,b",\n"c",', ["x", "y"], 2, 1 << 20)
    assert read is not None
    assert read.columns["y"].to_pylist() == [None, None]
