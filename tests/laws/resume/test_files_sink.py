"""A writer of files is stopped at each step of batches that are brought to disk in several lots."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import ACCEPTED, UNSENT, OutgoingDocument
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import Meter, metered_files
from tests.laws.resume.trials import Document, Reference
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

SAMPLES = samples(quick=12, long=200, pairs=100, dark=12)
BATCHES = (range(1, 151), range(151, 153), range(153, 154))  # a batch for each stage
PATIENCE = 3  # deliveries of a batch until all of it is out
OBJECTS = 10


class Batches:
    """A writer that delivers batches; two documents of a batch are of one object."""

    stages = len(BATCHES)
    idle = 0
    repeats = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._out = folder / "out"
        self._added = folder / "added"

    def add(self, stage: int) -> None:
        with self._added.open("a") as added:
            added.writelines(f"{number}\n" for number in BATCHES[stage])

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files(meter)

    def run(self, report: Report, length: RunLength) -> None:
        while True:
            self._check_order()
            with closing(FilesSink(self._out)) as sink:
                for _ in range(PATIENCE):
                    documents = [document for document in self._documents() if not sink.knows(document.name)]
                    replies = list(sink.deliver(documents)) if documents else []
                    assert replies.count(ACCEPTED) + replies.count(UNSENT) >= len(replies) - 1
            if not length.wait(0):
                return

    def _documents(self) -> Sequence[OutgoingDocument]:
        return [make(int(number)) for number in self._added.read_text().split()]

    def _check_order(self) -> None:
        """Raise AssertionError unless the first documents are out, because renames are done in order."""
        rows = [int(path.stem.rpartition("-")[2]) for path in self._out.glob("*.xml")]
        assert sorted(rows) == [*range(1, len(rows) + 1)]

    def documents(self) -> list[Document]:
        paths = sorted(self._out.glob("*.xml"))
        return [self._document(path) for path in paths]

    def _document(self, path: Path) -> Document:
        name = path.stem.partition("-")[2]
        return Document(str(int(name.partition("-")[0]) % OBJECTS), name, path.read_text())


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.family
def test_each_document_is_out_once_and_in_its_order(tmp_path: Path, sample: Sample) -> None:
    sample.check(Reference(Batches, tmp_path))
