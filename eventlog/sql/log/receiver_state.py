"""The receiver's state for a log that is filled by comparing.

It contains a digest of each object's values, and the values themselves unless only digests are kept. The
transaction that logs the rows of an event also notes the digest after it. Once the rows are settled, that
digest becomes the state of the object, whatever the row of the table is by then.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.sql.queries import Queries

FORMAT = 2  # that of the digests: with the columns' names
_FORMATS = (1, FORMAT)
_CHECKSUM = 16  # digits
_FETCHED = 1_000  # rows at a time
DOUBT = "?"  # the digest of an object whose values at the receiver are unknown
BASE = "base"  # replaces a key's digest in the row that counts the objects of a table
_STEPS = ("known_redriven", "known_failed", "known_settled")


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


def seal(table: str, key: str, digest: str | None, values: str | None) -> str | None:
    """Return the values of an object as they are kept, after a checksum over all that is kept of it."""
    return values if values is None else f"{_checksum(table, key, digest, values)}{values}"


def unseal(table: str, key: str, digest: str | None, sealed: str | None) -> str | None:
    """Return the values that `seal` wrote; StateLost where they are not what was kept. Those that were kept
    before there were checksums begin with a brace.
    """
    if sealed is None or sealed.startswith("{"):
        return sealed
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


class Base(NamedTuple):
    """The record of a table's state as a whole."""

    objects: int = 0
    mark: Mark | None = None  # None of a state that a publisher keeps
    names: tuple[str, ...] = ()  # of columns whose values the receiver may have
    key: tuple[str, ...] = ()  # the columns of the key
    stale: tuple[str, ...] = ()  # those that were withheld since: what a receiver has of them is not kept
    unsure: bool = False  # the receiver may have objects that the state lacks
    form: int = FORMAT  # of the digests, when it was written


class ReceiverState:
    """The state, in a transaction that writes it."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def bases(self) -> dict[str, Base]:
        """Return what is on record of each table's state; StateLost if it is damaged."""
        return {table: _base(table, words) for table, words in self._run("known_bases")}

    def mark(self) -> Mark:
        """Return the present position of the log."""
        newest, purged = (self._run(name).scalar() for name in ("compare_newest", "compare_purged"))
        return Mark(int(newest or 0), int(purged or 0))

    def named(self, mark: Mark) -> Iterator[tuple[str, str]]:
        """Return the table_name and table_key of every object in rows after a mark."""
        for table, key in self._run("compare_named", after=mark.newest):
            yield str(table), str(key)

    def settle(self) -> dict[str, Base]:
        """Let the state follow what became of the events that were on their way. Return each table's base;
        StateLost if a table has not as many objects as it should have."""
        bases = self.counted()
        for name in _STEPS:
            self._run(name)
        if self._run("known_gone").rowcount:
            counts = dict(self._run("known_counts").all())
            for table, base in bases.items():
                if counts[table] != base.objects:
                    bases[table] = base._replace(objects=int(counts[table]))
                    self.put(table, bases[table])
        return bases

    def counted(self) -> dict[str, Base]:
        """Return the base of each table's state, whose count of objects is right."""
        begun = {row[0] for row in self._run("compared_before")}
        bases = self.bases()
        for table, objects in self._run("known_counts"):
            base = bases.get(table)
            if base is None:
                raise StateLost(table, "its count is gone")
            if base.objects != objects:
                raise StateLost(table, f"{quantity(int(objects), 'object')} of {base.objects}")
        for table in sorted(begun - bases.keys()):
            raise StateLost(table, "there is none")
        return bases

    def values_of(self, table: str) -> Iterator[str]:
        """Return what is kept of the values of each object of a table, without what is damaged."""
        for key, _, digest, values, *_ in read_receiver_state(self._connection, self._queries, table):
            with suppress(StateLost):
                if (unsealed := unseal(table, key, digest, values)) is not None:
                    yield unsealed

    def lost(self) -> set[str]:
        """Return the tables whose state was begun and is not what was kept."""
        lost = {str(row[0]) for row in self._run("compared_before")}
        counts = dict(self._run("known_counts").all())
        for table, words in self._run("known_bases"):
            with suppress(StateLost):
                if _base(table, words).objects == counts[table]:
                    lost.discard(table)
        return lost

    def doubt(self) -> None:
        """Mark the values of every object as unknown, so that all of them are sent again."""
        self._run("known_doubt")

    def begin(self, table: str, base: Base) -> None:
        """Begin the state of a table anew, with nothing in it."""
        self._run("known_forget_table", object_table=table)
        self.put(table, base)
        self._run("note", kind="compare", table_name=table, words="the state of this table begins")

    def put(self, table: str, base: Base) -> None:
        """Put on record what is known of a table's state as a whole."""
        facts = {name: fact for name, fact in base._asdict().items() if name != "form"}
        text = json.dumps({"format": FORMAT} | facts)
        self._set("known_put", [_row(StateStep(table, BASE, BASE, None, None), {}) | {"row_values": text}])

    def take(self, steps: Sequence[StateStep], bases: dict[str, Base]) -> None:
        """Log the rows of events, and keep to what they lead; `bases` follow with the numbers of objects.
        Where a table's base has a mark its state is so at once, for what was logged is read back later."""
        places = self._log(steps)
        marked = {step.object_table for step in steps if bases[step.object_table].mark is not None}
        steps = [step._replace(rows=()) if step.object_table in marked else step for step in steps]
        self._set("known_forget", [_place(step) for step in steps if step.existed and step.forgets])
        self._set("known_next", [_next(step, places) for step in steps if step.goes_on])
        staying = [step for step in steps if not (step.forgets or step.goes_on)]
        rows = [_row(step, {} if step.object_table in marked else places) for step in staying]
        self._set("known_put", rows)
        growth = Counter[str]()
        for step in steps:
            growth[step.object_table] += (not step.forgets) - step.existed
        for table, objects in sorted(growth.items()):
            bases[table] = bases[table]._replace(objects=bases[table].objects + objects)
            self.put(table, bases[table])

    def _log(self, steps: Iterable[StateStep]) -> dict[tuple[str, str], tuple[int, int]]:
        """Write the rows of events; the first and the last record_id of each object's."""
        written = [
            {
                "event_type": kind,
                "perpetrator": None,
                "table_name": step.object_table,
                "table_key": step.object_key,
                "column_name": column,
                "old_value": old,
                "new_value": new,
            }
            for step in steps
            for kind, column, old, new in step.rows
        ]
        if not written:
            return {}
        before = int(self._run("compare_newest").scalar() or 0)
        self._set("compare_log", written)
        logged = self._run("compare_logged", after=before)
        return {(table, key): (int(first), int(last)) for table, key, first, last in logged}

    def _set(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        self._queries.run_set(self._connection, name, rows)

    def _run(self, name: str, **values: Any) -> Any:
        return self._queries.run(self._connection, name, **values)


def _place(step: StateStep) -> dict[str, Any]:
    """Return the place of a step's object in the state."""
    return {"object_table": step.object_table, "key_hash": step.key_hash}


def _row(step: StateStep, places: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """Return the state's row for a step's object; `places` are the positions of the rows of its event."""
    table, key = step.object_table, step.object_key
    return _next(step, places) | {
        "object_key": key,
        "digest": step.digest,
        "row_values": seal(table, key, step.digest, step.row_values),
    }


def _next(step: StateStep, places: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """Return the state after a step's event; `places` are the positions of its rows."""
    table, key = step.object_table, step.object_key
    first, last = places.get((table, key), (None, None))
    return _place(step) | {
        "next_digest": step.next_digest,
        "next_values": seal(table, key, step.next_digest, step.next_values),
        "first_id": first,
        "last_id": last,
    }


def _base(table: str, text: str | None) -> Base:
    """Return what a base row holds; an earlier version wrote its format and its count alone."""
    if text is None:
        raise StateLost(table, "its count is gone")
    try:
        facts: dict[str, Any] = json.loads(text)
        form, mark = int(facts["format"]), facts.get("mark")
        names, key, stale = (tuple(map(str, facts.get(name) or ())) for name in ("names", "key", "stale"))
        objects, unsure = int(facts["objects"]), bool(facts.get("unsure"))
        base = Base(objects, None if mark is None else Mark(*mark), names, key, stale, unsure, form)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StateLost(table, "its count is damaged") from None
    if form not in _FORMATS:
        raise StateLost(table, f"it has format {form}, but this version supports {FORMAT} and earlier ones")
    return base


def read_receiver_state(connection: Connection, queries: Queries, table: str) -> Iterator[Any]:
    """Return what is known of each object of a table."""
    streamed = queries.clause("known_of").execution_options(stream_results=True, yield_per=_FETCHED)
    with connection.execute(streamed, {"object_table": table}) as rows:
        yield from rows
