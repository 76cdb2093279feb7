"""A publisher is stopped at each statement and each step of its files sink: every document is out once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from lxml import etree

from eventlog.sinks.files import FilesSink
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.compare.rig import life
from tests.kit.logs import events_of, key
from tests.laws.resume.place import Place
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import Meter, metered_files_and_statements
from tests.laws.resume.trials import Document, Reference, Trial
from tests.world.world import World

pytestmark = [
    pytest.mark.quick,
    # of cursors whose connection is cut
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SAMPLES = samples(quick=1, long=40, pairs=10, dark=2, slow="publishers on a database")
PATIENCE = 20  # cycles until everything that is there is out


class Publishing:
    """A publisher whose documents are files; what is written to the log comes when all before it is out."""

    stages = 3
    idle = 0
    repeats = False

    def __init__(self, folder: Path, place: Place) -> None:
        self.folder = folder
        self._place = place
        place.empty()
        self._world = World(place.database.engine(), place.database.dialect)
        self._world.make()

    def add(self, stage: int) -> None:
        world = self._world
        if stage == 0:
            world.user(1)
            world.user(2)
            world.write(key(1), key(2), key(3, event_type=4))
        elif stage == 1:
            world.change("update usr set fname = 'John' where idu = 1")
            changed = {"event_type": 2, "column_name": "fname", "old_value": "Jack", "new_value": "John"}
            world.write(key(1, **changed), {"table_key": "refused"} | {"event_type": 6}, key(2, event_type=4))
        else:
            values = ({"event_type": 1, "column_name": "fname", "new_value": str(n)} for n in range(5))
            world.write(key(3, event_type=4), *(key(1, **columns) for columns in values))

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files_and_statements(meter)

    def run(self, report: Report, length: RunLength) -> None:
        while True:
            for _ in range(PATIENCE):
                self._cycle()
                if not self._is_pending():
                    break
            if not length.wait(0):
                return

    def _cycle(self) -> None:
        sink = FilesSink(self.folder / "out")
        try:
            self._world.cycle(sink, batch_size=3, max_changes=2, retry_wait=0)
        finally:
            sink.close()

    def _is_pending(self) -> bool:
        return bool(self._world.counts()["N"])

    def documents(self) -> list[Document]:
        paths = sorted((self.folder / "out").glob("*.xml"))
        documents = [self._document(event) for path in paths for event in events_of(path.read_text())]
        return [*documents, Document("log", "", str(sorted(self._world.counts().items())))]

    def _document(self, event: etree._Element) -> Document:
        event.attrib.pop("timestamp", "")
        text = etree.tostring(event, encoding="unicode")
        return Document(str(event.findtext("association")), str(event.get("event-id")), text)


class Comparing(Publishing):
    """A publisher without triggers: it compares a table with the state that it keeps."""

    def add(self, stage: int) -> None:
        world = self._world
        if stage == 0:
            world.user(1)
            world.user(2)
        elif stage == 1:
            world.change("update usr set fname = 'John' where idu = 1")
            world.change("delete from usr where idu = 2")
            world.user(3)
        else:
            world.user(2, "Jill")
            world.change("update usr set lname = null where idu = 3")

    def _cycle(self) -> None:
        sink = FilesSink(self.folder / "out")
        try:
            with life(self._world, sink, retry_wait=0, batch_size=2) as publisher:
                publisher.cycle()
        finally:
            sink.close()

    def _document(self, event: etree._Element) -> Document:
        """Return a document without its name, because a poll that is rolled back uses numbers up."""
        event.attrib.pop("event-id", "")
        return super()._document(event)


KINDS: dict[str, Callable[[Path, Place], Trial]] = {"publishing": Publishing, "comparing": Comparing}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.family
def test_each_document_is_out_once(tmp_path: Path, place: Place, kind: str, sample: Sample) -> None:
    sample.check(Reference(lambda folder: KINDS[kind](folder, place), tmp_path))
