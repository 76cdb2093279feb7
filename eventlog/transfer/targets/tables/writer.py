"""Changes of a source become rows of tables: whole transactions, several in one of the tables' own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from eventlog.core.change import ABSENT, Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.loop import ReadState
from eventlog.transfer.targets.tables.apply_progress import ApplyProgress, LateChanges, progress_of
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import EarlierRefusal, Group
from eventlog.transfer.targets.tables.outcomes import AppliedLater, Late, Reload, Tally, refuse

SECONDS = 1.0  # that a transaction of the target waits for others of the source
MOST_CHARACTERS = 16 << 20  # of the values after which it waits for no more


class GroupRecord(Protocol):
    """The record of a target about what it has of a source."""

    @property
    def state(self) -> str | None:
        """The state after everything that was applied."""

    @property
    def has_refused(self) -> bool:
        """Return whether there are refused events that are tried again."""

    @property
    def begun_changes(self) -> int:
        """The number of changes after which the next group must end; 0 without one."""

    def marked(self, marks: Sequence[str], /) -> set[str]:
        """Return those of some marks under which something was applied."""

    def refused(self, marks: Sequence[str], /) -> dict[str, EarlierRefusal]:
        """Return what is noted of those of some marks whose events were refused and not applied since."""


class GroupTarget(Protocol):
    """A target that takes groups of whole transactions."""

    @property
    def record(self) -> GroupRecord:
        """The record of what was applied."""

    def apply(self, group: Group, /) -> Tally:
        """Apply a group, once and as a whole."""


class TableWriter:
    """A writer that makes rows of deliveries; `refused` receives each change that is left out."""

    def __init__(
        self,
        target: GroupTarget,
        source: str,
        format_name: str,
        settings: ApplySettings,
        refused: Callable[[Refused], None],
        *,
        has_states: bool = False,
        has_marks: bool = True,
        seconds: float = SECONDS,
    ) -> None:
        self.tally = Tally()
        self._pending_changes: list[Change] = []  # of whole deliveries, for the next group
        self._noted = 0  # refused changes that the tables' state passes over
        self._starts_round = True  # the next group is the first of a round of the source
        self._has_states = has_states
        self._target = target
        self._seconds = seconds
        self._settings = settings
        self._refused = refused
        self._clock = time.monotonic
        self._progress: ApplyProgress = progress_of(
            source, format_name, target.record.state, has_states=has_states, has_marks=has_marks
        )
        self._late_changes = LateChanges() if self._progress.may_be_late else None

    @property
    def source_state(self) -> str | None:
        """Return the source's own state when the tables were opened, from which it goes on.

        Where events were refused, the source is read from its beginning, so that they are tried again.
        """
        return None if self._target.record.has_refused else self._progress.read

    def write(self, deliveries: Iterable[Delivery], read_state: ReadState) -> None:
        """Make rows of the deliveries; `tally` counts what became of their changes."""
        self._noted, self._starts_round = self.tally.refused, True
        for _ in self._groups(deliveries):
            self._end_group(self._progress.state(read_state()))
        state = self._progress.state(read_state())
        noted = self.tally.refused > self._noted  # refused changes are in the state, too
        is_further = self._has_states and state != self._target.record.state
        if self._pending_changes or noted or is_further or self._target.record.begun_changes:
            self._end_group(state)
        self._progress.check_end()

    def _groups(self, deliveries: Iterable[Delivery]) -> Iterator[None]:
        """Hold whole deliveries, as many as may share a transaction; stop at the end of each full group."""
        characters = 0
        begun = self._clock()
        for delivery in deliveries:
            if not self._pending_changes:
                begun, characters = self._clock(), 0
            admitted = self._admitted(delivery)
            self._pending_changes += admitted
            characters += _characters(admitted)
            if self._is_full(characters, begun):
                yield

    def _end_group(self, state: str) -> None:
        """Apply the held changes, with the state after them."""
        group = self._group(self._pending_changes, state)
        self.tally += self._target.apply(group._replace(starts_round=self._starts_round))
        self._pending_changes, self._noted, self._starts_round = [], self.tally.refused, False

    def _admitted(self, delivery: Delivery) -> Sequence[Change]:
        """Return the changes of a delivery that are to be applied; a table that is loaded anew is emptied
        first.
        """
        changes = list(delivery.changes)
        new, loaded, begun = self._progress.unapplied(changes)
        if skipped := len(changes) - len(new):
            self.tally += Tally(skipped=skipped)
        if (
            delivery.late
            and self._late_changes
            and (position := self._late_changes.overtaking(new)) is not None
        ):
            self._refuse(new, Late(position or "an unknown place"))
            return ()
        if self._late_changes is not None:
            self._late_changes.note(new)
        if not loaded or self._settings.reload == "replace":
            return [*(Change(Op.TRUNCATE, *source_table) for source_table in begun), *new]
        for change in new:
            if change.op is Op.SNAPSHOT:
                self._refuse([change], Reload(change.table))
        return [change for change in new if change.op is not Op.SNAPSHOT]

    def _is_full(self, characters: int, begun: float) -> bool:
        if begun_changes := self._target.record.begun_changes:
            return len(self._pending_changes) >= begun_changes
        enough = len(self._pending_changes) >= self._settings.group or characters >= MOST_CHARACTERS
        return enough or self._clock() - begun >= self._seconds

    def _refuse(self, changes: Sequence[Change], fault: EventlogError) -> None:
        self.tally += Tally(refused=len(changes))
        for change in changes:
            self._refused(refuse(change, fault))

    def _group(self, changes: list[Change], state: str) -> Group:
        """Return the group of changes, without those under marks that the target has."""
        change_by_mark: dict[str, Change] = {}
        skipped = 0
        for change in changes:
            try:
                mark = self._progress.mark(change)
            except EventlogError as fault:
                self._refuse([change], fault)
                continue
            if mark is None:
                return Group(changes, state)
            skipped += mark in change_by_mark
            change_by_mark.setdefault(mark, change)
        record = self._target.record
        for mark in record.marked(list(change_by_mark)) if change_by_mark else ():
            del change_by_mark[mark]
            skipped += 1
        refusals = record.refused(list(change_by_mark))
        for mark in [mark for mark, refusal in refusals.items() if refusal.is_overtaken]:
            self._refused(refuse(change_by_mark.pop(mark), AppliedLater())._replace(raw=None, fault=False))
            del refusals[mark]
            skipped += 1
        self.tally += Tally(skipped=skipped)
        return Group(list(change_by_mark.values()), state, list(change_by_mark), refusals)


def _characters(changes: Iterable[Change]) -> int:
    """Return how long the values of changes are together."""
    length = 0
    for change in changes:
        for _, before, after in change.fields:
            if type(after) is str or type(after) is bytes:
                length += len(after)
            if before is not ABSENT and (type(before) is str or type(before) is bytes):
                length += len(before)
    return length
