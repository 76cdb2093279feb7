"""The messages of a slot become transactions, and the changes of one what its objects need at the receiver.

A statement that swaps two keys comes as delete, insert, delete, insert of rows. So what counts is how often
an object departed and arrived in the whole transaction. All departures are first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby
from typing import Final, NamedTuple

from eventlog.files.stores import KeyedItems, SortedItems
from eventlog.sql.log.slot_state import Feed, LoggedChange
from eventlog.sql.postgresql.pgoutput import (
    NOT_SENT,
    BeginRead,
    BrokenOutput,
    CommitRead,
    MessageRead,
    NotSent,
    OutputMessage,
    Row,
    RowChanged,
    TableDescribed,
    TablesTruncated,
)

USER: Final = "eventlog.user"  # the prefix of messages by which an application names its user
_LONGEST: Final = 256  # characters of the name of a user
_SIZE = 160  # bytes of a change besides its key
_EMPTIED = "it was truncated, and no log names the rows that are gone"
_RENAMED = "its changes do not have the columns {0}, by which its objects are named"
_UNSENT = "a change does not have the value of its key"


class Happening(IntEnum):
    """The ways in which an object changes."""

    UPDATED = 0
    ARRIVED = 1
    DEPARTED = -1


class ObjectChange(NamedTuple):
    """A change of an object within its transaction."""

    place: int
    feed: int
    kind: Happening
    values: tuple[str, ...]  # of the key


@dataclass(slots=True)
class SlotTransaction:
    """A committed transaction."""

    xid: int
    time: int
    end: int = 0
    who: str | None = None
    count: int = 0
    gaps: dict[str, str] = field(default_factory=dict)  # tables whose changes are lost, and why
    rows: SortedItems[tuple[bool, int, LoggedChange]] | None = None

    def logged(self) -> Iterator[LoggedChange]:
        """Yield the rows for the log in their order."""
        if self.rows is not None:
            yield from (row for *_, row in self.rows.in_order())

    def close(self) -> None:
        """Drop the rows."""
        if self.rows is not None:
            self.rows.close()


class SlotFeeds:
    """A directory of how the changes of tables name objects, by the numbers of these tables."""

    def __init__(self, numbers: Mapping[int, Sequence[int]], feeds: Sequence[Feed]) -> None:
        self.list = feeds
        self._numbers = numbers  # of the feeds of each table
        self._places: dict[int, list[tuple[int, tuple[int, ...]]]] = {}

    def of(self, table: int) -> Iterator[Feed]:
        """Yield the feeds of a table."""
        return (self.list[number] for number in self._numbers.get(table, ()))

    def missing(self, described: TableDescribed) -> dict[str, str]:
        """Take the order of the columns of a table. Return the tables whose keys its changes lack."""
        self._places[described.table] = places = []
        missing: dict[str, str] = {}
        for number in self._numbers.get(described.table, ()):
            feed = self.list[number]
            if missing_names := [name for name in feed.names if name not in described.columns]:
                missing[feed.table] = _RENAMED.format(", ".join(missing_names))
            else:
                places.append((number, tuple(map(described.columns.index, feed.names))))
        return missing

    def places(self, table: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return the feeds of a table, each with the places of its key in a row."""
        return self._places.get(table, [])


class SlotReader:
    """A reader that puts transactions together; over `memory` bytes their changes are on disk."""

    def __init__(self, feeds: SlotFeeds, memory: int) -> None:
        self._memory = memory // 2
        self._changes = KeyedItems[ObjectChange](self._memory)
        self.feeds = feeds
        self.described: dict[int, TableDescribed] = {}
        self._missing: dict[int, dict[str, str]] = {}
        self.open: SlotTransaction | None = None

    def renew(self, feeds: SlotFeeds) -> None:
        """Take other feeds, from the next change on."""
        self.feeds = feeds
        self._missing = {table: feeds.missing(words) for table, words in self.described.items()}

    def close(self) -> None:
        """Drop what is not whole."""
        self._changes.close()

    def take(self, message: OutputMessage | None) -> SlotTransaction | None:
        """Take a message. Return the transaction that it ends."""
        if isinstance(message, BeginRead):
            self.open = SlotTransaction(message.xid, message.time)
        elif isinstance(message, TableDescribed):
            self.described[message.table] = message
            self._missing[message.table] = self.feeds.missing(message)
        elif message is not None and self.open is None:
            raise BrokenOutput(f"{type(message).__name__} is outside a transaction")
        elif isinstance(message, RowChanged):
            self._change(message)
        elif isinstance(message, TablesTruncated):
            self._gap({feed.table: _EMPTIED for table in message.tables for feed in self.feeds.of(table)})
        elif isinstance(message, MessageRead) and message.prefix == USER:
            self._opened.who = message.content[:_LONGEST]
        elif isinstance(message, CommitRead):
            return self._end(message)
        return None

    @property
    def _opened(self) -> SlotTransaction:
        assert self.open is not None
        return self.open

    def _gap(self, gaps: Mapping[str, str]) -> None:
        self._opened.gaps.update(gaps)

    def _change(self, change: RowChanged) -> None:
        if missing := self._missing.get(change.table):
            self._gap(missing)
        for number, places in self.feeds.places(change.table):
            feed = self.feeds.list[number]
            before, new = change.before, change.new
            before = None if before is None else _values(before, places)
            after = None if new is None else _values(new, places, before)
            for values in (before, after):
                if values is not None and any(isinstance(value, NotSent) for value in values):
                    self._gap({feed.table: _UNSENT})
                    return
            if feed.is_child:
                for values in dict.fromkeys((before, after)):
                    self._add(number, Happening.UPDATED, values)
            elif new is not None and before is not None and before != after:
                self._add(number, Happening.DEPARTED, before)
                self._add(number, Happening.ARRIVED, after)
            else:
                self._add(number, _kind(change), after or before)

    def _add(self, number: int, kind: Happening, values: Row | None) -> None:
        texts = tuple(value for value in values or () if isinstance(value, str))
        if values is None or len(texts) < len(values):
            return  # a child without a parent
        key = "\0".join((str(number), *texts))
        transaction = self._opened
        change = ObjectChange(transaction.count, number, kind, texts)
        self._changes.add(0, change, len(key) * 2 + _SIZE, key)
        transaction.count += 1

    def _end(self, commit: CommitRead) -> SlotTransaction:
        transaction, self.open = self._opened, None
        transaction.end = commit.end
        if transaction.count:
            items = self._changes.pop(0)
            transaction.rows = rows = SortedItems(_order, _size, self._memory)
            for (number, values), changes in groupby(items, lambda change: (change.feed, change.values)):
                for place, kind in reduced(changes):
                    rows.add((kind != 4, place, LoggedChange(number, kind, transaction.who, values)))
            items.close()
        return transaction


def reduced(changes: Iterable[ObjectChange]) -> Iterator[tuple[int, int]]:
    """Yield the event types of one object's changes in a transaction, each with its place there."""
    counts = dict.fromkeys(Happening, 0)
    place = None
    for change in changes:
        place = change.place if place is None else place
        counts[change.kind] += 1
    arrived, departed = counts[Happening.ARRIVED], counts[Happening.DEPARTED]
    assert place is not None
    if not arrived and not departed:
        yield place, 6
        return
    if departed:
        yield place, 4
    if arrived >= departed:
        yield place, 5


def _kind(change: RowChanged) -> Happening:
    if change.before is None and change.new is not None:
        return Happening.UPDATED if change.is_update else Happening.ARRIVED
    return Happening.DEPARTED if change.new is None else Happening.UPDATED


def _values(row: Row, places: Sequence[int], before: Row | None = None) -> Row:
    """Return the values at these places; one that was not sent is that of before, if there is one."""
    if max(places) >= len(row):
        raise BrokenOutput(f"a row has {len(row)} values, and {max(places) + 1} are described")
    values = (row[place] for place in places)
    if before is None:
        return tuple(values)
    return tuple(b if value is NOT_SENT else value for b, value in zip(before, values, strict=True))


def _order(item: tuple[bool, int, LoggedChange]) -> tuple[bool, int]:
    return item[:2]


def _size(item: tuple[bool, int, LoggedChange]) -> int:
    return _SIZE + sum(map(len, item[2].values))
