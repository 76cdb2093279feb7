"""Change tables that many tasks read, in DataFrames or files, are what `convert` makes of their rows."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import eventlog_spark
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from eventlog_spark import pieces
from eventlog_spark.backlog import Backlog, run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import functions as f

from eventlog.core import tablesfile
from eventlog.core.errors import Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.formats.qlik.mask import WrongMaskOrder
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.kit.tiers import drawn
from tests.spark.helpers import CLOCK, refused_in
from tests.spark.helpers import lines as records_in
from tests.spark.test_parity import SLOW
from tests.transactions import exports

pytestmark = pytest.mark.quick
_NUMBERS = itertools.count()


class Converted(NamedTuple):
    """The result of a conversion: records, refused records, and messages about several records."""

    records: list[str]
    refused: Counter[tuple[str, str]]
    notices: set[str]


def converted(job: Job) -> Converted:
    """Return the result of `convert` for a job."""
    heard: list[Refused] = []
    refused_rows = io.BytesIO()
    convert(replace(job, output_container=_container(job)), Report(heard.append, refused_rows), CLOCK)
    reported = Counter((record.where, record.reason) for record in heard if record.fault)
    lone = len(refused_rows.getvalue().splitlines()) - sum(
        1 for record in heard if record.fault and record.raw
    )
    if lone and job.source_format == "qlik-table":
        reported["B rows without their U row", ""] = lone
    notices = {
        record.reason for record in heard if not record.fault and "without their U row" not in record.reason
    }
    return Converted(Path(job.output).read_text("utf-8").splitlines(), reported, notices)


def _container(job: Job) -> str | None:
    return "jsonl" if job.target_format == "changes" else None


# --- change tables

TABLES = Tables()
DATA = ("id", *(f"c{i}" for i in range(11)))
HEADING = [f"header__{name}" for name in ("change_seq", "change_oper", "change_mask", "transaction_id")]
_CHANGED = {"low": (1,), "both": (2, 9), "unsure": (0, 8), "also unsure": (1, 11), "proof": (5,)}


class Line(NamedTuple):
    """A row of a change table, and its place."""

    table: str
    file: int
    number: int  # 0: of a full load
    letter: str
    changed: str
    value: str


lines = st.lists(
    st.builds(
        Line,
        st.sampled_from(("usr", "item")),
        st.integers(0, 2),
        st.integers(0, 9),
        st.sampled_from("IUUUBBBDT?"),
        st.sampled_from(sorted(_CHANGED)),
        st.sampled_from(("old", "new", "")),
    ),
    max_size=30,
)


Order = Literal["little", "big"]


def write_tables(folder: Path, rows: list[Line], order: Order) -> list[Path]:
    """Return the rows as files, in the order in which they come."""
    files: dict[Path, list[str]] = {}
    for row in rows:
        name = folder / f"{row.file}" / f"{row.table}__ct.csv"
        name.parent.mkdir(parents=True, exist_ok=True)
        lines = files.setdefault(name, [",".join([*HEADING, *DATA])])
        places = _CHANGED[row.changed]
        bits = sum(1 << len(HEADING) + place for place in places)
        mask = "" if row.letter == "B" else bits.to_bytes((bits.bit_length() + 7) // 8, order).hex()
        data = [row.value if at in places and row.letter == "U" else "old" for at in range(len(DATA))]
        seq = exports.seq(row.number) if row.number else ""
        lines.append(",".join([seq, row.letter, mask, f"{row.number // 3:032X}", *data]))
    for name, texts in files.items():
        name.write_text("\n".join(texts) + "\n")
    return sorted(files)


def job_of(folder: Path, source: str, inputs: list[Path], target: str = "changes", **options: Any) -> Job:
    """Return a conversion of these files."""
    names = tuple(map(str, inputs))
    return Job(source, target, names, str(folder / "out"), tables=TABLES, options=options)


def frames_of(spark: Any, inputs: list[Path]) -> dict[str, Any]:
    """Return the files of each table as a DataFrame, whose empty texts are null."""
    schema = ", ".join(f"`{name}` string" for name in (*HEADING, *DATA))
    names = {path.stem: [str(file) for file in inputs if file.stem == path.stem] for path in inputs}
    return {name: spark.read.csv(files, schema, header=True) for name, files in names.items()}


def changes_in(frame: Any) -> tuple[list[str], Counter[str]]:
    """Return the changes of a DataFrame in the order of its column, and the reasons of what is refused."""
    rows = frame.coalesce(1).select("order", "change", "refused").collect()
    reasons = Counter(row.refused.partition(": ")[2] for row in rows if row.refused is not None)
    good = sorted((row.order, row.change) for row in rows if row.change is not None)
    return [change for _, change in good], reasons


@pytest.mark.slow("each example is a job of Spark")
@settings(SLOW, max_examples=drawn(3))
@given(lines, st.sampled_from(("little", "big")), st.integers(1, 9))
@example([Line("usr", 0, 3, letter, "unsure", "new") for letter in "UB"], "big", 2)
def test_data_frames_of_change_tables(
    spark: Any, tmp_path: Path, rows: list[Line], order: Order, partitions: int
) -> None:
    """Put a full load first, because rows of a DataFrame have no place."""
    folder = tmp_path / str(next(_NUMBERS))
    inputs = write_tables(folder, sorted(rows, key=lambda row: row.number > 0), order)
    if not inputs:
        return
    expected = converted(job_of(folder, "qlik-table", inputs, mask_order=order))
    frames = frames_of(spark, inputs)
    reported = eventlog_spark.changes(frames, "qlik-table", partitions=partitions, mask_order=order)
    changes, reasons = changes_in(reported)
    assert [one for one in changes if '"position"' in one] == [
        one for one in expected.records if '"position"' in one
    ]
    assert Counter(changes) == Counter(expected.records)
    assert sum(reasons.values()) == sum(expected.refused.values())


def test_a_mask_that_nothing_proves_ends_the_action(spark: Any, tmp_path: Path) -> None:
    """Prove a mask by its B row alone, as `convert` does, and never by other rows."""
    proof, unsure = Line("usr", 0, 3, "U", "proof", "new"), Line("usr", 0, 9, "U", "also unsure", "new")
    image = unsure._replace(letter="B")
    proved = write_tables(tmp_path / "proved", [proof, unsure, image], "big")
    changes, reasons = changes_in(
        eventlog_spark.changes(frames_of(spark, proved), "qlik-table", partitions=2)
    )
    assert changes == converted(job_of(tmp_path, "qlik-table", proved)).records
    assert not reasons
    unproved = write_tables(tmp_path / "unproved", [proof, unsure], "big")
    with pytest.raises(WrongMaskOrder, match="none little: set mask-order to big"):
        converted(job_of(tmp_path, "qlik-table", unproved))
    with pytest.raises(PythonException, match="WrongMaskOrder"):
        changes_in(eventlog_spark.changes(frames_of(spark, unproved), "qlik-table", partitions=2))


@pytest.mark.long
def test_nothing_of_change_tables_is_read_before_an_action(spark: Any) -> None:
    names = ("header__change_seq", "header__change_oper", "header__change_mask", "id")
    unreadable = spark.range(1).select(*(f.raise_error(f.lit("it was read")).alias(name) for name in names))
    reported = eventlog_spark.changes({"usr__ct": unreadable}, "qlik-table", partitions=2)
    with pytest.raises(Exception, match="it was read"):
        reported.collect()


@pytest.mark.long
def test_no_range_cuts_a_transaction(spark: Any, tmp_path: Path) -> None:
    """Keep its changes in one task, for any number of tasks."""
    rows = [Line("usr", n % 3, n, "I", "low", "old") for n in range(1, 40)]
    frames = frames_of(spark, write_tables(tmp_path, rows, "big"))
    made = eventlog_spark.changes(frames, "qlik-table", partitions=9)
    tasks: dict[int, set[str]] = {}
    for row in made.select(f.spark_partition_id().alias("task"), "transaction").collect():
        tasks.setdefault(row.task, set()).add(row.transaction)
    assert len(tasks) > 3
    assert all(not one & other for one, other in itertools.combinations(tasks.values(), 2))


def test_misuse_of_data_frames_is_reported_at_once(spark: Any) -> None:
    frame = spark.createDataFrame([("I",)], "header__change_oper string")
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"records": {"usr__ct": frame}}, "give the number of partitions"),
        ({"records": frame, "partitions": 2, "header_prefix": "h_"}, "no column h_change_oper"),
        ({"records": frame.selectExpr("array(1) as a"), "partitions": 2}, "array<int>"),
    ]
    for given_, reported in wrongs:
        with pytest.raises(Misuse, match=reported):
            eventlog_spark.changes(source="qlik-table", **given_)


# --- files, read by many tasks of the command


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces be of some rows."""
    monkeypatch.setattr(pieces, "BLOCK", 256)
    monkeypatch.setattr(pieces, "_WORTH", 512)


def check_command(spark: Any, conversion: Job, partitions: int) -> list[str]:
    """Compare the output of the command with that of `convert`; return what the command reports."""
    expected, reports = converted(conversion), list[str]()
    output = Path(conversion.output).with_name("spark")
    conversion = replace(conversion, output=str(output))
    run(spark, Backlog(conversion, CLOCK, "sequence", partitions=partitions), reports.append)
    refused = Counter(record["refused"] for record in refused_in(output))
    lone = Counter({reason: times for reason, times in refused.items() if LONE in reason})
    assert records_in(output) == expected.records
    assert lone.total() == expected.refused.pop((LONE, ""), 0)
    assert refused - lone == Counter({f"{at}: {why}": n for (at, why), n in expected.refused.items()})
    return reports


def as_parquet(path: Path) -> Path:
    """Return the file as Parquet of small row groups, which has a text or null for each cell."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    columns = {name: [row[at] or None for row in rows] for at, name in enumerate(names)}
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=4)
    path.unlink()
    return path.with_suffix(".parquet")


@pytest.mark.long
@pytest.mark.usefixtures("small_pieces")
@settings(SLOW, max_examples=drawn(3))
@given(lines, st.sampled_from(("little", "big")), st.integers(2, 5), st.booleans(), st.booleans())
def test_the_command_gives_what_convert_gives(
    spark: Any, tmp_path: Path, rows: list[Line], order: Order, partitions: int, packed: bool, bounded: bool
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    inputs = write_tables(folder, rows, order)
    inputs = [as_parquet(path) for path in inputs] if packed else inputs
    how = {"until": exports.seq(5)} if bounded else {}
    if inputs:
        check_command(spark, job_of(folder, "qlik-table", inputs, mask_order=order, **how), partitions)


@pytest.mark.slow("a job of Spark")
@pytest.mark.usefixtures("small_pieces")
def test_the_command_reads_change_tables_in_many_tasks(spark: Any, tmp_path: Path) -> None:
    """Report a file without the columns, and one that is no Parquet, as `convert` does."""
    rows = [Line("usr", 0, n * 7 % 59 + 1, "UB"[n % 2], "low", "new") for n in range(118)]
    (path,) = write_tables(tmp_path, rows, "big")
    bad, broken = tmp_path / "0" / "bad__ct.csv", tmp_path / "0" / "broken__ct.parquet"
    bad.write_text("a,b\n1,2\n")
    broken.write_bytes(b"PAR1")
    check_command(spark, job_of(tmp_path, "qlik-table", [bad, path, broken]), 4)
    parts = [*tmp_path.glob("spark/documents/part-*")]
    assert len(parts) > 2


@pytest.mark.slow("two jobs of Spark")
@pytest.mark.usefixtures("small_pieces")
def test_one_task_reads_files_that_have_rows_without_change_seq(spark: Any, tmp_path: Path) -> None:
    """Give such rows their place after those that their file had before, and documents their names."""
    rows = [Line("usr", 0, n % 4, "I", "low", f"{n}") for n in range(8)]
    (path,) = write_tables(tmp_path, rows, "big")
    described = tablesfile.read('[tables.usr]\nkey = ["id"]\ncolumns = { id = "varchar(9)" }\n')
    job = replace(job_of(tmp_path, "qlik-table", [as_parquet(path)], "xds"), tables=described)
    reports = check_command(spark, job, 3)
    assert "there are rows without a change_seq: one task reads all files" in reports


LONE = "B rows without their U row"


# --- messages


def message(kind: str, table: str, number: int, value: str) -> str:
    """Return a message: metadata of a table, or a change of its row; tables share no changeSequence."""
    schema_id = f"{hash_of(table):032X}"
    around = {"magic": "atMSG", "headers": None, "messageSchemaId": schema_id, "messageSchema": None}
    if kind == "MD":
        columns = {
            name: {"ordinal": at, "type": type_, "length": 9, "precision": 0, "scale": 0,
                   "primaryKeyPosition": at % 2, "nullable": False}
            for at, (name, type_) in enumerate((("id", "INT4"), ("name", "STRING")), 1)
        }  # fmt: skip
        lineage = {"server": "s", "task": "t", "schema": "own", "table": table,
                   "tableVersion": 1, "timestamp": "2024-01-01T00:00:00.000"}  # fmt: skip
        structure = {"tableColumns": columns}
        metadata = {
            "schemaId": schema_id,
            "lineage": lineage,
            "tableStructure": structure,
            "dataSchema": "{}",
        }
        return json.dumps({**around, "type": "MD", "message": metadata})
    loaded, number = kind == "REFRESH", 2 * number + (table == "usr")
    headers = {
        "operation": kind,
        "changeSequence": "" if loaded else exports.seq(number),
        "timestamp": "" if loaded else "2024-01-01T00:00:00.000",
        "streamPosition": "",
        "transactionId": "" if loaded else f"{number // 3:032X}",
        "changeMask": None if loaded else "02",
        "columnMask": None if loaded else "03",
        "transactionEventCounter": None if loaded else number % 3 + 1,
        "transactionLastEvent": None if loaded else number % 3 == 2,
    }
    data = {"id": number, "name": value}
    return json.dumps(
        {**around, "type": "DT", "message": {"data": data, "beforeData": None, "headers": headers}}
    )


def hash_of(table: str) -> int:
    """Return the number in a table's schemaId."""
    return sum(table.encode())


class Sent(NamedTuple):
    """A message, and its file."""

    file: int
    kind: str
    table: str
    number: int
    value: str


sent = st.lists(
    st.builds(
        Sent,
        st.integers(0, 2),
        st.sampled_from(("MD", "REFRESH", "INSERT", "UPDATE", "UPDATE", "DELETE", "{")),
        st.sampled_from(("usr", "item")),
        st.integers(3, 11),
        st.sampled_from(("a", "a", "b")),
    ),
    max_size=25,
)


def write_messages(folder: Path, messages: list[Sent]) -> list[Path]:
    """Return the messages as files."""
    files: dict[Path, list[str]] = {}
    for sent in messages:
        name = folder / f"t{sent.file}.jsonl"
        line = sent.kind if sent.kind == "{" else message(sent.kind, sent.table, sent.number, sent.value)
        files.setdefault(name, []).append(line)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        name.write_text("\n".join(lines) + "\n")
    return sorted(files)
