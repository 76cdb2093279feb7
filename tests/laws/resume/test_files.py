"""Conversions of growing files are stopped at each point and go on from their states: parts come once."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyarrow import parquet

from eventlog.core.formats import Object
from eventlog.files import messages
from eventlog.transfer import job_output
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.kit.support import CLOCK
from tests.laws.resume.inputs import STAGES, TABLES, capture_stages, write_change_tables
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import Meter, metered_files
from tests.laws.resume.trials import Document, Reference, Trial

pytestmark = pytest.mark.quick

SAMPLES = samples(quick=6, long=120, pairs=40, dark=6)


class Conversion:
    """A conversion of files into a folder of parts, or into a file that grows."""

    def __init__(
        self,
        folder: Path,
        target: str,
        output: str,
        url: str | None = None,
        container: str | None = None,
        **options: object,
    ) -> None:
        self.folder = folder
        (folder / "kept").mkdir()  # a folder of its own may keep what another loses
        self.repeats = not output.endswith("/")
        self.job = Job(
            self.source,
            target,
            tuple(str(folder / name) for name in self.inputs),
            f"{folder}/{output}",
            tables=TABLES,
            output_container=container,
            options={"follow_interval": 0.0, **options},
            state=folder / "kept" / "state",
            url=url,
        )

    source: str
    inputs: tuple[str, ...]
    stages = len(STAGES)
    idle = 0

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files(meter)

    def run(self, report: Report, length: RunLength) -> None:
        convert(self.job, report, CLOCK, run_length=length)

    def documents(self) -> list[Document]:
        output = Path(self.job.output)
        files = [path for path in output.rglob("*") if path.is_file()] if output.is_dir() else [output]
        files.sort(key=lambda path: (path.suffix == ".csv" and path.name, path))  # tables one after the other
        return [document for path in files for document in documents_of(path)]


class Tables(Conversion):
    """A conversion of change tables."""

    source = "qlik-table"
    inputs: tuple[str, ...] = ("usr__ct.csv", "grp__ct.csv")

    def add(self, stage: int) -> None:
        write_change_tables(self.folder, stage)


class OneTable(Tables):
    """A conversion of one change table, which can go into one file of rows."""

    inputs = ("usr__ct.csv",)


class Capture(Conversion):
    """A conversion of a capture."""

    source = "gbase"
    inputs = ("capture",)

    def add(self, stage: int) -> None:
        with (self.folder / "capture").open("ab") as file:
            file.write(capture_stages()[stage])


def documents_of(path: Path) -> list[Document]:
    """Return the documents of a file; half a record that a stop left is none."""
    if path.suffix == ".jsonl":
        return [document for line in path.read_text().splitlines() for document in _document(line)]
    if path.suffix == ".parquet":
        return [Document(path.name, "", str(row)) for row in parquet.read_table(path).to_pylist()]
    if path.suffix == ".bin":
        with path.open("rb") as file:
            records = list(messages.read(file, path.name))
        return [Document("", "", str(record.raw)) for record in records if isinstance(record, Object)]
    heading, *lines = path.read_text().splitlines()
    return [Document(path.name, "", line) for line in lines if line.count(",") == heading.count(",")]


def _document(line: str) -> list[Document]:
    try:
        record = json.loads(line)
    except ValueError:
        return []
    if "message" not in record:
        return [Document(f"{record['table']} {record['key']}", record["position"], line)]
    data, headers = (record["message"].get(name) or {} for name in ("data", "headers"))
    return [Document(str(data.get("id")), str(headers.get("changeSequence")), line)]


KINDS: dict[str, Callable[[Path], Trial]] = {
    "tables-parts": lambda folder: Tables(folder, "changes", "out/"),
    "tables-parts-of-tables": lambda folder: Tables(folder, "qlik-table", "out/"),
    "tables-parts-of-messages": lambda folder: Tables(folder, "qlik-message", "out/"),
    "tables-parts-of-parquet": lambda folder: Tables(folder, "qlik-table", "out/", container="parquet"),
    "tables-growing-messages": lambda folder: Tables(folder, "qlik-message", "out.jsonl"),
    "tables-growing-framed": lambda folder: Tables(
        folder, "qlik-message", "out.bin", container="messages", encoding="avro"
    ),
    "tables-growing": lambda folder: Tables(folder, "changes", "out.jsonl"),
    "capture-parts": lambda folder: Capture(folder, "changes", "out/"),
    "capture-growing": lambda folder: Capture(folder, "changes", "out.jsonl"),
    "table-growing": lambda folder: OneTable(folder, "qlik-table", "out.csv"),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a part after two changes."""
    monkeypatch.setattr(job_output, "CHANGES", 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.family
def test_a_conversion_that_is_stopped_anywhere_goes_on(tmp_path: Path, kind: str, sample: Sample) -> None:
    sample.check(Reference(KINDS[kind], tmp_path))
