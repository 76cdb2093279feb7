"""The receiver's state for a log that is filled by comparing.

It contains a digest of each object's values, and the values themselves unless only digests are kept. The
transaction that logs the rows of an event also notes the digest after it. Once the rows are settled, that
digest becomes the state of the object, whatever the row of the table is by then. What is redriven need not
lead there, so its object is in doubt.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import bindparam
from sqlalchemy.engine import Connection

from eventlog.core.entry import read_integer
from eventlog.core.errors import EventlogError
from eventlog.core.identity import hash_of_key
from eventlog.core.plurals import quantity
from eventlog.sql.queries import Queries, each_row_looked_up

FORMAT = 2  # that of the digests: with the columns' names
_FORMATS = (1, FORMAT)
_CHECKSUM = 16  # digits
_FETCHED = 1_000  # rows at a time
DOUBT = "?"  # the digest of an object whose values at the receiver are unknown
_UNSURE = "??"  # that of one that the receiver may lack, and which is changed
_MISSING = "???"  # likewise, after the receiver refused the change: it is added
BASE = "base"  # replaces a key's digest in the row that counts the objects of a table
_PAGE = 10_000  # objects whose events are looked at together
_LISTED = 1_000  # objects in a statement
_DELETE = 4
_ADDS = (1, 5, 7)  # event types


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


class _ObjectState(NamedTuple):
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


class _Rows(NamedTuple):
    """The rows of one object, among some."""

    first_id: int
    last_id: int
    deletes: tuple[int, ...]
    adds: bool = False


_NOTHING = _ObjectState()


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
        deleted_counts = Counter[str]()
        for outcome, table, hashes in self._outcomes():
            self._run_on(f"known_{outcome}", table, hashes)
            deleted_counts[table] += len(hashes) if outcome == "gone" else 0
        self._grow({table: -count for table, count in deleted_counts.items()}, bases)
        return bases

    def _outcomes(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yield outcomes of events, with a table and the hashes of its objects."""
        after = 0
        with each_row_looked_up(self._connection, self._queries.log.dialect):
            while page := self._run("known_page", after=after, most=_PAGE).all():
                upto = page[-1].first_id
                letters = defaultdict[int, list[str]](list)
                for first_id, letter in self._run("known_letters", after=after, upto=upto):
                    letters[first_id].append(letter)
                outcomes = defaultdict[tuple[str, str], list[str]](list)
                for first_id, last_id, table, hashed, digest, coming, failed in page:
                    state = _ObjectState(digest, coming, first_id, last_id, failed)
                    if (outcome := _outcome(letters[first_id], state)) is not None:
                        outcomes[outcome, table].append(hashed)
                for place, hashes in outcomes.items():
                    yield from ((*place, hashes[at : at + _LISTED]) for at in range(0, len(hashes), _LISTED))
                after = upto

    def _grow(self, growth: Mapping[str, int], bases: dict[str, Base]) -> None:
        """Put on record that tables have more objects in the state, or fewer."""
        for table, objects in sorted(growth.items()):
            if objects:
                bases[table] = bases[table]._replace(objects=bases[table].objects + objects)
                self.put(table, bases[table])

    def renew(self, ids: Iterable[int]) -> None:
        """Mark what the receiver has of the objects of redriven rows as unknown, because these rows need not
        send what was noted. The next poll clears and sets them."""
        growth = Counter[str]()
        bases = self._own_bases()
        for table, events in self._events(ids).items():
            if table not in bases:
                continue
            rows = []
            states = self._among(table, events)
            for key, event in events.items():
                state = states.get(hash_of_key(key), _NOTHING)
                if (row := _renewed(table, key, state, event)) is not None:
                    rows.append(row)
                    growth[table] += state is _NOTHING
            self._set("known_put", rows)
        self._grow(growth, bases)

    def give_up(self, ids: Iterable[int]) -> None:
        """Mark the objects of skipped rows: the receiver has what it had before."""
        rows = [
            {
                "object_table": table,
                "key_hash": hash_of_key(key),
                "first_id": event.first_id,
                "last_id": event.last_id,
            }
            for table, events in self._events(ids).items()
            for key, event in events.items()
        ]
        self._queries.run_all(self._connection, "known_given_up", rows)

    def latest_events(self, ids: Iterable[int]) -> dict[tuple[str, str], int]:
        """Return the first row of the latest event, not settled yet, of each object that these rows name."""
        latest = dict[tuple[str, str], int]()
        for table, events in self._events(ids).items():
            states = self._among(table, events)
            for key in events:
                if first_id := states.get(hash_of_key(key), _NOTHING).first_id:
                    latest[table, key] = first_id
        return latest

    def _own_bases(self) -> dict[str, Base]:
        """Return the bases that a publisher keeps; none if they are damaged, for then a start decides."""
        with suppress(StateLost):
            return {table: base for table, base in self.bases().items() if base.mark is None}
        return {}

    def _events(self, ids: Iterable[int]) -> dict[str, dict[str, _Rows]]:
        """Return what these rows are of each object, by table and key; nothing if no state was ever begun."""
        events = defaultdict[str, dict[str, _Rows]](dict)
        begun = {row[0] for row in self._run("compared_before")}
        for chunk in self._queries.chunks(ids) if begun else ():
            for row, kind, table, key in self._run("compare_among", ids=chunk):
                if table in begun and key is not None:
                    deletes = (int(row),) if read_integer(kind) == _DELETE else ()
                    event = events[table].get(key) or _Rows(int(row), int(row), ())
                    adds = read_integer(kind) in _ADDS  # the last of them
                    events[table][key] = _Rows(event.first_id, int(row), (*event.deletes, *deletes), adds)
        return events

    def _among(self, table: str, keys: Iterable[str]) -> dict[str, _ObjectState]:
        """Return what is known of the objects with these keys, by their hashes."""
        hashes = [*map(hash_of_key, keys)]
        pages = (hashes[start : start + _LISTED] for start in range(0, len(hashes), _LISTED))
        rows = (row for page in pages for row in self._run_on("known_among", table, page))
        return {hashed: _ObjectState(*state) for hashed, *state in rows}

    def _run_on(self, name: str, table: str, hashes: Sequence[str]) -> Any:
        """Run a statement on objects of a table."""
        clause = self._queries.clause(name).bindparams(bindparam("hashes", expanding=True))
        return self._connection.execute(clause, {"object_table": table, "hashes": hashes})

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
        self._grow(growth, bases)

    def _log(self, steps: Iterable[StateStep]) -> dict[tuple[str, str], tuple[int, int]]:
        """Write the rows of events; the first and the last record_id of each object's."""
        written = [
            {
                "event_type": kind,
                "perpetrator": None,
                "table_name": step.object_table,
                "table_key": step.object_key,
                "column_name": column,
                "old_value": old_value,
                "new_value": new_value,
            }
            for step in steps
            for kind, column, old_value, new_value in step.rows
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


def _outcome(letters: Sequence[str], state: _ObjectState) -> str | None:
    """Return what became of an event, by the letters of its rows; None if the state stays as it is."""
    distinct = set(letters)
    if "N" in distinct:
        return "renewed" if state.failed else None
    if distinct & {"E", "F", "R"}:
        return None if state.failed else _failure(letters, state)
    if state.failed and distinct != {"S"}:
        return None  # it was given up, or purged
    if state.next_digest is None:
        return "gone"
    return "resent" if state.failed else "settled"


def _failure(letters: Sequence[str], state: _ObjectState) -> str:
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


def _renewed(table: str, key: str, state: _ObjectState, event: _Rows) -> dict[str, Any] | None:
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
