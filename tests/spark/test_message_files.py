"""Files of messages that many tasks of the command read give what `convert` gives."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark import inputs, pieces
from eventlog_spark.backlog import Backlog, run
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eventlog
from eventlog.core import tablesfile
from eventlog.core.change import Change, Field, Op
from tests.formats.qlik import test_event_ids as ids
from tests.formats.qlik import test_ordinals as ordinals
from tests.kit.tiers import drawn
from tests.spark import helpers
from tests.spark.helpers import CLOCK, job, lines, refused_in
from tests.spark.test_message_frames import eventlog_until, many_alike
from tests.spark.test_parity import SLOW
from tests.spark.test_sequence import Sent, check_command, converted, job_of, sent, write_messages

pytestmark = pytest.mark.quick
_NUMBERS = itertools.count()
BEGINS_AGAIN = "a malformed record hides where the others end: one task reads each file"


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces be of one message or two."""
    monkeypatch.setattr(pieces, "BLOCK", 256)
    monkeypatch.setattr(pieces, "_WORTH", 512)


def write_oddly(path: Path, seed: int) -> None:
    """Write the messages of a file over several lines, in arrays, with blank lines, or cut short."""
    texts = path.read_text().splitlines()
    forms = (
        lambda text: text,
        lambda text: text.replace(", ", ",\n  ") if text != "{" else text,
        lambda text: f"[{text}, {text}]" if text != "{" else text,
        lambda text: f"\n{text}\r",
        lambda text: text[: len(text) // 2],
    )
    path.write_text(
        "".join(forms[hash((seed, at)) % 7 % len(forms)](text) + "\n" for at, text in enumerate(texts))
    )


@pytest.mark.long
@pytest.mark.usefixtures("small_pieces")
@settings(SLOW, max_examples=drawn(4))
@given(sent, st.integers(2, 5), st.booleans(), st.none() | st.integers(0, 99))
@example(
    [Sent(1, kind, "usr", at, "a")
     for kind, at in (("UPDATE", 9), ("REFRESH", 3), ("INSERT", 7), ("REFRESH", 4))]
    + [Sent(0, "REFRESH", "item", 5, "a"), Sent(0, "UPDATE", "item", 8, "a"), Sent(2, "MD", "item", 3, "a")],
    3, False, None,
)  # fmt: skip
def test_files_cut_in_any_way(
    spark: Any, tmp_path: Path, messages: list[Sent], partitions: int, bounded: bool, odd: int | None
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    inputs = write_messages(folder, messages)
    if odd is not None:
        for path in inputs:
            write_oddly(path, odd)
    how = {"until": eventlog_until(8)} if bounded else {}
    if inputs:
        check_command(spark, job_of(folder, "qlik-message", inputs, **how), partitions)


@pytest.mark.slow("a job of Spark")
@pytest.mark.usefixtures("small_pieces")
def test_many_tasks_read_messages_under_the_metadata_that_convert_takes(spark: Any, tmp_path: Path) -> None:
    parts = ordinals.parts_of_files()
    inputs = [tmp_path / f"t{number}.jsonl" for number in range(len(parts))]
    for path, part in zip(inputs, parts, strict=True):
        path.write_text("".join(json.dumps(value) + "\n" for value in part))
    inputs[3].write_bytes(inputs[3].read_bytes() + b'{"type": "MD", "message": 1}\n{"cut')
    missing = tmp_path / "t4.jsonl.gz"
    missing.write_bytes(b"no gzip")
    reports = check_command(spark, job_of(tmp_path, "qlik-message", [*inputs, missing]), 3)
    assert BEGINS_AGAIN not in reports


@pytest.mark.slow("two jobs of Spark")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("order", "target"), [("sequence", "xds"), ("as-is", "changes")])
def test_tasks_give_loaded_rows_and_key_changes_the_event_ids_of_convert(
    spark: Any, tmp_path: Path, order: str, target: str
) -> None:
    """Read three files with rows of a full load, and a key change as two messages, in many tasks."""
    inputs = [tmp_path / str(number) / "usr.jsonl" for number in range(3)]
    for number, path in enumerate(inputs):
        rows = [{"id": 100 * number + n, "name": "Jack"} for n in range(20)]
        sent = [ids.message("REFRESH", None, row, None) for row in rows]
        sent.append(ids.message("DELETE", number + 1, rows[0], "01"))
        sent.append(ids.message("INSERT", number + 1, {"id": 1000 + number, "name": "Jack"}, "03"))
        path.parent.mkdir()
        path.write_text("".join(sent))
    conversion = job_of(tmp_path, "qlik-message", inputs, target, batch_size=1, order=order)
    conversion = replace(conversion, tables=tablesfile.read(ids.TABLES))
    expected = converted(conversion).records
    conversion = replace(conversion, output=str(tmp_path / "spark"))
    run(spark, Backlog(conversion, CLOCK, order, partitions=4), print)
    assert sorted(lines(tmp_path / "spark")) == sorted(expected)
    named = re.findall(r' event-id="(.*?)"|"event_part":(2)', "".join(expected))
    assert len({*named}) == (66 if target == "xds" else 1)


@pytest.mark.long
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("form", ["array", "over lines"])
def test_metadata_that_lines_do_not_show_cost_the_pieces(spark: Any, tmp_path: Path, form: str) -> None:
    sent = [Sent(0, "MD", "usr", 3, "a"), *(Sent(0, "UPDATE", "usr", n, "a") for n in range(3, 40))]
    (path,) = write_messages(tmp_path, sent)
    head, *rest = path.read_text().splitlines()
    shown = f"[{head},\n{head}]" if form == "array" else json.dumps(json.loads(head), indent=1)
    path.write_text("\n".join([*rest, shown, *rest]) + "\n")
    assert BEGINS_AGAIN in check_command(
        spark, job_of(tmp_path, "qlik-message", [path, path.rename(path)]), 3
    )


@pytest.mark.long
@pytest.mark.usefixtures("small_pieces")
def test_limits_hold_in_pieces(spark: Any, tmp_path: Path) -> None:
    (path,) = write_messages(
        tmp_path, [Sent(0, "UPDATE", "usr", n, "a" * (n % 9 * 60)) for n in range(3, 40)]
    )
    job = job_of(tmp_path, "qlik-message", [path], max_record=900)
    check_command(spark, job, 3)


@pytest.mark.long
@pytest.mark.usefixtures("small_pieces")
def test_framed_messages_are_read_file_by_file(spark: Any, tmp_path: Path) -> None:
    """Find metadata of Avro in another file, and report one that is cut short."""
    usr = eventlog.tables({"usr": {"key": ["id"], "columns": {"id": "integer", "name": "varchar(20)"}}})
    reported = [
        Change(Op.INSERT, None, "usr", (("id", n),), (Field("id", after=n), Field("name")))
        for n in range(1, 30)
    ]
    written = [one.value for one in eventlog.records(reported, "qlik-message", tables=usr, encoding="avro")]
    inputs = [tmp_path / f"{name}.avro" for name in "abc"]
    for path, among in zip(inputs, (written[1:15], written[15:], written[:1]), strict=True):
        path.write_bytes(b"".join(len(value).to_bytes(4, "big") + value for value in among))
    inputs[1].write_bytes(inputs[1].read_bytes() + b"\xff\xff\xff\xffx")
    check_command(spark, job_of(tmp_path, "qlik-message", inputs), 3)


@pytest.mark.slow("a job of Spark")
def test_files_of_messages_of_one_layout_are_those_of_convert(spark: Any, tmp_path: Path) -> None:
    inputs = write_messages(tmp_path, many_alike())
    check_command(spark, job_of(tmp_path, "qlik-message", inputs), 3)


def test_transactions_are_whole(spark: Any, tmp_path: Path) -> None:
    messages = [Sent(0, "MD", table, 3, "a") for table in ("usr", "item")]
    messages += [Sent(n % 3, "UPDATE", table, n, "a") for n in range(3, 30) for table in ("usr", "item")]
    inputs = write_messages(tmp_path, messages)
    check_command(spark, job_of(tmp_path, "qlik-message", inputs, whole_transactions=True), 4)
    assert len([*tmp_path.glob("spark/documents/part-*")]) > 1


def test_messages_of_debezium_are_read_file_by_file(spark: Any, tmp_path: Path) -> None:
    """Keep the tombstone of a delete in its own file."""
    for name in ("a", "b"):
        source = {"table": "usr", "schema": "own", "lsn": ord(name)}
        gone = {"op": "d", "before": {"idu": 1}, "source": source}
        values = [{"key": {"idu": 1}, "value": gone}, {"key": {"idu": 1}, "value": None}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values) * 2)
    wanted = job([tmp_path], tmp_path / "out", source="debezium", to="changes")
    run(spark, Backlog(wanted, CLOCK))
    assert len(lines(tmp_path / "out")) == 4


def test_a_large_topic_of_debezium_is_read_in_ranges(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tombstone is of the delete before it, which may be in the range before."""
    monkeypatch.setattr(pieces, "BLOCK", 30)
    monkeypatch.setattr(pieces, "_WORTH", 300)
    monkeypatch.setattr(inputs, "_PORTION_BYTES", 0)
    file = helpers.write_topic(tmp_path / "own.usr.jsonl", 40, "x" * 30)
    wanted = job([file], tmp_path / "out", source="debezium", to="changes")
    expected, left_out = helpers.converted(replace(wanted, output=str(tmp_path / "expected")))
    reported = list[str]()
    run(spark, Backlog(wanted, CLOCK), reported.append)
    assert lines(tmp_path / "out") == expected
    assert Counter(row["refused"] for row in refused_in(tmp_path / "out")) == Counter(
        f"{where}: {reason}" for where, reason in left_out
    )
    assert len([*(tmp_path / "out").glob("documents/part-*")]) > 15
    assert not any("cut" in sentence for sentence in reported)
