"""A stream of messages becomes rows of tables: each batch whole, once, in the order of the source.

The target notes the stream and its batch in its own transactions, a Delta table in each of its commits. So a
batch that Spark repeats is passed over where it was applied.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.extras import extra
from eventlog.core.formats import Placed, Source
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.tables import Tables
from eventlog.files.keyed_store import StoredItems
from eventlog.files.messages import message_at
from eventlog.jobs.filters import allowed
from eventlog.jobs.report import Report
from eventlog.library import RecordRefused
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.sequenced import repeats
from eventlog.sequence.delivery import ChangesOf, Delivery
from eventlog.sequence.transactions import Incomplete, once, refused
from eventlog.sql.connect import connect
from eventlog.targets.tables.database import Database
from eventlog.targets.tables.progress import read_state
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.source_schema import SourceSchema
from eventlog.targets.tables.table_store import TableStore
from eventlog.targets.tables.table_writer import TableWriter
from eventlog.targets.tables.tally import Tally
from eventlog_spark.stream.holding import MESSAGE, METADATA, OPEN, READ, REFUSED, STOP
from eventlog_spark.stream.message_batch import load_metadata, name_of

FORMAT = "qlik-message"


class TargetOfAnother(EventlogError):
    """another stream applied to this target: continue with the checkpoint of that stream, or name another \
source"""


class TargetAhead(EventlogError):
    """the target has batch {0} of this stream, but its checkpoint continues at {1}: it is an older copy"""


class OtherBatch(EventlogError):
    """batch {0} of this stream is not the one that the target has: end it with the settings that it had"""


class StreamPosition(NamedTuple):
    """The progress of a target: the last batch of a stream, its digest, and the sequence up to there."""

    query: str
    batch: int
    digest: str
    released: str


@dataclass
class TableSink:
    """A sink that applies the batches of a stream to the tables of a database or of a folder."""

    tables: Tables
    chosen: ApplySettings
    reading: MessageSettings
    refused: Callable[[Refused], object] | None
    url: str | None = None
    folder: Path | None = None
    tally: Tally = field(default_factory=Tally)
    open: Sequence[Refused] = ()  # the transactions that waited at the end of the last batch
    idle: int = 0  # batches in a row that had nothing to read
    busy: bool = False  # whether a batch is being applied
    _described: SourceSchema = field(default_factory=SourceSchema)  # the tables as metadata describe them
    _published: Sequence[Metadata] = ()  # the metadata of a batch
    _target: TableStore | None = None
    _run: TableWriter | None = None

    def __call__(self, frame: Any, batch: int) -> None:
        """Apply a batch: all of it, or what a repeat goes on from."""
        self.busy = True
        try:
            rows = frame.collect()
            query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            self.apply(rows, query, batch)
            self.idle = 0 if any(row.kind in (READ, MESSAGE) for row in rows) else self.idle + 1
        except BaseException:
            self.close()
            raise
        finally:
            self.busy = False

    def close(self) -> None:
        """Let the target go."""
        target, self._target, self._run = self._target, None, None
        if target is not None:
            target.close()

    def apply(self, rows: Sequence[Any], query: str, batch: int) -> None:
        """Apply what a batch of a query hands out, in its order."""
        for row in rows:
            if row.kind == STOP:
                raise Incomplete(row.reason)
        self.open = [Refused(row.where, row.reason, fault=False) for row in rows if row.kind == OPEN]
        for row in rows:
            if row.kind not in (MESSAGE, METADATA, OPEN, READ):
                value = None if row.value is None else bytes(row.value)
                self.tell(Refused(row.where, row.reason, value, fault=row.kind == REFUSED))
        self._published = tuple(load_metadata(row.reason) for row in rows if row.kind == METADATA)
        messages = [row for row in rows if row.kind == MESSAGE]
        if not messages:
            return
        here = StreamPosition(query, batch, _digest(messages), "")
        target, rows_of = self._opened(here)
        if rows_of is not None:
            rows_of.write(self._leaving(self._deliveries(messages, target)))
            self.tally = rows_of.tally

    # --- the target

    def _opened(self, here: StreamPosition) -> tuple[TableStore, TableWriter | None]:
        """Return the target, and what applies this batch; none where the target has it."""
        target = self._target or self._connected()
        self._target = target
        last = _at(self._name, target.until if target.until is not None else target.state)
        again = False
        if last is not None:
            again = _check(last, here)
            if not again:
                target.settle()
            elif target.until is None:
                return target, None
        self._here = here._replace(released=last.released if last else "")
        if self._run is None:
            self._run = TableWriter(
                target,
                self._name,
                FORMAT,
                self.chosen,
                self.tell,
                has_states=True,
                together=True,
                forgotten=self._here.released,
            )
        return target, self._run

    @property
    def _name(self) -> str:
        return self.chosen.source or FORMAT

    def _connected(self) -> TableStore:
        if self.url is not None:
            return Database(
                connect(self.url), self._name, self.tables, self.chosen, self.tell, self._described
            )
        assert self.folder is not None
        with extra("delta", "to_delta"):
            from eventlog.targets.tables.delta import Delta
        return Delta(self.folder, self._name, self.tables, self.chosen, self.tell, self._described)

    # --- changes

    def _leaving(self, deliveries: Iterable[Delivery | Refused]) -> Iterator[Delivery]:
        """Yield the deliveries without the columns that their tables' lists do not let leave."""
        report = Report(self.tell)
        for delivery in report.good(deliveries):
            delivery.changes = report.good(allowed(delivery.changes, self.tables))
            yield delivery

    def _deliveries(self, rows: Iterable[Any], target: TableStore) -> Iterator[Delivery | Refused]:
        """Yield the transactions of a batch, all with the same state, because they are applied together."""
        published, heard = tuple(self._published), self._described.add_description
        reading = replace(self.reading, published=published, heard=heard, schema_of=None)
        reader = MessageReader(self.tables, reading)
        repeated = repeats()
        for _, group in groupby(rows, key=lambda row: row.turn):
            own = list(group)
            placed = [_placed(reader, self.reading.encoding, row) for row in own]
            taken, why = _once(placed, repeated)
            if why:
                yield from refused(taken, why)
                continue
            late, incomplete = own[0].late, own[0].incomplete
            if late:
                first = taken[0]
                reason = f"transaction {first.change.transaction} came late: later ones were delivered before"
                yield Refused(first.where, reason, fault=False)
            last = max(placed.change.position or "" for placed in taken)
            self._here = self._here._replace(released=max(self._here.released, last))
            yield Delivery(ChangesOf(taken), json.dumps(self._here), late, incomplete)
        yield from repeated.warnings()

    def tell(self, found: Refused) -> None:
        """Report what was left out; without a receiver of reports a fault raises RecordRefused."""
        if self.refused is not None:
            self.refused(found)
        elif found.fault:
            raise RecordRefused(found.where, found.reason)


def _check(last: StreamPosition, here: StreamPosition) -> bool:
    """Return whether the target has a batch, or a part of it; raise an error if it is neither its last nor
    the next.
    """
    if last.query != here.query:
        raise TargetOfAnother
    if last.batch > here.batch:
        raise TargetAhead(last.batch, here.batch)
    if last.batch == here.batch and last.digest != here.digest:
        raise OtherBatch(here.batch)
    return last.batch == here.batch


def _at(name: str, state: str | None) -> StreamPosition | None:
    """Return the position of a target from its state; raise OtherStream if something else wrote it."""
    read = read_state(name, state)
    if read is None:
        return None
    with suppress(ValueError, TypeError):
        return StreamPosition(*json.loads(read))
    raise TargetOfAnother


def _digest(rows: Iterable[Any]) -> str:
    """Return what distinguishes a batch from another."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.turn, row.topic, row.partition, row.offset]).encode())
    return digest.hexdigest()[:32]


def _placed(reader: MessageReader, encoding: str, row: Any) -> Placed:
    value = bytes(row.value)
    name = name_of((row.topic, row.partition))
    message = message_at(name, encoding, row.offset, value)
    assert not isinstance(message, Refused)
    change = reader.read_of(Source(name, row.topic, (), ()), message)
    assert change is not None  # metadata messages were left out when it was read first
    return Placed(change, f"{name}:{row.offset}", value, name, row.offset)


def _once(placed: Sequence[Placed], repeated: GroupedWarnings) -> tuple[StoredItems[Placed], str]:
    return once(StoredItems(len(placed), lambda: iter(placed)), repeated)
