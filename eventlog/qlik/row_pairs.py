"""Rows of change tables before they become changes: B rows with their U rows, and the byte order of masks.

The order is set, or some mask of the table proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from eventlog.core.errors import Refused
from eventlog.qlik.mask import InvalidMask, MaskOrder
from eventlog.qlik.rows import ChangeRow

MAX_WAITING = 10_000
DOCUMENTED = MaskOrder.LITTLE
X = TypeVar("X")
Paired = tuple[ChangeRow, ChangeRow | None]


class OrderEvidence(NamedTuple):
    """The row that proves the byte order of a change table."""

    order: MaskOrder
    position: tuple[str, int]  # its change_seq, and its place in its source


class OrderFinder:
    """A finder of the byte order of a table's masks, which holds rows back until one proves it.

    Without evidence the order is the documented one. A later row that proves the opposite is refused, because
    one of the two is wrong, and the reader cannot know which.
    """

    def __init__(self, order: MaskOrder | None) -> None:
        self.order = order
        self._is_set = order is not None
        self.evidence: OrderEvidence | None = None

    def run(self, pairs: Iterable[Paired | Refused]) -> Iterator[Paired | Refused]:
        """Yield the rows, as soon as one of them has proved the order."""
        pairs = iter(pairs)
        waiting: list[Paired | Refused] = []
        while self.order is None and len(waiting) < MAX_WAITING:
            pair = next(pairs, None)
            if pair is None:
                break
            waiting.append(pair)
            if not isinstance(pair, Refused):
                self.note(pair[0])
        self.use_default()
        yield from waiting
        yield from pairs

    def note(self, row: ChangeRow) -> None:
        """Note what the mask of a row proves."""
        proof = None if self._is_set else _proof(row)
        if proof is not None:
            self.merge_evidence(OrderEvidence(proof, (row.seq or "", row.where)))

    def merge_evidence(self, evidence: OrderEvidence | None) -> None:
        """Note what a row of the same table proves; the first row of the sequence counts."""
        if self._is_set or evidence is None:
            return
        if self.evidence is None or evidence.position < self.evidence.position:
            self.order, self.evidence = evidence.order, evidence

    def use_default(self) -> None:
        """Read the documented order where nothing proved one."""
        self.order = self.order or DOCUMENTED

    def check(self, row: ChangeRow) -> MaskOrder:
        """Return the order to read a row in; raise InvalidMask if the row proves the opposite."""
        assert self.order is not None
        proof = _proof(row)
        if proof is None or proof is self.order:
            return self.order
        chosen = "the setting" if self._is_set else "the manual"
        if self.evidence is not None:
            chosen = f"row {self.evidence.position[1]}"
        assert row.mask is not None
        raise InvalidMask(
            f"mask {row.mask.hex().upper()} is in {proof} byte order, but {chosen} gives {self.order}: "
            "check the rows before it, and set the order with mask-order"
        )


def _proof(row: ChangeRow) -> MaskOrder | None:
    """Return the order that the mask of a row proves, if it proves one."""
    data = row.mask
    return None if data is None or len(data) < 2 or row.letter in "BT" else row.table.proof(data)


MAX_IMAGES = 10_000  # B rows that wait; in a table ordered by change_seq there is one


def pair(rows: Iterable[ChangeRow | X]) -> Iterator[Paired | X]:
    """Yield the rows, each U row with its B row; a B row that is yielded alone has no U row.

    A B row may be anywhere before its U row, or directly after it. Rows that were delivered twice are paired
    twice.
    """
    waiting: dict[str | None, list[ChangeRow]] = {}
    count = 0
    update_row: ChangeRow | None = None
    for row in rows:
        if not isinstance(row, ChangeRow):
            yield row
            continue
        if update_row is not None:
            image_follows = row.letter == "B" and update_row.seq is not None and row.seq == update_row.seq
            yield update_row, row if image_follows else None
            update_row = None
            if image_follows:
                continue
        if row.letter == "B":
            waiting.setdefault(row.seq, []).append(row)
            count += 1
            if count > MAX_IMAGES:
                yield _pop_image(waiting, next(iter(waiting))), None
                count -= 1
        elif row.letter != "U":
            yield row, None
        elif row.seq in waiting:
            yield row, _pop_image(waiting, row.seq)
            count -= 1
        else:
            update_row = row
    if update_row is not None:
        yield update_row, None
    for images in waiting.values():
        for image in images:
            yield image, None


def _pop_image(waiting: dict[str | None, list[ChangeRow]], seq: str | None) -> ChangeRow:
    images = waiting[seq]
    image = images.pop(0)
    if not images:
        del waiting[seq]
    return image
