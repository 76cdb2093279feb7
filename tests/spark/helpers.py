"""The same log through `convert` and through `backlog`, and what came out of each."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventlog_spark.backlog import Backlog, run

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.core.identity import object_of
from eventlog.files.outputs import ROW_WRITERS
from eventlog.formats.log import SHEET
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report

CLOCK = "2025-01-01 00:00:00"
TABLES = """
[tables.usr]
schema = "indirect"
key = ["idu"]
columns = { idu = "integer", fname = "varchar(64)", lname = "char(8)", photo = "blob", born = "date", on = "boolean", age = "integer", "usr_phone.no" = "varchar(9)" }
withhold = ["age"]

[tables.grp]
key = ["org", "name"]
columns = { org = "varchar(9)", name = "varchar(9)", member = "varchar(9)", boss = "integer" }
multivalued = ["member"]
references = { boss = "usr" }
"""  # noqa: E501
Cells = Sequence[Any]
ByObject = dict[tuple[str, str], list[str]]


def write_log(path: Path, rows: Iterable[Cells]) -> Path:
    """Write a log in the container of the name."""
    with path.open("wb") as file:
        writer = ROW_WRITERS[path.suffix[1:]](file, SHEET.columns)
        for row in rows:
            writer.write(row)
        writer.close()
    return path


def job(inputs: Sequence[Path], output: Path, current: Sequence[tuple[str, str]] = (), **options: Any) -> Job:
    target = options.pop("to", "xds")
    source = options.pop("source", "log")
    tables = tablesfile.read(TABLES)
    return Job(
        source,
        target,
        tuple(map(str, inputs)),
        str(output),
        tables=tables,
        current=tuple(current),
        options=options,
    )


def converted(conversion: Job) -> tuple[list[str], set[tuple[str, str]]]:
    """Return the records that `convert` writes, and what it leaves out."""
    refused: set[tuple[str, str]] = set()

    def tell(record: Refused) -> None:
        if record.fault:  # else it is only reported
            refused.add((record.where, record.reason))

    output = Path(conversion.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    container = {"xds": None, "log": "csv"}.get(conversion.target_format, "jsonl")
    convert(replace(conversion, output_container=container), Report(tell), CLOCK)
    return output.read_text("utf-8").splitlines(), refused


def count_reasons(refused: Iterable[tuple[str, str]]) -> Counter[str]:
    """Return the counted reasons of what `convert` left out."""
    return Counter(reason for _, reason in refused)


def backlogged(spark: Any, conversion: Job, **how: Any) -> tuple[list[str], Counter[str]]:
    """Return the records that the parts hold, in their order, and the counted reasons of refusals."""
    result = run(spark, Backlog(conversion, CLOCK, **how))
    output = Path(conversion.output)
    assert (output / "documents" / "_SUCCESS").exists()
    records = lines(output)
    assert len(records) == result.documents
    refused = [record["refused"] for record in refused_in(output)]
    assert len(refused) == result.refused
    places = "|".join(re.escape(name) for name in conversion.inputs)
    return records, Counter(re.sub(rf"^(({places})[^ ]*|[^ ]*:\d+): ", "", reason) for reason in refused)


def lines(output: Path) -> list[str]:
    """Return the records of an output folder, in the order of its parts."""
    parts = sorted(output.glob("documents/part-*"))
    return [line for part in parts for line in part.read_text("utf-8").split("\n") if line]


def refused_in(output: Path) -> list[dict[str, Any]]:
    """Return the refused records of an output folder."""
    parts = sorted(output.glob("refused/part-*"))
    return [json.loads(line) for part in parts for line in part.read_text("utf-8").split("\n") if line]


def write_topic(path: Path, count: int, text: str) -> Path:
    """Write messages of Debezium: deletes with and without a tombstone, tombstones alone, and odd lines."""
    values: list[Any] = []
    for number in range(1, count):
        source = {"table": "usr", "schema": "own", "lsn": number}
        name = "x" * 70_000 if number == 20 else text * (number % 7)
        delete = {"op": "d", "before": {"idu": number, "fname": name}, "source": source}
        values += [{"key": {"idu": number}, "value": delete}] * (number % 3 > 0)
        values += ["odd"] * (number % 5 == 0)
        values += [{"key": {"idu": number if number % 4 else 0}, "value": None}]
    path.write_text("".join(json.dumps(value) + "\n" for value in values).replace('"odd"', "}"))
    return path


@contextmanager
def configured(spark: Any, **conf: str) -> Iterator[None]:
    """Return another session with other settings; in names _ means a dot."""
    names = {name.replace("_", "."): value for name, value in conf.items()}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def by_object(documents: Iterable[str], rows: Iterable[Cells]) -> ByObject:
    """Return the documents of each object, in their order."""
    tables = tablesfile.read(TABLES)
    names = {row[0]: object_of(tables, row[5], row[6]) for row in rows}
    reported: ByObject = defaultdict(list)
    for document in documents:
        match = _EVENT_ID.search(document)
        assert match is not None
        reported[names[int(match[1])]].append(document)
    return reported


_EVENT_ID = re.compile(r'event-id="eventlog:([0-9]+)')
