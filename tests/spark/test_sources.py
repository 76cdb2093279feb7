"""Every other source through `backlog`: the same documents as `convert` makes, file by file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from eventlog_spark.backlog import Backlog, run

from eventlog.core.errors import Misuse, Refused
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.formats.linter.helpers import LAYOUT
from tests.spark.helpers import CLOCK, backlogged, converted, job, lines, write_log
from tests.transactions import exports

pytestmark = pytest.mark.quick

FILES = {
    "qlik-table": "usr__ct.csv",
    "qlik-message": "m.jsonl",
    "gbase": "c.bin",
    "linter": "q.csv",
    "xds": "d.xml",
}
ORDERS = {
    "log": ("object", "log"),
    "qlik-table": ("sequence", "as-is"),
    "qlik-message": ("sequence", "as-is"),
    "gbase": ("as-is",),
    "linter": ("as-is",),
}
ORDERS_OF_SOURCES = [(source, order) for source, orders in ORDERS.items() for order in orders]
UNUSED_ORDERS = [
    (source, order)
    for source, orders in ORDERS.items()
    for order in ("object", "log", "sequence", "as-is")
    if order not in orders
]
FORMS = [("xds", None), ("changes", "parquet"), ("xds", "parquet"), ("changes", None)]


def json_lines(first: int) -> str:
    """Write inserts, an update and a delete."""
    reported = []
    for at in range(first, first + 4):
        row = [{"column": "idu", "after": at}, {"column": "fname", "after": f"Jack{at}"}]
        reported.append({"op": "insert", "key": {"idu": at}, "fields": row})
    changed = [
        {"column": "idu", "before": at, "after": at},
        {"column": "fname", "before": f"Jack{at}", "after": "Jo"},
    ]
    deleted_fields = [{"column": "idu", "before": first}, {"column": "fname", "before": f"Jack{first}"}]
    reported.append({"op": "update", "key": {"idu": at}, "fields": changed})
    reported.append({"op": "delete", "key": {"idu": first}, "fields": deleted_fields})
    common = {"schema": "own", "table": "usr", "time": "2024-03-23T10:57:19Z", "user": "3"}
    return "".join(
        json.dumps(line | common | {"position": str(first * 100 + at), "transaction": f"DEMO/{first}"}) + "\n"
        for at, line in enumerate(reported)
    )


def make(folder: Path, source: str, first: int) -> Path:
    """Return a file of that format; those of one task have sequences of their own."""
    folder.mkdir()
    (folder / "changes.jsonl").write_text(json_lines(first))
    refused: list[Refused] = []
    inputs, output = (str(folder / "changes.jsonl"),), str(folder / FILES[source])
    options = {"last_sequence": f"20240323{first:027}"} if source.startswith("qlik") else {}
    conversion = Job("changes", source, inputs, output, tables=LAYOUT, options=options)
    convert(conversion, Report(refused.append), CLOCK)
    assert refused == []
    return folder / FILES[source]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Return files of each of the five systems; a capture and a queue are one stream each."""
    folder = tmp_path_factory.mktemp("inputs")
    rows = [
        (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n * 7 % 4}", "fname", "a", str(n))
        for n in range(1, 9)
    ]
    files = {"log": [write_log(folder / "log.parquet", rows)]}
    for source in ORDERS.keys() - files.keys():
        numbers = (10,) if source in ("gbase", "linter") else (20, 10)
        files[source] = [make(folder / f"{source}{first}", source, first) for first in numbers]
    return files


@pytest.mark.parametrize(
    ("target", "container"),
    [*FORMS[:2], *(pytest.param(*form, marks=pytest.mark.long) for form in FORMS[2:])],
)
@pytest.mark.parametrize(("source", "order"), ORDERS_OF_SOURCES)
@pytest.mark.family
def test_each_order_in_each_form_is_that_of_convert(
    spark: Any,
    tmp_path: Path,
    inputs: dict[str, list[Path]],
    source: str,
    order: str,
    target: str,
    container: str | None,
) -> None:
    options: dict[str, Any] = {"order": order} if source.startswith("qlik") else {}
    wanted = job(inputs[source], tmp_path / "expected", source=source, to=target, **options)
    wanted = replace(wanted, tables=LAYOUT)
    expected, _ = converted(wanted)
    wanted = replace(wanted, output=str(tmp_path / "out"), output_container=container)
    run(spark, Backlog(wanted, CLOCK, order, partitions=1))
    records = parquet_rows(tmp_path / "out") if container else lines(tmp_path / "out")
    assert len(expected) > 3
    assert records == expected or order == "object"
    assert sorted(records) == sorted(expected)


def parquet_rows(output: Path) -> list[str]:
    """Return the records of an output folder in Parquet, in the order of its parts."""
    parts = [pq.read_table(part) for part in sorted(output.glob("documents/part-*"))]
    column = "change" if "change" in parts[0].column_names else "document"
    return [text for part in parts for text in part.column(column).to_pylist()]


@pytest.mark.parametrize(("source", "order"), UNUSED_ORDERS)
def test_an_order_that_a_source_does_not_have_is_refused_before_anything_is_written(
    spark: Any, tmp_path: Path, inputs: dict[str, list[Path]], source: str, order: str
) -> None:
    for target, container in FORMS:
        wanted = job(inputs[source], tmp_path / "out", source=source, to=target)
        wanted = replace(wanted, tables=LAYOUT, output_container=container)
        with pytest.raises(Misuse, match=f"--order {order} is not of {source}: use --order "):
            run(spark, Backlog(wanted, CLOCK, order))
    assert not (tmp_path / "out").exists()


def test_whole_transactions_without_the_sequence_are_misuse(spark: Any, tmp_path: Path) -> None:
    wanted = job([tmp_path / "m.jsonl"], tmp_path / "out", source="qlik-message", whole_transactions=True)
    with pytest.raises(Misuse, match="--whole-transactions needs --order sequence"):
        run(spark, Backlog(wanted, CLOCK, "as-is"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("source", ORDERS)
def test_inputs_that_are_not_there_leave_no_folder(spark: Any, tmp_path: Path, source: str) -> None:
    with pytest.raises(Misuse, match="no such file"):
        run(spark, Backlog(job([tmp_path / "x.csv"], tmp_path / "out", source=source), CLOCK))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("source", FILES)
@pytest.mark.long
def test_another_source_gives_what_convert_gives(spark: Any, tmp_path: Path, source: str) -> None:
    inputs = [make(tmp_path / f"in{first}", source, first) for first in (20, 10)]
    wanted = replace(job(inputs, tmp_path / "expected", source=source), tables=LAYOUT)
    alone = source in ("gbase", "linter")  # `convert` reads one stream in a run
    runs = [[path] for path in inputs] if alone else [inputs]
    expected, left_out = [], set()
    for among in runs:
        lines, refusals = converted(replace(wanted, inputs=tuple(map(str, among))))
        expected += lines
        left_out |= refusals
    found, refused = backlogged(spark, replace(wanted, output=str(tmp_path / "out")))
    assert len(expected) == 12
    assert found == expected
    assert not refused
    assert left_out == set()


@pytest.mark.parametrize("target", ["xds", "changes"])
def test_small_files_of_documents_share_a_task(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Give a change no position of its task, because it has an event-id."""
    monkeypatch.setattr("eventlog_spark.inputs._PORTION_FILES", 2)
    inputs = [make(tmp_path / f"in{first}", "xds", first) for first in (10, 20, 30)]
    wanted = replace(job(inputs, tmp_path / "expected", source="xds", to=target), tables=LAYOUT)
    expected, _ = converted(wanted)
    found, refused = backlogged(spark, replace(wanted, output=str(tmp_path / "out")))
    assert (found, refused) == (expected, {})
    assert len([*tmp_path.glob("out/documents/part-*")]) == 2


def test_change_tables_and_messages_are_one_sequence_by_default(spark: Any, tmp_path: Path) -> None:
    """Join B rows to U rows of another input, as `convert` does."""
    rows = exports.export()
    inputs = []
    for number, start in enumerate(range(0, 1000, 300)):
        inputs.append(tmp_path / str(number) / "item__ct.csv")
        inputs[-1].parent.mkdir()
        inputs[-1].write_text(exports.csv(rows[start : start + 300]))
    wanted = job(inputs, tmp_path / "expected", source="qlik-table", to="changes")
    expected, _ = converted(wanted)
    wanted = replace(wanted, output=str(tmp_path / "out"))
    found, refused = backlogged(spark, wanted)
    assert len(expected) == 512
    assert found == expected
    assert refused.total() == 98
    assert all("B rows without their U row" in reason for reason in refused)
