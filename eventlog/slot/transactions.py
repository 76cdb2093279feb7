"""The messages of a slot become transactions, and the changes of one what its objects need at the receiver.

A statement that swaps two keys comes as delete, insert, delete, insert of rows. So what counts is how often
an object departed and arrived in the whole transaction. All departures are first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import chain, groupby
from typing import Final, NamedTuple

from eventlog.files.stores import SortedItems, SpoolFile
from eventlog.slot.decode import (
    NOT_SENT,
    BeginRead,
    BrokenOutput,
    CommitRead,
    MessageRead,
    OutputMessage,
    RowChanged,
    StreamRow,
    TableDescribed,
    TablesTruncated,
)
from eventlog.sql.log.slot_state import Feed, LoggedChange, Loss, LossKind
from eventlog.transactions.open_transactions import Bounds, OpenTransaction, OpenTransactions

USER: Final = "eventlog.user"  # the prefix of messages by which an application names its user
_LONGEST: Final = 256  # characters of the name of a user
_SIZE = 160  # bytes of a change besides its key


class Happening(IntEnum):
    """The ways in which an object changes."""

    UPDATED = 0
    ARRIVED = 1
    DEPARTED = -1


_HAPPENINGS = {b"I": Happening.ARRIVED, b"U": Happening.UPDATED, b"D": Happening.DEPARTED}


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
    losses: dict[str, Loss] = field(default_factory=dict)  # of tables
    rows: SortedItems[tuple[bool, int, LoggedChange]] | None = None

    def logged(self) -> Iterator[LoggedChange]:
        """Yield the rows for the log in their order."""
        if self.rows is not None:
            yield from (row for *_, row in self.rows.in_order())

    def close(self) -> None:
        """Drop the rows."""
        if self.rows is not None:
            self.rows.close()


Places = dict[int, tuple[int, ...]]  # of keys in the rows of a table, by the numbers of its feeds
Losses = dict[str, Loss]  # by table


class SlotReader:
    """A reader that puts transactions together; over `memory` bytes their changes are on disk.

    A message that names the `unproven` user is not believed.
    """

    def __init__(self, memory: int, unproven: str | None = None) -> None:
        self._memory = memory // 2
        self._unproven = unproven
        self._transactions = OpenTransactions[int, SlotTransaction, ObjectChange](
            SpoolFile(), Bounds(self._memory), order=_object
        )
        self.open: OpenTransaction[SlotTransaction, ObjectChange] | None = None
        self.feeds: list[Feed] = []  # that were ever read; changes name them by their places
        self._numbers: Mapping[int, list[int]] = {}  # of the feeds of each table
        self._described: dict[int, TableDescribed] = {}
        self._places: dict[int, tuple[Places, Losses]] = {}  # by table, and those that lack a key
        self.is_changed = False  # the last message: columns of a table changed, or do not have a key

    def renew(self, feeds: Mapping[int, Sequence[Feed]]) -> None:
        """Take how the changes of each table name objects, from the next change on."""
        self.feeds += [feed for feed in chain.from_iterable(feeds.values()) if feed not in self.feeds]
        self._numbers = {table: [*map(self.feeds.index, named)] for table, named in feeds.items()}
        self._places.clear()

    def _describe(self, described: TableDescribed) -> None:
        before = self._described.get(described.table, described)
        self._described[described.table] = described
        self._places.pop(described.table, None)
        _, losses = self._places_of(described.table)
        self.is_changed = before != described or bool(losses)

    def _places_of(self, table: int) -> tuple[Places, Losses]:
        if table not in self._described:
            raise BrokenOutput(f"table {table} is not described")
        if table not in self._places:
            columns, losses, places = self._described[table].columns, {}, {}
            identity = self._described[table].identity or columns  # that of partitions need not be the root's
            for number in self._numbers.get(table, ()):
                feed = self.feeds[number]
                if missing := [name for name in feed.names if name not in columns or name not in identity]:
                    losses[feed.table] = Loss(LossKind.RENAMED, (", ".join(missing),))
                else:
                    places[number] = tuple(map(columns.index, feed.names))
            self._places[table] = places, losses
        return self._places[table]

    def close(self) -> None:
        """Drop what is not whole."""
        self._transactions.close()

    def take(self, message: OutputMessage | None) -> SlotTransaction | None:
        """Take a message. Return the transaction that it ends."""
        self.is_changed = False
        if isinstance(message, BeginRead):
            begun = SlotTransaction(message.xid, message.time)
            self.open = self._transactions.begin(message.xid, begun)
        elif isinstance(message, TableDescribed):
            self._describe(message)
        elif message is not None and self.open is None:
            raise BrokenOutput(f"{type(message).__name__} is outside a transaction")
        elif isinstance(message, RowChanged):
            self._change(message)
        elif isinstance(message, TablesTruncated):
            numbers = chain.from_iterable(self._numbers.get(table, ()) for table in message.tables)
            emptied = Loss(LossKind.EMPTIED)
            self._opened.facts.losses |= {self.feeds[number].table: emptied for number in numbers}
        elif isinstance(message, MessageRead) and message.prefix == USER:
            name = message.content[:_LONGEST]
            self._opened.facts.who = None if name == self._unproven else name
        elif isinstance(message, CommitRead):
            return self._end(message)
        return None

    @property
    def _opened(self) -> OpenTransaction[SlotTransaction, ObjectChange]:
        assert self.open is not None
        return self.open

    def _change(self, change: RowChanged) -> None:
        places, losses = self._places_of(change.table)
        self._opened.facts.losses |= losses
        for number, own_places in places.items():
            feed = self.feeds[number]
            before = None if change.before is None else _values(change.before, own_places)
            after = None if change.new is None else _values(change.new, own_places, before)
            if NOT_SENT in (*(before or ()), *(after or ())):
                self._opened.facts.losses[feed.table] = Loss(LossKind.UNSENT)
            elif feed.is_child:
                for values in dict.fromkeys((before, after)):
                    self._add(number, Happening.UPDATED, values)
            elif after is not None and before is not None and before != after:
                self._add(number, Happening.DEPARTED, before)
                self._add(number, Happening.ARRIVED, after)
            else:
                self._add(number, _HAPPENINGS[change.kind], after or before)

    def _add(self, number: int, kind: Happening, values: StreamRow | None) -> None:
        texts = tuple(value for value in values or () if isinstance(value, str))
        if values is None or len(texts) < len(values):
            return  # a child without a parent
        change = ObjectChange(self._opened.count, number, kind, texts)
        self._transactions.add(self._opened, change, 2 * sum(map(len, texts)) + _SIZE)

    def _end(self, commit: CommitRead) -> SlotTransaction:
        transaction, self.open = self._opened.facts, None
        changes = self._transactions.end(transaction.xid)
        assert changes is not None
        transaction.end, transaction.count = commit.end, changes.count
        if changes.count:
            transaction.rows = rows = SortedItems(_order, _size, self._memory)
            for (number, values), of_object in groupby(changes, _object):
                for place, kind in reduced(of_object):
                    rows.add((kind != 4, place, LoggedChange(number, kind, transaction.who, values)))
        changes.close()
        return transaction


def _object(change: ObjectChange) -> tuple[int, tuple[str, ...]]:
    return change.feed, change.values


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


def _values(row: StreamRow, places: Sequence[int], before: StreamRow | None = None) -> StreamRow:
    """Return the values at these places; one that was not sent is that of before, if there is one."""
    if max(places) >= len(row):
        raise BrokenOutput(f"a row has {len(row)} values, and {max(places) + 1} are described")
    values = (row[place] for place in places)
    if before is None:
        return tuple(values)
    return tuple(b if value is NOT_SENT else value for b, value in zip(before, values, strict=True))


_PlacedChange = tuple[bool, int, LoggedChange]


def _order(item: _PlacedChange) -> tuple[bool, int]:
    is_added, place, _ = item
    return is_added, place


def _size(item: _PlacedChange) -> int:
    _, _, change = item
    return _SIZE + sum(map(len, change.values))
