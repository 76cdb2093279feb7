"""B rows found for their U rows, by change_seq; the U row alone says that there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

MAX_WAITING = 10_000  # B rows; in a table ordered by change_seq there is one


class Paired(Protocol):
    @property
    def letter(self) -> str: ...

    @property
    def seq(self) -> str | None: ...


R = TypeVar("R", bound=Paired)
X = TypeVar("X")


def pair(rows: Iterable[R | X], kind: type[R]) -> Iterator[tuple[R, R | None] | X]:
    """The rows, each U row with its B row; a B row that comes out alone has no U row.

    A B row may stand anywhere before its U row, or directly behind it.
    """
    waiting: dict[str | None, R] = {}
    held: R | None = None
    for row in rows:
        if not isinstance(row, kind):
            yield row  # type: ignore[misc]
            continue
        if held is not None:
            image = row if row.letter == "B" and row.seq == held.seq and held.seq is not None else None
            yield held, image
            held = None
            if image is not None:
                continue
        if row.letter == "B":
            yield from _lost(waiting, row.seq)
            waiting[row.seq] = row
        elif row.letter == "U":
            image = waiting.pop(row.seq, None)
            if image is None:
                held = row
            else:
                yield row, image
        else:
            yield row, None
    if held is not None:
        yield held, None
    for image in waiting.values():
        yield image, None


def _lost(waiting: dict[str | None, R], seq: str | None) -> Iterator[tuple[R, None]]:
    """The B rows that can wait no longer: the same number comes again, or too many wait."""
    if seq in waiting:
        yield waiting.pop(seq), None
    elif len(waiting) >= MAX_WAITING:
        yield waiting.pop(next(iter(waiting))), None
