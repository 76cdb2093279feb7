"""An audit: whether every row of a log is accounted for by what a receiver has.

Rows and events meet by object in shares on disk, so that memory is bounded. `breaches_of` judges one object,
and processes judge the shares. The digest is the same for the same rows, letters, documents and answers, in
whatever order.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.audit.contents import PublishedThen, why_wrong
from eventlog.audit.delivered import DeliveredEvent, read_event
from eventlog.audit.laws import Arrival, AuditedRow, Breach, Law, Run, breaches
from eventlog.audit.log_side import EVENTS, JOURNAL, ROWS, AuditReader, Facts, of_keys
from eventlog.audit.share import AuditedObject, Share
from eventlog.audit.state import present_of
from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.portions import portions
from eventlog.files.arrow_stores import KeyedBatches
from eventlog.fold.by_column.vectors import Ints, hash_texts, shares

_SHARES = 128
_EVENTS_AT_ONCE = 20_000
_BYTES_AT_ONCE = 32 << 20
_FORMS = (ROWS, EVENTS, EVENTS, JOURNAL)
_FEW = 50_000  # rows and events that one process judges


@dataclass
class AuditReport:
    """The result of an audit."""

    letters: Counter[str] = field(default_factory=Counter)
    events: int = 0
    objects: int = 0
    late: int = 0  # events that may have come after the log was read
    not_judged: int = 0  # objects with an event, and nothing is known of what was published then
    open_laws: Mapping[Law, str] = field(default_factory=dict)  # that are not judged, and why
    since: str = ""  # which objects are judged, if not all
    is_purged: bool = False
    is_whole: bool = True  # the receiver still has all its documents
    breach_counts: Counter[Law] = field(default_factory=Counter)
    first_breaches: dict[Law, Breach] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)  # present rows that no document can carry
    faults: list[str] = field(default_factory=list)  # what could not be read
    digest: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether no law is broken, and all could be read."""
        return not (self.first_breaches or self.faults)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(self.letters.values())

    def add(self, share: AuditReport) -> None:
        """Add the result of a share; of each law the breach at the first row is kept."""
        self.objects += share.objects
        self.events += share.events
        self.late += share.late
        self.not_judged += share.not_judged
        self.letters.update(share.letters)
        self.breach_counts.update(share.breach_counts)
        self.note(share.first_breaches.values())

    def note(self, breaches: Iterable[Breach]) -> None:
        """Keep the breach of each law at the first row."""
        for breach in breaches:
            first = self.first_breaches.setdefault(breach.law, breach)
            if breach.record_id < first.record_id:
                self.first_breaches[breach.law] = breach


class Gathered:
    """A gathering of rows and events in shares on disk, by their keys, or of those of some keys."""

    def __init__(
        self,
        keys: Collection[str] | None = None,
        *,
        has_texts: bool = False,
        advance: Advance = lambda words: None,
    ) -> None:
        self.keys = keys  # None: of all
        self.has_texts = has_texts  # of documents
        self._stores = [*map(KeyedBatches, _FORMS)]
        self._rows, self._events, self._present, self._journal = self._stores
        self._owners: list[tuple[Ints, Any]] = []  # record_ids, and the share of each
        self._advance = advance
        self._place = self._row_count = 0
        self.faults: list[str] = []
        self.not_compared: list[str] = []

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *fault: object) -> None:
        for store in self._stores:
            store.close()

    def add_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take rows of the log, by ROWS."""
        for batch in batches:
            rows = of_keys(batch, self.keys)
            owners = _shares_of(rows)
            self._owners.append((rows["record_id"].to_numpy(), owners.astype(np.uint8)))
            for share, share_rows in shares(rows, owners):
                self._rows.add(share, share_rows)
            self._row_count += batch.num_rows
            self._advance(f"{self._row_count:,} rows are read")

    def add_journal(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take the events that the log has on record, by JOURNAL, after all its rows."""
        none = np.empty(0, np.int64)
        ids, owners = (
            np.concatenate([none, *column]) for column in zip(*self._owners, (none, none), strict=True)
        )
        for batch in batches:
            entry_ids = batch["record_id"].to_numpy()
            at = np.minimum(np.searchsorted(ids, entry_ids), len(ids) - 1)
            is_there = ids[at] == entry_ids if len(ids) else np.zeros(len(entry_ids), np.bool_)
            if is_there.any():
                present = batch.filter(pa.array(is_there))
                for share, entries in shares(present, owners[at][is_there]):
                    self._journal.add(share, entries)

    def add_events(self, events: Iterable[DeliveredEvent], reader: AuditReader) -> None:
        """Take what a receiver has, in its order; the reader knows its tables."""
        self._add(events, self._events, reader, "events")

    def add_present(self, rows: Iterable[DeliveredEvent], reader: AuditReader) -> None:
        """Take the present rows of tables."""
        self._add(map(self._noted, rows), self._present, reader, "rows of tables")

    def _noted(self, row: DeliveredEvent) -> DeliveredEvent:
        """Return a present row; one that no document can carry is noted, and nothing is compared with it."""
        if row.fault and (self.keys is None or row.table_key in self.keys):
            self.not_compared.append(row.fault)
        return row._replace(fault="")

    def _add(
        self, events: Iterable[DeliveredEvent], batches: KeyedBatches, reader: AuditReader, noun: str
    ) -> None:
        readable, begin = filter(self._is_readable, events), self._place
        for portion in portions(readable, _EVENTS_AT_ONCE, lambda event: len(event.text), _BYTES_AT_ONCE):
            batch = of_keys(reader.of_events(portion, self._place, has_texts=self.has_texts), self.keys)
            self._place += len(portion)
            self._advance(f"{self._place - begin:,} {noun} are read")
            for share, share_events in shares(batch, _shares_of(batch)):
                batches.add(share, share_events)

    def _is_readable(self, event: DeliveredEvent) -> bool:
        """Return whether an event can be read; why not is noted."""
        if event.fault:
            self.faults.append(event.fault)
        return not event.fault

    def parts(self) -> list[int]:
        """Return the numbers of the shares that have something; all has been taken by now."""
        self._owners.clear()
        pa.default_memory_pool().release_unused()  # so that processes begin without it
        return [part for part in range(_SHARES) if self._rows.size(part) or self._events.size(part)]

    @property
    def is_small(self) -> bool:
        """Return whether one process judges all of it at once."""
        return self._row_count + self._place < _FEW

    def share(self, part: int) -> Share:
        """Return what was taken for a share."""
        forms = zip(self._stores, _FORMS, strict=True)
        return Share(*(pa.Table.from_batches(store.batches(part), form) for store, form in forms))


Advance = Callable[[str], None]


def judge(gathered: Gathered, facts: Facts, report: AuditReport, processes: int, advance: Advance) -> None:
    """Check the laws for every object, by as many processes."""
    digest = hashlib.sha256()
    parts = gathered.parts()
    judged = _judged_here(gathered, facts, parts)
    if processes > 1 and not gathered.is_small:
        judged = _judged_by_processes(gathered, facts, parts, processes)
    for number, share in enumerate(judged, 1):
        report.add(share)
        digest.update(bytes.fromhex(share.digest))
        advance(f"{number} of {len(parts)} parts are judged")
    report.digest = digest.hexdigest()


def _judged_here(gathered: Gathered, facts: Facts, parts: Sequence[int]) -> Iterator[AuditReport]:
    return (_judge_share(gathered.share(part), facts) for part in parts)


def _judged_by_processes(
    gathered: Gathered, facts: Facts, parts: Sequence[int], processes: int
) -> Iterator[AuditReport]:
    """Yield what processes judge of the parts, in their order; they end with this one."""
    context = multiprocessing.get_context("fork")  # so that they read the files that are open here
    workers = []
    try:
        for first in range(processes):
            receiving, sending = context.Pipe(duplex=False)
            worker_parts = parts[first::processes]
            worker = context.Process(target=_work, args=(sending, gathered, facts, worker_parts), daemon=True)
            with warnings.catch_warnings():  # Arrow's threads are at rest, and it begins its own after a fork
                warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            sending.close()
            workers.append((worker, receiving))
        for number in range(len(parts)):
            worker, receiving = workers[number % processes]
            try:
                judged = receiving.recv()
            except EOFError:
                worker.join()
                raise EventlogError(f"a process that judges ended with {worker.exitcode}") from None
            yield judged
    finally:
        for worker, receiving in workers:
            worker.kill()
            worker.join()
            receiving.close()


def _work(results: Connection, gathered: Gathered, facts: Facts, parts: Sequence[int]) -> None:
    """Send the results of parts, in a process of its own, which its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for share in _judged_here(gathered, facts, parts):
        results.send(share)


def _judge_share(share: Share, facts: Facts) -> AuditReport:
    letters = pc.value_counts(share.rows["letter"]).to_pylist()
    report = AuditReport(
        Counter({letter["values"] or "": letter["counts"] for letter in letters}),
        *(share.events.num_rows, share.size, pc.sum(share.events["is_late"]).as_py() or 0),
        digest=share.digest().hex(),
    )
    reads_all = facts.has_contents or facts.compared is not None
    recorded = np.fromiter({*(facts.reasons or ()), *facts.remembered, *facts.redriven}, np.int64)
    for audited in share.objects(range(share.size) if reads_all else share.odd_objects(recorded)):
        judged = breaches_of(audited, facts)
        report.not_judged += not judged.is_known
        report.breach_counts.update(breach.law for breach in judged.breaches)
        report.note(judged.breaches)
    return report


class JudgedObject(NamedTuple):
    """The breaches of an object, and whether it is known what was published at its time."""

    breaches: list[Breach]
    is_known: bool = True


def breaches_of(audited: AuditedObject, facts: Facts) -> JudgedObject:
    """Return the breaches of one object, by all that is known of it."""
    present, deliveries, table = None, audited.deliveries, audited.table
    if facts.has_contents or facts.compared is not None:
        read = [read_event(delivery.text or b"") for delivery in deliveries]
        pairs = zip(deliveries, read, strict=True)
        deliveries = [d._replace(steps=steps, class_name=name) for d, (name, _, steps) in pairs]
    if facts.compared is not None:
        present = present_of(facts.compared.get(table), audited.table_key, audited.present)
    try:
        key = tuple(name for name, _ in tablekey.read(audited.table_key))
    except EventlogError:
        key = ()
    contents = ContentJudge(audited, key, facts) if facts.has_contents else None
    object_breaches = breaches(
        *(audited.name, [facts.with_record(row, table, key) for row in audited.rows], deliveries),
        present=present,
        is_purged=facts.is_purged,
        is_compared=facts.is_compared,
        recorded=audited.recorded,
        redriven_rows=facts.redriven,
        log=facts.log_name,
        why_wrong=None if contents is None else contents.why_wrong,
    )
    return JudgedObject([*object_breaches], contents is None or contents.is_known)


class ContentJudge:
    """A judge of the events of an object, by the columns that were published at their time."""

    def __init__(self, audited: AuditedObject, key: Sequence[str], facts: Facts) -> None:
        self._audited = audited
        self._key = key
        self._facts = facts
        self._last_delete = max((row.record_id for row in audited.rows if row.event_type == 4), default=0)
        self.is_known = True

    def why_wrong(self, run: Run, rows: Sequence[AuditedRow]) -> str:
        """Return what is wrong with an event, empty if nothing is, or if it is not known."""
        record = self._audited.recorded.get(run.name)
        published = self._facts.published_between(record)
        if not published:
            self.is_known = False
            return ""
        parts = {run.part_of(delivery): delivery for delivery in run.deliveries}
        is_read = any(row.event_type > 4 for row in rows)
        is_open = any(row.letter not in ("S", "W") or row.reason or row.is_redriven for row in rows)
        may_be_gone = self._last_delete > run.last or self._facts.is_compared or self._facts.is_purged
        if len(parts) == 1 and 1 in parts and not (record.has_more_parts if record else is_open):
            choices = [[delivery] for delivery in {d.content: d for d in run.deliveries}.values()]
            is_whole = True
        else:
            choices, is_whole = [[parts[number] for number in sorted(parts)]], not (is_read or is_open)
        for choice in choices:
            words = ""
            for moment in published:
                words = self._fault(choice, rows, moment, is_whole=is_whole, may_be_gone=may_be_gone)
                if not words:
                    break
            if words:
                return f"{choice[0].where}: {choice[0].event_id}: {words}"
        return ""

    def _fault(
        self,
        parts: Sequence[Arrival],
        rows: Sequence[AuditedRow],
        published: PublishedThen,
        *,
        is_whole: bool,
        may_be_gone: bool,
    ) -> str:
        """Return what is wrong with the parts of an event, if this was published."""
        table = published.tables.find(self._audited.table)
        name = self._audited.table.rpartition(".")[2] if table is None else table.name
        class_name = parts[0].class_name
        if class_name.lower() != name.lower():
            return f"its class is {class_name!r}, and its table {name}"
        steps = [step for part in parts for step in part.steps]
        operations = [part.operation for part in parts[1:]]
        if any(operation != "modify" for operation in operations):
            return f"a later part of it is {operations[0]}"
        facts = {"is_whole": is_whole, "may_be_gone": may_be_gone}
        return why_wrong(rows, parts[0].operation, steps, table, published, key=self._key, **facts)


def _shares_of(rows: pa.RecordBatch) -> Ints:
    return hash_texts(rows.column("table_key")) % _SHARES
