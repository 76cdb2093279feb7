"""The B rows of U rows, by change_seq; the U row alone shows that there is none."""

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
    """Yield the rows, each U row with its B row; a B row that comes out alone has no U row.

    A B row may be anywhere before its U row, or directly after it. Rows that were delivered twice are paired
    twice.
    """
    waiting: dict[str | None, list[R]] = {}
    count = 0
    held: R | None = None
    for row in rows:
        if not isinstance(row, kind):
            yield row  # type: ignore[misc]
            continue
        if held is not None:
            behind = row.letter == "B" and held.seq is not None and row.seq == held.seq
            yield held, row if behind else None
            held = None
            if behind:
                continue
        if row.letter == "B":
            waiting.setdefault(row.seq, []).append(row)
            count += 1
            if count > MAX_WAITING:
                yield _take(waiting, next(iter(waiting))), None
                count -= 1
        elif row.letter != "U":
            yield row, None
        elif row.seq in waiting:
            yield row, _take(waiting, row.seq)
            count -= 1
        else:
            held = row
    if held is not None:
        yield held, None
    for images in waiting.values():
        for image in images:
            yield image, None


def _take(waiting: dict[str | None, list[R]], seq: str | None) -> R:
    images = waiting[seq]
    image = images.pop(0)
    if not images:
        del waiting[seq]
    return image
