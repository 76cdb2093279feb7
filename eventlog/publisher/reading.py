"""What the rows of one pick-up mean: events that are ready to go, and what becomes of the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.identity import ObjectName
from eventlog.fold import Outcome
from eventlog.fold.event_table import MODIFY, EventTable
from eventlog.sql.log.record import LOOPBACK
from eventlog.sql.log.work import Spelling


class PickUpTooLarge(EventlogError):
    """the current rows of a pick-up of {0} rows are more than may be held at a time"""

    @property
    def rows(self) -> int:
        """Return how many rows were picked up."""
        return int(self.args[0])


@dataclass
class FoldedPickUp:
    """The events of some rows, and what becomes of the rows that no event contains."""

    events: EventTable
    picked: list[int] = field(default_factory=list)  # record_ids of all rows, wrong ones too
    full: bool = False  # there may be more rows
    rows_without_event: list[int] = field(default_factory=list)  # rows that are handled without an event
    loopback: Sequence[int] = ()  # those among them that the driver's own user wrote
    driver_user: str | None = None
    refused: list[tuple[int, str]] = field(default_factory=list)  # rows that cannot be understood, and why
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)  # the rows that took part
    query_back: float = 0.0  # seconds
    may_double_limit: bool = True  # twice as many current rows could be held
    tables_may_be_stale: bool = False  # rows were refused that other tables might explain
    unknown: frozenset[tuple[str, str]] = frozenset()  # columns that rows named and their tables lack
    spellings: list[Spelling] = field(default_factory=list)  # how rows of waiting objects name them
    released: list[tuple[ObjectName, str]] = field(default_factory=list)  # events without rows to send again
    broken_up: set[str] = field(default_factory=set)  # events that went out with rows which are not new now
    due: bool = False  # nothing was read, because an event may be due again
    redriven: int = 0  # the notice of the last redrive that the snapshot contained

    @property
    def all_held(self) -> bool:
        """Return whether every row is of a waiting object under a spelling that was not on record."""
        return len(self.spellings) > 0 and len(self.spellings) == len(self.picked)

    def why_no_event(self) -> dict[int, str]:
        """Return the fates and reasons of rows without an event, as far as they are known."""
        why = dict.fromkeys(self.loopback, LOOPBACK)
        for row in self.rows_without_event:
            outcome = self.outcomes.get(row)
            if outcome is not None and outcome.event_id is None:
                by = "" if outcome.by is None else f" (row {outcome.by})"
                why[row] = f"{outcome.fate}: {outcome.reason}{by}"
        return why


def rows_without_event(ids: Sequence[int], kinds: Sequence[int], reading: FoldedPickUp) -> list[int]:
    """Return the rows of a reading that are handled without an event, by the ids and types of the rows that
    took part. A row of an insert whose columns a modify reads back is one: it could become a second add.
    """
    events = reading.events
    has_event = set(events.rows.tolist()).union(row for row, _ in reading.refused)
    inserted = [row for row, kind in zip(ids, kinds, strict=True) if kind == 1]
    if inserted and max(kinds) > 4:
        import numpy as np  # takes a while to load

        modifies = np.flatnonzero((events.elements == MODIFY) & (events.parts == 1))  # not the rest of an add
        has_event.difference_update(set(inserted).intersection(events.rows_of(modifies).tolist()))
    return [row for row in ids if row not in has_event]
