"""The numbers that a writer adds to every change: change_seq, transaction id, place in the transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from eventlog.core.change import ABSENT, Change, Op, position_text
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.tables import Tables
from eventlog.formats.qlik import metadata, sequence
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.row_plans import written_equal
from eventlog.formats.qlik.structure import structure_of

_NO_TIME = "1970-01-01T00:00:00"
T = TypeVar("T")
_ID = re.compile(r"[0-9A-Fa-f]{32}")


class SequenceMemory:
    """The state of a writer: its greatest change_seq, and the last metadata message of each table."""

    def __init__(self, last: str = sequence.START, published: Iterable[Metadata] = ()) -> None:
        self.last = last
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
    key: tuple[str, str] | None
    counter: int
    lost: int  # how many changes of its transaction were left out before it
    ends: bool = False  # the source's last change of the transaction was left out


def number(
    changes: Iterable[Change], memory: SequenceMemory, now: str | None
) -> Iterator[Numbered | Refused]:
    """Yield the changes with their numbers; the memory keeps the greatest."""
    for item in number_drafts(((change, None) for change in changes), memory, now):
        yield item if isinstance(item, Refused) else item[0]


def number_drafts(
    changes: Iterable[tuple[Change, T | Refused]],
    memory: SequenceMemory,
    now: str | None,
    *,
    recounted: bool = False,
) -> Iterator[tuple[Numbered, T] | Refused]:
    """Yield the changes with their numbers, each with its draft; refused ones are not counted.

    One change is held back, to see which one ends its transaction. A change with a change_seq keeps it. All
    others of one transaction share a time part, so that id and time identify transactions. It is that of the
    COMMIT where the source has it, else that of the first change. The source's number of a change in its
    transaction is kept, unless other changes of it were left out: then they are counted again.
    """
    pending: _PendingChange | None = None
    time: str | None = None  # of the transaction
    lost_of, lost = None, 0  # the transaction of the change that was refused last, and how many of it were
    for change, draft in changes:
        key = transaction_of(change)
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
            yield _with_numbers(pending, not is_same_transaction, recounted)
        memory.last = max(memory.last, seq)
        counter = pending.counter + 1 if is_same_transaction and pending is not None else 1
        pending = _PendingChange(change, draft, seq, key, counter, lost if key == lost_of else 0)
    if pending is not None:
        yield _with_numbers(pending, True, recounted)


def transaction_of(change: Change) -> tuple[str, str] | None:
    """Return the identity of a transaction: its id and the time of its changes, because ids are reused."""
    if change.transaction is None or change.op is Op.SNAPSHOT:
        return None
    position = change.position
    seq = sequence.legal(position)
    return change.transaction, position[: sequence.TIME] if position is not None and seq else ""


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


def _with_numbers(pending: _PendingChange, last: bool, recounted: bool) -> tuple[Numbered, Any]:
    """Return a change with its place in the transaction: that of the source, else the counted one."""
    change = pending.change
    transaction = transaction_id(change.transaction or "")
    if pending.key is None:
        return Numbered(change, pending.seq, None, None, transaction), pending.draft
    if change.extra and not recounted:
        number, ends = change.fact("event_counter"), change.fact("last_event")
        if isinstance(number, int) and isinstance(ends, bool):
            counter, ends = number - pending.lost, ends or pending.ends
            return Numbered(change, pending.seq, counter, ends, transaction), pending.draft
    return Numbered(change, pending.seq, pending.counter, last, transaction), pending.draft


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
