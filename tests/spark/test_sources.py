"""Every other source through `backlog`: the same documents as `convert` makes, file by file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import Refused
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.linter.helpers import LAYOUT
from tests.sequence import exports
from tests.spark.helpers import CLOCK, backlogged, converted, job

pytestmark = pytest.mark.quick

FILES = {
    "qlik-table": "usr__ct.csv",
    "qlik-message": "m.jsonl",
    "gbase": "c.bin",
    "linter": "q.csv",
    "xds": "d.xml",
}


def lines(first: int) -> str:
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
    (folder / "changes.jsonl").write_text(lines(first))
    refused: list[Refused] = []
    inputs, output = (str(folder / "changes.jsonl"),), str(folder / FILES[source])
    options = {"last_sequence": f"20240323{first:027}"} if source.startswith("qlik") else {}
    conversion = Job("changes", source, inputs, output, tables=LAYOUT, options=options)
    convert(conversion, Report(refused.append), CLOCK)
    assert refused == []
    return folder / FILES[source]


@pytest.mark.parametrize("source", FILES)
def test_another_source_gives_what_convert_gives(spark: Any, tmp_path: Path, source: str) -> None:
    inputs = [make(tmp_path / f"in{first}", source, first) for first in (10, 20)]
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


def test_change_tables_and_messages_are_one_sequence_where_that_is_wanted(spark: Any, tmp_path: Path) -> None:
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
    found, refused = backlogged(spark, wanted, order="sequence")
    assert len(expected) == 512
    assert found == expected
    assert refused.total() == 98
    assert all("B rows without their U row" in reason for reason in refused)
