"""Spark finds the same changes between two states as one machine, byte for byte."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import eventlog_spark
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as f

from eventlog.cli import cli
from eventlog.core import tablesfile
from eventlog.core.errors import InvalidTables, Misuse
from tests.spark.helpers import configured
from tests.spark.test_parity import SLOW
from tests.tiers import drawn

pytestmark = pytest.mark.quick
# Names that differ by case alone, or that mean something to SQL, to Spark or to a path.
TABLES = """
[tables."my usr"]
schema = "indirect"
key = ["k", "select"]
columns = { k = "text", select = "integer", "a.b" = "text", A = "char(4)", a = "integer", "`n`" = "numeric(9,2)", d = "double", "new" = "blob", t = "timestamp", day = "date", "on ?" = "boolean" }
"""  # noqa: E501
TEXTS = st.sampled_from(
    ["", " ", "a", "a ", "A", "ä", "a\u0308", "é,'\"=\\<>;+", "\n", "0", "\U0001f600", "x" * 9000]
)
KINDS: dict[str, tuple[Any, Sequence[Any]]] = {  # of each column: what its values are drawn from, its types
    "k": (TEXTS, [pa.string(), pa.large_string()]),
    "select": (st.sampled_from([1, 2, -3]), [pa.int32(), pa.int64(), pa.string()]),
    "a.b": (TEXTS, [pa.string()]),
    "A": (TEXTS, [pa.string()]),
    "a": (st.sampled_from([0, 5, 2**31]), [pa.int64(), pa.string()]),
    "`n`": (
        st.sampled_from([decimal.Decimal("1.10"), decimal.Decimal(-7)]),
        [pa.decimal128(9, 2), pa.decimal128(12, 4), pa.string()],
    ),
    "d": (st.sampled_from([0.0, -0.0, 0.1, 1e300, float("nan"), float("inf")]), [pa.float64()]),
    "new": (st.sampled_from([b"", b"\xaa\xaa", b"\0"]), [pa.binary()]),
    "t": (
        st.sampled_from([dt.datetime(2025, 3, 23, 10, 57, 19), dt.datetime(1600, 1, 1, 0, 0, 0, 120)]),
        [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string()],
    ),
    "day": (st.sampled_from([dt.date(2024, 2, 29), dt.date(1, 1, 1)]), [pa.date32(), pa.string()]),
    "on ?": (st.booleans(), [pa.bool_(), pa.string()]),
}
KEY = ("k", "select")
ROW = st.tuples(*(st.none() | drawn for name, (drawn, _) in KINDS.items() if name not in KEY))
STATES = st.dictionaries(st.tuples(*(KINDS[name][0] for name in KEY)), ROW, max_size=8)
FORMS = st.fixed_dictionaries({name: st.sampled_from(types) for name, (_, types) in KINDS.items()})
CONTAINERS = {"changes": "jsonl", "xds": "xml", "log": "csv"}
State = Mapping[tuple[Any, ...], tuple[Any, ...]]


def rows_of(state: State) -> list[tuple[Any, ...]]:
    return [(*key, *row) for key, row in state.items()]


def table_of(rows: Sequence[Sequence[Any]], form: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the rows with columns of these types."""
    columns = list(zip(*rows, strict=True)) or [()] * len(KINDS)
    arrays = [
        pa.array([_text(cell) if pa.types.is_string(form[name]) else cell for cell in column], form[name])
        for column, name in zip(columns, KINDS, strict=True)
    ]
    return pa.table(arrays, names=list(KINDS))


def _text(cell: Any) -> Any:
    """Return a value as text, as another tool would write it."""
    return cell if cell is None or isinstance(cell, str) else str(cell)


def write(folder: Path, name: str, made: pa.Table, seed: int = 0) -> tuple[Path, Path]:
    """Return the rows in one file, and in a folder of files, in another order and with their columns in
    another.
    """
    (folder / "one" / name).mkdir(parents=True)
    one, many = folder / "one" / name / "my usr.parquet", folder / "many" / name / "my usr.parquet"
    pq.write_table(made, one)
    many.mkdir(parents=True)
    shuffle = random.Random(seed)
    order, columns = list(range(made.num_rows)), list(made.column_names)
    shuffle.shuffle(order)
    shuffle.shuffle(columns)
    mixed = made.take(pa.array(order, pa.int64())).select(columns)
    half = mixed.num_rows // 2
    for number, part in enumerate((mixed.slice(0, half), mixed.slice(half))):
        pq.write_table(part, many / f"part-{number}.parquet")
    return one, many


def compared(
    folder: Path, states: Sequence[Path], *words: str, target: str = "changes"
) -> tuple[int, bytes, str]:
    """Return the exit code of the command, its output and its messages."""
    (folder / "t.toml").write_text(TABLES)
    out = folder / f"out.{CONTAINERS[target]}"
    out.unlink(missing_ok=True)
    done = run("compare", *states, "--tables", folder / "t.toml", "--to", target, "-o", out, *words)
    said = done.stderr + (str(done.exception) if isinstance(done.exception, Exception) else "")
    return done.exit_code, out.read_bytes() if out.exists() else b"", said


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.mark.slow("each example is a job of Spark")
@settings(SLOW, max_examples=drawn(6))
@given(
    STATES,
    STATES,
    FORMS,
    FORMS,
    st.booleans(),
    st.sampled_from(sorted(CONTAINERS)),
    st.integers(),
    st.integers(1, 9),
)
def test_spark_writes_what_one_machine_writes(
    spark: Any,
    tmp_path_factory: pytest.TempPathFactory,
    old: State,
    new: State,
    form: Mapping[str, pa.DataType],
    other: Mapping[str, pa.DataType],
    alike: bool,
    target: str,
    seed: int,
    tasks: int,
) -> None:
    folder = tmp_path_factory.mktemp("states")
    sides = [
        write(folder, "old", table_of(rows_of(old), form), seed),
        write(
            folder,
            "new",
            table_of(rows_of({**old, **new} if seed % 2 else new), form if alike else other),
            seed,
        ),
    ]
    here = compared(folder, [one for one, _ in sides], target=target)
    with configured(
        spark,
        spark_sql_shuffle_partitions=str(tasks),
        spark_sql_adaptive_coalescePartitions_enabled="false",
    ):
        there = compared(folder, [many for _, many in sides], "--master", "local[2]", target=target)
    assert there == here


FIRST: State = {("a", 1): ("x", "y", 1, None, 0.5, None, None, None, True), ("b", 1): (None,) * 9}
AS_TEXT = {name: types[-1] for name, (_, types) in KINDS.items()}
TYPED = {name: types[0] for name, (_, types) in KINDS.items()}


@pytest.mark.long
@pytest.mark.parametrize("form", [TYPED, AS_TEXT], ids=["typed", "texts"])
@pytest.mark.parametrize("sides", [(2, 1), (1, 2), (2, 2), (0, 2)])
def test_a_key_that_stands_twice_is_refused_as_on_one_machine(
    spark: Any, tmp_path: Path, sides: tuple[int, int], form: Mapping[str, pa.DataType]
) -> None:
    """Refuse it even if both rows are the same, in any place."""
    states = [
        write(tmp_path, name, table_of(rows_of(FIRST) * times, form))
        for name, times in zip(("old", "new"), sides, strict=True)
    ]
    for place, words in ((0, ()), (1, ("--master", "local[2]"))):
        code, written, said = compared(tmp_path, [state[place] for state in states], *words)
        assert (code, written) == (1, b"")
        assert "have the same key, k=" in said


def test_a_key_that_is_null_is_refused(spark: Any, tmp_path: Path) -> None:
    """Refuse it even if it is the same on both sides."""
    state = write(tmp_path, "old", table_of([(None, 1, *[None] * 9)], TYPED))
    for place, words in zip(state, ((), ("--master", "local[2]")), strict=True):
        code, written, said = compared(tmp_path, (place, place), *words)
        assert (code, written) == (1, b"")
        assert "k is null, and belongs to the key of indirect.my usr" in said


def test_many_keys_and_many_rows_of_one(spark: Any, tmp_path: Path) -> None:
    """Compare rows of one key in several batches, and changes of several tasks."""
    tables = '[tables.t]\nkey = ["k"]\ncolumns = { k = "integer", v = "text" }\nmultivalued = ["v"]\n'
    (tmp_path / "tables.toml").write_text(tables)
    old = [(k, f"v{v}") for k in range(40) for v in range(k)]
    new = [(k, f"v{v}") for k in range(1, 41) for v in reversed(range(k - k % 2))]
    for name, rows in (("a", old), ("b", new)):
        pq.write_table(pa.table(list(zip(*rows, strict=True)), ["k", "v"]), tmp_path / f"{name}.parquet")
    words: list[str | Path] = [
        "compare",
        tmp_path / "a.parquet",
        tmp_path / "b.parquet",
        "--tables",
        tmp_path / "tables.toml",
    ]
    here = run(*words, "--to", "changes")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        there = run(*words, "--to", "changes", "--master", "local[2]")
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "32768")
    assert (here.exit_code, here.stdout) == (there.exit_code, there.stdout)
    assert len(here.stdout.splitlines()) == 1 + 1 + 19


def test_tables_that_refer_to_each_other_leave_in_their_order(spark: Any, tmp_path: Path) -> None:
    """Compare folders of files named after tables; changes close a circle of references."""
    (tmp_path / "tables.toml").write_text("""
[tables.dept]
key = ["d"]
columns = { d = "integer", boss = "integer" }
references = { boss = "emp" }
[tables.emp]
key = ["e"]
columns = { e = "integer", d = "integer", name = "text" }
references = { d = "dept" }
[tables.site]
key = ["s"]
columns = { s = "integer", d = "integer" }
references = { d = "dept" }
""")
    for side, number in (("old", 1), ("new", 2)):
        (tmp_path / side).mkdir()
        for table, columns in (("dept", "d boss"), ("emp", "e d name"), ("site", "s d")):
            made = pa.table({name: [number] for name in columns.split()})
            pq.write_table(made, tmp_path / side / f"{table}.parquet")
    words: list[str | Path] = [
        "compare",
        tmp_path / "old",
        tmp_path / "new",
        "--tables",
        tmp_path / "tables.toml",
        "--to",
        "xds",
    ]
    here, there = run(*words), run(*words, "--master", "local[2]")
    assert (here.exit_code, there.stdout) == (0, here.stdout)
    assert here.stdout.count("<delete ") == here.stdout.count("<add ") == 3
    assert here.stdout.count("<modify ") == 2


@pytest.mark.parametrize(
    ("old", "words", "said"),
    [
        ("none.parquet", (), "none.parquet: no such file or folder"),
        ("a.parquet", ("--url", "sqlite://"), "--url takes no part on Spark"),
        ("a.parquet", ("--keep", "k.parquet"), "--keep takes no part on Spark"),
        ("a.parquet", ("--compare-memory", "9"), "--compare-memory is a setting of comparing"),
        ("a.parquet", ("--rows-of", "gone"), "gone"),
        ("short.parquet", (), "lacks column v of table t"),
        ("nested.parquet", (), "column v is a array<bigint>, and cells hold single values"),
        ("text.parquet", (), "Spark"),
    ],
)
def test_what_cannot_be_compared_is_said(
    spark: Any, tmp_path: Path, old: str, words: Sequence[str], said: str
) -> None:
    (tmp_path / "tables.toml").write_text(
        '[tables.t]\nkey = ["k"]\ncolumns = { k = "integer", v = "text" }\n'
    )
    (tmp_path / "text.parquet").write_text("k,v\n")
    for name, columns in {
        "a": {"k": [1], "v": ["x"]},
        "short": {"k": [1]},
        "nested": {"k": [1], "v": [[1]]},
    }.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    sides = (tmp_path / old, tmp_path / "a.parquet", "--tables", tmp_path / "tables.toml")
    done = run("compare", *sides, "--to", "changes", "--master", "local[2]", *words)
    assert done.exit_code != 0
    assert said in done.stderr + str(done.exception)
    assert done.stdout == ""


def test_flags_of_spark_need_it(tmp_path: Path) -> None:
    done = run("compare", "a", "b", "--to", "changes", "--conf", "spark.executor.memory=4g")
    assert "--conf is a setting of Spark: give --master, too" in str(done.exception)


PEOPLE = tablesfile.read("""
[tables.p]
key = ["k"]
columns = { k = "text", n = "integer", v = "text" }
""")


def test_the_library_tells_changes_from_any_frame(spark: Any) -> None:
    """Read nothing before an action; keep keys apart that a collation equates; do not number refused rows."""
    old = spark.createDataFrame(
        [("a", "1", "x"), ("b", "05", "y"), ("d", "1", None)], "k string, n string, v string"
    )
    new = spark.createDataFrame([(None, 5, "b"), ("x", 1, "A"), ("z", 7, "e")], "v string, n int, k string")
    folded = old.withColumn("k", f.collate("k", "UTF8_LCASE"))
    made = eventlog_spark.compare({"p": folded}, {"p": new}, PEOPLE, typed="p")
    rows = made.orderBy("place").collect()
    assert [(row.op, row.position, row.key["k"]) for row in rows] == [
        ("delete", "1", "a"),
        ("delete", "2", "d"),
        ("insert", "3", "A"),
        ("insert", "4", "e"),
        ("update", "5", "b"),
    ]
    assert (rows[-1].before["v"], rows[-1].after["v"], rows[-1].after["n"]) == ("y", None, 5)
    assert [json.loads(row.change)["position"] for row in rows] == list("12345")
    bad = spark.createDataFrame([("a", "x", "x"), ("b", "6", "y"), ("d", "1", None)], old.schema)
    reported = eventlog_spark.compare({"p": old}, {"p": bad}, PEOPLE).orderBy("place").collect()
    assert [(row.refused, row.position) for row in reported] == [
        ("p k=a: n: 'x' is not an integer", None),
        (None, "1"),
    ]


def test_the_library_reads_nothing_early_and_each_row_once(spark: Any) -> None:
    read = spark.sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    rows = spark.range(100).selectExpr("cast(id as string) k", "cast(id as int) n", "'x' v")
    counted = rows.mapInArrow(count, rows.schema)
    made = eventlog_spark.compare({"p": counted}, {"p": rows.where("n > 0")}, PEOPLE)
    assert read.value == 0
    assert [row.op for row in made.collect()] == ["delete"]
    assert read.value == 100


def test_the_library_says_what_is_missing(spark: Any) -> None:
    rows = spark.range(1).selectExpr("cast(id as string) k", "1 n", "'x' v")
    with pytest.raises(Misuse, match="the new state has no rows of p"):
        eventlog_spark.compare({"p": rows}, {}, PEOPLE)
    with pytest.raises(Misuse, match="there is nothing to compare"):
        eventlog_spark.compare({}, {}, PEOPLE)
    with pytest.raises(InvalidTables, match="old p lacks column v of table p"):
        eventlog_spark.compare({"p": rows.drop("v")}, {"p": rows}, PEOPLE)
