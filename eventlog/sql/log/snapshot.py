"""One consistent view of the log and of the tables: rows are queried back as of the moment of the pick-up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from eventlog.core.entry import COLUMNS, EVENT_TYPE, OBJECT, RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.core.identity import object_hash
from eventlog.core.tables import Table
from eventlog.sql import current_rows
from eventlog.sql.common.dialect import Call
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import NO_BOUND, Current, Readable, TableKeys
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.log_record import LogRecord
from eventlog.sql.log.pending import (
    HIGHEST,
    LOWEST,
    FirstLook,
    LogCells,
    Pending,
    PickUp,
    PickUpFilter,
    first_look,
    ids_statement,
    looked,
)
from eventlog.sql.log.position import position_of, read_sequence
from eventlog.sql.queries import Queries, containing, pipeline_of
from eventlog.sql.relation import Place, place_of
from eventlog.sql.tables_read import TablesRead, locks, reading, tables_changed

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy.engine import Connection

    from eventlog.sql.columns import Ints, ResultColumns

_NUMBERS = ("record_id", "event_type", "says_nothing")
_UNREAD = ("event_time", "old_value", "new_value")
_AUDITED = (*(name for name in COLUMNS if name not in _UNREAD), "says_nothing")


class SettingsLost(EventlogError):
    """the session has lost its settings: a connection pooler resets them, or gives another session to each \
transaction. Connect the publisher to the server itself"""


class Fates(NamedTuple):
    """The number of pending rows of one fate."""

    rows: int = 0
    first: str | None = None  # the earliest event_time among them


@dataclass(frozen=True, slots=True)
class HeldObjects:
    """The waiting objects by their hashes, to be looked up by their names."""

    hashes: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return bool(self.hashes) and isinstance(name, tuple) and object_hash(*name) in self.hashes


class LogMoment(NamedTuple):
    """The facts about the log that each cycle needs, as of a snapshot."""

    now: str  # the database's clock, in UTC
    latest_redrive: int  # the notice of the last redrive, 0 without any
    latest_notice: int | None  # the notice that somebody left last
    first_retry: datetime | None  # when the first event is sent again
    last_retry: datetime | None
    oldest_writer: int | None  # no earlier transaction writes any more; None if the server has no such number

    @classmethod
    def of(cls, keeps_settings: object, now: object, *other_facts: Any) -> LogMoment:
        """Return the facts of a row, SettingsLost if the session is not as it was begun."""
        if not keeps_settings:
            raise SettingsLost
        return cls(str(now), *other_facts)

    def is_due(self, now: datetime, latest_retry: timedelta) -> bool:
        """Return whether an event may be due again; a time that no wait reaches is due, too."""
        first, last = self.first_retry, self.last_retry
        return (first is not None and first <= now) or (last is not None and last > now + latest_retry)


class Snapshot(Pending):
    """Reads the log; nothing that happens meanwhile shows."""

    _has_savepoint = False
    _look: FirstLook | None = None
    _last_answers: list[Any] | None = None  # to what was asked right before the commit
    _views: bool | None = None  # whether the server lets us read views, where it can refuse them

    @classmethod
    def begin(
        cls,
        connection: Connection,
        queries: Queries,
        locked: Sequence[Place] = (),
        choice: PickUpFilter | None = None,
        limits: Sequence[Call] = (),
    ) -> Self:
        """Begin a transaction that reads one moment of the log, and read the facts about that moment, with a
        first look at the rows of a choice. `limits` are statements that limit those of a look.

        TablesChanged if tables that are to be locked before are busy.
        """
        dialect = queries.log.dialect
        begin, moment_call = map(queries.call, ("snapshot", "moment"))
        position = queries.calls_of("log_position") if pipeline_of(dialect, connection) else []
        if locked:
            try:
                queries.run_calls(connection, [begin, *locks(dialect, locked)])
            except DatabaseFailed as fault:
                raise tables_changed(locked) from fault
        look = first_look(queries, choice) if choice is not None else []
        first = [*limits] if locked else [begin, *limits]
        answers = queries.run_calls(connection, [*first, moment_call, *position, *look])[len(first) :]
        snapshot = cls(connection, queries)
        snapshot.moment = LogMoment.of(*answers[0][0])
        if position:
            snapshot.bound = position_of(answers[len(position)], snapshot.is_attached).bound
        if choice is not None:
            snapshot._look = looked(choice, answers[1 + len(position) :])
        return snapshot

    @cached_property
    def moment(self) -> LogMoment:
        """The facts of this moment."""
        return LogMoment.of(*self._queries.run(self._connection, "moment").one())

    @cached_property
    def _tables_read(self) -> TablesRead:
        return TablesRead(self._queries.log.dialect)

    def end(self) -> None:
        """End the transaction. Raise TablesChanged if DDL changed a table that was read."""
        if self._last_answers is None:
            self._tables_read.end(self._connection)
        else:
            self._tables_read.check(self._connection, self._last_answers)

    def is_attached(self) -> bool:
        """Return whether the log is one that we did not create."""
        return bool(self._queries.run(self._connection, "attached").scalar())

    def read_pending(self, choice: PickUpFilter) -> PickUp:
        """Return the rows that may go now, and those of our own user."""
        look = self._look
        if look is None or look.choice is not choice:
            look = looked(
                choice, self._queries.run_calls(self._connection, first_look(self._queries, choice))
            )
        if look.few_rows:
            rows = self._with_rest(look.few_rows, choice)
        else:
            fitting = self.fit(choice)
            rows = PickUp([]) if fitting is None else self._read_many(fitting)
        full = rows.full or len(look.own_rows) >= choice.limit
        return rows._replace(full=full, loopback=look.own_rows)

    def _read_many(self, choice: PickUpFilter) -> PickUp:
        if self.comes_by_column(choice):
            from eventlog.sql.columns import OddBytes  # Arrow takes a while to load
            from eventlog.sql.log import by_column

            with suppress(OddBytes):
                return by_column.pick_up(self, choice)
        return self.pick_up(choice)

    def pick_up(self, choice: PickUpFilter) -> PickUp:
        """Read the pending rows that may go now, up to the limit, then the rest of the inserts that it cut.

        They come one by one. Waiting objects, loopback and future rows do not count.
        """
        return self._with_rest(self.pending("pick_up", choice), choice)

    def _with_rest(self, picked: list[LogCells], choice: PickUpFilter) -> PickUp:
        """Return rows that were read one by one, with the rest of the inserts that the limit cut."""
        if len(picked) < choice.limit:
            return PickUp(picked)
        return PickUp([*picked, *self.rows(self._rest_of_inserts(picked, choice))], True)

    def _rest_of_inserts(self, picked: list[LogCells], choice: PickUpFilter) -> list[int]:
        from eventlog.sql.log import by_column  # NumPy takes a while to load

        next_rows = replace(choice, limit=max(choice.limit, by_column.LOOK_AHEAD))
        where = {"skip": len(picked)} if choice.future else {"after": picked[-1][RECORD_ID]}
        headers = [(cells[RECORD_ID], cells[EVENT_TYPE], *cells[OBJECT]) for cells in picked]
        headers += self.pending("further", next_rows, **where)
        return by_column.rest_of_inserts(
            self, by_column.headers_of(headers, choice), len(picked), choice.inserts
        )

    def now(self) -> str:
        """Return the database's clock, in UTC."""
        return self.moment.now

    @cached_property
    def bound(self) -> int:
        """The highest record_id that a row of this snapshot can have got from the log's sequence."""
        return read_sequence(self._connection, self._queries).bound

    def first_pending(self, above: int) -> int:
        """Return the first pending row above a record_id, whether it may go or not; else HIGHEST."""
        return next(map(int, self._ids(1, "pending", above)), HIGHEST)

    def number_transaction(self) -> int:
        """Return the number of our transaction, which is higher than that of every writer so far."""
        return int(self._queries.run(self._connection, "number_transaction").scalar())

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Run a block whose failing statement costs only itself, not the snapshot.

        Such blocks only read, so they share one savepoint until one fails: a pick-up may read a thousand
        tables.
        """
        try:
            yield
        except DatabaseFailed:
            if self._has_savepoint:
                self._queries.run(self._connection, "back_to_savepoint")
                self._views = None  # a setting goes back with it
            raise

    def _before(self, *, view: bool) -> list[Call]:
        """Return what precedes a statement on a table: a savepoint, and what makes the server refuse the
        table if it became a view since its catalogue was read."""
        calls = [] if self._has_savepoint else [self._queries.call("savepoint")]
        self._has_savepoint = True
        if view != self._views:
            calls += self._queries.calls_of("expect_kind", refused=literal("" if view else "view"))
            self._views = view
        return calls

    def _reads(self, table: Readable) -> bool:
        """Note a table that is read, and return whether it is in the database of the log."""
        if table.elsewhere is None:
            self._tables_read.add(table.places)
        return table.elsewhere is None

    def keys(self, table: Table, holes: dict[str, str], **values: Any) -> list[Any]:
        """Read the keys of some rows of a table, each as its text and as it is."""
        places = [place_of(table)]
        self._tables_read.add(places)
        calls = [*self._before(view=table.view), self._queries.call("resync_keys", holes, **values)]
        with reading(self._queries.log.dialect, places):
            return list(self._queries.run_calls(self._connection, calls)[-1])

    def reading(self, table: Readable) -> Connection:
        """Note a table that is read whole, and return the connection that sees this moment."""
        self._reads(table)
        return self._connection

    def letters(self, after: int, limit: int) -> ResultColumns:
        """Return the record_ids and letters of the first rows after a record_id, by column."""
        return self._columns("letters", ("record_id", "status"), {}, after=after, most=limit)

    def audited_rows(self, after: int, limit: int) -> ResultColumns:
        """Return the first rows of the log after a record_id by column, whatever their status."""
        holes = {"same_values": self._queries.piece("same_values")}
        return self._columns("audited_rows", _AUDITED, holes, after=after, most=limit)

    def _columns(
        self, name: str, columns: Sequence[str], holes: dict[str, str], **values: Any
    ) -> ResultColumns:
        from eventlog.sql.columns import read_columns

        clause, parameters = self._queries.call(name, holes, **values)
        numbers = [column for column in columns if column in _NUMBERS]
        texts = [column for column in columns if column not in _NUMBERS]
        return read_columns(
            self._connection, self._queries, clause, parameters, columns, numbers=numbers, texts=texts
        )

    def admin(self) -> LogAdmin:
        """Return what people read who look after the log, as of this moment."""
        return LogAdmin(self._connection, self._queries)

    def record(self) -> LogRecord:
        """Return the record of what happened, as of this moment."""
        return LogRecord(self._connection, self._queries)

    def held_objects(self) -> HeldObjects:
        """Return the objects whose later rows wait for an event of theirs."""
        if self.moment.first_retry is None:
            return HeldObjects(frozenset())
        return HeldObjects(frozenset(row[0] for row in self._queries.run(self._connection, "held")))

    def rows_about(self, words: str) -> Iterator[LogCells]:
        """Yield every row whose key holds these words, handled ones too."""
        rows = self._queries.run(self._connection, "rows_about", words=containing(words))
        yield from rows

    def pending_after(self, record_id: int, limit: int) -> list[LogCells]:
        """Return pending rows after a record_id, including those that may not go now."""
        holes = self._holes("after_row") | {"order": self._queries.piece("by_record_id")}
        values = {"after": record_id, "most": limit, "skip": 0}
        return list(self._queries.run(self._connection, "pick_up", holes, **values))

    def fates(self, choice: PickUpFilter) -> dict[str, Fates]:
        """Return why pending rows may not go now: the numbers of loopback, future, held and free rows."""
        user, future = choice.driver_user, choice.future
        late = f"case when {self._queries.piece('not_future')} then 1 else 0 end = 0"
        holes = {
            "loopback": "1 = 0" if user is None else self._queries.piece("loopback"),
            "future": late if future else "1 = 0",
            "not_held": self._queries.piece("not_held"),
        }
        values = {} if user is None else {"driver_user": user}
        rows = self._queries.run(self._connection, "pending_fates", holes | self._holes(), **values)
        return {fate: Fates(*counts) for fate, *counts in rows}

    def loopback(self, driver_user: str, limit: int, above: int = LOWEST) -> list[int]:
        """Return the pending rows of the driver's own user above a record_id."""
        return self._ids(limit, "loopback", above, driver_user=driver_user)

    def timeless(self, limit: int) -> list[int]:
        """Return the pending rows without event_time, which a pick-up by time never sees."""
        return self._ids(limit, "timeless")

    def _ids(self, limit: int, condition: str, above: int = LOWEST, **values: Any) -> list[int]:
        call = ids_statement(self._queries, limit, condition, above, **values)
        return [row[0] for row in self._queries.run_calls(self._connection, [call])[0]]

    def _holes(self, *conditions: str) -> dict[str, str]:
        """Return the texts for a statement on the pending rows, in the order of their ids."""
        return {
            "rows": self._queries.relation(),
            "conditions": self._queries.pieces("pending", *conditions),
        }

    def current_rows(
        self, table: Readable, keys: Sequence[Sequence[str]], bound: int = NO_BOUND, *, last: bool = False
    ) -> Iterator[Current]:
        """Yield the rows of the keys as they are in this snapshot, TooMuch if they come to so many bytes;
        values of a key are of its columns' types. With `last`, nothing is read after them, so the transaction
        may end in the same round trip.
        """
        is_near = bool(keys) and self._reads(table)  # in the database of the log
        before = self._before(view=table.view) if is_near else []
        measures = is_near and self._queries.log.dialect.statements.measures_rows
        if not (last and measures and len(keys) <= current_rows.FEW):
            return current_rows.current_rows(self._connection, self._queries, table, keys, bound, before)
        call = current_rows.call_of_few(self._queries, table, keys, bound)
        calls = [*before, call, *self._tables_read.last_calls()]
        answers = self._queries.run_calls(self._connection, calls, commit=True)
        self._last_answers = answers[len(before) + 1 :]
        return current_rows.measured(answers[len(before)], bound, bound)

    def current_columns(
        self, table_keys: Sequence[TableKeys], bound: int = NO_BOUND
    ) -> tuple[Ints, list[pa.Array]]:
        """Return the current rows by column: of each row its key's number, and the texts of each column.

        The keys are numbered across `table_keys`. The tables are of one database with as many columns each.
        All or none of them are views.
        """
        if all(self._reads(keys.table) for keys in table_keys):
            self._queries.run_calls(self._connection, self._before(view=table_keys[0].table.view))
        return current_rows.current_columns(self._connection, self._queries, table_keys, bound)
