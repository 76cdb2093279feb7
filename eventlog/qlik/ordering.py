"""The byte order of a change table's masks: given, or found from what the table itself shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from eventlog.qlik.mask import InvalidMask, MaskOrder
from eventlog.qlik.rows import ChangeRow

HELD_BACK = 10_000
DOCUMENTED = MaskOrder.LITTLE
X = TypeVar("X")
Paired = tuple[ChangeRow, ChangeRow | None]


class Seen(NamedTuple):
    """The evidence of some rows of a change table about its byte order."""

    order: MaskOrder | None
    proof: int | None  # the row that proves it,
    least: tuple[str, int] | None  # and its position in the sequence


class Finder:
    """Holds rows back until one proves the order; without evidence it is the documented one.

    A later row that proves the other order is an error of its own: one of the two is wrong, and
    the reader cannot know which.
    """

    def __init__(self, given: MaskOrder | None) -> None:
        self.order = given
        self._given = given is not None
        self._proof: int | None = None
        self._least: tuple[str, int] | None = None  # the position of the proof in the sequence
        self._looked = 0  # rows that prove nothing

    def run(self, pairs: Iterable[Paired | X]) -> Iterator[Paired | X]:
        """Yield the rows, from where the order is known on."""
        pairs = iter(pairs)
        held: list[Paired | X] = []
        while self.order is None and self._looked < HELD_BACK:
            try:
                pair = next(pairs)
            except StopIteration:
                break
            held.append(pair)
            self._looked += 1
            if isinstance(pair, tuple) and isinstance(pair[0], ChangeRow):
                self.see(pair[0])
        self.settle()
        yield from held
        yield from pairs

    def see(self, row: ChangeRow) -> None:
        """Note what the mask of a row proves; the first of the sequence counts."""
        proof = None if self._given else _proof(row)
        if proof is not None and (self._least is None or (row.seq or "", row.where) < self._least):
            self.order, self._proof, self._least = proof, row.where, (row.seq or "", row.where)

    @property
    def seen(self) -> Seen:
        """Return what was seen so far."""
        return Seen(self.order, self._proof, self._least)

    def also(self, seen: Seen) -> None:
        """Note what others have seen of the same table."""
        if self._given or seen.order is None:
            return
        sooner = seen.least is not None and (self._least is None or seen.least < self._least)
        if self.order is None or sooner:
            self.order, self._proof, self._least = seen.order, seen.proof, seen.least

    def settle(self) -> None:
        """Read the documented order where nothing proved one."""
        self.order = self.order or DOCUMENTED

    def check(self, row: ChangeRow) -> MaskOrder:
        """Return the order to read a row in, if the row does not prove the other."""
        assert self.order is not None
        proof = _proof(row)
        if proof is None or proof is self.order:
            return self.order
        chosen = "the setting" if self._given else f"row {self._proof}" if self._proof else "the manual"
        assert row.mask is not None
        raise InvalidMask(
            f"mask {row.mask.hex().upper()} is in {proof} byte order, but {chosen} gives {self.order}: "
            "check the rows before it, and set the order with mask-order"
        )


def _proof(row: ChangeRow) -> MaskOrder | None:
    """Return the order that the mask of a row proves, if it proves one."""
    data = row.mask
    return None if data is None or len(data) < 2 or row.letter in "BT" else row.table.proof(data)
