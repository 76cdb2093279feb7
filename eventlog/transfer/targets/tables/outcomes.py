"""What becomes of changes: counts of those that were applied, and the reasons for those that were not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.formats import neutral
from eventlog.transfer.targets.tables.apply_settings import ApplySettings


class NoRow(EventlogError):
    """the row that it changes does not exist (missing-rows = insert creates it from the change's values)"""


class NoTable(EventlogError):
    """the target has no table {0} (schema-changes = apply makes it)"""


class NoColumn(EventlogError):
    """{0} has no column {1} (schema-changes = apply adds it)"""


class NotTable(EventlogError):
    """{0} is a {1} in the target: changes go into tables"""


class NotMade(EventlogError):
    """{0} cannot be made as its changes need it: {1}"""


class NoKnownKey(EventlogError):
    """{0} has no known key: name it (--key {1}=COLUMN,...), state it in a tables file, or give the \
table a primary key"""


class TooManyColumns(EventlogError):
    """{0} would have {1} columns: {2} has at most {3} for a table that takes changes"""


class OwnTable(EventlogError):
    """{0} is a table of ours in the target: no change is applied to it"""


class OtherApply(EventlogError):
    """another apply of the source {0!r} works on this target: end one of them"""


class Late(EventlogError):
    """its transaction came late: a change at {0}, which changed the same rows or may have, was applied \
before"""


class AppliedLater(EventlogError):
    """it was refused, and is not tried again: a later event of its object was applied"""


class TooManyDeletes(EventlogError):
    """{1} rows of {0} would be deleted, which max-deletes = {2} stops. Nothing of this transaction was \
applied: if the deletes are right, run the command again with a larger max-deletes"""


class Reload(EventlogError):
    """a full load of {0} begins, which had changes before (reload = replace takes its rows out first)"""


class TwoSchemas(EventlogError):
    """{0} of the schemas {1} and {2} would be one table of the target (--schemas source makes two)"""


def refuse(change: Change, fault: EventlogError) -> Refused:
    """Return a change that the target does not take, by its event-id where it has no position."""
    refused = neutral.refuse(change, fault)
    name = dict(change.extra).get("event_id") if change.position is None else None
    return refused if name is None else refused._replace(where=f"{refused.where}:{name}")


class RefusedChange(NamedTuple):
    """A change that the target does not take, and why."""

    change: Change
    fault: EventlogError


_WORDS = {Op.INSERT: "inserted", Op.SNAPSHOT: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
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

    @classmethod
    def of(cls, ops: Iterable[Op]) -> Tally:
        """Return the counts of applied changes with these operations."""
        counts = Counter[str]()
        for op, number in Counter(ops).items():
            counts[_WORDS.get(op, "truncated")] += number
        return cls(**counts)

    def __add__(self, tally: Tally) -> Tally:
        """Return the counts of both."""
        return Tally(*(getattr(self, name) + getattr(tally, name) for name in self.__slots__))

    def __str__(self) -> str:
        counts = [f"{self.inserted} inserted", f"{self.updated} updated", f"{self.deleted} deleted"]
        rare_counts = ("truncated", "missing", "ignored", "refused", "skipped")
        counts += [f"{getattr(self, name)} {name}" for name in rare_counts if getattr(self, name)]
        return ", ".join(counts)


@dataclass(slots=True)
class StepsResult:
    """The result of some steps. It is dropped if they fail: they are divided, and the parts are counted."""

    tally: Tally = Tally()
    refused: list[RefusedChange] = field(default_factory=list)

    def add(self, result: StepsResult) -> StepsResult:
        """Add the result of further steps."""
        self.tally += result.tally
        self.refused += result.refused
        return self


def unmet(changes: Sequence[Change], settings: ApplySettings) -> StepsResult:
    """Return what becomes of changes whose row is missing, as --missing-rows asks."""
    if settings.missing_rows == "ignore":
        return StepsResult(Tally(ignored=len(changes)))
    return StepsResult(refused=[RefusedChange(change, NoRow()) for change in changes])
