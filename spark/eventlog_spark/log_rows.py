"""The rows of a log as the shuffle takes them: as they were logged, with their kind.

They are checked by column; rows that columns cannot vouch for are read as `convert` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam

from eventlog.core import settings
from eventlog.core.entry import COLUMNS, read_event_time, read_record_id
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import stem_of
from eventlog.fold import Rules, present_of
from eventlog.fold.by_column.admit import Repeats
from eventlog.fold.by_column.objects import object_names
from eventlog.fold.by_column.vectors import Ints, flags
from eventlog.formats import log
from eventlog.transfer.log_files.by_column.checked_rows import TAKES_NO_PART, Checker
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, Slab, batch_of, by_column, one_by_one
from eventlog.transfer.log_files.letters import ReservedLetters
from eventlog_spark.batches import gather, task_number
from eventlog_spark.current_rows import by_number
from eventlog_spark.packing import Batches, Exchange, Parcels, RowFeed, Task, by_block, unpacked
from eventlog_spark.result_rows import text_of
from eventlog_spark.shuffle import LOG, NAMES, RowKind

_SHOWN = ("record_id", "event_type", *COLUMNS[5:], *COLUMNS[3:5])  # of a row with a repeated record_id
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class LogReading:
    """The rules by which the rows of a log are read."""

    tables: Tables
    rules: Rules
    clock: str  # the event_time of rows without one
    now: str | None  # rows of files wait for their time until then
    answerable: frozenset[Table]  # the tables whose current rows are at hand

    @classmethod
    def of(
        cls, tables: Tables, options: Mapping[str, Any], clock: str, answerable: Iterable[Table] = ()
    ) -> Self:
        """Return the rules by which a log is read with these options."""
        rules = settings.build(Rules, options)
        present = present_of(rules, options.get("now"), clock)
        return cls(tables, rules, read_event_time(clock), present, frozenset(answerable))

    def rows(self, checked: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that were checked, with their kinds."""
        ids, types = checked.column("record_id"), checked.column("event_type")
        texts = checked.columns[4:9]
        if "status" not in checked.schema.names:
            kinds = types.to_numpy()
            kinds = pa.array(np.where(kinds == TAKES_NO_PART, RowKind.NOT_NEW, kinds), pa.int8())
            names = [name for name in LOG.names[:-2] if name != "event_type"]
            return pa.record_batch([ids, kinds, *texts], names)
        facts = checked.column("event_time"), checked.column("perpetrator")
        return pa.record_batch([ids, self._kinds(checked), types.cast(pa.int8()), *texts, *facts], schema=LOG)

    def _kinds(self, checked: pa.RecordBatch) -> pa.Array:
        """Return the kinds of rows: their event types, or why they take no part."""
        rules, kinds = self.rules, checked.column("event_type").to_numpy()
        if rules.handle_future_events and self.now is not None:
            kinds = np.where(flags(pc.greater(checked.column("event_time"), self.now)), RowKind.FUTURE, kinds)
        if rules.loopback_user is not None:
            is_mine = flags(pc.equal(checked.column("perpetrator"), rules.loopback_user))
            kinds = np.where(is_mine, RowKind.LOOPBACK, kinds)
        is_new = flags(pc.equal(checked.column("status"), rules.status))
        return pa.array(np.where(is_new, kinds, RowKind.NOT_NEW), pa.int8())


def unreadable(reason: str, record: str | None, record_id: int | None = None) -> Cells:
    """Return the row of what cannot be read."""
    return (record_id, RowKind.UNREADABLE, None, None, None, None, reason, record, *[None] * 2)


def _refused_row(source: Source[Row], row: Row, reason: str) -> Cells:
    """Return a row that was refused, with its place; rows of a DataFrame have none."""
    refused = source.refuse(row, reason)
    try:
        number = read_record_id(row.cells[log.places(source.columns, source.name)[0] or 0])
    except EventlogError:
        number = None
    return unreadable(f"{refused.where}: {reason}" if source.name else reason, text_of(refused.raw), number)


class LogSource:
    """A reader of the rows of one source by column; what that cannot vouch for is read row by row."""

    def __init__(self, reading: LogReading, name: str, columns: tuple[str, ...], *, has_facts: bool) -> None:
        self._reading = reading
        self._source: Source[Row] = Source(name, stem_of(name), columns, ())
        rules = reading.rules
        self._checker = Checker(0, columns, name, reading.clock, rules, ReservedLetters(rules), has_facts)

    def rows(self, slab: Slab) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slab as the shuffle takes them."""
        if isinstance(slab, Refused):
            yield from gather([unreadable(f"{slab.where}: {slab.reason}", text_of(slab.raw))], LOG)
            return
        batch = slab if isinstance(slab, RowBatch) else by_column(self._source.columns, slab) or slab
        checked = self._checker.read(batch)
        yield self._reading.rows(checked.rows)
        reasons = {odd.where: odd.reason for odd in checked.odd}
        if reasons:
            odd_rows = (row for row in one_by_one(batch) if row.where in reasons)
            refused = (_refused_row(self._source, row, reasons[row.where]) for row in odd_rows)
            yield from gather(refused, LOG)


@dataclass(frozen=True)
class ReadFrame:
    """A task for the rows of a DataFrame."""

    reading: LogReading
    columns: tuple[str, ...]
    has_facts: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = LogSource(self.reading, "", self.columns, has_facts=self.has_facts)
        for batch in batches:
            if batch.num_rows:
                yield from source.rows(batch_of(self.columns, batch))


def feed_of(frame: Any, reading: LogReading, *, has_facts: bool = True) -> RowFeed:
    """Return the rows of a DataFrame for the shuffle; each is read once."""
    used = [at for at in log.places(frame.columns, "the log") if at is not None]
    columns = tuple(frame.columns[at] for at in used)
    numbered = by_number(frame).select(*(f"c{at}" for at in used))
    return RowFeed(numbered, ReadFrame(reading, columns, has_facts))


# --- the names of objects


@dataclass(frozen=True)
class Named:
    """A task that gives the rows of another the one name of their object."""

    tables: Tables
    task: Task

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in self.task(batches):
            cells = dict(zip(rows.schema.names, rows.columns, strict=True))
            cells |= zip(NAMES, object_names(self.tables, *map(rows.column, NAMES)), strict=True)
            yield pa.record_batch(list(cells.values()), schema=rows.schema)


# --- record_ids


@dataclass(frozen=True)
class Unique:
    """A task for whole shares of rows by record_id: of those that share one none can be believed."""

    schema: pa.Schema

    def feed(self, feeds: Sequence[RowFeed], exchange: Exchange) -> RowFeed:
        """Return the rows of these feeds without those that share a record_id, which are refused."""
        return RowFeed(exchange.rows(Parcels(feeds, self.schema, by_block)), self)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (rows,) in unpacked(batches, self.schema):
            ids = pc.fill_null(rows.column("record_id"), 0).to_numpy()
            readable = rows.column("kind").to_numpy() != RowKind.UNREADABLE
            repeats = Repeats.among(ids[readable])
            if not len(repeats.ids):
                yield rows
                continue
            is_repeated = readable & repeats.find(ids)
            yield rows.filter(pa.array(~is_repeated))
            repeated = zip(
                rows.filter(pa.array(is_repeated)).to_pylist(), repeats.reasons(ids[is_repeated]), strict=True
            )
            yield from gather(starmap(_repeated, repeated), self.schema)


_MOST_RUNS = 10_000  # of a task
SCATTERED = "record_ids are in no order"


class ScatteredIds(EventlogError):
    """record_ids are in no order: compare them in a shuffle"""


class RunsOfTasks(AccumulatorParam[dict[int, Ints]]):
    """Runs of record_ids by the number of a task; a task that is repeated has the same."""

    def zero(self, value: dict[int, Ints]) -> dict[int, Ints]:
        """Return no runs."""
        return {}

    def addInPlace(  # noqa: N802 - PySpark's name
        self, value1: dict[int, Ints], value2: dict[int, Ints]
    ) -> dict[int, Ints]:
        """Return the runs of all tasks."""
        return value1 | value2


@dataclass(frozen=True)
class NoteIds:
    """A task that notes the runs of record_ids among the rows of another."""

    task: Task
    runs: Any  # an accumulator

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        runs = np.empty((0, 2), np.int64)
        for rows in self.task(batches):
            is_readable = rows.column("kind").to_numpy() != RowKind.UNREADABLE
            ids = np.sort(pc.fill_null(rows.column("record_id"), 0).to_numpy()[is_readable])
            runs = joined_runs(np.concatenate([runs, joined_runs(np.stack([ids, ids], axis=1))]))
            if len(runs) > _MOST_RUNS:
                raise ScatteredIds
            yield rows
        self.runs.add({task_number(): runs})


def joined_runs(runs: Ints) -> Ints:
    """Return runs of record_ids, each the first and the last, sorted; those that follow each other are
    joined.
    """
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    begins_run = np.ones(len(runs), np.bool_)
    begins_run[1:] = runs[1:, 0] != runs[:-1, 1] + 1
    begins = np.flatnonzero(begins_run)
    return np.stack([runs[begins, 0], runs[np.append(begins[1:], len(runs))[: len(begins)] - 1, 1]], axis=1)


def have_repeats(runs: Iterable[Ints]) -> bool:
    """Return whether a record_id is in two of these runs."""
    all_runs = joined_runs(np.concatenate([np.empty((0, 2), np.int64), *runs]))
    return bool((all_runs[1:, 0] <= all_runs[:-1, 1]).any())


def _repeated(row: Mapping[str, Any], reason: str) -> list[Any]:
    shown = {name: value for name, value in row.items() if name in _SHOWN and value is not None}
    record = json.dumps(shown, ensure_ascii=False)
    cells = unreadable(reason, record, row["record_id"])
    named = dict(zip(LOG.names, cells, strict=True))
    return [named[name] for name in row]
