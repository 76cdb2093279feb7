"""A comparison that keeps a state is stopped at each step: what its output had and lost comes again."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from eventlog.cli import cli
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import Meter, metered_files
from tests.laws.resume.trials import Document, Reference

pytestmark = pytest.mark.quick

SAMPLES = samples(quick=6, long=60, pairs=20, dark=6, slow="Parquet files and their reader")
USERS = '[tables.usr]\nkey = ["id"]\ncolumns = { id = "integer", name = "varchar(20)" }\n'
STATES = (
    "1,a\n2,a\n3,a\n",
    "1,b\n3,a\n4,a\n",
    "2,c\n3,b\n4,a\n",
)


class Comparison:
    """A table that is compared with its kept rows each day; a consumer takes the output before the next."""

    stages = len(STATES)
    idle = 0
    repeats = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "out").mkdir()  # a folder of its own may lose what another keeps
        (folder / "tables.toml").write_text(USERS)

    def add(self, stage: int) -> None:
        (self.folder / "usr.csv").write_text(f"id,name\n{STATES[stage]}")

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files(meter)

    def run(self, report: Report, length: RunLength) -> None:
        state, output = str(self.folder / "kept.parquet"), str(self.folder / "out" / "out.jsonl")
        words = [state, str(self.folder / "usr.csv"), "--keep", state, "-o", output, "--table", "usr"]
        while True:
            self._take()
            cli.main(["compare", *words, "--tables", str(self.folder / "tables.toml")], standalone_mode=False)
            self._take()
            if not length.wait(0):
                return

    def _take(self) -> None:
        """Add the output to what was taken, if it is there; it is gone then."""
        output = self.folder / "out" / "out.jsonl"
        if output.exists():
            taken, lines = self.folder / "taken", output.read_text()
            with taken.open("a") as file:
                file.write(lines)
            output.write_text("")

    def documents(self) -> list[Document]:
        lines = (self.folder / "taken").read_text().splitlines()
        return [Document(str(json.loads(line)["key"]), "", line) for line in lines]


@pytest.mark.parametrize("sample", SAMPLES)
def test_no_difference_is_lost_wherever_a_comparison_is_stopped(tmp_path: Path, sample: Sample) -> None:
    sample.check(Reference(Comparison, tmp_path))
