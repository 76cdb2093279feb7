"""What became of changes, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.targets.tables.errors import NoRow, refuse
from eventlog.targets.tables.settings import ApplySettings

_WORDS = {Op.INSERT: "inserted", Op.SNAPSHOT: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(slots=True)
class Tally:
    """The number of changes that were applied, and of those that were not."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    truncated: int = 0
    missing: int = 0  # deletes of rows that were not there
    ignored: int = 0  # left out by --missing-rows or --schema-changes
    refused: int = 0
    skipped: int = 0  # applied by an earlier run

    def count(self, change: Change) -> None:
        """A change was applied."""
        self.count_all([change.op])

    def count_all(self, ops: Iterable[Op]) -> None:
        """Count changes with these operations as applied, one by one or by their numbers."""
        for op, number in Counter(ops).items():
            name = _WORDS.get(op, "truncated")
            setattr(self, name, getattr(self, name) + number)

    def absent(self, number: int) -> None:
        """Count deletes again that met no row."""
        self.deleted -= number
        self.missing += number

    def add(self, tally: Tally) -> None:
        """The counts of another tally too."""
        for name, number in zip(self.__slots__, astuple(tally), strict=True):
            setattr(self, name, getattr(self, name) + number)

    def __str__(self) -> str:
        counts = [f"{self.inserted} inserted", f"{self.updated} updated", f"{self.deleted} deleted"]
        rare_counts = ("truncated", "missing", "ignored", "refused", "skipped")
        counts += [f"{getattr(self, name)} {name}" for name in rare_counts if getattr(self, name)]
        return ", ".join(counts)


class StepsResult(NamedTuple):
    """The result of some steps, which counts once they are done; steps that fail are divided and counted
    anew.
    """

    tally: Tally
    refused: list[Refused]


def unmet(changes: Sequence[Change], settings: ApplySettings, result: StepsResult) -> None:
    """Report changes whose row is missing, as --missing-rows asks."""
    if settings.missing_rows == "ignore":
        result.tally.ignored += len(changes)
    else:
        result.refused.extend(refuse(change, NoRow()) for change in changes)
