"""A log in a database: its pending rows are copied in one snapshot, put on record, folded, and finished.

A publisher that finds the record forgets it. A backlog that finds one folds exactly its rows again, so they
leave under the same event-ids.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.entry import COLUMNS
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.identity import object_of
from eventlog.core.plurals import quantity
from eventlog.core.text_digest import SIZE, digest
from eventlog.fold.by_column.key_patterns import current_key
from eventlog.fold.event_table import OPERATIONS
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.publisher_tables import read_readable, read_tables, with_sections
from eventlog.publisher.backlog_copy import LeftEvents, NeededRow, SnapshotRows
from eventlog.publisher.backlog_rows import BacklogRows, is_of_backlog, recorded_rows
from eventlog.publisher.fold import PickUpFold
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.log_record import (
    RecordedBatch,
)
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.xds.documents import HEAD, TAIL
from eventlog_spark.backlog import Backlog, begin_stage
from eventlog_spark.batches import gather
from eventlog_spark.current_rows import current_row
from eventlog_spark.fold import FoldToDocuments, FoldToRows
from eventlog_spark.inputs import Say
from eventlog_spark.library import fold_task, folded
from eventlog_spark.log_rows import feed_of
from eventlog_spark.output_folder import DIGEST, OutputFolder
from eventlog_spark.packing import Exchange, RowFeed, as_they_are
from eventlog_spark.reports import NoteRefused, Reports, refused_records
from eventlog_spark.shuffle import CURRENT
from eventlog_spark.spark_versions import context_of, frame_of

_WITHOUT_CONTEXT = (
    "this session has no SparkContext: --partitions sets how many tasks fold. Only a session that has one"
    " spares a second fold if more than two records are refused"
)
_COPIED = 100_000  # rows that are written together
_LOG = pa.schema(
    [(name, pa.int64() if name in ("record_id", "event_type") else pa.string()) for name in COLUMNS]
)


class PublisherLeads(EventlogError):
    """a publisher is at work on this log: stop it until the backlog is done, which needs its lock"""


@dataclass(frozen=True)
class Live:
    """A log in a database, and whether its rows are finished when they are out."""

    store: Store
    config: Config
    finish: bool = False


class Finished(NamedTuple):
    """The counts of a run."""

    documents: int
    refused: int
    rows: int | None  # rows that got their letters


def run_live(spark: Any, backlog: Backlog, live: Live, say: Say = lambda sentence: None) -> Finished:
    """Write the pending rows of a log as documents, and finish them."""
    backlog.check()
    if backlog.job.target_format != "xds":
        raise Misuse("a log in a database becomes what its publisher sends: --to xds")
    leader = live.store.lead(f"backlog {os.getpid()}")
    if leader is None:
        raise PublisherLeads
    if context_of(spark) is None:
        say(_WITHOUT_CONTEXT)
    with leader:
        return _Run(spark, backlog, live, leader, say).run()


class _Run:
    """One run, as the leader of the log."""

    def __init__(self, spark: Any, backlog: Backlog, live: Live, leader: Leader, say: Say) -> None:
        self._spark = spark
        self._live = live
        self._leader = leader
        self._say = say
        store, config, tables = live.store, live.config, backlog.job.tables
        if len(tables):
            tables = with_sections(store.engine, tables, config)
        else:
            tables = read_tables(store.engine, store.log, config)
        with store.as_leader(leader.epoch) as work:
            work.rename(partial(object_of, tables))
        self._tables = tables
        self._readable = read_readable(store.engine, store.log, tables)
        self._backlog = replace(backlog, job=replace(backlog.job, tables=tables))
        reading = self._backlog.reading(list(self._readable))
        self._reading = replace(reading, now=None)  # the database's clock decides, when rows are copied
        self._output = OutputFolder(spark, self._backlog.job.output, self._backlog.layout)
        self._taken = BacklogRows(store, leader, tables, config.build(PublisherSettings).delete_from_log)

    def run(self) -> Finished:
        """Write what is not yet written, and finish what is not yet finished."""
        batches: Sequence[RecordedBatch] = self._live.store.remembered()
        marker = self._output.done()
        documents = refused = 0
        if marker is None:
            batches, result, anew = self._write(batches)
            documents, refused = result.documents, result.refused
            marker = json.dumps([[_digest(batch) for batch in batches], result.digested, anew])
            self._leader.paused_since()
            self._output.finish(marker)
        batch_digests, digested, anew = json.loads(marker)
        covered = [batch for batch in batches if _digest(batch) in batch_digests]
        if len(covered) < len(batch_digests):  # they are finished, or a publisher has gone on
            covered = []
        if not documents and not refused:
            self._say(f"{self._backlog.job.output} holds the output of this log")
        rows = None
        if self._live.finish:
            self._say("finish")
            rows = self._taken.finish(covered, digested, anew, self._refused()) + self._finish_loopback()
            self._say(f"{quantity(rows, 'row')} finished in the log")
        return Finished(documents, refused, rows)

    def _refused(self) -> dict[int, str]:
        """Return the reason of each row that was refused."""
        return {row: record.refused for record in self._output.refused() for row in record.record_ids or ()}

    def _finish_loopback(self) -> int:
        """Finish the pending rows of our own user as a publisher does. Return how many they were."""
        user = self._reading.rules.loopback_user
        finished = 0 if user is None else self._taken.finish_loopback(user)
        if finished:
            rows = quantity(finished, f"row of {user} itself is", f"rows of {user} itself are")
            self._say(f"{rows} loopback: finished without being sent")
        return finished

    # --- documents

    def _write(self, batches: Sequence[RecordedBatch]) -> tuple[Sequence[RecordedBatch], Any, list[int]]:
        """Return the batches that the output covers, what was written, and the rows of events that left with
        another text than a publisher put on record.
        """
        recorded = [batch for batch in batches if is_of_backlog(batch)]
        begin_stage(self._spark, self._say, "copy")
        left_events, ids = self._live.store.read(partial(self._copy, batches, recorded))
        if further := {*ids}.difference(recorded_rows(recorded)):
            self._taken.record(further)
            batches = self._live.store.remembered()
        begin_stage(self._spark, self._say, f"fold {quantity(len(ids), 'row')}")
        rows = self._spark.read.parquet(self._output.written("copy/rows"))
        current = self._spark.read.schema(from_arrow_schema(CURRENT)).parquet(
            self._output.written("copy/current")
        )
        form = self._backlog.form
        feeds, answering = [feed_of(rows, self._reading)], [RowFeed(current, as_they_are)]
        exchange = Exchange.of([*feeds, *answering], self._backlog.partitions)
        unique = len(set(ids)) == len(ids)
        reports = Reports.of(self._spark, self._backlog.strict)
        task = NoteRefused(WithDigests(fold_task(self._reading, form)), reports)
        frame = folded(feeds, answering, self._reading, task, exchange, unique=unique)
        first, anew = self._recorded_first(left_events)
        first += [(*form.refused(reason, None, (row,)), None) for row, reason in left_events.folded.refused]
        if first:
            frame = self._spark.createDataFrame(first, frame.schema).coalesce(1).unionByName(frame)
        refused = partial(refused_records, self._spark, lambda: frame)
        result = self._output.write(lambda: frame, refused, reports)
        for sentence in result.sentences():
            self._say(sentence)
        return batches, result, anew

    def _recorded_first(self, left_events: LeftEvents) -> tuple[list[tuple[Any, ...]], list[int]]:
        """Return the events that a publisher recorded, as rows of documents ahead of all others, and the
        record_ids of those whose text is another one by now. Only these have a digest, for that of the others
        is on record.
        """
        documents, anew, events = list[tuple[Any, ...]](), set[int](), left_events.folded.events
        for at, event in enumerate(events.events()):
            text_digest = events.digests[SIZE * at : SIZE * (at + 1)]
            ids, op = list(event.rows), str(OPERATIONS[events.operations[at]])
            facts = event.event_id, *event.object, op, ids[0], ids[-1], ids
            is_anew = text_digest not in left_events.digests
            number = _as_number(text_digest) if is_anew else None
            documents.append((events.document(at, at + 1).decode(), *facts, "", None, None, None, number))
            anew.update(ids if is_anew else ())
        return documents, sorted(anew)

    def _copy(
        self, batches: Sequence[RecordedBatch], recorded: Sequence[RecordedBatch], snapshot: Snapshot
    ) -> tuple[LeftEvents, Sequence[int]]:
        """Copy pending rows and the current rows that they need, as of one moment; return which they are."""
        reader = PickUpFold(self._tables, self._readable, self._reading.rules, self._backlog.xds)
        left_events = LeftEvents.of(batches, snapshot, reader, self._live.config)
        copy = SnapshotRows(snapshot, self._tables, self._readable, self._reading.rules)
        rows = (
            copy.recorded(recorded, left_events.broken_up)
            if recorded
            else copy.pending(left_events.kept_rows)
        )
        self._store("copy/rows", gather(rows, _LOG, _COPIED), _LOG)
        self._store("copy/current", gather(map(self._row_of, copy.current()), CURRENT, _COPIED), CURRENT)
        return left_events, copy.ids

    def _row_of(self, current: NeededRow) -> tuple[Any, ...]:
        """Return a current row as the shuffle takes it."""
        number, need, row = current
        place = number, self._tables.name_of(need.table), current_key(*need)
        return (
            current_row(*place, (), str(row)) if isinstance(row, EventlogError) else current_row(*place, row)
        )

    def _store(self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write rows as Parquet in the folder of the output."""
        place, mode = self._output.place(name), "overwrite"
        for batch in batches:
            frame_of(self._spark, pa.Table.from_batches([batch])).write.mode(mode).parquet(place)
            mode = "append"
        if mode == "overwrite":
            frame_of(self._spark, schema.empty_table()).write.mode(mode).parquet(place)


class WithDigests:
    """A task that adds to each document the digest of its event, as a number; refused records have none."""

    def __init__(self, task: FoldToRows | FoldToDocuments) -> None:
        self._task = task

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        return self._task.schema.append(pa.field(DIGEST, pa.int64()))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self._task(batches):
            texts = batch.column("document").cast(pa.binary()).to_pylist()
            numbers = pa.array([None if text is None else _number_of(text) for text in texts], pa.int64())
            yield pa.record_batch([*batch.columns, numbers], schema=self.schema)


def _number_of(document: bytes) -> int:
    """Return the digest of the only event of a document as a number."""
    return _as_number(digest(document[len(_HEAD) : len(document) - len(_TAIL)]))


def _as_number(text_digest: bytes) -> int:
    return int.from_bytes(text_digest, "little", signed=True)


_HEAD, _TAIL = HEAD.encode(), TAIL.encode()


def _digest(batch: RecordedBatch) -> str:
    return hashlib.sha256(batch.content.encode()).hexdigest()
