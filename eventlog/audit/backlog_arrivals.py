"""The events of a receiver whose rows backlogs put on record: of these the record has a sum of all texts."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from eventlog.audit.event_text import names_of, part_named, rows_named
from eventlog.audit.on_record import Digests, LogOnRecord, find
from eventlog.core.plurals import quantity
from eventlog.fold.by_column.vectors import Flags


class BacklogArrivals:
    """The events that begin with a row of a backlog.

    A row that left before, and was refused or interrupted, has several texts at the receiver. The sum has
    the text of the backlog alone: so more than one choice of them may come to it.
    """

    def __init__(self, log: LogOnRecord) -> None:
        self.rows = log.rows_of_backlogs()
        sums = [sum(each) for each in zip(*log.backlogs, strict=True)] or [0, 0, 0]
        self.rows_summed, self._documents, self._total = sums
        _, begins = find(self.rows, log.first_rows[log.early :])
        self._earlier_texts = np.unique(log.digests[log.early :][begins])
        tried_rows = np.array(sorted(log.facts.tried), np.int64)
        self._left_before = bool(len(self._earlier_texts)) or bool(np.any(find(self.rows, tried_rows)[1]))
        self._are_known = array("b")  # 1 for a text that is on record by itself, too
        self._digests, self._objects, self._firsts, self._lasts = (array(kind) for kind in "Qqqq")
        self._parts = array("i")

    def are_earlier(self, digests: Digests) -> Flags:
        """Return which digests are on record for events that begin with a row of a backlog."""
        return find(self._earlier_texts, digests)[1]

    def add(self, digests: Digests, texts: Sequence[bytes], are_known: Flags) -> None:
        """Take events in the order in which they came."""
        self._digests.extend(digests.tolist())
        if not self._left_before:
            return
        self._are_known.extend(are_known.tolist())
        for event_id, _, schema, table, key in map(names_of, texts):
            first, last = rows_named(event_id)
            self._firsts.append(first)
            self._lasts.append(last)
            self._parts.append(part_named(event_id))
            self._objects.append(hash((schema, table, key) if key else first))

    @property
    def count(self) -> int:
        """Return how many different texts came."""
        return len(np.unique(self._texts))

    def fault(self) -> str:
        """Return what the documents lack to come to the sum on record; empty if they come to it."""
        counts = []
        for texts in self._choices():
            if (len(texts), int(texts.sum())) == (self._documents, self._total % (1 << 64)):
                return ""
            counts.append(len(texts))
        of = quantity(self._documents, "document")
        if self._documents in counts:
            return f"of {of} of backlogs one has another text at the receiver"
        return f"of {of} of backlogs the receiver has {counts[-1]}"

    @property
    def _texts(self) -> Digests:
        return np.array(self._digests, np.uint64)

    def _choices(self) -> Iterator[Digests]:
        """Yield texts that may be those of backlogs: the unknown ones, all, and the last of each row."""
        texts = self._texts
        if self._left_before:
            yield np.unique(texts[np.array(self._are_known, np.int8) == 0])
        yield np.unique(texts)
        if self._left_before:
            yield np.unique(texts[self._are_last()])

    def _are_last(self) -> Flags:
        """Return which events share no row of their object with a later one, other than a further part."""
        are_last: Flags = np.zeros(len(self._digests), np.bool_)
        objects: npt.NDArray[np.int64] = np.array(self._objects, np.int64)
        ranges = _Ranges()
        last_object = None
        for at in np.lexsort((-np.arange(len(objects)), objects)).tolist():
            if self._objects[at] != last_object:
                ranges, last_object = _Ranges(), self._objects[at]
            are_last[at] = ranges.add(self._firsts[at], self._lasts[at], self._parts[at])
        return are_last


class _Ranges:
    """A set of ranges that share no row, each with the parts of one event."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ranges: dict[int, tuple[int, set[int]]] = {}

    def add(self, first: int, last: int, part: int) -> bool:
        """Add a part of an event, or return False if it is there or shares a row with another event."""
        at = bisect_right(self._firsts, last)
        if at and self._ranges[self._firsts[at - 1]][0] >= first:
            own_last, parts = self._ranges[self._firsts[at - 1]]
            is_further = (self._firsts[at - 1], own_last) == (first, last) and part not in parts
            parts.update([part] if is_further else ())
            return is_further
        self._firsts.insert(at, first)
        self._ranges[first] = last, {part}
        return True
