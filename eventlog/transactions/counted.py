"""Transactions that are whole once every number up to the count at their end has come, in any order."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Placed
from eventlog.transactions.ranges import Ranges

Key = tuple[str, ...]  # the identity of a transaction; the first part is its id
_CHANGE_BYTES: Final = 500  # of a change without content
_MAX_NAMED_GAPS: Final = 5


class Incomplete(EventlogError):
    """{0}; --open-transactions refuse or deliver continues without them"""


def size_of(placed: Placed) -> int:
    """Return roughly how many bytes a change takes."""
    return _CHANGE_BYTES + 3 * len(placed.raw or b"") + 100 * len(placed.change.fields)


@dataclass(slots=True)
class TransactionProgress:
    """The counts of a transaction whose changes are still coming."""

    key: Key
    since: float = 0  # the moment of its first change
    sources: set[str] = field(default_factory=set)  # that contain them
    numbers: dict[str, Ranges] = field(default_factory=dict)  # of its changes by table, or "" for all
    counts: Mapping[str, int] | None = None  # the last of these numbers, as its end has them

    def is_new(self, table: str, number: int) -> bool:
        """Note the number of a change, and return whether none of this number came before."""
        numbers = self.numbers.get(table)
        if numbers is None:
            numbers = self.numbers[table] = Ranges()
        is_new = number not in numbers
        numbers.add(number)
        return is_new

    @property
    def source_names(self) -> str:
        """Return the names of the sources that contain its changes."""
        return ", ".join(sorted(self.sources))

    def missing(self, end: str, read: Container[str]) -> str:
        """Return a sentence about what is missing of the tables that are read; empty if nothing is.

        `end` is what has the counts.
        """
        parts = [end] if self.counts is None else []
        for table, last in (self.counts or {}).items():
            if table in read and (gaps := self.numbers.get(table, Ranges()).missing(1, last)):
                parts.append(f"its changes {_named(gaps)}{' of ' * bool(table)}{table}")
        if not parts:
            return ""
        return f"transaction {' at '.join(self.key)} lacks {' and '.join(parts)} ({self.source_names})"


def _named(gaps: list[tuple[int, int]]) -> str:
    names = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in gaps[:_MAX_NAMED_GAPS]]
    unnamed = f" and {len(gaps) - _MAX_NAMED_GAPS} more gaps" if len(gaps) > _MAX_NAMED_GAPS else ""
    return f"{', '.join(names)}{unnamed}"


class DueTransaction(NamedTuple):
    """A transaction that is handed out."""

    progress: TransactionProgress
    changes: Iterable[Placed]  # in order, each once
    stored: Iterable[Placed]  # repeats, too
    fault: str = ""  # why its changes are refused
    is_late: bool = False  # a later one was handed out before
    is_overlapped: bool = False  # one that is handed out after it began before its end

    def refusals(self) -> Iterator[Refused]:
        """Yield each change of a transaction that is refused."""
        for placed in self.stored:
            yield Refused(placed.where, self.fault, placed.raw)
