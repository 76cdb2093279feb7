"""The byte order of a change table's masks: given, or found from what the table itself shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from eventlog.qlik.mask import InvalidMask, MaskOrder, evidence, join
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
    unsure: bool  # whether there are masks that prove nothing by themselves


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
        self._unsure = False
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
                self._look(*pair)
        self.settle()
        yield from held
        yield from pairs

    def see(self, row: ChangeRow) -> None:
        """Note what the mask of a row proves by itself; the first of the sequence counts."""
        data = row.mask
        if self._given or data is None or len(data) < 2 or row.letter in "BT":
            return
        proof = row.table.proof(data)
        if proof is None:
            self._unsure = True
        elif self._least is None or (row.seq or "", row.where) < self._least:
            self.order, self._proof, self._least = proof, row.where, (row.seq or "", row.where)

    @property
    def seen(self) -> Seen:
        """Return what was seen so far."""
        return Seen(self.order, self._proof, self._least, self._unsure)

    def also(self, seen: Seen) -> None:
        """Note what others have seen of the same table; what they found in pairs has no place."""
        if self._given:
            return
        self._unsure |= seen.unsure
        if seen.order is None:
            return
        sooner = seen.least is not None and (self._least is None or seen.least < self._least)
        if self.order is None or sooner:
            self.order, self._proof, self._least = seen.order, seen.proof, seen.least

    @property
    def needs_pairs(self) -> bool:
        """Return whether only U rows with their B rows can still prove the order."""
        return self.order is None and self._unsure

    def see_pair(self, row: ChangeRow, image: ChangeRow) -> None:
        """Note what a U row proves together with its B row."""
        if self.order is None:
            self._look(row, image)

    def settle(self) -> None:
        """Read the documented order where nothing proved one."""
        self.order = self.order or DOCUMENTED

    def check(self, row: ChangeRow, image: ChangeRow | None) -> MaskOrder:
        """Return the order to read a row in, if the row does not prove the other."""
        assert self.order is not None
        proof = self._evidence(row, image)
        if proof is None or proof is self.order:
            return self.order
        chosen = "the setting" if self._given else f"row {self._proof}" if self._proof else "the manual"
        assert row.mask is not None
        raise InvalidMask(
            f"mask {row.mask.hex().upper()} is in {proof} byte order, but {chosen} gives {self.order}: "
            "check the rows before it, and set the order with mask-order"
        )

    def _look(self, row: ChangeRow, image: ChangeRow | None) -> None:
        self.order = self._evidence(row, image)
        if self.order is not None:
            self._proof = row.where

    def _evidence(self, row: ChangeRow, image: ChangeRow | None) -> MaskOrder | None:
        data = row.mask
        if data is None or len(data) < 2 or row.letter in "BT":
            return None
        proof = row.table.proof(data)
        if proof is not None or image is None:
            return proof
        places = zip(row.table.places, row.data, image.data, strict=False)
        return evidence(data, row.table.layout, join(place for place, new, old in places if new != old))
