"""The pending rows of a live log, shared out by record_id: each task freezes its share into a file.

Tasks reach the database through our own SQL layer. If it shares snapshots, shares are ranges of one snapshot.
Else the driver has frozen the ids, and tasks read those rows: the rows of a log are written once, and only
their letters change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice, takewhile
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from sqlalchemy.engine import URL

from eventlog.core.entry import COLUMNS, read_event_time
from eventlog.core.errors import EventlogError
from eventlog.sql.connect import connect_to_log
from eventlog.sql.log.pending import OBJECT, Cells, Selection
from eventlog.sql.log.snapshot import HeldObjects, Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog_spark.backlog.frozen import LOG, write_parquet
from eventlog_spark.io.batches import answer, gather
from eventlog_spark.io.folder_files import Files

SHARE = 250_000  # rows of one task
CHUNK = 25_000  # rows of one statement, and of one batch
_EVENT_TIME = COLUMNS.index("event_time")
_SECONDS = len("yyyy-mm-dd hh:mm:ss")


@dataclass(frozen=True)
class Access:
    """The access of a task to the log; it travels in pickled code only, because it contains the password."""

    url: URL  # which hides its password when it is printed
    connection_init: tuple[str, ...] = field(repr=False)
    log: Log
    shared: str | None  # the driver's snapshot; None where the database shares none

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The shared snapshot, else one of now."""
        engine = connect_to_log(self.url, self.connection_init)
        try:
            store = Store(engine, self.log)
            with store.snapshot() if self.shared is None else store.shared_snapshot(self.shared) as snapshot:
                yield snapshot
        finally:
            engine.dispose()


class Share(Protocol):
    """A part of the pending rows."""

    def cells(self, snapshot: Snapshot, choice: Selection, folder: Files) -> Iterator[Cells]: ...


class Range(NamedTuple):
    """The rows after one record_id, up to another."""

    after: int | None
    until: int | None

    def cells(self, snapshot: Snapshot, choice: Selection, folder: Files) -> Iterator[Cells]:
        return snapshot.every_pending(choice, self.after, self.until)


class Ids(NamedTuple):
    """The rows whose ids a file holds."""

    name: str

    def cells(self, snapshot: Snapshot, choice: Selection, folder: Files) -> Iterator[Cells]:
        with folder.open(self.name) as file:
            ids = np.load(file)
        return snapshot.rows(ids.tolist())


@dataclass(frozen=True)
class FreezeShare:
    """Writes the rows of a share into a file; answers its name and how many rows it has."""

    access: Access
    choice: Selection
    now: str | None  # rows of a later time wait
    without: frozenset[int]  # rows that another has frozen
    folder: Files
    held: HeldObjects  # waiting objects, whose rows may have spellings that are not on record yet

    def __call__(self, share: Share) -> Iterator[pa.RecordBatch]:
        with self.access.snapshot() as snapshot:
            wanted = filter(self._wanted, share.cells(snapshot, self.choice, self.folder))
            written = write_parquet(self.folder, gather(map(_sure, wanted), LOG, CHUNK), LOG)
        yield answer(written)

    def _wanted(self, cells: Cells) -> bool:
        if cells[0] in self.without or (self.now is not None and not _due(cells[_EVENT_TIME], self.now)):
            return False
        return not self.held.hashes or self.choice.object_of(*cells[OBJECT]) not in self.held


def _sure(cells: Cells) -> Cells:
    """Return the row with its time as Spark is sure of it: without noughts at the end of a fraction."""
    time = cells[_EVENT_TIME]
    if not isinstance(time, str) or not time.endswith("0") or len(time) <= _SECONDS:
        return cells
    shorter = time[:_SECONDS] + time[_SECONDS:].rstrip("0").rstrip(".")
    return (*cells[:_EVENT_TIME], shorter, *cells[_EVENT_TIME + 1 :])


def _due(time: object, now: str) -> bool:
    """Return whether the row's time has come; a row without a time is refused with the unreadable ones."""
    try:
        return read_event_time(str(time)) <= now
    except EventlogError:
        return True


def share_out(snapshot: Snapshot, choice: Selection, shared: bool, folder: Files) -> list[Share]:
    """Return shares of about the same size, at least one; rows with ids that the log's sequence has not given
    are left to the publisher, which refuses them.
    """
    bound = snapshot.bound
    if shared:
        ends = [end for end in snapshot.bounds(choice, SHARE) if end < bound]
        return [Range(*both) for both in zip([None, *ends], [*ends, bound], strict=True)]
    return list(_freeze_ids(takewhile(bound.__ge__, snapshot.every_pending_id(choice)), folder))


def _freeze_ids(ids: Iterable[int], folder: Files) -> Iterator[Share]:
    remaining = iter(ids)
    for number in count():
        share = np.fromiter(islice(remaining, SHARE), np.int64)
        if number and not len(share):
            return
        name = f"ids-{number:06d}.npy"
        with folder.create(name) as file:
            np.save(file, share)
        yield Ids(name)
