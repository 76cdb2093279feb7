"""What the receiver of a log that is filled by comparing is known to have: a digest of each object's values,
and the values themselves unless only digests are kept.

The transaction that logs the rows of an event also says to which digest it leads. The state of its object
becomes that digest once the rows are settled, whatever the row of the table holds by then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.amount import amount
from eventlog.core.errors import EventlogError
from eventlog.sql.queries import Queries

FORMAT = 1
_CHECKSUM = 16  # digits
_FETCHED = 1_000  # rows at a time
BASE = "base"  # stands for a key's digest in the row that counts the objects of a table
_STEPS = ("known_redriven", "known_failed", "known_settled")


class StateGone(EventlogError):
    """{0}, the table that says what the receiver has, is not there: `eventlog install` makes it anew, empty.
    Then say what the receiver has: --startup-option resync sends everything again, future takes the tables
    as they are for what it has"""


class StateLost(EventlogError):
    """the state of {0} is not what was kept: {1}. What the receiver has is not known; say which it is:
    --startup-option resync sends everything again, future takes the tables as they are for what it has"""


class LogRow(NamedTuple):
    """A row for the log."""

    event_type: int
    column_name: str | None = None
    old_value: str | None = None
    new_value: str | None = None


class StateStep(NamedTuple):
    """What an object's state becomes, and the rows that say it; without rows it is so at once."""

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
        """Whether nothing of the object is left to be known."""
        return self.digest is None and not self.rows

    @property
    def goes_on(self) -> bool:
        """Whether what is known of the object stays until its event is settled."""
        return self.existed and bool(self.rows)


def sealed(table: str, key: str, digest: str | None, values: str | None) -> str | None:
    """The values of an object as they are kept, behind a checksum over all that is kept of it."""
    return values if values is None else f"{_checksum(table, key, digest, values)}{values}"


def unsealed(table: str, key: str, digest: str | None, kept: str | None) -> str | None:
    """The values that `sealed` wrote; StateLost where they are not what was kept. Those that were kept before
    there were checksums begin with a brace."""
    if kept is None or kept.startswith("{"):
        return kept
    values = kept[_CHECKSUM:]
    if kept[:_CHECKSUM] != _checksum(table, key, digest, values):
        raise StateLost(table, f"what is kept of {key} is damaged")
    return values


def _checksum(table: str, key: str, digest: str | None, values: str) -> str:
    told = f"{len(table)};{len(key)};{table}{key}{digest};{values}"
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=_CHECKSUM // 2).hexdigest()


class Mark(NamedTuple):
    """Up to where the log explains a state beside triggers."""

    newest: int  # record_id
    purged: int  # the last notice of rows that are gone


class KnownStates:
    """The state, in a transaction of whoever writes it."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def marks(self) -> dict[str, Mark | None]:
        """Up to where the log explains the state of each table; None of one that a publisher keeps."""
        found = {table: _base(table, base).get("mark") for table, _, base in self._run("known_counts")}
        return {table: None if mark is None else Mark(*mark) for table, mark in found.items()}

    def mark(self) -> Mark:
        """Up to where the log stands now."""
        newest, purged = (self._run(name).scalar() for name in ("compare_newest", "compare_purged"))
        return Mark(int(newest or 0), int(purged or 0))

    def named(self, mark: Mark) -> Iterator[tuple[str, str]]:
        """The table_name and table_key of every object that rows of the log behind a mark speak of."""
        for table, key in self._run("compare_named", after=mark.newest):
            yield str(table), str(key)

    def settle(self) -> dict[str, int]:
        """Let the state follow what became of the events that were on their way; how many objects of each
        table there are then. StateLost where they were not as many as there should be."""
        found = self.counted()
        for name in _STEPS:
            self._run(name)
        if self._run("known_gone").rowcount:
            found = {table: objects for table, objects, _ in self._run("known_counts")}
            for table, objects in found.items():
                self._put_base(table, objects)
        return found

    def counted(self) -> dict[str, int]:
        """How many objects of each table there are."""
        begun = {row[0] for row in self._run("compared_before")}
        found: dict[str, int] = {}
        for table, objects, base in self._run("known_counts"):
            kept = int(_base(table, base)["objects"])
            if kept != objects:
                raise StateLost(table, f"{amount(objects, 'object')} of {kept}")
            found[table] = objects
        for table in sorted(begun - found.keys()):
            raise StateLost(table, "there is none")
        return found

    def doubt(self) -> None:
        """Take the values of every object for unknown, so that all of them are told again."""
        self._run("known_doubt")

    def begin(self, table: str, mark: Mark | None = None) -> None:
        """Begin the state of a table anew, with nothing in it."""
        self._run("known_forget_table", object_table=table)
        self._put_base(table, 0, mark)
        self._run("note", kind="compare", table_name=table, words="the state of this table begins")

    def advance(self, table: str, objects: int, mark: Mark) -> None:
        """Let the log explain the state of a table up to another mark."""
        self._put_base(table, objects, mark)

    def take(self, steps: Sequence[StateStep], counts: dict[str, int], mark: Mark | None = None) -> None:
        """Log the rows of events, and keep to what they lead; `counts` go on with each table's objects. With
        a mark the state is so at once, for what was logged is read back later."""
        places = self._log(steps)
        if mark is not None:
            places, steps = {}, [one._replace(rows=()) for one in steps]
        self._set("known_forget", [_place(one) for one in steps if one.existed and one.forgets])
        self._set("known_next", [_next(one, places) for one in steps if one.goes_on])
        self._set("known_put", [_row(one, places) for one in steps if not (one.forgets or one.goes_on)])
        for one in steps:
            counts[one.object_table] += (not one.forgets) - one.existed
        for table in sorted({one.object_table for one in steps}):
            self._put_base(table, counts[table], mark)

    def _log(self, steps: Iterable[StateStep]) -> dict[tuple[str, str], tuple[int, int]]:
        """Write the rows of events; the first and the last record_id of each object's."""
        written = [
            {
                "event_type": kind,
                "perpetrator": None,
                "table_name": one.object_table,
                "table_key": one.object_key,
                "column_name": column,
                "old_value": old,
                "new_value": new,
            }
            for one in steps
            for kind, column, old, new in one.rows
        ]
        if not written:
            return {}
        before = int(self._run("compare_newest").scalar() or 0)
        self._set("compare_log", written)
        found = self._run("compare_logged", after=before)
        return {(table, key): (int(first), int(last)) for table, key, first, last in found}

    def _put_base(self, table: str, objects: int, mark: Mark | None = None) -> None:
        text = json.dumps({"format": FORMAT, "objects": objects, "mark": mark})
        self._set("known_put", [_row(StateStep(table, BASE, BASE, None, None), {}) | {"row_values": text}])

    def _set(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        self._queries.run_set(self._connection, name, rows)

    def _run(self, name: str, **values: Any) -> Any:
        return self._queries.run(self._connection, name, **values)


def _place(one: StateStep) -> dict[str, Any]:
    """Where a step's object stands in the state."""
    return {"object_table": one.object_table, "key_hash": one.key_hash}


def _row(one: StateStep, places: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """What the state keeps of a step's object, `places` being where the rows of its event stand."""
    table, key = one.object_table, one.object_key
    return _next(one, places) | {
        "object_key": key,
        "digest": one.digest,
        "row_values": sealed(table, key, one.digest, one.row_values),
    }


def _next(one: StateStep, places: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """To what a step's event leads, `places` being where its rows stand."""
    table, key = one.object_table, one.object_key
    first, last = places.get((table, key), (None, None))
    return _place(one) | {
        "next_digest": one.next_digest,
        "next_values": sealed(table, key, one.next_digest, one.next_values),
        "first_id": first,
        "last_id": last,
    }


def _base(table: str, text: str | None) -> dict[str, Any]:
    """What is on record of a table's state as a whole."""
    if text is None:
        raise StateLost(table, "its count is gone")
    try:
        base: dict[str, Any] = json.loads(text)
        form, _ = int(base["format"]), int(base["objects"])
    except (ValueError, TypeError, KeyError):
        raise StateLost(table, "its count is damaged") from None
    if form != FORMAT:
        raise StateLost(table, f"it has format {form}, and this version knows {FORMAT}")
    return base


def known_of(connection: Connection, queries: Queries, table: str) -> Iterator[Any]:
    """What is known of each object of a table."""
    streamed = queries.clause("known_of").execution_options(stream_results=True, yield_per=_FETCHED)
    with connection.execute(streamed, {"object_table": table}) as found:
        yield from found
