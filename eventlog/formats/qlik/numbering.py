"""The numbers that a writer adds to every change: change_seq, transaction id, place in the transaction."""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from eventlog.core.change import ABSENT, Change, Op, position_text
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.tables import Tables
from eventlog.formats.qlik import metadata, sequence
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.row_plans import written_equal
from eventlog.formats.qlik.structure import structure_of
from eventlog.formats.qlik.transaction_places import (
    CountedChange,
    MemorySorter,
    OpenSorter,
    Place,
    TransactionKey,
    places_in_order,
)

_NO_TIME = "1970-01-01T00:00:00"
T = TypeVar("T")
_ID = re.compile(r"[0-9A-Fa-f]{32}")
_COMMITS = ("commit", "commit_syslog_addr")  # facts that contain the position of a change's commit


class Arrival(enum.Enum):
    """The order in which the changes of a run come to a writer."""

    ANY = "any"  # in no known order: they are sorted before they are written
    SEQUENCE = "sequence"  # by change_seq
    BY_TRANSACTION = "by transaction"  # one transaction after the other, without a change_seq
    AS_IS = "as-is"  # as the source has them: the ends of transactions are not known


class SequenceMemory:
    """The state of a writer: its greatest change_seq, and the last metadata message of each table."""

    def __init__(self, last: str = sequence.START, published: Iterable[Metadata] = ()) -> None:
        self.last = last
        self.written = ""  # the last change_seq of this run
        self.published = {(m.structure.schema, m.structure.table): m for m in published}

    def dump(self) -> dict[str, Any]:
        """Return the memory as JSON holds it."""
        messages = [[metadata.payload(m), m.message_schema] for m in self.published.values()]
        return {"last_sequence": self.last, "published": messages}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> SequenceMemory:
        """Return the memory that was dumped; raise any error if it was something else."""
        last = dumped["last_sequence"]
        if last != sequence.START:  # nothing was written yet
            sequence.check(last)
        return cls(last, [metadata.read(payload, schema) for payload, schema in dumped["published"]])


class MemorySettings(Protocol):
    """The settings of a writer that continues after an earlier run."""

    @property
    def last_sequence(self) -> str: ...

    @property
    def memory(self) -> SequenceMemory | None: ...


def load_memory(settings: MemorySettings, dumped: Any) -> SequenceMemory:
    """Return the memory from the end of a writer's last run, else from its settings."""
    return SequenceMemory(settings.last_sequence) if dumped is None else SequenceMemory.load(dumped)


def memory_of(settings: MemorySettings, published: Iterable[Metadata] = ()) -> SequenceMemory:
    """Return the memory with which a writer with these settings begins."""
    return (
        settings.memory if settings.memory is not None else SequenceMemory(settings.last_sequence, published)
    )


class Numbered(NamedTuple):
    change: Change
    sequence: str  # empty for a row of a full load
    counter: int | None  # from 1; None outside a transaction
    last: bool | None
    transaction: str  # the id, as Replicate writes one


class _PendingChange(NamedTuple):
    """A change that waits for the next one, which shows whether it ends its transaction."""

    change: Change
    draft: Any
    seq: str
    key: TransactionKey | None
    counter: int
    lost: int  # how many changes of its transaction were left out before it
    ends: bool = False  # the source's last change of the transaction was left out


Drafted = tuple[Change, TransactionKey | None, T | Refused]  # a change, its transaction, its draft


class HeldDrafts(NamedTuple, Generic[T]):
    """The drafts of changes whose transactions interrupt each other, and end within these changes."""

    probes: Iterable[Drafted[T]]  # drafts of the same changes, to see which are refused
    drafts: Iterable[Drafted[T]]


def number(
    changes: Iterable[Change], memory: SequenceMemory, now: str | None
) -> Iterator[Numbered | Refused]:
    """Yield the changes with their numbers; the memory keeps the greatest."""
    drafts = ((change, key_of_transaction(change), None) for change in changes)
    for item in number_drafts(drafts, memory, now):
        yield item if isinstance(item, Refused) else item[0]


def number_drafts(
    changes: Iterable[Drafted[T] | HeldDrafts[T]],
    memory: SequenceMemory,
    now: str | None,
    *,
    recounted: bool = False,
    claims: Callable[[str], bool] | None = None,
    open_sorter: OpenSorter = MemorySorter,
) -> Iterator[tuple[Numbered, T] | Refused]:
    """Yield the changes with their numbers, each with its draft; refused ones are not counted.

    One change is held back, to see which one ends its transaction. A change with a change_seq keeps it. All
    others of one transaction share a time part, so that id and time identify transactions. It is that of the
    COMMIT where the source has it, else that of the first change. The source's number of a change in its
    transaction is kept, unless other changes of it were left out: then they are counted again. No others
    are counted if `claims` is false for the time part of their transaction, which may not be whole.
    """
    pending: _PendingChange | None = None
    time: str | None = None  # of the transaction
    lost_of, lost = None, 0  # the transaction of the change that was refused last, and how many of it were
    for item in changes:
        if isinstance(item, HeldDrafts):
            entries = _entries_before(pending, lost_of, lost, recounted=recounted)
            numbers = _HeldNumbers(memory, now, time, recounted, claims)
            yield from numbers.of(item, pending, entries, open_sorter)
            pending, lost_of, lost = None, None, 0
            continue
        change, key, draft = item
        is_same_transaction = pending is not None and key is not None and key == pending.key
        transaction_time = time if is_same_transaction else _commit_time(change, now)
        refused = draft if isinstance(draft, Refused) else None
        if refused is None:
            try:
                seq = _sequence(change, memory.last, transaction_time)
            except EventlogError as fault:
                refused = Refused(f"{change.table}:{change.position}", str(fault))
        if refused is not None:
            yield refused
            lost_of, lost = key, lost + 1 if key == lost_of else 1
            if is_same_transaction and pending is not None and change.fact("last_event") is True:
                pending = pending._replace(ends=True)
            continue
        time = transaction_time
        if pending is not None:
            yield _with_numbers(pending, not is_same_transaction, recounted, claims)
        memory.last = max(memory.last, seq)
        counter = pending.counter + 1 if is_same_transaction and pending is not None else 1
        pending = _PendingChange(change, draft, seq, key, counter, lost if key == lost_of else 0)
    if pending is not None:
        yield _with_numbers(pending, True, recounted, claims)


def transaction_of(change: Change) -> tuple[str, str] | None:
    """Return the identity of a transaction: its id and the time of its changes, because ids are reused."""
    if change.transaction is None or change.op is Op.SNAPSHOT:
        return None
    position = change.position
    seq = sequence.legal(position)
    return change.transaction, position[: sequence.TIME] if position is not None and seq else ""


def key_of_transaction(change: Change) -> TransactionKey | None:
    """Return the identity of a transaction for a writer: without a change_seq, its id and its commit."""
    identity = transaction_of(change)
    if identity is None or identity[1] or not change.extra:
        return identity
    commits = (change.fact(name) for name in _COMMITS)
    return identity[0], next((str(commit) for commit in commits if commit is not None), "")


def _commit_time(change: Change, now: str | None) -> str | None:
    """Return the time of the COMMIT where a queue of LINTER has it, else the change's own, else now."""
    committed = change.fact("commit_oper_date") if change.extra else None
    return committed if isinstance(committed, str) else change.time or now


def _sequence(change: Change, last: str, time: str | None) -> str:
    if change.op is Op.SNAPSHOT:
        return ""
    position = change.position
    if position is not None and sequence.legal(position):
        return position
    return sequence.following(last, sequence.time_part(time or _NO_TIME))


def _with_numbers(
    pending: _PendingChange, last: bool, recounted: bool, claims: Callable[[str], bool] | None
) -> tuple[Numbered, Any]:
    """Return a change with its place in the transaction: that of the source, else the counted one."""
    change = pending.change
    transaction = transaction_id(change.transaction or "")
    if pending.key is None:
        return Numbered(change, pending.seq, None, None, transaction), pending.draft
    counter, ends = _stated_place(change, recounted=recounted)
    if counter is not None:
        counter, ends = counter - pending.lost, ends or pending.ends
        return Numbered(change, pending.seq, counter, ends, transaction), pending.draft
    if claims is not None and not claims(pending.key[1]):
        return Numbered(change, pending.seq, None, None, transaction), pending.draft
    return Numbered(change, pending.seq, pending.counter, last, transaction), pending.draft


def _stated_place(change: Change, *, recounted: bool) -> tuple[int | None, bool]:
    """Return the place of a change in its transaction as the source states it, and whether it is the last."""
    if change.extra and not recounted:
        counter, ends = change.fact("event_counter"), change.fact("last_event")
        if isinstance(counter, int) and isinstance(ends, bool):
            return counter, ends
    return None, False


# --- transactions that interrupt each other


class _HeldNumbers:
    """The numbers of held changes, whose places in their transactions are counted before they are written."""

    def __init__(
        self,
        memory: SequenceMemory,
        now: str | None,
        time: str | None,
        recounted: bool,
        claims: Callable[[str], bool] | None,
    ) -> None:
        self._memory = memory
        self._now = now
        self._time = time  # of the transactions that are open
        self._open = 0  # how many
        self._recounted = recounted
        self._claims = claims

    def of(
        self,
        window: HeldDrafts[T],
        pending: _PendingChange | None,
        before: Iterable[CountedChange],
        open_sorter: OpenSorter,
    ) -> Iterator[tuple[Numbered, T] | Refused]:
        """Yield the pending change and those that are held.

        Transactions that overlap share a time part, because the change_seq never falls.
        """
        places = places_in_order(chain(before, self._entries(window.probes)), open_sorter)
        if pending is not None:
            place = None if pending.key is None else next(places)
            self._open = int(place is not None and not place.is_final)
            yield self._numbered(pending.change, pending.key, pending.seq, place), pending.draft
        for change, key, draft in window.drafts:
            refused = _time_fault(change, self._now)
            if isinstance(draft, Refused):
                yield draft
                continue
            if refused is not None:
                yield refused
                continue
            if not self._open:
                self._time = _commit_time(change, self._now)
            place = None if key is None else next(places)
            if place is not None:
                self._open += place.is_first - place.is_final
            try:
                seq = _sequence(change, self._memory.last, self._time)
            except EventlogError as fault:
                yield Refused(f"{change.table}:{change.position}", str(fault))
                continue
            self._memory.last = max(self._memory.last, seq)
            yield self._numbered(change, key, seq, place), draft

    def _numbered(
        self, change: Change, key: TransactionKey | None, seq: str, place: Place | None
    ) -> Numbered:
        transaction = transaction_id(change.transaction or "")
        if key is None or place is None:
            return Numbered(change, seq, None, None, transaction)
        counter, _ = _stated_place(change, recounted=self._recounted)
        if counter is None and self._claims is not None and not self._claims(key[1]):
            return Numbered(change, seq, None, None, transaction)
        return Numbered(change, seq, place.counter, place.last, transaction)

    def _entries(self, probes: Iterable[Drafted[T]]) -> Iterator[CountedChange]:
        for number, (change, key, draft) in enumerate(probes, 1):
            if key is None:
                continue
            is_refused = isinstance(draft, Refused) or _time_fault(change, self._now) is not None
            counter, ends = _stated_place(change, recounted=self._recounted)
            yield CountedChange(key, number, int(is_refused), counter, ends)


def _entries_before(
    pending: _PendingChange | None, lost_of: TransactionKey | None, lost: int, *, recounted: bool
) -> Iterator[CountedChange]:
    """Yield the pending change, and the changes of transactions that were refused before a window."""
    if pending is None or pending.key is None:
        if lost_of is not None:
            yield CountedChange(lost_of, -2, lost)
        return
    lost_before = pending.lost
    if lost_of is not None and lost_of != pending.key:
        yield CountedChange(lost_of, -2, lost)
    elif lost_of is not None and lost > lost_before:
        yield CountedChange(pending.key, 0, lost - lost_before)
    if lost_before:
        yield CountedChange(pending.key, -2, lost_before)
    counter, ends = _stated_place(pending.change, recounted=recounted)
    yield CountedChange(pending.key, -1, 0, counter, ends or pending.ends, pending.counter - 1)


def _time_fault(change: Change, now: str | None) -> Refused | None:
    """Return a change without a change_seq as refused if its time is none."""
    if change.op is Op.SNAPSHOT or sequence.legal(change.position):
        return None
    try:
        sequence.time_part(_commit_time(change, now) or _NO_TIME)
    except EventlogError as fault:
        return Refused(f"{change.table}:{change.position}", str(fault))
    return None


@lru_cache(maxsize=1000)
def transaction_id(source_id: str) -> str:
    """Return the id of a transaction as Replicate has it, 32 digits of a number of 128 bits; that of another
    source is hashed into one.
    """
    if not source_id or _ID.fullmatch(source_id):
        return source_id
    return hashlib.sha256(source_id.encode("utf-8", "surrogatepass")).hexdigest()[:32].upper()


def without_no_ops(changes: Iterable[Change], tables: Tables, tally: GroupedWarnings) -> Iterator[Change]:
    """Yield the changes without updates that certainly change nothing; the tally counts those.

    Certain means: all captured values are equal, no row image is undecoded, and the table is known to have no
    LOB column, which might have changed unseen.
    """
    lobs: dict[tuple[str | None, str], bool] = {}
    for change in changes:
        if (
            change.op is Op.UPDATE
            and change.raw is None
            and all(
                before is not ABSENT and after is not ABSENT and written_equal(before, after)
                for _, before, after in change.fields
            )
        ):
            at = change.schema, change.table
            if at not in lobs:
                table = tables.of(*at)
                lobs[at] = table is None or not table.columns or any(structure_of(table).lobs)
            if not lobs[at]:
                tally.add(change.table, position_text(change), None)
                continue
        yield change


def stream_position(change: Change) -> str:
    """Return the position in the source: what was read, else a position that is no change_seq."""
    position = change.fact("stream_position") if change.extra else None
    if isinstance(position, str):
        return position
    return "" if change.position is None or sequence.legal(change.position) else change.position
