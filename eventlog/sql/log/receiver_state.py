"""The receiver's state for a log that is filled by comparing.

It contains a digest of each object's values, and the values themselves unless only digests are kept. The
transaction that logs the rows of an event also notes the digest after it. Once the rows are settled, that
digest becomes the state of the object, whatever the row of the table is by then. What is redriven need not
lead there, so its object is in doubt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import bindparam
from sqlalchemy.engine import Connection

from eventlog.core.entry import read_integer
from eventlog.core.identity import hash_of_key
from eventlog.core.plurals import quantity
from eventlog.sql.log.log_record import LogRecord, Notice, NoticeKind
from eventlog.sql.log.object_states import (
    UNKNOWN_OBJECT,
    EventRows,
    Mark,
    ObjectState,
    StateLost,
    StateStep,
    TableState,
    kept_by_publisher,
    next_row,
    outcome_of,
    place_of_step,
    read_table_state,
    redriven_row,
    state_row,
    table_row,
)
from eventlog.sql.queries import Queries, each_row_looked_up

_FETCHED = 1_000  # rows at a time
_PAGE = 10_000  # objects whose events are looked at together
_LISTED = 1_000  # objects in a statement
_DELETE = 4
_ADDS = (1, 5, 7)  # event types


class ReceiverState:
    """The state, in a transaction that writes it."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def table_states(self) -> dict[str, TableState]:
        """Return what is on record of each table's state; StateLost if it is damaged."""
        return {table: read_table_state(table, words) for table, words in self._run("known_bases")}

    def mark(self) -> Mark:
        """Return the present position of the log."""
        newest, purged = (self._run(name).scalar() for name in ("compare_newest", "compare_purged"))
        return Mark(int(newest or 0), int(purged or 0))

    def objects_after(self, record_id: int) -> Iterator[tuple[str, str]]:
        """Return the table_name and table_key of every object in rows after a record_id."""
        for table, key in self._run("compare_named", after=record_id):
            yield str(table), str(key)

    def settle_events(self) -> dict[str, TableState]:
        """Write the outcomes of the events that were on their way. Return the states that a publisher keeps.

        Raise StateLost if a table has not as many objects as it should have.
        """
        table_states = self.checked_states()
        deleted_counts = Counter[str]()
        for outcome, table, hashes in self._outcomes():
            self._run_on_objects(f"known_{outcome}", table, hashes)
            deleted_counts[table] += len(hashes) if outcome == "gone" else 0
        self._count_objects({table: -count for table, count in deleted_counts.items()}, table_states)
        return kept_by_publisher(table_states)

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
                    state = ObjectState(digest, coming, first_id, last_id, failed)
                    if (outcome := outcome_of(letters[first_id], state)) is not None:
                        outcomes[outcome, table].append(hashed)
                for place, hashes in outcomes.items():
                    yield from ((*place, hashes[at : at + _LISTED]) for at in range(0, len(hashes), _LISTED))
                after = upto

    def _count_objects(self, growth: Mapping[str, int], table_states: dict[str, TableState]) -> None:
        """Put on record that tables have more objects in the state, or fewer."""
        for table, objects in sorted(growth.items()):
            if objects:
                table_states[table] = table_states[table]._replace(
                    objects=table_states[table].objects + objects
                )
                self.put_table(table, table_states[table])

    def mark_redriven(self, ids: Iterable[int]) -> None:
        """Mark what the receiver has of the objects of redriven rows as unknown, because these rows need not
        send what was noted. The next poll clears and sets them."""
        growth = Counter[str]()
        table_states = self._publisher_states()
        for table, events in self._events_of(ids).items():
            if table not in table_states:
                continue
            rows = []
            states = self.states_of(table, events)
            for key, event in events.items():
                state = states.get(hash_of_key(key), UNKNOWN_OBJECT)
                if (row := redriven_row(table, key, state, event)) is not None:
                    rows.append(row)
                    growth[table] += state is UNKNOWN_OBJECT
            self._set("known_put", rows)
        self._count_objects(growth, table_states)

    def mark_skipped(self, ids: Iterable[int]) -> None:
        """Mark the objects of skipped rows: the receiver has what it had before."""
        rows = [
            {
                "object_table": table,
                "key_hash": hash_of_key(key),
                "first_id": event.first_id,
                "last_id": event.last_id,
            }
            for table, events in self._events_of(ids).items()
            for key, event in events.items()
        ]
        self._queries.run_all(self._connection, "known_given_up", rows)

    def latest_events(self, ids: Iterable[int]) -> dict[tuple[str, str], int]:
        """Return the first row of the latest event, not settled yet, of each object that these rows name."""
        latest = dict[tuple[str, str], int]()
        for table, events in self._events_of(ids).items():
            states = self.states_of(table, events)
            for key in events:
                if first_id := states.get(hash_of_key(key), UNKNOWN_OBJECT).first_id:
                    latest[table, key] = first_id
        return latest

    def _publisher_states(self) -> dict[str, TableState]:
        """Return the table states that a publisher keeps; none if they are damaged: then a start decides."""
        with suppress(StateLost):
            return kept_by_publisher(self.table_states())
        return {}

    def _events_of(self, ids: Iterable[int]) -> dict[str, dict[str, EventRows]]:
        """Return what these rows are of each object, by table and key; nothing if no state was ever begun."""
        events = defaultdict[str, dict[str, EventRows]](dict)
        begun_tables = {row[0] for row in self._run("compared_before")}
        for chunk in self._queries.chunks(ids) if begun_tables else ():
            for row, kind, table, key in self._run("compare_among", ids=chunk):
                if table in begun_tables and key is not None:
                    deletes = (int(row),) if read_integer(kind) == _DELETE else ()
                    event = events[table].get(key) or EventRows(int(row), int(row), ())
                    adds = read_integer(kind) in _ADDS  # the last of them
                    events[table][key] = EventRows(event.first_id, int(row), (*event.deletes, *deletes), adds)
        return events

    def states_of(self, table: str, keys: Iterable[str]) -> dict[str, ObjectState]:
        """Return what is known of the objects with these keys, by their hashes."""
        hashes = [*map(hash_of_key, keys)]
        pages = (hashes[start : start + _LISTED] for start in range(0, len(hashes), _LISTED))
        rows = (row for page in pages for row in self._run_on_objects("known_among", table, page))
        return {hashed: ObjectState(*state) for hashed, *state in rows}

    def _run_on_objects(self, name: str, table: str, hashes: Sequence[str]) -> Any:
        clause = self._queries.clause(name).bindparams(bindparam("hashes", expanding=True))
        return self._connection.execute(clause, {"object_table": table, "hashes": hashes})

    def checked_states(self) -> dict[str, TableState]:
        """Return the state of each table; StateLost if a count of objects is wrong."""
        begun_tables = {row[0] for row in self._run("compared_before")}
        table_states = self.table_states()
        for table, objects in self._run("known_counts"):
            table_state = table_states.get(table)
            if table_state is None:
                raise StateLost(table, "its count is gone")
            if table_state.objects != objects:
                raise StateLost(table, f"{quantity(int(objects), 'object')} of {table_state.objects}")
        for table in sorted(begun_tables - table_states.keys()):
            raise StateLost(table, "there is none")
        return table_states

    def damaged_tables(self) -> set[str]:
        """Return the tables whose state was begun and is not what was kept."""
        damaged = {str(row[0]) for row in self._run("compared_before")}
        counts = dict(self._run("known_counts").all())
        for table, words in self._run("known_bases"):
            with suppress(StateLost):
                if read_table_state(table, words).objects == counts[table]:
                    damaged.discard(table)
        return damaged

    def doubt_all(self) -> None:
        """Mark the values of every object as unknown, so that all of them are sent again."""
        self._run("known_doubt")

    def begin_table(self, table: str, table_state: TableState) -> None:
        """Begin the state of a table anew, with nothing in it."""
        self._run("known_forget_table", object_table=table)
        self.put_table(table, table_state)
        LogRecord(self._connection, self._queries).note(Notice(NoticeKind.COMPARE, table))

    def put_table(self, table: str, table_state: TableState) -> None:
        """Put on record what is known of a table's state as a whole."""
        self._set("known_put", [table_row(table, table_state)])

    def log_steps(self, steps: Sequence[StateStep], table_states: dict[str, TableState]) -> None:
        """Log the rows of events, and keep to what they lead; the table states get the numbers of objects.

        In a table whose state has a mark, objects are so at once: what was logged is read back later.
        """
        places = self._log(steps)
        marked = {step.object_table for step in steps if table_states[step.object_table].mark is not None}
        steps = [step._replace(rows=()) if step.object_table in marked else step for step in steps]
        self._set("known_forget", [place_of_step(step) for step in steps if step.existed and step.forgets])
        self._set("known_next", [next_row(step, places) for step in steps if step.goes_on])
        staying = [step for step in steps if not (step.forgets or step.goes_on)]
        rows = [state_row(step, {} if step.object_table in marked else places) for step in staying]
        self._set("known_put", rows)
        growth = Counter[str]()
        for step in steps:
            growth[step.object_table] += (not step.forgets) - step.existed
        self._count_objects(growth, table_states)

    def _log(self, steps: Iterable[StateStep]) -> dict[tuple[str, str], tuple[int, int]]:
        """Write the rows of events. Return the first and the last record_id of each object's event."""
        rows = [
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
        if not rows:
            return {}
        before = int(self._run("compare_newest").scalar() or 0)
        self._set("compare_log", rows)
        logged = self._run("compare_logged", after=before)
        return {(table, key): (int(first), int(last)) for table, key, first, last in logged}

    def _set(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        self._queries.run_set(self._connection, name, rows)

    def _run(self, name: str, **values: Any) -> Any:
        return self._queries.run(self._connection, name, **values)


def read_receiver_state(connection: Connection, queries: Queries, table: str) -> Iterator[Any]:
    """Return what is known of each object of a table."""
    streamed = queries.clause("known_of").execution_options(stream_results=True, yield_per=_FETCHED)
    with connection.execute(streamed, {"object_table": table}) as rows:
        yield from rows
