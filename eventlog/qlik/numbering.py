"""What a writer adds to every change: its change_seq, its transaction's id, its place in the transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from eventlog.core.change import ABSENT, Change, Op, place_of
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.tables import Tables
from eventlog.core.values import Kind, read_moment
from eventlog.qlik import sequence
from eventlog.qlik.row_plans import alike
from eventlog.qlik.structure import structure_of
from eventlog.qlik.writer_memory import SequenceMemory

_NO_TIME = "1970-01-01T00:00:00"
T = TypeVar("T")
_ID = re.compile(r"[0-9A-Fa-f]{32}")


class Numbered(NamedTuple):
    change: Change
    sequence: str  # empty for a row of a full load
    counter: int | None  # from 1; None outside a transaction
    last: bool | None
    transaction: str  # the id, as Replicate writes one


class _Held(NamedTuple):
    """A change that waits until it is known whether it ends its transaction."""

    change: Change
    made: Any
    seq: str
    key: tuple[str, str] | None
    counter: int
    lost: int  # how many changes of its transaction were left out before it
    ends: bool = False  # the source's last change of the transaction was left out


def number(
    changes: Iterable[Change], memory: SequenceMemory, now: str | None
) -> Iterator[Numbered | Refused]:
    """Yield the changes with their numbers, which the memory keeps the greatest of."""
    for item in number_made(((change, None) for change in changes), memory, now):
        yield item if isinstance(item, Refused) else item[0]


def number_made(
    changes: Iterable[tuple[Change, T | Refused]],
    memory: SequenceMemory,
    now: str | None,
    *,
    recounted: bool = False,
) -> Iterator[tuple[Numbered, T] | Refused]:
    """Yield the changes with their numbers, each with its own result; refused ones are not counted.

    One change is held back, to know which one ends its transaction. A change with a change_seq keeps it. All
    others of one transaction share a time part, so that id and time identify transactions. The source's
    number of a change in its transaction is kept, unless other changes of it were left out: then they are
    counted again.
    """
    held: _Held | None = None
    time: str | None = None  # of the transaction's first change
    lost_of, lost = None, 0  # the transaction of the change that was refused last, and how many of it were
    for change, made in changes:
        key = transaction_of(change)
        same = held is not None and key is not None and key == held.key
        refused = made if isinstance(made, Refused) else None
        if refused is None:
            try:
                seq = _sequence(change, memory.last, time if same else change.time or now)
            except EventlogError as fault:
                refused = Refused(f"{change.table}:{change.position}", str(fault))
        if refused is not None:
            yield refused
            lost_of, lost = key, lost + 1 if key == lost_of else 1
            if same and held is not None and change.fact("last_event") is True:
                held = held._replace(ends=True)
            continue
        if not same:
            time = change.time or now
        if held is not None:
            yield _closed(held, not same, recounted)
        memory.last = max(memory.last, seq)
        counter = held.counter + 1 if same and held is not None else 1
        held = _Held(change, made, seq, key, counter, lost if key == lost_of else 0)
    if held is not None:
        yield _closed(held, True, recounted)


def transaction_of(change: Change) -> tuple[str, str] | None:
    """Return the identity of a transaction: its id and the time of its changes, because ids are reused."""
    if change.transaction is None or change.op is Op.SNAPSHOT:
        return None
    position = change.position
    seq = sequence.legal(position)
    return change.transaction, position[: sequence.TIME] if position is not None and seq else ""


def _sequence(change: Change, last: str, time: str | None) -> str:
    if change.op is Op.SNAPSHOT:
        return ""
    position = change.position
    if position is not None and sequence.legal(position):
        return position
    return sequence.following(last, sequence.time_part(time or _NO_TIME))


def _closed(held: _Held, last: bool, recounted: bool) -> tuple[Numbered, Any]:
    """Return a change with its place in the transaction; the source's own place is used before the counted
    one.
    """
    change = held.change
    known = transaction_id(change.transaction or "")
    if held.key is None:
        return Numbered(change, held.seq, None, None, known), held.made
    if change.extra and not recounted:
        number, ends = change.fact("event_counter"), change.fact("last_event")
        if isinstance(number, int) and isinstance(ends, bool):
            return Numbered(change, held.seq, number - held.lost, ends or held.ends, known), held.made
    return Numbered(change, held.seq, held.counter, last, known), held.made


@lru_cache(maxsize=1000)
def transaction_id(known: str) -> str:
    """Return the id of a transaction as Replicate has it, 32 digits of a number of 128 bits; that of another
    source is hashed into one.
    """
    if not known or _ID.fullmatch(known):
        return known
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:32].upper()


def without_no_ops(changes: Iterable[Change], tables: Tables, tally: GroupedWarnings) -> Iterator[Change]:
    """Yield the changes without updates that certainly change nothing; the tally counts those.

    Certain means: all captured values are equal, and the table is known to have no LOB column, which might
    have changed unseen.
    """
    lobs: dict[tuple[str | None, str], bool] = {}
    for change in changes:
        if change.op is Op.UPDATE and all(
            before is not ABSENT and after is not ABSENT and alike(before, after)
            for _, before, after in change.fields
        ):
            at = change.schema, change.table
            if at not in lobs:
                table = tables.of(*at)
                lobs[at] = table is None or not table.columns or any(structure_of(table).lobs)
            if not lobs[at]:
                tally.add(change.table, place_of(change), None)
                continue
        yield change


@lru_cache(maxsize=1000)
def iso_utc(text: str) -> str:
    """Return a time in UTC without a zone in the form of the model."""
    moment = read_moment(Kind.TIMESTAMP, text)
    return moment.at.isoformat() + moment.fraction.rstrip("0").rstrip(".") + "Z"


@lru_cache(maxsize=1000)
def utc(time: str, digits: int = 0) -> str:
    """Return a time of the model as Replicate writes it: UTC without a zone, at least so many digits."""
    moment = read_moment(Kind.TIMESTAMP, time)
    fraction = moment.fraction[1:].rstrip("0").ljust(digits, "0")
    return moment.at.isoformat() + (f".{fraction}" if fraction else "")


def utc_millis(time: str) -> str:
    """Return the same with three digits after the second, no more and no fewer."""
    whole, _, fraction = utc(time, 3).partition(".")
    return f"{whole}.{fraction[:3]}"


def stream_position(change: Change) -> str:
    """Return the position in the source: what was read, else a position that is no change_seq."""
    position = change.fact("stream_position") if change.extra else None
    if isinstance(position, str):
        return position
    return "" if change.position is None or sequence.legal(change.position) else change.position
