"""What the rows of one pick-up mean: events that are ready to go, and what becomes of the other rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.identity import ObjectName
from eventlog.fold import Outcome
from eventlog.fold.admit import Refusal
from eventlog.fold.event_table import MODIFY, EventTable, WrittenEvent
from eventlog.fold.understand import UnknownName
from eventlog.sql.log.leader_transaction import Spelling
from eventlog.sql.log.log_record import LOOPBACK


class PickUpTooLarge(EventlogError):
    """the current rows of a pick-up of {0} rows are more than may be held at a time"""

    @property
    def rows(self) -> int:
        """Return how many rows were picked up."""
        return int(self.args[0])


@dataclass(frozen=True)
class FoldedPickUp:
    """The events of some rows, and what becomes of the rows that no event contains."""

    events: EventTable
    refused: Sequence[Refusal] = ()  # rows that cannot be understood, or not be sent
    rows_without_event: Sequence[int] = ()  # rows that are handled without an event
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)  # as far as they are known
    entries: Sequence[Entry] = ()  # the rows that took part, where they were read one by one
    spellings: Sequence[Spelling] = ()  # how rows of waiting objects name them
    unknown: Set[UnknownName] = frozenset()  # columns that rows named and their tables lack
    tables_may_be_stale: bool = False  # rows were refused that other tables might explain
    query_back: float = 0.0  # seconds
    # of a pick-up
    picked: Sequence[int] = ()  # record_ids of all rows, wrong ones too
    full: bool = False  # there may be more rows
    loopback: Sequence[int] = ()  # rows without an event that the driver's own user wrote
    driver_user: str | None = None
    may_double_limit: bool = True  # twice as many current rows could be held
    redriven: int = 0  # the notice of the last redrive that the snapshot contained
    # of events that went out before
    released: Sequence[tuple[ObjectName, str]] = ()  # events without rows to send again
    broken_up: Set[str] = frozenset()  # events that went out with rows which are not new now

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


def account(
    table: EventTable,
    unwritten: Iterable[WrittenEvent],
    refused: Iterable[Refusal],
    ids: Sequence[int],
    kinds: Sequence[int],
) -> FoldedPickUp:
    """Return events and what becomes of all rows, by the ids and event types of those that took part.

    An event that cannot be written is refused: all its parts and all its rows. A row of an insert whose
    columns a modify reads back is handled without an event: it could become a second add.
    """
    faults = {each.event.rows: each.fault for each in reversed([*unwritten])}  # of the first of its parts
    lost = [(row, str(fault)) for rows, fault in faults.items() for row in rows]
    all_refused = [*refused, *lost]
    inserted = [row for row, kind in zip(ids, kinds, strict=True) if kind == 1]
    reads_back = bool(inserted) and max(kinds) > 4
    events = table
    if lost or reads_back:
        import numpy as np  # takes a while to load

        if lost:
            is_lost = np.isin(table.rows[table.begins], [rows[0] for rows in faults])
            events = table.take(np.flatnonzero(~is_lost))
        modifies = np.flatnonzero((events.elements == MODIFY) & (events.parts == 1))  # not the rest of an add
    has_event = set(events.rows.tolist()).union(row for row, _ in all_refused)
    if reads_back:
        has_event.difference_update(set(inserted).intersection(events.rows_of(modifies).tolist()))
    return FoldedPickUp(events, all_refused, [row for row in ids if row not in has_event])
