"""What every task of a job knows, one attempt at a partition, and what it answers to the driver."""

from __future__ import annotations

import base64
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from eventlog.core import settings
from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Format, SheetRow
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.formats import format_named
from eventlog.log import SHEET as LOG_SHEET
from eventlog_spark.cluster.stores import Stores
from eventlog_spark.io.part_files import DOCUMENTS, PartFile, PartFiles, PartLayout, Summed, document_rows
from eventlog_spark.io.spelling import Noticed
from eventlog_spark.io.storage import NO_STORES

Ids = npt.NDArray[np.int64]
REFUSED = pa.schema([("record_id", pa.int64()), ("reason", pa.string())])
_HELD = 50_000  # refused rows in memory
LONGEST = 100_000
_FIRST = 20  # reasons that are kept as examples


@dataclass
class Summary:
    """The summary that a task returns to the driver: its files and its counts."""

    rows: int = 0  # log rows, or changes where the source is no log
    fates: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)  # by table and operation: "usr modify"
    unreadable: int = 0
    noticed: Noticed = field(default_factory=Noticed)  # of rows that may not have met
    reasons: list[tuple[str, str]] = field(default_factory=list)
    files: list[PartFile] = field(default_factory=list)
    refused: str | None = None  # a file of record_ids and reasons, if there are any
    explained: list[PartFile] = field(default_factory=list)  # of records that are refused as they are
    ids: str | None = None  # a file of all record_ids
    kept: str | None = None  # a file of events that are still to be sorted

    @property
    def refused_rows(self) -> int:
        """Return how many records were left out."""
        return sum(file.records for file in self.explained)

    def refuse(self, where: str, reason: str) -> None:
        """Keep the first reasons as examples."""
        if len(self.reasons) < _FIRST:
            self.reasons.append((where, reason))

    def add(self, other: Summary) -> None:
        """Add another task's counts and files."""
        self.rows += other.rows
        self.fates += other.fates
        self.events += other.events
        self.unreadable += other.unreadable
        self.reasons = [*self.reasons, *other.reasons][:_FIRST]
        self.files += other.files
        self.explained += other.explained

    def written_by(self, writing: Summary) -> None:
        """Replace the files and events by those of the tasks that wrote what was folded before."""
        self.files, self.events = writing.files, writing.events


def total(summaries: Iterable[Summary]) -> Summary:
    """Return the counts and files of all summaries together."""
    whole = Summary()
    for summary in summaries:
        whole.add(summary)
    return whole


@dataclass(frozen=True)
class Task:
    """The same for every task of a job."""

    tables: Tables
    rules: Rules
    now: str | None
    answerable: frozenset[Table]
    asked: Mapping[str, str]  # the patterns of the keys of current rows that Spark spells, by table
    target: str
    given: Mapping[str, Any]
    layout: PartLayout
    strict: bool = False
    first_part: int = 0  # the number of the shuffle's first part
    longest: int = LONGEST  # rows of a life that are held in memory
    stores: Stores = NO_STORES  # where the inputs are

    @property
    def format(self) -> Format:
        return format_named(self.target)

    @property
    def target_settings(self) -> Any:
        return settings.build(self.format.settings, self.given)

    @property
    def writes_lines(self) -> bool:
        """Return whether documents are lines of one event each, as the columnar fold makes them."""
        if self.target != "xds" or self.layout.container != "blob" or self.layout.per_file:
            return False
        xds = self.target_settings
        as_logged = not self.rules.handle_future_events
        return bool(as_logged and xds.batch_size == 1 and not xds.pretty)

    def write(self, changes: Iterable[Change]) -> Iterator[Any]:
        """Yield the records of changes, in the target's format and container."""
        write = self.format.write
        assert write is not None
        if self.layout.sheet != DOCUMENTS:
            return write(changes, self.tables, self.target_settings)
        return document_rows(changes, lambda change: write([change], self.tables, self.target_settings))

    def operation(self, change: Change) -> str:
        """Return the name of the change in a summary."""
        as_modify = change.current and change.fields and self.rules.insert_query_back == "modify"
        if change.op is Op.INSERT and as_modify:
            return _OPERATIONS[Op.UPDATE]
        return _OPERATIONS[change.op]


_OPERATIONS = {
    Op.INSERT: "add",
    Op.SNAPSHOT: "add",
    Op.UPDATE: "modify",
    Op.DELETE: "delete",
    Op.TRUNCATE: "truncate",
}


class StoppedAt(EventlogError):
    """stopped at the first bad record: {0}: {1}"""


class Attempt:
    """One attempt at one partition: its parts, what it refused, and the ids that it saw."""

    def __init__(self, task: Task, part: int | None = None) -> None:
        context = TaskContext.get()
        self._strict = task.strict
        self.part: int = task.first_part + context.partitionId() if part is None and context else part or 0
        self.summary = Summary()
        self.parts = PartFiles(task.layout, self.part)
        self._folder = task.layout.folder
        self._work = task.layout.work
        self._refused: pq.ParquetWriter | None = None
        self._held: list[tuple[int, str]] = []
        self._explained: Summed | None = None
        self._closing = ExitStack()
        self._ids: list[Ids] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._closing:
            self.parts.__exit__(kind, fault, trace)
            if kind is None:
                self._flush_refused()
                self._save_ids()
                self.summary.files = self.parts.files
        if self._explained is not None and kind is None:
            (part,) = self.summary.explained
            part.size, part.sha256 = self._explained.size, self._explained.sha256

    def see(self, ids: Ids) -> None:
        """Note record_ids that must occur only once."""
        self._ids.append(ids)

    def refuse_row(self, record_id: int, reason: str) -> None:
        """Refuse a row by its record_id; its place is looked up afterwards."""
        self._tell(f"record_id {record_id}", reason)
        self._held.append((record_id, reason))
        if len(self._held) >= _HELD:
            self._flush_refused()

    def refuse(self, refused: Refused, record_ids: Sequence[int] = ()) -> None:
        """Refuse a known record; a notice without a fault only counts."""
        if not refused.fault:
            self.summary.fates[refused.reason] += 1
            return
        self._tell(refused.where, refused.reason)
        if self._explained is None:
            name = f"refused-{uuid.uuid4().hex}.jsonl"
            self.summary.explained = [PartFile(name, self.part, -1, "", "jsonl")]
            self._explained = self._closing.enter_context(Summed(self._folder.create(name)))
        self._explained.write(refused_line(refused, record_ids).encode())
        self.summary.explained[0].records += 1

    def good(self, records: Iterable[Any]) -> Iterator[Any]:
        """Yield the records that are not refused, and refuse the others."""
        for record in records:
            if not isinstance(record, Refused):
                yield record
            elif record.fault or not record.grouped:  # what else is counted is reported together
                self.refuse(record)

    def count_rows(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Count the changes that are read."""
        for change in changes:
            self.summary.rows += 1
            yield change

    def write_changes(self, task: Task, changes: Iterable[Change]) -> None:
        """The changes in the target's format."""
        for record in task.write(self._counted(task, changes)):
            if isinstance(record, Refused):
                self.refuse(record, _rows_of(record))
            else:
                self.parts.write(numbered_apart(record, self.part))

    def keep(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Keep events in a file that only the job reads."""
        writer = None
        for batch in batches:
            if writer is None:
                self.summary.kept = uuid.uuid4().hex
                writer = self._parquet(self.summary.kept, batch.schema)
            writer.write_batch(batch)

    def _parquet(self, name: str, schema: pa.Schema) -> pq.ParquetWriter:
        """Return a file that only the job reads, closed with the attempt."""
        file = self._closing.enter_context(self._work.create(name))
        return self._closing.enter_context(pq.ParquetWriter(file, schema))

    def _counted(self, task: Task, changes: Iterable[Change]) -> Iterator[Change]:
        for change in changes:
            self.summary.events[f"{change.table} {task.operation(change)}"] += 1
            yield change

    def _tell(self, where: str, reason: str) -> None:
        if self._strict:
            raise StoppedAt(where, reason)
        self.summary.refuse(where, reason)

    def _flush_refused(self) -> None:
        if not self._held:
            return
        if self._refused is None:
            self.summary.refused = uuid.uuid4().hex
            self._refused = self._parquet(self.summary.refused, REFUSED)
        ids, reasons = zip(*self._held, strict=True)
        self._refused.write_batch(
            pa.record_batch([pa.array(ids, pa.int64()), pa.array(reasons, pa.string())], schema=REFUSED)
        )
        self._held = []

    def _save_ids(self) -> None:
        if self._ids:
            self.summary.ids = uuid.uuid4().hex
            with self._work.create(self.summary.ids) as file:
                np.save(file, np.sort(np.concatenate(self._ids)))


def numbered_apart(record: Any, part: int) -> Any:
    """Return a written log row under a record_id that no other part gives: parts number apart, in their
    order.
    """
    if part and isinstance(record, SheetRow) and record.sheet == LOG_SHEET:
        return record._replace(cells=(record.cells[0] + part * _APART, *record.cells[1:]))
    return record


_APART = 1 << 40


def _rows_of(refused: Refused) -> Sequence[int]:
    """Return the log rows of an event that a writer could not express: it is kept with their ids."""
    change = json.loads(refused.raw) if refused.raw else {}
    found: Sequence[int] = change.get("extra", {}).get("record_ids", ())
    return found


def refused_line(refused: Refused, record_ids: Sequence[int] = ()) -> str:
    """Return a refused record as a line of the refused folder: the record as text, or in Base64."""
    line: dict[str, Any] = {"where": refused.where, "reason": refused.reason}
    if record_ids:
        line["record_ids"] = list(record_ids)
    if refused.raw is not None:
        try:
            line["record"] = refused.raw.decode()
        except UnicodeDecodeError:
            line["base64"] = base64.b64encode(refused.raw).decode("ascii")
    return json.dumps(line) + "\n"
