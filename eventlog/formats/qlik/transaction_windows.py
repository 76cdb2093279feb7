"""Changes for a writer of messages: by change_seq, and held where other changes interrupt a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import count
from operator import itemgetter
from typing import Any, Final

from eventlog.core.change import Change, Op
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.numbering import key_of_transaction
from eventlog.formats.qlik.transaction_places import OpenSorter, TransactionKey

_MEMORY: Final = 256 << 20  # bytes of changes that are sorted, and as many of those that are held
_MAX_KEYS: Final = 100_000  # transactions that are remembered to see whether one comes again
_CHANGE_BYTES: Final = 1000
_FIELD_BYTES: Final = 150
_LONG: Final = {bytes, tuple}  # types of sides that have a size

KeyedChange = tuple[Change, TransactionKey | None]


class _Window:
    """The transactions that may go on: those of one time, or without a change_seq all up to the end."""

    def __init__(self) -> None:
        self._time: str | None = None  # empty if they may go on for ever
        self._keys: set[TransactionKey] = set()
        self._last: TransactionKey | None = None
        self.is_interleaved = False  # one of them goes on after others, or they are too many to see that

    def ends_before(self, seq: str) -> bool:
        """Return whether none of the transactions goes on at a change_seq."""
        time = self._time
        return time is not None and time != "" and seq != "" and not seq.startswith(time)

    def add(self, key: TransactionKey | None, seq: str) -> None:
        """Add the transaction of a change."""
        if key == self._last:
            return
        self._last = key
        if key is None:
            return
        if self._time != "":
            self._time = seq[: sequence.TIME]
        if self.is_interleaved:
            return
        if key in self._keys or len(self._keys) >= _MAX_KEYS:
            self.is_interleaved = True
            self._keys.clear()
        else:
            self._keys.add(key)

    @property
    def is_open(self) -> bool:
        """Return whether a transaction may go on."""
        return self._time is not None


def in_sequence(changes: Iterable[Change], open_sorter: OpenSorter) -> Iterator[KeyedChange | HeldChanges]:
    """Yield the changes by change_seq, as `in_windows` does; one without follows the greatest before it."""
    with closing(open_sorter(itemgetter(0), _size, _MEMORY)) as sorter:
        greatest, window = "", _Window()
        is_plain = True  # the changes came by change_seq, and no transaction was interrupted
        for change in changes:
            _, key, seq = _located(change)
            place = seq or greatest
            if is_plain:
                window = _Window() if window.ends_before(seq) else window
                window.add(key, seq)
                is_plain = place >= greatest and not window.is_interleaved
            greatest = max(greatest, place)
            sorter.add((place, change, key, seq))
        if is_plain:
            yield from map(itemgetter(1, 2), sorter.in_order())
        else:
            yield from _in_windows(map(itemgetter(1, 2, 3), sorter.in_order()), open_sorter)


class HeldChanges:
    """The changes from where a transaction is first interrupted to where all transactions have ended."""

    def __init__(self, open_sorter: OpenSorter) -> None:
        self._sorter = open_sorter(itemgetter(0), _size, _MEMORY)
        self._numbers = count()

    def add(self, change: Change, key: TransactionKey | None) -> None:
        """Add a change."""
        self._sorter.add((next(self._numbers), change, key))

    def __iter__(self) -> Iterator[KeyedChange]:
        return map(itemgetter(1, 2), self._sorter.in_order())

    def close(self) -> None:
        """Drop the changes."""
        self._sorter.close()


def in_windows(changes: Iterable[Change], open_sorter: OpenSorter) -> Iterator[KeyedChange | HeldChanges]:
    """Yield sorted changes with their transactions, and together those of transactions that interleave.

    All changes of a transaction share the time part of their change_seq, so none goes on after that time.
    Without a change_seq a transaction may go on to the end of the changes.
    """
    return _in_windows(map(_located, changes), open_sorter)


def _in_windows(
    changes: Iterable[tuple[Change, TransactionKey | None, str]], open_sorter: OpenSorter
) -> Iterator[KeyedChange | HeldChanges]:
    window = _Window()
    current: TransactionKey | None = None
    held_changes: HeldChanges | None = None
    try:
        for change, key, seq in changes:
            if key is None or key != current:
                if window.ends_before(seq):
                    if held_changes is not None:
                        yield from _released(held_changes, window)
                    window, held_changes = _Window(), None
                if held_changes is None and window.is_open:
                    held_changes = HeldChanges(open_sorter)
                window.add(key, seq)
                current = key
            if held_changes is None:
                yield change, key
            else:
                held_changes.add(change, key)
        if held_changes is not None:
            yield from _released(held_changes, window)
    finally:
        if held_changes is not None:
            held_changes.close()


def _released(held_changes: HeldChanges, window: _Window) -> Iterator[KeyedChange | HeldChanges]:
    """Yield the changes one by one if no transaction among them is interrupted."""
    if window.is_interleaved:
        yield held_changes
    else:
        yield from held_changes
    held_changes.close()


def _located(change: Change) -> tuple[Change, TransactionKey | None, str]:
    """Return a change, its transaction, and its change_seq; empty if it has none."""
    position = change.position
    if position is None or change.op is Op.SNAPSHOT or not sequence.legal(position):
        return change, key_of_transaction(change), ""
    transaction = change.transaction
    return change, None if transaction is None else (transaction, position[: sequence.TIME]), position


def _size(item: tuple[object, Change, *tuple[object, ...]]) -> int:
    """Return roughly how many bytes an item takes; its change is the second part."""
    _, change, *_ = item
    fields = change.fields
    size = _CHANGE_BYTES + _FIELD_BYTES * len(fields)
    for _, before, after in fields:
        if type(before) is str:  # most sides are, or have no size of their own
            size += len(before)
        elif type(before) in _LONG:
            size += _size_of_long(before)
        if type(after) is str:
            size += len(after)
        elif type(after) in _LONG:
            size += _size_of_long(after)
    if change.raw is not None:
        size += sum(map(len, filter(None, change.raw)))
    return size


def _size_of_long(side: Any) -> int:
    if isinstance(side, bytes):
        return len(side)
    return sum(_FIELD_BYTES + len(str(value)) for value in side)
