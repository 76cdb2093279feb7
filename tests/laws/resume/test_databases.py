"""What reads or writes a database is stopped at each statement and record, and goes on: each change once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eventlog.formats.neutral import dumps
from eventlog.transfer import job_output
from eventlog.transfer.apply import apply_to_database
from eventlog.transfer.job import Job
from eventlog.transfer.loop import ONE_ROUND, RunLength
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from tests.formats.linter.helpers import LAYOUT, ROW_1, ROW_2, end, operation
from tests.formats.linter.test_in_database import QUEUE
from tests.formats.linter.test_in_database import add as add_to_queue
from tests.kit.support import CLOCK
from tests.laws.resume.inputs import (
    HEADING,
    TABLES,
    capture_stages,
    changes_of_stage,
    documents_of_stage,
    table_rows,
    write_change_tables,
)
from tests.laws.resume.place import Place
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import Meter, metered_files_and_statements
from tests.laws.resume.test_files import Conversion
from tests.laws.resume.trials import Document, Reference, Trial

pytestmark = [
    pytest.mark.quick,
    # of cursors whose connection is cut
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


SAMPLES = samples(quick=2, long=60, pairs=20, slow="runs over a database")


# --- conversions from a database


class StoredTables(Conversion):
    """A conversion of change tables in a database, whose clock is far ahead of all rows."""

    source = "qlik-table"
    inputs = ("usr", "grp")
    until = (2, 150, 300)  # seconds

    def __init__(self, folder: Path, place: Place) -> None:
        super().__init__(folder, "changes", "out/", url=place.url)
        self.job = replace(self.job, inputs=self.inputs)
        self._place = place
        place.empty()
        for table in self.inputs:
            columns = HEADING.replace(",", " varchar(40), ")
            place.run(f"create table {table}__ct ({columns} varchar(40))")

    def add(self, stage: int) -> None:
        before = self.until[stage - 1] if stage else -1
        for table in self.inputs:
            old_rows = table_rows(table, before)
            rows = [row for row in table_rows(table, self.until[stage]) if row not in old_rows]
            texts = (", ".join(f"'{cell}'" for cell in row) for row in rows)
            self._place.run(*(f"insert into {table}__ct values ({text})" for text in texts))

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files_and_statements(meter)


def _queue_stages() -> list[list[tuple[Any, ...]]]:
    """Return the rows that come into a queue in each stage; transactions overlap, and a row is refused."""
    return [
        [
            operation(2, ROW_1, SYSLOG_ADDR=100, TRANSACT_ID=5),
            operation(2, ROW_1, SYSLOG_ADDR=110, TRANSACT_ID=6),
            operation(3, ROW_1, ROW_2, SYSLOG_ADDR=120, TRANSACT_ID=5),
            end(SYSLOG_ADDR=130, TRANSACT_ID=5),
            operation(2, ROW_1, SYSLOG_ADDR=140, TRANSACT_ID=7),
        ],
        [
            operation(2, ROW_1, b"refused", SYSLOG_ADDR=150, TRANSACT_ID=8),
            operation(1, ROW_2, SYSLOG_ADDR=160, TRANSACT_ID=8),
            end(SYSLOG_ADDR=170, TRANSACT_ID=8),
            operation(2, ROW_2, SYSLOG_ADDR=180, TRANSACT_ID=6),
        ],
        [
            end(SYSLOG_ADDR=190, TRANSACT_ID=6),
            end(10, SYSLOG_ADDR=200, TRANSACT_ID=7),
            operation(6, ROW_1, SYSLOG_ADDR=205, TRANSACT_ID=9),
            operation(1, ROW_1, SYSLOG_ADDR=210, TRANSACT_ID=9),
            end(SYSLOG_ADDR=220, TRANSACT_ID=9),
        ],
    ]


class Queue(Conversion):
    """A conversion of LINTER's queue."""

    source = "linter"
    inputs = ("dispatch_queue",)
    stages = len(_queue_stages())

    def __init__(self, folder: Path, place: Place) -> None:
        super().__init__(folder, "changes", "out/", url=place.url)
        self.job = replace(self.job, inputs=self.inputs, tables=LAYOUT)
        self._place = place
        place.empty()
        QUEUE.create(place.engine)

    def add(self, stage: int) -> None:
        add_to_queue(self._place.engine, *_queue_stages()[stage])

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files_and_statements(meter)


# --- apply

AUDIT = """
create table usr (id integer primary key, name varchar(20));
create table grp (id integer primary key, name varchar(20));
create table audit (number serial, tbl text, op text, old text, new text);
create function note() returns trigger language plpgsql as $$ begin
 insert into audit (tbl, op, old, new) values (tg_table_name, tg_op, old::text, new::text); return null;
end $$;
create trigger note after insert or update or delete on usr for each row execute function note();
create trigger note after insert or update or delete on grp for each row execute function note();
"""


class Application:
    """The application of changes to two tables, whose trigger notes what was done to which row."""

    stages = 3
    idle = 0
    repeats = False
    source: str

    def __init__(self, folder: Path, place: Place) -> None:
        self.folder = folder
        self._place = place
        place.empty()
        place.run(AUDIT)

    def names(self) -> list[str]:
        """Return the names of the files that are read."""
        raise NotImplementedError

    def add(self, stage: int) -> None:
        raise NotImplementedError

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return metered_files_and_statements(meter)

    def run(self, report: Report, length: RunLength) -> None:
        self._apply(report, length)

    def _apply(self, report: Report, length: RunLength) -> None:
        job = Job(
            self.source, "changes", tuple(self.names()), tables=TABLES, options={"follow_interval": 0.0}
        )
        apply_to_database(
            job, self._place.url, ApplySettings(group=1), report, CLOCK, lambda size: None, length
        )

    def documents(self) -> list[Document]:
        with self._place.engine.connect() as connection:
            rows = connection.exec_driver_sql("select tbl, op, old, new from audit order by number").all()
        return [Document(row[0], "", str(tuple(row))) for row in rows]


class TablesApplied(Application):
    """An application of change tables, with the source's state in the target."""

    source = "qlik-table"

    def names(self) -> list[str]:
        return [f"{self.folder}/{table}__ct.csv" for table in ("usr", "grp")]

    def add(self, stage: int) -> None:
        write_change_tables(self.folder, stage)


class CaptureApplied(Application):
    """An application of a capture, with the source's state in the target."""

    source = "gbase"

    def names(self) -> list[str]:
        return [f"{self.folder}/capture"]

    def add(self, stage: int) -> None:
        with (self.folder / "capture").open("ab") as file:
            file.write(capture_stages()[stage])


class Rounds(Application):
    """An input without positions, which is applied again whenever it grew."""

    def run(self, report: Report, length: RunLength) -> None:
        while True:
            self._apply(report, ONE_ROUND._replace(stop=length.stop))
            if length.stop() or not length.wait(0):
                return


class ChangesApplied(Rounds):
    """An application of changes without positions; the target remembers how many it applied."""

    source = "changes"

    def names(self) -> list[str]:
        return [f"{self.folder}/in.jsonl"]

    def add(self, stage: int) -> None:
        with (self.folder / "in.jsonl").open("a") as file:
            file.writelines(dumps(change) + "\n" for change in changes_of_stage(stage))


class DocumentsApplied(Rounds):
    """An application of documents; the target remembers their event-ids."""

    source = "xds"

    def names(self) -> list[str]:
        return [str(path) for path in sorted(self.folder.glob("*.xml"))]

    def add(self, stage: int) -> None:
        (self.folder / f"{stage}.xml").write_bytes(documents_of_stage(stage))


KINDS: dict[str, Callable[[Path, Place], Trial]] = {
    "stored-tables": StoredTables,
    "queue": Queue,
    "tables-applied": TablesApplied,
    "capture-applied": CaptureApplied,
    "changes-applied": ChangesApplied,
    "documents-applied": DocumentsApplied,
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a part after two changes."""
    monkeypatch.setattr(job_output, "CHANGES", 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.family
def test_each_change_comes_once_through_a_database(
    tmp_path: Path, place: Place, kind: str, sample: Sample
) -> None:
    sample.check(Reference(lambda folder: KINDS[kind](folder, place), tmp_path))
