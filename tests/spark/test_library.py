"""The library on Spark gives what `convert` and `backlog` give, from any DataFrame, when asked for it."""

from __future__ import annotations

import io
import itertools
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import eventlog_spark
import pyarrow as pa
import pytest
from eventlog_spark.log_rows import LogReading, feed_of
from eventlog_spark.packing import Exchange, Parcels, by_block
from eventlog_spark.shuffle import LOG
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as f

import eventlog
from eventlog.core import tablesfile
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import InvalidTables, Misuse
from eventlog.files import csv
from tests.formats.linter.helpers import LAYOUT
from tests.kit.tiers import drawn
from tests.spark.helpers import (
    TABLES,
    backlogged,
    by_object,
    configured,
    converted,
    count_reasons,
    job,
    write_log,
)
from tests.spark.strategies import CURRENT, logs
from tests.spark.test_parity import SLOW, current_files
from tests.spark.test_sources import FILES, make

pytestmark = pytest.mark.quick
CATALOGUE = tablesfile.read(TABLES)
NAMES = list(COLUMNS)
TIME = "2025-03-23 10:57:19"
Rows = Sequence[Sequence[Any]]

# How a DataFrame may have a log: the order and spelling of its columns, and the types of its numbers.
FORMS = {
    "as a log has it": (NAMES, "long", "int"),
    "in capitals, key second": ([NAMES[0], NAMES[6], *NAMES[1:6], *NAMES[7:]], "long", "smallint"),
    "decimals of JDBC": (NAMES, "decimal(38,10)", "decimal(20,0)"),
    "texts": ([*NAMES[5:], *NAMES[:5]], "string", "string"),
}


def frame(spark: Any, rows: Rows, form: str = "as a log has it") -> Any:
    """Return the rows as a DataFrame of this form."""
    names, id_type, kind_type = FORMS[form]
    texts = [tuple(None if cell is None else str(cell) for cell in row) for row in rows]
    text_frame = spark.createDataFrame(texts, ", ".join(f"{name} string" for name in NAMES))
    typed = {"record_id": id_type, "event_type": kind_type}
    reported = [f.col(name).cast(typed.get(name, "string")) for name in names]
    column_names = [name.upper() if "capitals" in form else name for name in names]
    return text_frame.select(
        *(column.alias(name) for column, name in zip(reported, column_names, strict=True))
    )


def current_frames(spark: Any) -> dict[str, Any]:
    """Return the current rows of `strategies` as DataFrames, their numbers typed."""
    frames = {}
    for table, text in CURRENT.items():
        columns, rows = csv.read(io.BytesIO(text.encode()), table)
        cells = [row.cells for row in rows if not isinstance(row, eventlog.Refused)]
        text_frame = spark.createDataFrame(cells, ", ".join(f"`{name}` string" for name in columns))
        frames[table] = (
            text_frame.withColumn("idu", f.col("idu").cast("int")) if table == "usr" else text_frame
        )
    return frames


def records_in(frame: Any, column: str) -> tuple[list[str], Counter[str]]:
    """Return the records of a DataFrame in the order of the log, and the counted reasons of refused rows."""
    rows = frame.select(column, "order", "place", "refused").collect()
    good = sorted((row for row in rows if row.refused is None), key=lambda row: row.order)
    assert good == sorted(good, key=lambda row: tuple(row.place))
    return [row[0] for row in good], Counter(row.refused for row in rows if row.refused is not None)


@pytest.mark.slow("Spark compiles each plan")
@settings(SLOW, max_examples=drawn(4))
@given(
    logs(),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from((None, 1, 3)),
    st.sampled_from((None, "driver")),
    st.sampled_from(("canonical", "as-logged")),
    st.booleans(),
)
def test_documents_and_changes_are_those_of_convert(
    spark: Any,
    tmp_path_factory: pytest.TempPathFactory,
    rows: Rows,
    form: str,
    partitions: int | None,
    user: str | None,
    association: str,
    future: bool,
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log, current = write_log(folder / "log.csv", rows), current_files(folder, "csv")
    how: dict[str, Any] = {"driver_user": user, "max_changes": 3}
    if future:
        how |= {"handle_future_events": True, "now": "2025-03-23 10:57:19.3"}
    given_log = frame(spark, rows, form)
    frames = current_frames(spark)
    made = eventlog_spark.documents(
        given_log, CATALOGUE, current=frames, association=association, partitions=partitions, **how
    )
    documents, refused = records_in(made, "document")
    expected, left_out = converted(job([log], folder / "out.xml", current, association=association, **how))
    assert by_object(documents, rows) == by_object(expected, rows)
    assert documents == expected
    assert refused == count_reasons(left_out)
    changed = records_in(eventlog_spark.changes(given_log, tables=CATALOGUE, current=frames, **how), "change")
    expected, left_out = converted(job([log], folder / "out.jsonl", current, to="changes", **how))
    assert changed == (expected, count_reasons(left_out))


def test_each_row_tells_its_document(spark: Any) -> None:
    rows = [
        (n, "N", n % 4 + 1, TIME, None, "USR", f"IDU={n % 3}", "fname", "a", f"v{n}") for n in range(1, 14)
    ]
    reported = eventlog_spark.documents(frame(spark, rows), CATALOGUE).orderBy("order").collect()
    plain = eventlog.documents([dict(zip(NAMES, row, strict=True)) for row in rows], CATALOGUE)
    found = [
        (row.document, row.event_id, row.op, row.table, row.key, tuple(row.record_ids)) for row in reported
    ]
    assert found == [(d.text, d.event_id, d.op, d.table, d.key, d.rows) for d in plain]
    assert all(
        (row.first_record_id, row.last_record_id) == (row.record_ids[0], row.record_ids[-1])
        for row in reported
    )


@pytest.mark.slow("Spark compiles each plan")
def test_rows_that_are_shuffled_arrive_in_one_order(spark: Any) -> None:
    """A job ends where a task that Spark repeats makes other rows than before."""
    rows = [(n, "N", 1, TIME, None, "usr", f"idu={n}", "fname", "a", "b") for n in range(40)]
    feed = feed_of(frame(spark, rows).repartition(4), LogReading.of(CATALOGUE, {}, TIME))
    shuffled = Exchange.of([feed], 2).rows(Parcels([feed], LOG, by_block))
    parcels = [(row.share, row.parcel) for row in shuffled.collect()]
    assert len(parcels) == len(set(parcels)) == 4
    ordering = shuffled._jdf.queryExecution().optimizedPlan().outputOrdering().mkString()
    assert re.match(r"share\S+ ASC .*parcel\S+ ASC ", ordering), "one machine keeps the order without a sort"


@pytest.mark.long  # Spark compiles each plan
def test_backlog_gives_the_same(spark: Any, tmp_path: Path) -> None:
    rows = [
        (n, "N", (1, 2, 6, 2, 3)[n % 5], TIME, None, "usr", f"idu={n % 4}", "fname", "a", f"v{n}")
        for n in range(1, 40)
    ]
    rows[7] = (3, *rows[7][1:])
    log, current = write_log(tmp_path / "log.parquet", rows), current_files(tmp_path, "parquet")
    written, left_out = backlogged(spark, job([log], tmp_path / "out", current), partitions=2)
    reported = eventlog_spark.documents(
        spark.read.parquet(str(log)),
        CATALOGUE,
        current=dict.fromkeys(["usr"], spark.read.parquet(current[0][1])),
    )
    documents, refused = records_in(reported, "document")
    assert by_object(documents, rows) == by_object(written, rows)
    assert refused == left_out


def test_nothing_is_read_before_an_action_and_then_each_row_once(spark: Any) -> None:
    def fail(batches: Any) -> Any:
        raise AssertionError("it was read")

    rows = frame(spark, [(1, "N", 6, TIME, None, "usr", "idu=1", None, None, None)])
    trap = rows.mapInArrow(fail, rows.schema)
    current = {
        "usr": spark.createDataFrame(
            [],
            "idu int, fname string, lname string, photo binary, born date,"
            "on boolean, age int, `usr_phone.no` string",
        )
    }
    eventlog_spark.log(trap, CATALOGUE)
    eventlog_spark.changes(trap, tables=CATALOGUE, current=current, typed="usr")
    reported = eventlog_spark.documents(trap, CATALOGUE, current=current)
    plan = reported._jdf.queryExecution().executedPlan().toString()
    assert plan.count("it was read") == 0
    assert plan.count("fail(") == plan.count("MapInArrow fail(") == 1


@pytest.mark.long
def test_the_session_may_be_set_otherwise(spark: Any) -> None:
    moments = ["2025-03-30 00:30:00", "2025-10-26 00:30:00", "2025-10-26 01:30:00", "1900-01-01 00:00:00.12"]
    rows = frame(spark, [
        (n, "N", 4, time, None, "usr", f"idu={n}", None, None, None) for n, time in enumerate(moments, 1)
    ]).withColumn("event_time", f.to_timestamp("event_time"))  # fmt: skip
    rows = rows.withColumn("micros", f.unix_micros("event_time")).drop("event_time").cache()
    rows.count()
    rows = rows.withColumn("event_time", f.timestamp_micros("micros")).drop("micros")
    with configured(spark, spark_sql_session_timeZone="Europe/Berlin", spark_sql_caseSensitive="false"):
        found = eventlog_spark.log(rows, CATALOGUE).orderBy("record_id").collect()
    assert [row.event_time for row in found] == [time.replace(" ", "T") for time in moments]


@pytest.mark.long
def test_what_a_log_tells_of_its_rows(spark: Any) -> None:
    rows = [
        (1, "N", 2, TIME, "ann", "USR", "IDU=1", "fname", "a", "b"),
        (2, "S", 2, TIME, None, "usr", "idu=1", "fname", "a", "b"),
        (3, "N", 2, TIME, "driver", "usr", "idu=1", "fname", "a", "b"),
        (4, "N", 9, TIME, None, "usr", "idu=1", "fname", "a", "b"),
        (5, "N", 4, "2026-01-01 00:00:00", None, "usr", "idu=1", None, None, None),
    ]
    how: dict[str, Any] = {"driver_user": "driver", "handle_future_events": True, "now": TIME}
    reported = eventlog_spark.log(frame(spark, rows), CATALOGUE, **how).orderBy(
        f.expr("coalesce(record_id, 4)")
    )
    found = reported.select("event_type", "table", "key", "old_value", "fate", "refused").collect()
    assert [tuple(row) for row in found] == [
        (2, "usr", "idu=1", "a", None, None),
        (2, "usr", "idu=1", "a", "not new", None),
        (2, "usr", "idu=1", "a", "loopback", None),
        (None, None, None, None, "refused", "event_type is 9, not 1 to 8"),
        (4, "usr", "idu=1", None, "future", None),
    ]
    (record,) = [json.loads(row.record) for row in reported.where("record is not null").collect()]
    assert record["event_type"] == 9


@pytest.mark.long
def test_changes_with_types_are_what_sql_works_on(spark: Any) -> None:
    rows = [
        (1, "N", 1, TIME, None, "usr", "idu=1", "born", None, "2024-02-29"),
        (2, "N", 2, TIME, None, "usr", "idu=1", "FNAME", "a", "b"),
        (3, "N", 2, TIME, None, "usr", "idu=2", "photo", "qqo=", "u7s="),
        (4, "N", 4, TIME, None, "usr", "idu=1", None, None, None),
        (5, "N", 2, TIME, None, "grp", "org=a+name=b", "member", None, "m"),
        (6, "N", 2, TIME, None, "usr", "idu=3", "born", None, "late"),
    ]
    reported = eventlog_spark.changes(frame(spark, rows), tables=CATALOGUE, typed="usr").cache()
    reported.createOrReplaceTempView("usr_changes")
    found = spark.sql(
        "select op, key.idu, year(after.born), after.fname, before.photo, after.photo, supplied"
        " from usr_changes where refused is null order by place"
    ).collect()
    assert [tuple(row) for row in found] == [
        ("insert", 1, 2024, None, None, None, ["born"]),
        ("update", 1, None, "b", None, None, ["fname"]),
        ("update", 2, None, None, b"\xaa\xaa", b"\xbb\xbb", ["photo"]),
        ("delete", 1, None, None, None, None, []),
    ]
    (refused,) = reported.where("refused is not null").collect()
    assert "late" in refused.refused
    members = eventlog_spark.changes(frame(spark, rows), tables=CATALOGUE, typed="grp").where(
        "refused is null"
    )
    assert [row.after.member for row in members.collect()] == [["m"]]
    reported.unpersist()


def test_current_rows_as_query_backs_read_them(spark: Any) -> None:
    found = eventlog_spark.current(current_frames(spark)["usr"], CATALOGUE, "usr").orderBy("key").collect()
    assert tuple(found[0])[:5] == ("usr", "idu=1", "J\u00f6hn", "Doe  ", "u7s=")
    lacking = spark.createDataFrame([(1,)], "idu int")
    with pytest.raises(InvalidTables, match="lacks column fname"):
        eventlog_spark.documents(frame(spark, []), CATALOGUE, current={"usr": lacking})


@pytest.mark.parametrize("source", [name for name in FILES if name != "xds"])
@pytest.mark.family
def test_another_source_gives_what_convert_gives(spark: Any, tmp_path: Path, source: str) -> None:
    path = make(tmp_path / "in", source, 10)
    wanted = replace(job([path], tmp_path / "expected", source=source, to="changes"), tables=LAYOUT)
    expected, left_out = converted(wanted)
    records, name = source_frame(spark, path, source)
    reported = eventlog_spark.changes(records, source, tables=LAYOUT, name=name)
    assert [row.change for row in reported.collect()] == expected
    assert left_out == set()
    typed = eventlog_spark.changes(records, source, tables=LAYOUT, name=name, typed="usr").collect()
    assert [(row.op, row.key.idu) for row in typed][:2] == [("insert", 10), ("insert", 11)]


def source_frame(spark: Any, path: Path, source: str) -> tuple[Any, str]:
    """Return the records of a file as a user of Spark would have them, and their name."""
    if source == "gbase":
        return spark.read.format("binaryFile").load(str(path)), "c"
    if source == "qlik-message":
        lines = path.read_bytes().splitlines()
        kafka = "topic string, partition int, offset long, key binary, value binary"
        return spark.createDataFrame([("t", 0, n, None, line) for n, line in enumerate(lines)], kafka), "t"
    with path.open("rb") as file:
        columns, rows = csv.read(file, path.name)
        cells = [row.cells for row in rows if not isinstance(row, eventlog.Refused)]
    types = ", ".join(f"`{name}` string" for name in columns)
    return spark.createDataFrame(cells, types).orderBy(f.rand(7)), path.stem


def test_a_queue_without_addresses_is_read_by_its_dates(spark: Any) -> None:
    """Keep the parts of an operation together, and an end after the operations of its date."""
    parts = [
        (f"3b9acaf{n}0000", part, 5, 7, n, typ, length, 0, b"x" * length)
        for n in (3, 1, 2)
        for part, typ, length in ((1, 2, 100), (0, 2, 3400))
    ]
    columns = "oper_date string, extdata int, transact_id int, tabnum_src int, rowid_src int, typ int"
    end = ("3b9acaf30000", 0, 5, None, None, 4, 0, 0, b"")
    queue = spark.createDataFrame([end, *parts], f"{columns}, len1 int, len2 int, data binary")
    reported = eventlog_spark.changes(queue, "linter").collect()
    assert [row.refused for row in reported] == [None] * 3
    changes = [json.loads(row.change) for row in reported]
    assert [change["extra"]["rowid_src"] for change in changes] == [1, 2, 3]
    assert [change["raw"]["after"]["base64"] for change in changes] == [b64encode(b"x" * 3500).decode()] * 3


def test_a_message_that_is_none_is_refused_with_its_place(spark: Any) -> None:
    kafka = "VALUE string, Offset long, topic string, partition int"
    reported = eventlog_spark.changes(
        spark.createDataFrame([("{", 7, "t", 3), (None, 8, "t", 3)], kafka), "qlik-message"
    ).collect()
    assert [row.refused.partition(":")[0] for row in reported] == ["t[3]", "t[3]"]
    assert [row.refused.split(":")[1] for row in reported] == ["7", "8"]
    assert reported[0].record == "{"


def test_messages_of_debezium_are_read_with_their_tombstones(spark: Any) -> None:
    kafka = "key string, value string, topic string, partition int, offset long"
    source = {"connector": "postgresql", "schema": "own", "table": "usr"}
    insert = json.dumps({"op": "c", "after": {"idu": 1, "fname": "Jack"}, "source": source})
    rows = [('{"idu":1}', insert, "db.own.usr", 0, 1), ('{"idu":1}', None, "db.own.usr", 0, 2)]
    reported = eventlog_spark.changes(spark.createDataFrame(rows, kafka), "debezium").orderBy("order")
    assert [(row.op, row.table, row.refused) for row in reported.collect()] == [
        ("insert", "usr", None),
        ("delete", "usr", None),
    ]


def test_messages_of_debezium_are_read_by_topic_and_partition(spark: Any) -> None:
    kafka = "key string, value string, topic string, partition int, offset long"
    source = {"connector": "postgresql", "schema": "own", "table": "usr"}
    rows: list[tuple[str, str | None, str, int, int]] = []
    for at, offset in itertools.product(range(6), range(1, 9)):
        row = {"op": "c", "after": {"idu": at, "fname": str(offset)}, "source": source}
        rows.append((f'{{"idu":{at}}}', json.dumps(row), f"db.own.{at % 2}", at // 2, offset))
    rows += [(f'{{"idu":{at}}}', None, f"db.own.{at % 2}", at // 2, 9) for at in range(6)]
    frame = spark.createDataFrame(rows[::-1], kafka)
    alone, shared = (
        eventlog_spark.changes(frame, "debezium", partitions=tasks).orderBy("order").collect()
        for tasks in (None, 3)
    )
    by_object = [
        [[row.change for row in changes if f'"idu":{at}' in row.change] for at in range(6)]
        for changes in (alone, shared)
    ]
    assert by_object[0] == by_object[1]
    assert [len(changes) for changes in by_object[0]] == [9] * 6
    assert len({int(row.order) >> 33 for row in shared}) > len({int(row.order) >> 33 for row in alone}) == 1


@pytest.mark.long
def test_tables_may_be_described_where_they_are_used(spark: Any, tmp_path: Path) -> None:
    file, log, usr = tmp_path / "tables.toml", frame(spark, []), current_frames(spark)["usr"]
    file.write_text(TABLES)
    made: list[Callable[[Any], Any]] = [
        lambda tables: eventlog_spark.log(log, tables),
        lambda tables: eventlog_spark.documents(log, tables, current={"usr": usr}),
        lambda tables: eventlog_spark.changes(log, tables=tables, typed="usr"),
        lambda tables: eventlog_spark.current(usr, tables, "usr"),
    ]
    for result in made:
        assert result(file).schema == result(CATALOGUE).schema


def test_misuse_is_reported_at_once(spark: Any) -> None:
    log = frame(spark, [])
    pandas_frame = pa.table({"record_id": [1]}).to_pandas()
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: eventlog_spark.documents(log, CATALOGUE, batch_size=2), "one event"),
        (lambda: eventlog_spark.documents(log, CATALOGUE, no_such=1), "unknown setting"),
        (lambda: eventlog_spark.documents(log, 5), "write the name of a tables file"),  # type: ignore[arg-type]
        (lambda: eventlog_spark.documents(log.drop("old_value"), CATALOGUE), "lacks the column old_value"),
        (lambda: eventlog_spark.changes(log, "xml"), "unknown source"),
        *(
            (call, "this is a pandas.DataFrame; make a DataFrame of Spark with spark.createDataFrame")
            for call in (
                lambda: eventlog_spark.log(pandas_frame, CATALOGUE),
                lambda: eventlog_spark.current(pandas_frame, CATALOGUE, "usr"),
                lambda: eventlog_spark.documents(pandas_frame, CATALOGUE),
                lambda: eventlog_spark.documents(log, CATALOGUE, current={"usr": pandas_frame}),
                lambda: eventlog_spark.changes(pandas_frame, "qlik-table"),
                lambda: eventlog_spark.changes({"usr__ct": pandas_frame}, "qlik-table", partitions=2),
            )
        ),
        (lambda: eventlog_spark.changes(log, "gbase"), "no column content"),
        (lambda: eventlog_spark.changes(log, "linter", unique=True), "are of a log"),
    ]
    for wrong, reported in wrongs:
        with pytest.raises(Misuse, match=reported):
            wrong()
