"""The state of tables and objects at the receiver of a log that is filled by comparing. Pure.

The transaction that logs the rows of an event also notes the digest of the object after it. The letters that
these rows get decide what the receiver has: `outcome_of` names the statement that writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.core.identity import hash_of_key

FORMAT = 2  # that of the digests: with the columns' names
_CHECKSUM = 16  # digits
DOUBT = "?"  # the digest of an object whose values at the receiver are unknown
_UNSURE = "??"  # the digest of an object that the receiver may lack; it is sent as a change
_MISSING = "???"  # the digest of an object whose change the receiver refused; it is sent as a new one
TABLE_ROW = "base"  # replaces a key's digest in the row that counts the objects of a table


class StateGone(EventlogError):
    """{0}, the table of the receiver's state, does not exist: `eventlog install` creates it again, empty. \
Then choose what the receiver has: --startup-option resync sends everything again, future assumes that \
the receiver has the tables as they are now"""


class StateLost(EventlogError):
    """the state of {0} cannot be used: {1}. What the receiver has is unknown. Choose: --startup-option \
resync sends everything again, future assumes that the receiver has the tables as they are now"""


class LogRow(NamedTuple):
    """A row for the log."""

    event_type: int
    column_name: str | None = None
    old_value: str | None = None
    new_value: str | None = None


class StateStep(NamedTuple):
    """The next state of an object, and the rows that lead to it; without rows it is so at once."""

    object_table: str
    key_hash: str
    object_key: str
    digest: str | None  # that the receiver has
    row_values: str | None
    next_digest: str | None = None
    next_values: str | None = None
    rows: tuple[LogRow, ...] = ()
    existed: bool = True  # something was known of the object before

    @property
    def forgets(self) -> bool:
        """Return whether nothing about the object remains."""
        return self.digest is None and not self.rows

    @property
    def is_delete(self) -> bool:
        """Return whether the step deletes the object at the receiver."""
        return bool(self.rows) and self.rows[0].event_type == 4

    @property
    def goes_on(self) -> bool:
        """Return whether what is known of the object stays until its event is settled."""
        return self.existed and bool(self.rows)


def adds(digest: str | None) -> bool:
    """Return whether an object with this digest at the receiver is sent as a new one."""
    return digest is None or digest.rstrip(" ") == _MISSING


def seal(table: str, key: str, digest: str | None, values: str | None) -> str | None:
    """Return the values of an object as they are kept, after a checksum over all that is kept of it."""
    return values if values is None else f"{_checksum(table, key, digest, values)}{values}"


def unseal(table: str, key: str, digest: str | None, sealed: str | None) -> str | None:
    """Return the values that `seal` wrote; StateLost where they are not what was kept."""
    if sealed is None:
        return None
    values = sealed[_CHECKSUM:]
    if sealed[:_CHECKSUM] != _checksum(table, key, digest, values):
        raise StateLost(table, f"what is kept of {key} is damaged")
    return values


def _checksum(table: str, key: str, digest: str | None, values: str) -> str:
    text = f"{len(table)};{len(key)};{table}{key}{digest};{values}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_CHECKSUM // 2).hexdigest()


class Mark(NamedTuple):
    """The position up to which the log explains a state in addition to triggers."""

    newest: int  # record_id
    purged: int  # the last notice of rows that are gone


class TableState(NamedTuple):
    """The record of a table's state as a whole."""

    objects: int = 0
    mark: Mark | None = None  # None of a state that a publisher keeps
    names: tuple[str, ...] = ()  # of columns whose values the receiver may have
    key: tuple[str, ...] = ()  # the columns of the key
    stale: tuple[str, ...] = ()  # those that were withheld since: what a receiver has of them is not kept
    unsure: bool = False  # the receiver may have objects that the state lacks


def kept_by_publisher(states: Mapping[str, TableState]) -> dict[str, TableState]:
    """Return the states that a publisher keeps, without those in addition to triggers or a slot."""
    return {table: state for table, state in states.items() if state.mark is None}


class ObjectState(NamedTuple):
    """An object in the state, and its event that is on its way or failed."""

    digest: str | None = None
    next_digest: str | None = None
    first_id: int | None = None
    last_id: int | None = None
    failed: int = 0

    @property
    def doubt(self) -> str:
        """Return the mark of what is unknown; empty if all is known."""
        mark = (self.digest or "").rstrip(" ")  # PostgreSQL fills the column with blanks
        return mark if mark in (DOUBT, _UNSURE, _MISSING) else ""


class EventRows(NamedTuple):
    """The rows of one object, among some."""

    first_id: int
    last_id: int
    deletes: tuple[int, ...]
    adds: bool = False


UNKNOWN_OBJECT = ObjectState()


def place_of_step(step: StateStep) -> dict[str, Any]:
    """Return the place of a step's object in the state."""
    return {"object_table": step.object_table, "key_hash": step.key_hash}


def state_row(step: StateStep, places: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """Return the state's row for a step's object; `places` are the positions of the rows of its event."""
    table, key = step.object_table, step.object_key
    return next_row(step, places) | {
        "object_key": key,
        "digest": step.digest,
        "row_values": seal(table, key, step.digest, step.row_values),
    }


def next_row(step: StateStep, places: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """Return the state after a step's event; `places` are the positions of its rows."""
    table, key = step.object_table, step.object_key
    first, last = places.get((table, key), (None, None))
    return place_of_step(step) | {
        "next_digest": step.next_digest,
        "next_values": seal(table, key, step.next_digest, step.next_values),
        "first_id": first,
        "last_id": last,
    }


def outcome_of(letters: Sequence[str], state: ObjectState) -> str | None:
    """Return what became of an event, by the letters of its rows; None if the state stays as it is."""
    distinct = set(letters)
    if "N" in distinct:
        return "renewed" if state.failed else None
    if distinct & {"E", "F", "R"}:
        return None if state.failed else _failure_of(letters, state)
    if state.failed and distinct != {"S"}:
        return None  # it was given up, or purged
    if state.next_digest is None:
        return "gone"
    return "resent" if state.failed else "settled"


def _failure_of(letters: Sequence[str], state: ObjectState) -> str:
    """Return how an event failed: in part, or on an object that the receiver may lack."""
    width = 1 + (state.last_id or 0) - (state.first_id or 0)
    sent = "S" in letters or "W" in letters or ("R" in letters and len(letters) < width)  # and then deleted
    if sent:
        return "partly"
    if state.doubt == _MISSING:
        return "unsure"
    if state.doubt == _UNSURE and state.next_digest is not None:
        return "lacking"
    return "failed"


def redriven_row(table: str, key: str, state: ObjectState, event: EventRows) -> dict[str, Any] | None:
    """Return the state of an object whose rows were redriven; None if it stays without one.

    If it surely exists the next poll can log what differs, because later rows are sent later.
    """
    digest = DOUBT
    if state.digest is None or state.doubt in (_UNSURE, _MISSING):
        digest = _MISSING if event.adds and state.doubt else _UNSURE
    leads = state.next_digest is not None
    first, last = state.first_id, state.last_id
    if first is None or (state.failed and event.last_id < first):  # they are the last on their way
        leads = event.last_id not in event.deletes
        waits = state.digest is None or not leads
        first, last = (event.first_id, event.last_id) if waits else (None, None)
        if state.digest is None and not leads:
            return None
    return {
        "object_table": table,
        "key_hash": hash_of_key(key),
        "object_key": key,
        "digest": digest,
        "row_values": None,
        "next_digest": DOUBT if leads and first is not None else None,
        "next_values": None,
        "first_id": first,
        "last_id": last,
    }


def table_row(table: str, table_state: TableState) -> dict[str, Any]:
    """Return the row for the state of a table as a whole."""
    row = state_row(StateStep(table, TABLE_ROW, TABLE_ROW, None, None), {})
    return row | {"row_values": json.dumps({"format": FORMAT} | table_state._asdict())}


def read_table_state(table: str, text: str | None) -> TableState:
    """Return the state of a table from its row."""
    if text is None:
        raise StateLost(table, "its count is gone")
    try:
        facts: dict[str, Any] = json.loads(text)
        form, mark = int(facts["format"]), facts.get("mark")
        names, key, stale = (tuple(map(str, facts.get(name) or ())) for name in ("names", "key", "stale"))
        objects, unsure = int(facts["objects"]), bool(facts.get("unsure"))
        table_state = TableState(objects, None if mark is None else Mark(*mark), names, key, stale, unsure)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StateLost(table, "its count is damaged") from None
    if form != FORMAT:
        raise StateLost(table, f"it has format {form}, but this version supports {FORMAT}")
    return table_state
