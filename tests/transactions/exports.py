"""An export of a change table from a real warehouse: 1000 rows in no order, and their content."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

from tests.formats.qlik.helpers import HEADERS

COLUMNS = (*(f"header__{name}" for name in HEADERS), "id", *(f"c{i}" for i in range(20)))
PAIRS, LONE, INSERTS, DESCENTS, IMAGE_LAG = 390, 98, 122, 513, 215
OPERATIONS = {"I": "INSERT", "U": "UPDATE", "B": "BEFOREIMAGE", "D": "DELETE"}


class Line(NamedTuple):
    """A row of the export."""

    seq: str
    letter: str
    mask: str
    transaction: str
    data: tuple[str | None, ...]

    @property
    def cells(self) -> tuple[str | None, ...]:
        digits = self.seq
        time = f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}"
        at = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {time}"
        operation = OPERATIONS[self.letter]
        return (digits, self.letter, self.mask, "1386;6385", operation, self.transaction, at, *self.data)


def seq(number: int) -> str:
    """Return the change_seq of a change: a transaction has about three of them, and its hundredths are 00."""
    second = number // 3
    return f"20240318{10 + second // 3600:02}{second // 60 % 60:02}{second % 60:02}00{number * 4:019}"


def export() -> list[Line]:
    """Return the rows: 390 U rows with their B row some 215 rows later, 98 B rows alone, 122 I rows."""
    chance = random.Random(17)
    kinds = ["U"] * PAIRS + ["B"] * LONE + ["I"] * INSERTS
    chance.shuffle(kinds)
    first: list[Line] = []
    before_images: list[Line] = []
    for number, kind in enumerate(kinds, 1):
        old_values = (str(number), *(f"{number}.{i}" for i in range(20)))
        transaction = f"{number // 3 % 40:032X}"
        if kind != "U":
            mask = "0FFFFF80" if kind == "I" else ""
            first.append(Line(seq(number), kind, mask, transaction, old_values))
            continue
        changed = 1 + number % 20
        new_values = (*old_values[:changed], f"{old_values[changed]} new", *old_values[changed + 1 :])
        bits = 1 << (7 + changed)
        mask = f"{bits:0{2 * ((bits.bit_length() + 7) // 8)}X}"
        first.append(Line(seq(number), "U", mask, transaction, new_values))
        before_images.append(Line(seq(number), "B", "", transaction, old_values))
    chance.shuffle(first)
    images = {line.seq: line for line in before_images}
    return _descending(_with_images(first, images), chance)


def _with_images(rows: list[Line], images: dict[str, Line]) -> list[Line]:
    """Return the rows, each with its image that much later."""
    waiting: list[tuple[int, Line]] = []
    lines: list[Line] = []
    for row in rows:
        while waiting and waiting[0][0] <= len(lines):
            lines.append(waiting.pop(0)[1])
        lines.append(row)
        if row.letter == "U":
            waiting.append((len(lines) - 1 + IMAGE_LAG, images[row.seq]))
    return lines + [image for _, image in waiting]


def _descending(rows: list[Line], chance: random.Random) -> list[Line]:
    """Insert rows change places until the export descends as often as the real one."""
    places = [i for i, row in enumerate(rows) if row.letter == "I"]
    while (now := descents(rows)) != DESCENTS:
        first, second = chance.sample(places, 2)
        rows[first], rows[second] = rows[second], rows[first]
        if abs(descents(rows) - DESCENTS) > abs(now - DESCENTS):
            rows[first], rows[second] = rows[second], rows[first]
    return rows


def descents(rows: list[Line]) -> int:
    """Return how often a row precedes one with a lower change_seq."""
    return sum(row.seq > next_row.seq for row, next_row in pairwise(rows))


def csv(rows: list[Line], columns: tuple[str, ...] = COLUMNS) -> str:
    """Return the rows as a file; no cell of them needs quotes."""
    lines = [",".join(columns), *(",".join(cell or "" for cell in row.cells) for row in rows)]
    return "\n".join(lines) + "\n"
