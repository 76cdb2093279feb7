"""DataFrames of messages that many tasks read are what `convert` makes of the same messages in files."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import eventlog_spark
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eventlog
from eventlog.core.change import Field
from tests.formats.qlik import test_ordinals as ordinals
from tests.kit.tiers import drawn
from tests.spark.test_parity import SLOW
from tests.spark.test_sequence import Sent, converted, job_of, message, sent, write_messages

pytestmark = pytest.mark.quick
KAFKA = "topic string, partition int, offset long, key binary, value binary"
OFFSET_STEP = 400  # offsets between two messages: a block of 1000 has two or three of them
_NUMBERS = itertools.count()


def frame_of(spark: Any, inputs: Sequence[Path], step: int = OFFSET_STEP) -> Any:
    """Return the messages of files, a topic each, in no order."""
    rows = [
        (path.stem, 0, step * at, None, bytearray(line))
        for path in inputs
        for at, line in enumerate(path.read_bytes().splitlines())
    ]
    random.Random(len(rows)).shuffle(rows)
    return spark.createDataFrame(rows, KAFKA)


def changes_in(frame: Any) -> tuple[list[str], Counter[str]]:
    """Return the changes of a DataFrame in the order of its column, and what is refused, with its place."""
    rows = frame.select("order", "change", "refused", "place").collect()
    refused = Counter(row.refused for row in rows if row.refused is not None)
    good = [row for row in rows if row.refused is None]
    changes = [row.change for row in sorted(good, key=attrgetter("order"))]
    assert changes == [row.change for row in sorted(good, key=lambda row: row.place.number)]
    assert len({row.order for row in good}) == len(good)
    return changes, refused


def in_many(frame: Any, partitions: int | None, **options: Any) -> tuple[list[str], Counter[str]]:
    """Return the changes of messages, read in so many tasks."""
    return changes_in(eventlog_spark.changes(frame, "qlik-message", partitions=partitions, **options))


@pytest.mark.long
@settings(SLOW, max_examples=drawn(4))
@given(sent, st.integers(1, 9), st.booleans())
@example(
    [Sent(1, kind, "usr", at, "a")
     for kind, at in (("UPDATE", 9), ("REFRESH", 3), ("INSERT", 7), ("REFRESH", 4))]
    + [Sent(0, "REFRESH", "item", 5, "a"), Sent(0, "UPDATE", "item", 8, "a"), Sent(2, "MD", "item", 3, "a")],
    3, False,
)  # fmt: skip
@example([Sent(0, "UPDATE", "usr", 5, value) for value in "aab"], 2, True)
def test_messages_cut_in_any_way(
    spark: Any, tmp_path: Path, messages: list[Sent], partitions: int, bounded: bool
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    inputs = write_messages(folder, messages)
    if not inputs:
        return
    how = {"until": eventlog_until(8)} if bounded else {}
    expected = converted(job_of(folder, "qlik-message", inputs, **how))
    changes, refused = in_many(frame_of(spark, inputs), partitions, **how)
    assert changes == expected.records
    assert sum(refused.values()) == sum(expected.refused.values())


def eventlog_until(number: int) -> str:
    """Return the changeSequence of a number of `message`."""
    from tests.transactions import exports

    return exports.seq(2 * number)


@pytest.mark.long
def test_what_is_refused_is_what_one_task_refuses(spark: Any, tmp_path: Path) -> None:
    messages = [Sent(n % 2, kind, "usr", n, "a") for n, kind in enumerate(["UPDATE", "{"] * 8, 3)]
    messages += [Sent(0, "UPDATE", "usr", 5, "b"), Sent(1, "MD", "usr", 3, "a")]
    frame = frame_of(spark, write_messages(tmp_path, messages))
    frame = frame.unionByName(
        frame.limit(1).selectExpr("topic", "partition", "offset + 9000 as offset", "key", "null as value")
    )
    one = in_many(frame, None)
    assert in_many(frame, 4) == one
    assert len(one[1]) == 8 + 2 + 1


@pytest.mark.long
def test_messages_that_stand_nowhere_keep_the_order_of_the_rows(spark: Any, tmp_path: Path) -> None:
    kinds = ("REFRESH", "UPDATE", "REFRESH", "UPDATE", "DELETE", "REFRESH")
    (path,) = write_messages(tmp_path, [Sent(0, kind, "usr", 9 - n, "a") for n, kind in enumerate(kinds)])
    expected = converted(job_of(tmp_path, "qlik-message", [path], table="usr"))
    rows = [(line,) for line in path.read_text().splitlines()]
    reported = eventlog_spark.changes(
        spark.createDataFrame(rows, "value string"), "qlik-message", partitions=3, table="usr"
    )
    assert changes_in(reported)[0] == expected.records


def test_ordinals_are_those_of_the_metadata_that_convert_takes(spark: Any, tmp_path: Path) -> None:
    parts = ordinals.parts_of_files()
    for number, part in enumerate(parts):
        (tmp_path / f"t{number}.jsonl").write_text("".join(json.dumps(value) + "\n" for value in part))
    inputs = sorted(tmp_path.glob("t*.jsonl"))
    expected = converted(job_of(tmp_path, "qlik-message", inputs))
    fields = [json.loads(record)["fields"] for record in expected.records]
    changed = [field["column"] for change in fields for field in change if "before" not in field]
    assert changed == ["name", "name", "age", "age", "name", "age", "name", "name", "age"]
    ((_, reason),) = expected.refused
    assert "does not prove that all columns are there" in reason
    changes, refused = in_many(frame_of(spark, inputs), 3)
    assert changes == expected.records
    assert [text.endswith(reason) for text in refused] == [True]


def many_alike() -> list[Sent]:
    """Return so many messages of a layout that they go by column: some come twice, or contradict another."""
    both, numbers = ("usr", "item"), range(3, 40)
    kinds = ("INSERT", "UPDATE", "REFRESH", "DELETE")
    messages = [Sent(0, "MD", table, 3, "a") for table in both]
    messages += [Sent(n % 2, kinds[n % 4], table, n, f"a{n}") for n in numbers for table in both]
    messages += [Sent(1, "UPDATE", "usr", 90 + n, "b") for n in numbers]
    messages.insert(60, Sent(1, "{", "", 0, ""))
    messages += [Sent(2, kinds[n % 4], "usr", n, f"a{n // 9 * 9}") for n in numbers]
    return messages


def test_messages_of_one_layout_are_those_of_convert(spark: Any, tmp_path: Path) -> None:
    inputs = write_messages(tmp_path, many_alike())
    expected = converted(job_of(tmp_path, "qlik-message", inputs))
    changes, refused = in_many(frame_of(spark, inputs, step=1), 3)
    assert changes == expected.records
    assert sum(refused.values()) == sum(expected.refused.values()) > 10


def test_transactions_are_whole(spark: Any, tmp_path: Path) -> None:
    messages = [Sent(0, "MD", table, 3, "a") for table in ("usr", "item")]
    messages += [Sent(n % 3, "UPDATE", table, n, "a") for n in range(3, 60) for table in ("usr", "item")]
    inputs = write_messages(tmp_path, messages)
    expected = converted(job_of(tmp_path, "qlik-message", inputs, whole_transactions=True))
    frame = frame_of(spark, inputs)
    assert in_many(frame, 5, whole_transactions=True) == (expected.records, Counter())
    with pytest.raises(Exception, match="lacks its changes"):
        in_many(frame.where("topic <> 't1' or offset <> 1600"), 5, whole_transactions=True)


@pytest.mark.long
def test_avro_whose_metadata_come_behind(spark: Any) -> None:
    """Put them into a separate topic, as Replicate may do."""
    usr = eventlog.tables({"usr": {"key": ["id"], "columns": {"id": "integer", "name": "varchar(20)"}}})
    reported = [
        eventlog.Change(eventlog.Op.INSERT, None, "usr", (("id", n),), (Field("id", after=n), Field("name")))
        for n in range(1, 30)
    ]
    written = [one.value for one in eventlog.records(reported, "qlik-message", tables=usr, encoding="avro")]
    described, *data = [(b"\x04MD" in value[:9], bytearray(value)) for value in written]
    assert described[0]
    assert not any(other for other, _ in data)
    rows = [("data", 0, OFFSET_STEP * at, None, value) for at, (_, value) in enumerate(data)]
    rows.append(("metadata", 0, 7, None, described[1]))
    frame = spark.createDataFrame(rows, KAFKA)
    changes, refused = in_many(frame, 4, encoding="avro", tables=usr)
    assert (len(changes), refused) == (29, Counter())
    assert changes == in_many(frame, None, encoding="avro", tables=usr)[0]
    _, refused = in_many(frame.where("topic = 'data'"), 4, encoding="avro", tables=usr)
    assert len(refused) == 29
    assert all("is unknown: no metadata message" in reason for reason in refused)


@pytest.mark.long
def test_messages_are_read_once_for_metadata_and_once_for_each_action(spark: Any) -> None:
    """Draw ranges from samples of the rows that tasks have already read."""
    rows = [
        ("t", 0, OFFSET_STEP * n, None, bytearray(message("UPDATE", "usr", n, "a").encode()))
        for n in range(9)
    ]
    counted = spark.sparkContext.accumulator(0)

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            counted.add(batch.num_rows)
            yield batch

    frame = spark.createDataFrame(rows, KAFKA)
    reported = eventlog_spark.changes(frame.mapInArrow(count, frame.schema), "qlik-message", partitions=3)
    assert counted.value == 9
    assert len(reported.collect()) == 9
    assert counted.value == 18
