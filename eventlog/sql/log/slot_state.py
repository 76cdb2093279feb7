"""The position up to which a replication slot filled the log, and the rows that its changes become."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.tables import Column
from eventlog.sql.common.dialect import Call
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.log.log_record import LogRecord, Notice, NoticeKind
from eventlog.sql.queries import Queries, unbound

_ENDINGS, _ENDING = 100, 0.05  # looks whether a session has ended, and seconds between two
_NAMES = ("log", "raw_event_type", "raw_perpetrator", "raw_table_name", "raw_table_key")


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """The record of the slot that fills a log."""

    slot: str
    system: str  # the identifier of the server
    publication: int  # its number, which is another one after it was made anew
    members: Mapping[str, int] = field(default_factory=dict)  # the number of each table in it, or 0
    until: int | None = None  # from this position on triggers fill the log again
    altered_by: int | None = None  # the transaction that last altered the publication; None: noted by 0.1.0
    since: Mapping[str, int] = field(default_factory=dict)  # where the log goes on for tables with a gap


class SlotPosition(NamedTuple):
    """The position up to which the changes of a slot are in the log."""

    lsn: int
    committed_at: datetime | None  # of the last one that was logged
    noted_at: datetime


class ServerSlot(NamedTuple):
    """The server, and what it has of a slot and its publication."""

    wal_level: str
    keeps: str  # the most of its log that it keeps for a slot; -1: any
    version: int
    system: str
    end: int  # of its log
    is_there: bool  # a slot of that name
    owner: str | None  # of the slot, if it is not one of this database that we can read
    active_pid: int | None
    wal_status: str | None
    restart: int | None
    confirmed: int | None
    publication: int | None
    altered_by: int | None  # the transaction that last altered the publication itself
    missing_options: Sequence[str]  # what it does not publish
    hides_generated: bool  # columns, which a replica identity of all columns has
    has_all_tables: bool
    fails_over: bool  # standbys keep the slot, too
    free_slots: int
    proves_users: bool  # only roles with a right of their own send messages, so whom they name is believed


class LossKind(StrEnum):
    """The reasons for which the log may lack changes of a table."""

    EMPTIED = "emptied"
    RENAMED = "renamed"  # its columns
    UNSENT = "unsent"  # values of a key
    UNREADABLE = "unreadable"  # keys
    TAKEN_OUT = "taken out"  # of the publication, for a while
    LEFT_OUT = "left out"  # of it, or some of its changes
    SLOT_LOST = "slot lost"  # or what it still needed
    COMPARED = "compared"  # until now


_LOSSES: Final[Mapping[LossKind, str]] = {
    LossKind.EMPTIED: "it or a child of it was truncated, and no log names the rows that are gone",
    LossKind.RENAMED: "its changes do not have the columns {0}, by which its objects are named",
    LossKind.UNSENT: "a change does not have the value of its key",
    LossKind.UNREADABLE: "the keys of changes could not be read: {0}",
    LossKind.TAKEN_OUT: "{0} was taken out of publication {1}, or could not be read, for a while",
    LossKind.LEFT_OUT: "{0}",
    LossKind.SLOT_LOST: "{0}",
    LossKind.COMPARED: "it was compared before, and what changed since is not logged yet",
}


class Loss(NamedTuple):
    """A reason for which the log may lack changes of a table."""

    kind: LossKind
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _LOSSES[self.kind].format(*self.details)


class Gap(NamedTuple):
    """A notice that the log may lack changes of a table."""

    last_id: int  # the newest row of the log when that was noted
    why: str
    notice_id: int


class Member(NamedTuple):
    """A table of a publication."""

    name: str
    number: int | None  # another one after the table was taken out and put back; None: it is not listed
    columns: tuple[str, ...] | None  # that are published; None: all
    is_filtered: bool  # not all rows are published


class Feed(NamedTuple):
    """The way in which changes of a table name an object."""

    table: str  # whose object it is
    logged_as: str
    key: tuple[tuple[str, Column], ...]  # its names, and the columns of the changed table that have it
    is_child: bool = False  # a change of it is an update of its parent

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns of the changed table that have the key."""
        return tuple(column.name for _, column in self.key)


class LoggedChange(NamedTuple):
    """A row for the log."""

    feed: int
    kind: int
    who: str | None
    values: Sequence[str]


class SlotState:
    """The position and the rows of a slot, in a transaction that writes them."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def facts(self) -> SlotFacts | None:
        """Return what is on record of the slot, None if something else fills the log."""
        return _read_facts(self._run("slot_facts").scalar())

    def record(self, facts: SlotFacts | None) -> None:
        """Put on record which slot fills the log."""
        self._run("slot_record", facts=None if facts is None else json.dumps(asdict(facts)))

    def position(self) -> SlotPosition | None:
        """Return the position, None if no slot ever filled the log."""
        row = self._run("slot_position").one_or_none()
        return None if row is None else SlotPosition(*row)

    def note(self, lsn: int, time: int | None = None) -> None:
        """Note the position in place of the former one, with the time of the last logged change."""
        self._run("slot_note", lsn=lsn, time=time)

    def slot_name(self) -> str:
        """Return the name of the log's slot and publication."""
        return self.choose_name()[0]

    def choose_name(self) -> tuple[str, dict[str, str]]:
        """Return the name of the log's slot and publication, and the owners of slots with names before it."""
        owners: dict[str, str] = {}
        for name in self._run("slot_names").scalars():
            if (owner := self.on_server(name).owner) is None:
                break
            owners[name] = owner
        return str(name), owners

    def on_server(self, slot: str) -> ServerSlot:
        """Return what the server has of a slot."""
        return ServerSlot(*self._run("slot_now", slot=slot).one())

    def members(self, slot: str) -> dict[int, Member]:
        """Return the tables of the slot's publication by their numbers."""
        rows = self._run("publication_members", slot=slot)
        return {
            table: Member(name, number, columns and tuple(columns), is_filtered)
            for table, name, number, columns, is_filtered in rows
        }

    def end_reader(self, slot: str) -> None:
        """End the session that reads a slot."""
        self._run("slot_end_reader", slot=slot)

    def drop_slot(self, slot: str) -> None:
        """Drop a slot if it is of this database."""
        for _ in range(_ENDINGS):
            if self.on_server(slot).active_pid is None:
                break
            self.end_reader(slot)
            time.sleep(_ENDING)
        self._run("slot_drop", slot=slot)

    def drop(self) -> None:
        """Drop the slot that fills the log, if it is of this database, and its publication."""
        if (facts := self.facts()) is not None:
            self.drop_slot(facts.slot)
        body = self._queries.filled("drop_recorded_slot", state=self._queries.name("state"))
        execute_plain(self._connection, f"do {literal(body)}")

    def visible(self, xids: Sequence[int]) -> tuple[int, SlotFacts | None]:
        """Return how many of these transactions, from the first on, a new snapshot sees, and the slot's
        record; None if something else fills the log by now.
        """
        count, facts = self._run("slot_visible", xids=json.dumps(xids)).one()
        return int(count), _read_facts(facts)

    def calls(
        self, feeds: Sequence[Feed], rows: Sequence[LoggedChange], lsn: int, time: int | None
    ) -> list[Call]:
        """Return the statements that log changes and note the position."""
        logging = [self._logging(feeds, rows)] if rows else []
        return [*logging, self._queries.call("slot_note", lsn=lsn, time=time)]

    def log(self, feeds: Sequence[Feed], rows: Sequence[LoggedChange]) -> None:
        """Log changes now."""
        if rows:
            self._connection.execute(*self._logging(feeds, rows))

    def log_by_table(self, feeds: Sequence[Feed], rows: Sequence[LoggedChange]) -> None:
        """Log changes table by table. Those of a table whose keys cannot be read by now are a gap of it."""
        for number in sorted({row.feed for row in rows}):
            try:
                with self._connection.begin_nested():
                    self.log(feeds, [row for row in rows if row.feed == number])
            except DatabaseFailed as fault:
                self.note_gap(feeds[number].table, Loss(LossKind.UNREADABLE, (str(fault),)))

    def _logging(self, feeds: Sequence[Feed], rows: Sequence[LoggedChange]) -> Call:
        used = sorted({row.feed for row in rows})
        width = max(len(feeds[number].key) for number in used)
        keys = "".join(f", k{number} text" for number in range(width))
        branches = "\n  union all\n".join(self._branch(number, feeds[number]) for number in used)
        names = {name: self._queries.name(name) for name in _NAMES}
        statement = self._queries.filled("slot_rows", keys=keys, branches=branches, **names)
        return Call(text(statement), {"rows": _as_json(rows)})

    def _branch(self, number: int, feed: Feed) -> str:
        expressions = self._queries.log.dialect.values.expressions
        columns = [(name, replace(column, name=f"k{n}")) for n, (name, column) in enumerate(feed.key)]
        casts = "".join(f", cast(g.{c.name} as {unbound(c.type)}) as {c.name}" for _, c in columns)
        key = unbound(expressions.key(columns, "t", self._queries.log.dialect.quote))
        holes = {"table_name": unbound(literal(feed.logged_as)), "key": key, "columns": casts}
        return self._queries.filled("slot_branch", feed=str(number), **holes)

    def note_gap(self, table: str, loss: Loss) -> None:
        """Note that the log may lack changes of a table from before."""
        newest = self._run("compare_newest").scalar() or 0
        LogRecord(self._connection, self._queries).note(
            Notice(NoticeKind.GAP, table, last_id=int(newest), words=str(loss))
        )

    def gaps(self) -> dict[str, Gap]:
        """Return the tables whose log may lack changes, each with its latest gap."""
        return {str(table): Gap(*gap) for table, *gap in self._run("slot_gaps")}

    def close_gap(self, table: str, gap: Gap, who: str) -> None:
        """Note that what a gap lacked was logged; a later gap of the table stays open."""
        notice = Notice(NoticeKind.GAP_CLOSED, table, last_id=gap.notice_id, who=who)
        LogRecord(self._connection, self._queries).note(notice)

    def objects_left_after(self, record_id: int) -> Iterator[tuple[str, str]]:
        """Return the table_name and table_key of objects whose last row after a record_id is no delete."""
        for table, key in self._run("slot_left", after=record_id):
            yield str(table), str(key)

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: Any) -> Any:
        return self._queries.run(self._connection, name, holes, **values)


@lru_cache(maxsize=1)
def _read_facts(text: str | None) -> SlotFacts | None:
    return None if text is None else SlotFacts(**json.loads(text))


def _as_json(rows: Iterable[LoggedChange]) -> str:
    """Return rows in their order, as the statement reads them."""
    listed = [
        {"place": place, "feed": feed, "kind": kind, "who": who}
        | {f"k{number}": value for number, value in enumerate(values)}
        for place, (feed, kind, who, values) in enumerate(rows)
    ]
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
