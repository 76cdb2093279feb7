"""Changes as rows of a change table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from eventlog.core.change import ABSENT, Op, Side
from eventlog.core.errors import NotExpressible
from eventlog.formats.qlik.headers import HEADERS, NAMES, OPERATIONS, utc
from eventlog.formats.qlik.mask import MaskOrder, join, trimmed
from eventlog.formats.qlik.numbering import Numbered, stream_position
from eventlog.formats.qlik.row_plans import RowPlan, differing, row_sides
from eventlog.formats.qlik.structure import Structure

WrittenCells = tuple[Any, ...]
# change_seq, stream_position, id, timestamp, partition_name
HeaderCells = tuple[str, str, str, str | None, object]
_STREAM_WIDTH = next(header.width for header in HEADERS if header.name == "stream_position")
_MAX_MASKS = 10_000  # that are remembered


class ChangeRowWriter:
    """Writes the changes of one table as rows of its change table."""

    def __init__(
        self, structure: Structure, plan: RowPlan, names: Sequence[str], order: MaskOrder, images: bool
    ) -> None:
        self.structure = structure
        self._plan = plan
        self._is_written = tuple(name in names for name in NAMES)
        self._first = len(names)
        self._order = order
        self._images = images
        self._masks: dict[int, bytes] = {}

    def rows(self, numbered: Numbered) -> list[WrittenCells]:
        """Return the rows that state a change: one, or a B row and its U row."""
        change = numbered.change
        stream = stream_position(change)
        if len(stream) > _STREAM_WIDTH:
            raise NotExpressible(f"a stream position of {len(stream)} characters: at most {_STREAM_WIDTH}")
        facts = (
            numbered.sequence,
            stream,
            numbered.transaction,
            None if change.time is None else utc(change.time).replace("T", " "),
            change.fact("partition_name") if change.extra else None,
        )
        if change.op is Op.TRUNCATE:
            return [self._row("T", 0, facts, (None,) * len(self.structure.columns))]
        before, after = row_sides(self.structure, change)
        if change.op is Op.DELETE:
            key_bits = self.structure.bits_of_key(change.key)
            return [self._row("D", key_bits, facts, self._plan(before))]
        if change.op is Op.UPDATE:
            return self._update(facts, before, after)
        bits = join(i for i, value in enumerate(after) if value is not ABSENT)
        return [self._row("I", bits, facts, self._plan(after))]

    def _update(
        self, facts: HeaderCells, before: Sequence[Side], after: Sequence[Side]
    ) -> list[WrittenCells]:
        row = self._plan(after)
        image = self._plan(before)
        changed = differing(before, after, image, row)
        update = self._row("U", join(changed), facts, row)
        if self._images and _says_more(before, after, changed):
            return [self._row("B", 0, facts, image), update]
        return [update]

    def _row(self, letter: str, bits: int, facts: HeaderCells, data: Sequence[Any]) -> WrittenCells:
        seq, stream, transaction, time, partition = facts
        mask = self._mask(bits)
        cells = (seq, letter, mask, stream, OPERATIONS[letter], transaction, time, partition)
        return (*compress(cells, self._is_written), *data)

    def _mask(self, bits: int) -> bytes:
        mask = self._masks.get(bits)
        if mask is None:
            if len(self._masks) >= _MAX_MASKS:
                self._masks.clear()
            mask = self._masks[bits] = trimmed(bits << self._first, self._order)
        return mask


def _says_more(before: Sequence[Side], after: Sequence[Side], changed: list[int]) -> bool:
    """Return whether a B row contains something that its U row alone does not."""
    if ABSENT not in before:
        return True
    both = enumerate(zip(before, after, strict=True))
    return any(b is not ABSENT and (i in changed or b is None or a is ABSENT) for i, (b, a) in both)
