"""A log in a database: its pending rows are copied in one snapshot, put on record, folded, and finished.

A publisher that finds the record forgets it. A backlog that finds one folds exactly its rows again, so they
leave under the same event-ids.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.entry import COLUMNS, OBJECT, Letter, read_event_time
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.identity import identify, object_of
from eventlog.core.plurals import quantity
from eventlog.core.portions import portions
from eventlog.core.text_digest import SIZE, digest
from eventlog.fold import Need, query_key
from eventlog.fold.by_column.key_patterns import current_key
from eventlog.fold.event_table import OPERATIONS
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings, SessionSettings
from eventlog.opening.publisher_tables import read_readable, read_tables, with_sections
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.read_back import CHUNK, Allowance, CurrentRows
from eventlog.publisher.reading import FoldedPickUp
from eventlog.publisher.settlement import letters_of
from eventlog.sinks import open_sink, sink_kind
from eventlog.sql.current_rows import NO_BOUND, TooMuch
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.leader_transaction import Failure, LeaderTransaction
from eventlog.sql.log.log_record import (
    LOOPBACK,
    BacklogSum,
    RecordedBatch,
    RecordedEvent,
    still_to_go,
    write_backlog,
    write_backlog_sum,
    write_rows,
)
from eventlog.sql.log.pending import LogCells, PickUpFilter
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.xds.documents import HEAD, TAIL
from eventlog_spark.backlog import DIGEST, Backlog, OutputFolder, Say, begin_stage
from eventlog_spark.batches import gather
from eventlog_spark.current_rows import current_row
from eventlog_spark.fold import FoldToDocuments, FoldToRows
from eventlog_spark.library import fold_task, folded
from eventlog_spark.log_rows import feed_of
from eventlog_spark.packing import Exchange, RowFeed, as_they_are
from eventlog_spark.shuffle import CURRENT

_CHUNK = 10_000  # rows finished in one transaction
_RECORDED = 100_000  # rows of one batch on record
_COPIED = 100_000  # rows that are written together
_EVENT_TIME: Final = COLUMNS.index("event_time")
_EVENT_TYPE: Final = COLUMNS.index("event_type")
_SECONDS: Final = len("yyyy-mm-dd hh:mm:ss")
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
    with leader:
        return _Run(spark, backlog, live, leader, say).run()


@dataclass
class _Chosen:
    """The rows that were copied, and the events that a publisher recorded."""

    recorded: FoldedPickUp
    digests: frozenset[bytes]  # of these events, as the publisher put them on record
    ids: list[int] = field(default_factory=list)
    needs: dict[Need, None] = field(default_factory=dict)


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
        self._output = OutputFolder(spark, self._backlog)

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
            rows = self._finish(covered, digested, anew) + self._finish_loopback()
            self._say(f"{quantity(rows, 'row')} finished in the log")
        return Finished(documents, refused, rows)

    # --- documents

    def _write(self, batches: Sequence[RecordedBatch]) -> tuple[Sequence[RecordedBatch], Any, list[int]]:
        """Return the batches that the output covers, what was written, and the rows of events that left with
        another text than a publisher put on record.
        """
        recorded = [batch for batch in batches if _is_ours(batch)]
        begin_stage(self._spark, self._say, "copy")
        chosen = self._live.store.read(partial(self._copy, batches, recorded))
        if not recorded and chosen.ids:
            self._record(chosen.ids, self._live.store.latest_batch())
            batches = self._live.store.remembered()
        begin_stage(self._spark, self._say, f"fold {quantity(len(chosen.ids), 'row')}")
        rows = self._spark.read.parquet(self._output.written("copy/rows"))
        current = self._spark.read.schema(from_arrow_schema(CURRENT)).parquet(
            self._output.written("copy/current")
        )
        form = self._backlog.form
        feeds, answering = [feed_of(rows, self._reading)], [RowFeed(current, as_they_are)]
        exchange = Exchange.of([*feeds, *answering], self._backlog.partitions)
        unique = len(set(chosen.ids)) == len(chosen.ids)
        task: Any = WithDigests(fold_task(self._reading, form))
        frame = folded(feeds, answering, self._reading, task, exchange, unique=unique)
        first, anew = self._recorded_first(chosen)
        first += [(*form.refused(reason, None, (row,)), None) for row, reason in chosen.recorded.refused]
        if first:
            frame = self._spark.createDataFrame(first, frame.schema).coalesce(1).unionByName(frame)
        result = self._output.write(lambda _: frame)
        for sentence in result.sentences():
            self._say(sentence)
        return batches, result, anew

    def _recorded_first(self, chosen: _Chosen) -> tuple[list[tuple[Any, ...]], list[int]]:
        """Return the events that a publisher recorded, as rows of documents ahead of all others, and the
        record_ids of those whose text is another one by now. Only these have a digest, for that of the others
        is on record.
        """
        documents, anew, events = list[tuple[Any, ...]](), set[int](), chosen.recorded.events
        for at, event in enumerate(events.events()):
            text_digest = events.digests[SIZE * at : SIZE * (at + 1)]
            ids, op = list(event.rows), str(OPERATIONS[events.operations[at]])
            facts = event.event_id, *event.object, op, ids[0], ids[-1], ids
            is_anew = text_digest not in chosen.digests
            number = _as_number(text_digest) if is_anew else None
            documents.append((events.document(at, at + 1).decode(), *facts, "", None, None, None, number))
            anew.update(ids if is_anew else ())
        return documents, sorted(anew)

    def _copy(
        self, batches: Sequence[RecordedBatch], recorded: Sequence[RecordedBatch], snapshot: Snapshot
    ) -> _Chosen:
        """Copy pending rows and the current rows that they need, as of one moment."""
        reading, digests, recorded_rows = self._recorded(batches, snapshot)
        chosen = _Chosen(reading, digests)
        if recorded:
            cells: Iterable[LogCells] = snapshot.rows(list(_recorded_rows(recorded)))
        else:
            cells = self._pending(snapshot, recorded_rows)
        rows = map(_with_shortest_time, self._noted(cells, chosen))
        self._store("copy/rows", gather(rows, _LOG, _COPIED), _LOG)
        current = gather(self._current(snapshot, list(chosen.needs)), CURRENT, _COPIED)
        self._store("copy/current", current, CURRENT)
        return chosen

    def _pending(self, snapshot: Snapshot, recorded: frozenset[int]) -> Iterator[LogCells]:
        """Yield the pending rows that may go now, without those that a publisher recorded.

        Rows with ids that the log's sequence has not given are left to the publisher, which refuses them.
        """
        rules, held_objects, bound = self._reading.rules, snapshot.held_objects(), snapshot.bound
        halted = self._tables.halted_spellings()
        choice = PickUpFilter(CHUNK, rules.loopback_user, tables=self._tables, halted=halted)
        now = read_event_time(snapshot.now()) if rules.handle_future_events else None
        for cells in snapshot.every_pending(choice, None, bound):
            is_future = now is not None and not _due(cells[_EVENT_TIME], now)
            is_held = bool(held_objects.hashes) and choice.object_of(*cells[OBJECT]) in held_objects
            if not (cells[0] in recorded or is_future or is_held):
                yield cells

    def _noted(self, rows: Iterable[LogCells], chosen: _Chosen) -> Iterator[LogCells]:
        """Yield the rows, and note their ids and the current rows that they ask for."""
        need_by_name: dict[tuple[Any, Any], Need | None] = {}
        for cells in rows:
            chosen.ids.append(int(str(cells[0])))
            name = cells[OBJECT]
            if cells[_EVENT_TYPE] in (5, 6, 7, 8):
                key = (name[0], name[1])
                if key not in need_by_name:
                    need_by_name[key] = self._need(*key)
                if (need := need_by_name[key]) is not None:
                    chosen.needs[need] = None
            yield cells

    def _need(self, table_name: Any, table_key: Any) -> Need | None:
        """Return what an object needs; None if its key cannot be queried."""
        try:
            named = identify(self._tables, table_name, table_key)
            if named.table in self._readable:
                return Need(named.table, query_key(named.table, named.pairs))
        except (EventlogError, TypeError):
            pass
        return None

    def _current(self, snapshot: Snapshot, needs: list[Need]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that the publisher would get, as many at a time as memory can hold."""
        for start in range(0, len(needs), CHUNK):
            yield from self._current_of(snapshot, needs[start : start + CHUNK])

    def _current_of(self, snapshot: Snapshot, needs: list[Need]) -> Iterator[tuple[Any, ...]]:
        allowance = Allowance(NO_BOUND) if len(needs) == 1 else Allowance()
        current = CurrentRows(snapshot, self._readable, True, allowance)
        try:
            current.read(needs)
        except TooMuch:
            middle = len(needs) // 2
            yield from self._current_of(snapshot, needs[:middle])
            yield from self._current_of(snapshot, needs[middle:])
            return
        for need in needs:
            reply, name = current.lookup(*need), self._tables.name_of(need.table)
            if isinstance(reply, EventlogError):
                yield current_row(0, name, current_key(*need), (), str(reply))
                continue
            for number, row in enumerate(reply):
                yield current_row(number, name, current_key(*need), row)

    def _store(self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write rows as Parquet in the folder of the output."""
        place, mode = self._output.place(name), "overwrite"
        for batch in batches:
            self._spark.createDataFrame(pa.Table.from_batches([batch])).write.mode(mode).parquet(place)
            mode = "append"
        if mode == "overwrite":
            self._spark.createDataFrame(schema.empty_table()).write.mode(mode).parquet(place)

    # --- what is on record

    def _record(self, ids: Sequence[int], number: int) -> None:
        """Put the chosen rows on record, before they are folded."""
        with self._live.store.as_leader(self._leader.epoch) as work:
            for at, rows in enumerate(portions(sorted(ids), _RECORDED), number + 1):
                work.remember(at, write_backlog(np.array(rows)), (rows[0], rows[-1]))
            work.note_highest(max(ids))

    def _recorded(
        self, batches: Sequence[RecordedBatch], snapshot: Snapshot
    ) -> tuple[FoldedPickUp, frozenset[bytes], frozenset[int]]:
        """Return the events that a publisher was about to send, their digests on record, and the rows of all
        that it recorded.
        """
        documents = [document for batch in batches for document in batch.documents()]
        unsent = still_to_go(documents, _out(documents, self._live.config))
        reader = PickUpFold(self._tables, self._readable, self._reading.rules, self._backlog.xds)
        reading = reader.refold(snapshot, unsent, thorough=True)
        rows = frozenset(row for _, events in documents for event in events for row in event.rows)
        return reading, frozenset(event.digest for event in unsent), rows

    # --- finish

    def _finish(
        self, batches: Sequence[RecordedBatch], digested: tuple[int, int], anew: Sequence[int]
    ) -> int:
        """Give the rows of these batches their letters, by ids; return how many were still new. What left is
        on record by the number of documents with a digest and the sum of these; of what a publisher recorded
        only the rows that left anew.
        """
        if not batches:
            return 0
        refused = {
            row: record.refused for record in self._output.refused() for row in record.record_ids or ()
        }
        finished = 0
        backlog_rows = list(_recorded_rows(batches))
        for ids in portions(backlog_rows, _CHUNK):
            with self._live.store.as_leader(self._leader.epoch) as work:
                self._letter(work, {Letter.SUCCESS: ids}, refused)
            finished += work.finished
        documents = [document for batch in batches for document in batch.documents()]
        letters = letters_of(event for _, events in documents for event in events)
        objects, number = self._objects(documents), self._live.store.latest_batch() + 1
        with self._live.store.as_leader(self._leader.epoch) as work:
            work.fail(failure for row, (_, failure) in letters.items() if failure and row not in refused)
            lettered = {
                letter: [row for row, (row_letter, _) in letters.items() if row_letter is letter]
                for letter in Letter
            }
            self._letter(work, lettered, refused)
            work.release_events(objects)
            for batch in batches:
                (work.forget_batch if self._deletes else work.settle_batch)(batch.number)
            summed = sorted([*backlog_rows, *anew])
            if summed and not self._deletes:
                total = write_backlog_sum(BacklogSum.of(len(summed), *digested))
                contents = [total, write_backlog(np.array(anew))] if anew else [total]
                for at, content in enumerate(contents, number):
                    work.remember(at, content, (summed[0], summed[-1]))
                    work.settle_batch(at)
        return finished + work.finished

    def _finish_loopback(self) -> int:
        """Finish the pending rows of our own user as a publisher does. Return how many they were."""
        user, finished = self._reading.rules.loopback_user, 0
        while user is not None:
            with self._live.store.snapshot() as snapshot:
                ids = snapshot.loopback(user, _CHUNK)
            if not ids:
                break
            number = self._live.store.latest_batch() + 1
            with self._live.store.as_leader(self._leader.epoch) as work:
                if not self._deletes:
                    work.remember(number, *write_rows({LOOPBACK: ids}))
                    work.settle_batch(number)
                work.finish({Letter.SUCCESS: ids}, delete=self._deletes)
            finished += work.finished
        if finished:
            rows = quantity(finished, f"row of {user} itself is", f"rows of {user} itself are")
            self._say(f"{rows} loopback: finished without being sent")
        return finished

    @property
    def _deletes(self) -> bool:
        return self._live.config.build(PublisherSettings).delete_from_log

    def _objects(self, documents: Sequence[tuple[str, Sequence[RecordedEvent]]]) -> list[Any]:
        """Return the objects of remembered events, which may wait for them, with these events."""
        events = {event.rows[0]: event.run_id for _, recorded in documents for event in recorded}
        with self._live.store.snapshot() as snapshot:
            rows = list(snapshot.rows(events)) if events else []
        named = [(cells[OBJECT], events[int(str(cells[0]))]) for cells in rows]
        return [(object_of(self._tables, str(name[0]), str(name[1])), event) for name, event in named]

    def _letter(
        self, work: LeaderTransaction, letters: Mapping[Letter, Sequence[int]], refused: Mapping[int, str]
    ) -> None:
        """Give rows their letters; refused ones get E and the reason."""
        good = {letter: [n for n in ids if n not in refused] for letter, ids in letters.items()}
        failed = [n for ids in letters.values() for n in ids if n in refused]
        good[Letter.ERROR] = [*good.get(Letter.ERROR, ()), *failed]
        work.fail(Failure(n, None, refused[n]) for n in failed)
        work.finish(good, delete=self._deletes)


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


def _is_ours(batch: RecordedBatch) -> bool:
    """Return whether a backlog put the batch on record."""
    return batch.backlog_rows() is not None


def _recorded_rows(batches: Iterable[RecordedBatch]) -> Iterator[int]:
    """Yield the rows that a backlog put on record."""
    for batch in batches:
        yield from batch.backlog_rows() or ()


def _out(documents: Sequence[tuple[str, Sequence[RecordedEvent]]], config: Config) -> set[str]:
    """Return the documents that are out for sure, if the publisher's sink keeps a record of it."""
    name = config.build(SessionSettings).sink
    if not documents or not sink_kind(name).keeps_record:
        return set()
    with closing(open_sink(name, config.values)) as sink:
        return {document for document, _ in documents if sink.knows(document)}


def _with_shortest_time(cells: LogCells) -> LogCells:
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
