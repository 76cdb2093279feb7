"""The rows of a log as the shuffle takes them: as they were logged, with their kind.

They are checked by column; rows that columns cannot vouch for are read as `convert` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core import settings
from eventlog.core.entry import COLUMNS, read_event_time, read_record_id
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import stem_of
from eventlog.fold import Rules, present_of
from eventlog.fold.by_column.admit import Repeats
from eventlog.fold.by_column.objects import object_names
from eventlog.fold.by_column.vectors import flags
from eventlog.formats import log
from eventlog.transfer.log_files.by_column.checked_rows import TAKES_NO_PART, Checker
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, Slab, batch_of, by_column, one_by_one
from eventlog.transfer.log_files.letters import ReservedLetters
from eventlog_spark.batches import gather, joined
from eventlog_spark.current_rows import by_number
from eventlog_spark.packing import Batches, Exchange, Parcels, RowFeed, Task, by_block, unpacked
from eventlog_spark.result_rows import FrameRow, text_of
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
    in_files: bool = (
        False  # rows that the fold refuses are looked for in files, and have no record until then
    )

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
        batch = self._by_column(slab)
        checked = self._checker.read(batch)
        yield self._reading.rows(checked.rows)
        reasons = {odd.where: odd.reason for odd in checked.odd}
        if reasons:
            odd_rows = (row for row in one_by_one(batch) if row.where in reasons)
            refused = (_refused_row(self._source, row, reasons[row.where]) for row in odd_rows)
            yield from gather(refused, LOG)

    def find(self, slab: Slab, reasons: Mapping[int, str] | None) -> Iterator[FrameRow]:
        """Yield the rows of a slab that have one of these record_ids, as refused records; of all rows the
        place is the reason.
        """
        batch = [] if isinstance(slab, Refused) else self._by_column(slab)
        if reasons is not None and isinstance(batch, RowBatch) and not self._may_have(batch, reasons):
            return
        checked = self._checker.read(batch).rows
        ids, where = (checked.column(name).to_numpy() for name in ("record_id", "where"))
        is_refused = np.ones(len(ids), np.bool_) if reasons is None else np.isin(ids, [*reasons])
        id_by_place = dict(zip(where[is_refused].tolist(), ids[is_refused].tolist(), strict=True))
        for place, raw in self._raw_rows(batch, id_by_place):
            reason = "" if reasons is None else f": {reasons[id_by_place[place]]}"
            yield [id_by_place[place]], f"{self._source.at(place)}{reason}", text_of(raw)

    def _may_have(self, batch: RowBatch, record_ids: Iterable[int]) -> bool:
        """Return whether a row may have one of these record_ids; true if one is not written plainly."""
        ids = batch.columns[self._source.columns[log.places(self._source.columns, "")[0] or 0]]
        if not (pa.types.is_string(ids.type) or pa.types.is_integer(ids.type)):
            return True
        texts = ids.cast(pa.string())
        is_odd = ~flags(pc.match_substring_regex(texts, r"^[1-9][0-9]*$"))
        return bool((is_odd | flags(pc.is_in(texts, pa.array(map(str, record_ids), pa.string())))).any())

    def _raw_rows(
        self, batch: RowBatch | Sequence[Row], places: Collection[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the rows at these places as they came."""
        if not isinstance(batch, RowBatch) or batch.records is None:
            rows = one_by_one(batch) if places else ()
            yield from ((row.where, self._source.raw(row)) for row in rows if row.where in places)
        elif places:
            at = np.flatnonzero(np.isin(batch.where, [*places]))
            yield from zip(
                batch.where[at].tolist(), batch.records().take(pa.array(at)).to_pylist(), strict=True
            )

    def _by_column(self, slab: RowBatch | list[Row]) -> RowBatch | Sequence[Row]:
        return slab if isinstance(slab, RowBatch) else by_column(self._source.columns, slab) or slab


@dataclass(frozen=True)
class ReadFrame:
    """A task for the rows of a DataFrame."""

    reading: LogReading
    columns: tuple[str, ...]
    has_facts: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = LogSource(self.reading, "", self.columns, has_facts=self.has_facts)
        for batch in joined(batches):
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
    in_files: bool  # refused rows are looked for in files, and have no record until then

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
            yield from gather(starmap(self._repeated, repeated), self.schema)

    def _repeated(self, row: Mapping[str, Any], reason: str) -> list[Any]:
        shown = {name: value for name, value in row.items() if name in _SHOWN and value is not None}
        record = None if self.in_files else json.dumps(shown, ensure_ascii=False)
        named = dict(zip(LOG.names, unreadable(reason, record, row["record_id"]), strict=True))
        return [named[name] for name in row]
