"""A backlog that finishes the rows of a live log is stopped at each statement; the next run ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eventlog.publisher import backlog_rows
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.kit.databases import Database
from tests.laws.resume.place import Place
from tests.laws.resume.samples import Sample
from tests.laws.resume.stops import How, Meter, metered_files, metered_statements
from tests.laws.resume.trials import Document, Reference
from tests.spark.lives import backlog, documents, failures, letters, make_store

pytestmark = [
    pytest.mark.long,
    # of cursors whose connection is cut
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOWS = (How.FAILED, How.INTERRUPTED)  # a child has no session of Spark
SAMPLES = [
    pytest.param(Sample("many", 12, hows=HOWS), id="many"),
    pytest.param(Sample("all", hows=HOWS), id="all", marks=[pytest.mark.nightly, pytest.mark.timeout(7200)]),
]


class Backlog:
    """A backlog of a log in a database; rows that came after its copy are left to the next one."""

    stages = 1
    idle = 0
    repeats = False

    def __init__(self, folder: Path, place: Place, spark: Any) -> None:
        self.folder = folder
        self._spark = spark
        place.empty()
        self._store = make_store(place.database.engine(), place.database.dialect)

    def add(self, stage: int) -> None:
        """Add nothing, because all rows are there from the beginning."""

    @contextmanager
    def metered(self, meter: Meter) -> Iterator[None]:
        with metered_files(meter), metered_statements(meter):
            yield

    def run(self, report: Report, length: RunLength) -> None:
        if "N" in letters(self._store):
            backlog(self._spark, self._store, self.folder / "out", finish=True)

    def documents(self) -> list[Document]:
        texts = sorted(documents(self.folder / "out"))
        facts = letters(self._store), sorted(failures(self._store).items())
        return [Document("log", "", str(facts)), *(Document("documents", "", text) for text in texts)]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_backlog_that_is_stopped_anywhere_is_ended_by_the_next(
    spark: Any, postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    monkeypatch.setattr(backlog_rows, "_CHUNK", 4)
    place = Place(postgres)
    sample.check(Reference(lambda folder: Backlog(folder, place, spark), tmp_path))
    place.engine.dispose()
