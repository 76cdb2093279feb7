"""What a writer adds to every change: its change_seq, its transaction's id, its place in the transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from eventlog.core.change import ABSENT, Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.core.values import Kind, read_moment
from eventlog.qlik import sequence
from eventlog.qlik.memory import Memory
from eventlog.qlik.plans import alike
from eventlog.qlik.structure import structure_of

_NO_TIME = "1970-01-01T00:00:00"
_ID = re.compile(r"[0-9A-Fa-f]{32}")


class Numbered(NamedTuple):
    change: Change
    sequence: str  # empty for a row of a full load
    counter: int | None  # from 1; None outside a transaction
    last: bool | None
    transaction: str  # the id, as Replicate writes one


def number(
    changes: Iterable[Change | Refused], memory: Memory, now: str | None, *, recounted: bool = False
) -> Iterator[Numbered | Refused]:
    """The changes with their numbers, which the memory keeps the greatest of; one change is held back, to
    know which ends its transaction.

    A change that has a change_seq keeps it. All others of one transaction share a time part, so
    that transaction id and time tell transactions apart. What the source said of a change's place in
    its transaction is kept, unless changes of it were left out: then they are counted again.
    """
    held: tuple[Change, str, int] | None = None
    held_key: object = None
    time: str | None = None  # of the transaction's first change
    counter = 0
    for change in changes:
        if isinstance(change, Refused):
            yield change
            continue
        key = transaction_of(change)
        try:
            begun = time if key is not None and key == held_key else change.time or now
            seq = _sequence(change, memory.last, begun)
        except EventlogError as fault:
            yield Refused(f"{change.table}:{change.position}", str(fault))
            continue
        same = key is not None and key == held_key
        counter = counter + 1 if same else 1
        if not same:
            time = change.time or now
        if held is not None:
            yield _closed(*held, held_key, not same, recounted)
        memory.last = max(memory.last, seq)
        held, held_key = (change, seq, counter), key
    if held is not None:
        yield _closed(*held, held_key, True, recounted)


def transaction_of(change: Change) -> tuple[str, str] | None:
    """What tells a transaction apart, for its id is used again: its id and the time of its changes."""
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


def _closed(change: Change, seq: str, counter: int, key: object, last: bool, recounted: bool) -> Numbered:
    """What its own source said of the change's place in the transaction wins over what was counted."""
    known = transaction_id(change.transaction or "")
    if key is None:
        return Numbered(change, seq, None, None, known)
    if change.extra and not recounted:
        told, ends = change.fact("event_counter"), change.fact("last_event")
        if isinstance(told, int) and isinstance(ends, bool):
            return Numbered(change, seq, told, ends, known)
    return Numbered(change, seq, counter, last, known)


@lru_cache(maxsize=1000)
def transaction_id(known: str) -> str:
    """The id of a transaction as Replicate has it, 32 digits of a number of 128 bits; that of another
    source is hashed into one."""
    if not known or _ID.fullmatch(known):
        return known
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:32].upper()


def without_no_ops(changes: Iterable[Change], tables: Tables) -> Iterator[Change]:
    """The changes without updates that surely change nothing: all they captured is known and the same, and
    their table is known to have no LOB column, which might have changed unseen."""
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
                continue
        yield change


@lru_cache(maxsize=1000)
def iso_utc(text: str) -> str:
    """A time that is UTC without saying so, as the model holds it."""
    moment = read_moment(Kind.TIMESTAMP, text)
    return moment.at.isoformat() + moment.fraction.rstrip("0").rstrip(".") + "Z"


@lru_cache(maxsize=1000)
def utc(time: str, digits: int = 0) -> str:
    """A time of the model as Replicate writes it: UTC without a zone, at least so many digits."""
    moment = read_moment(Kind.TIMESTAMP, time)
    fraction = moment.fraction[1:].rstrip("0").ljust(digits, "0")
    return moment.at.isoformat() + (f".{fraction}" if fraction else "")


def utc_millis(time: str) -> str:
    """The same with three digits after the second, no more and no fewer."""
    whole, _, fraction = utc(time, 3).partition(".")
    return f"{whole}.{fraction[:3]}"


def stream_position(change: Change) -> str:
    """The position in the source: what was read, else a position that is no change_seq."""
    told = change.fact("stream_position") if change.extra else None
    if isinstance(told, str):
        return told
    return "" if change.position is None or sequence.legal(change.position) else change.position
