"""Changes of a source become rows of a target: whole transactions, several in one of the target's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from eventlog.apply.errors import Late, Reload
from eventlog.apply.progress import Named, Progress, progress_of
from eventlog.apply.settings import ApplySettings
from eventlog.apply.tally import Tally
from eventlog.apply.target import Group, Target
from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.neutral import refuse
from eventlog.streams.delivery import Delivery, by_transaction

SECONDS = 1.0  # that a transaction of the target waits for others of the source

Tell = Callable[[Refused], None]


class Run:
    """Applies deliveries to a target; `refused` hears of each change that was left out."""

    def __init__(
        self,
        target: Target,
        source: str,
        format_name: str,
        settings: ApplySettings,
        refused: Tell,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tally = Tally()
        self._target = target
        self._settings = settings
        self._refused = refused
        self._clock = clock
        self._progress: Progress = progress_of(source, format_name, target.state)

    def apply(self, changes: Iterable[Change | Refused]) -> Tally:
        """Apply the changes; how many of them became what."""
        for group in self._groups(by_transaction(changes)):
            self.tally.add(self._target.apply(group))
        return self.tally

    def _groups(self, deliveries: Iterable[Delivery | Refused]) -> Iterator[Group]:
        """Whole deliveries together, as many as may share a transaction; a full load begins one."""
        held: list[Change] = []
        emptied: tuple[Named, ...] = ()
        begun = self._clock()
        for delivery in deliveries:
            if isinstance(delivery, Refused):
                self._refused(delivery)
                continue
            state = self._progress.state() if held and delivery.changes[0].op is Op.SNAPSHOT else ""
            admitted, replaced = self._admitted(delivery)
            if replaced and held:
                yield self._group(held, emptied, state)
                held = []
            if not held:
                begun, emptied = self._clock(), replaced
            held += admitted
            if self._full(held, begun):
                yield self._group(held, emptied, self._progress.state())
                held, emptied = [], ()
        if held:
            yield self._group(held, emptied, self._progress.state())

    def _full(self, held: Sequence[Change], begun: float) -> bool:
        """Whether a group ends here: one that is done again must end where it did."""
        if self._target.until is not None:
            return self._progress.state() == self._target.until
        return len(held) >= self._settings.group or self._clock() - begun >= SECONDS

    def _admitted(self, delivery: Delivery) -> tuple[Sequence[Change], tuple[Named, ...]]:
        """The changes of a delivery that are to be applied, and the tables that they begin to load anew."""
        new, loaded, begun = self._progress.fresh(delivery.changes)
        self.tally.skipped += len(delivery.changes) - len(new)
        if delivery.late:
            self._refuse(new, Late())
            return (), ()
        if not loaded or self._settings.reload == "replace":
            return new, begun
        for change in new:
            if change.op is Op.SNAPSHOT:
                self._refuse([change], Reload(change.table))
        return [change for change in new if change.op is not Op.SNAPSHOT], ()

    def _refuse(self, changes: Sequence[Change], fault: EventlogError) -> None:
        self.tally.refused += len(changes)
        for change in changes:
            self._refused(refuse(change, fault))

    def _group(self, changes: list[Change], emptied: tuple[Named, ...], state: str) -> Group:
        kept, marks = self._unmarked(changes)
        return Group(kept, state, marks, emptied)

    def _unmarked(self, changes: list[Change]) -> tuple[list[Change], list[str]]:
        """The changes whose marks the target does not have, and these marks."""
        named: dict[str, Change] = {}
        for change in changes:
            try:
                marks = self._progress.marks([change])
            except EventlogError as fault:
                self._refuse([change], fault)
                continue
            if not marks:
                return changes, []
            if marks[0] in named:
                self.tally.skipped += 1
            named.setdefault(marks[0], change)
        known = self._target.marked(list(named)) if named else set()
        self.tally.skipped += len(known)
        return [c for name, c in named.items() if name not in known], [n for n in named if n not in known]
