"""The rows after a pick-up, which complete it: by column if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from eventlog.core.entry import read_event_type
from eventlog.core.errors import WrongRow
from eventlog.sql.log import pending as pending_rows
from eventlog.sql.log.inserts import Ends
from eventlog.sql.log.pending import Pending, Selection
from eventlog.sql.log.whole_inserts import Completed, Ints, Outline, Room, WholeInserts, hashes

CHUNK = 10_000  # rows of a statement that only looks ahead
NAMES = 2 << 20  # or fewer, of objects whose names come to so many letters
OutlineRow = Sequence[Any]  # record_id, event_type, table_name and table_key of a row


class Lookahead:
    """A completer of the pick-ups of a choice by the rows after them."""

    def __init__(self, pending: Pending, choice: Selection, ends: Ends | None) -> None:
        self._pending, self._choice = pending, choice
        room = Room(choice.most_bytes, choice.inserts, choice.bounds)
        self._completing = WholeInserts(room, Ends() if ends is None else ends, pending.sizes)

    def complete_rows(self, picked: Sequence[OutlineRow]) -> Completed:
        """Return what completes rows that were read one by one."""
        size = self._choice.limit
        further = self._pending.further(self._choice, picked[-1][0], size)
        numbers: dict[str, int] = {}
        names = [self._name(*row[2:]) for row in (*picked, *further)]
        objects = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        count = len(picked)
        near = _outline(further, objects[count:])
        return self.complete(_outline(picked, objects[:count]), near, lambda: numbers)

    def complete(self, picked: Outline, near: Outline, names: Callable[[], Iterable[str]]) -> Completed:
        """Return what completes a pick-up, from the rows just after it.

        `names` returns those of their objects, in the order of their numbers.
        """
        more = near.size >= self._choice.limit
        further = self._further(int(near.ids[-1]), names) if more else iter(())
        return self._completing.complete(picked, near, lambda: hashes(names()), further)

    def _further(self, after: int, names: Callable[[], Iterable[str]]) -> Iterator[Outline]:
        """Yield the rows after these, more with each statement.

        The number grows to as many as memory holds if the names of objects stay as long as these.
        """
        size = self._choice.limit
        skip, most = 2 * size, max(size, min(CHUNK, int(NAMES / (1 + fmean(map(len, names()))))))
        while True:
            size = min(4 * size, most)
            rows = self._chunk(replace(self._choice, limit=size), after, skip)
            if rows.size:
                yield rows
            if rows.size < size:
                return
            after, skip = int(rows.ids[-1]), skip + size

    def _chunk(self, choice: Selection, after: int, skip: int) -> Outline:
        if choice.limit >= pending_rows.MANY and self._pending.comes_by_column(choice):
            from eventlog.sql.log import further_columns  # Arrow takes a while to load

            rows = further_columns.outline_after(self._pending, choice, after)
            if rows is not None:
                return rows
        further = self._pending.further(choice, after, skip)
        return _outline(further, hashes(self._name(*row[2:]) for row in further))

    def _name(self, table_name: object, table_key: object) -> str:
        return "\0".join(self._choice.object_of(table_name, table_key))


def _outline(rows: Sequence[OutlineRow], objects: Ints) -> Outline:
    ids, kinds = [int(row[0]) for row in rows], [_kind(row[1]) for row in rows]
    return Outline(np.array(ids, np.int64), np.array(kinds, np.int64), objects)


def _kind(event_type: Any) -> int:
    """Return the event type of a row; 0 where it is none, and the row takes no part."""
    try:
        return read_event_type(event_type)
    except WrongRow:
        return 0
