"""Long columns of numbers: in memory up to a limit, then in nameless files, which the system pages.

A column on disk is written whole before it is used, so a full disk is an error with the name of the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from eventlog.files.durable import NamelessFile

T = TypeVar("T", bound=np.generic)
MEMORY: Final = 320 << 20  # bytes; an audit has some 500 MiB with them
_BLOCK: Final = 1 << 18  # numbers that are handled together


class ColumnMemory:
    """The memory that some columns share."""

    def __init__(self, size: int = MEMORY, block: int = _BLOCK) -> None:
        self._free = size
        self._block = block

    def full(self, count: int, value: object, kind: type[T]) -> npt.NDArray[T]:
        """Return a column in which each number is this value."""
        numbers: npt.NDArray[T] = np.full(min(count, self._block), value, kind)
        if numbers.itemsize * count <= self._free:
            self._free -= numbers.itemsize * count
            return np.full(count, value, kind)
        file = NamelessFile()
        for part in self.blocks(count):
            file.append(numbers[: part.stop - part.start].view(np.uint8).data)
        return np.frombuffer(file.mapped(), numbers.dtype)

    def drop(self, column: npt.NDArray[Any]) -> None:
        """Note that a column is not used any more."""
        if column.flags.owndata:
            self._free += column.nbytes

    def blocks(self, count: int) -> Iterator[slice]:
        """Yield consecutive ranges of so many numbers, which are handled one after another."""
        for begin in range(0, count, self._block):
            yield slice(begin, min(begin + self._block, count))

    def keep(
        self, columns: Sequence[npt.NDArray[Any]], flags_of: Callable[[slice], npt.NDArray[np.bool_]]
    ) -> list[npt.NDArray[Any]]:
        """Move the numbers that are flagged to the beginning of their columns, and return these."""
        size = 0
        for part in self.blocks(len(columns[0])):
            flags = flags_of(part)
            end = size + int(flags.sum())
            for column in columns:
                column[size:end] = column[part][flags]
            size = end
        return [column[:size] for column in columns]


class GrowingColumn(Generic[T]):
    """A column to whose end numbers are added."""

    def __init__(self, memory: ColumnMemory, kind: type[T]) -> None:
        self._memory = memory
        self._kind = kind
        self._numbers: npt.NDArray[T] = memory.full(0, 0, kind)
        self._size = 0

    @property
    def numbers(self) -> npt.NDArray[T]:
        """Return all numbers so far."""
        return self._numbers[: self._size]

    def extend(self, numbers: Sequence[int] | Sequence[str] | npt.NDArray[Any]) -> None:
        """Add numbers."""
        end = self._size + len(numbers)
        if end > len(self._numbers):
            longer = self._memory.full(max(end, 2 * len(self._numbers)), 0, self._kind)
            longer[: self._size] = self.numbers
            self._memory.drop(self._numbers)
            self._numbers = longer
        self._numbers[self._size : end] = numbers
        self._size = end
