"""Changes of a source become rows of a target: whole transactions, several in one of the target's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from eventlog.apply.errors import HalfDone, Late, Reload, refuse
from eventlog.apply.late_changes import LateChanges
from eventlog.apply.progress import ApplyProgress, progress_of
from eventlog.apply.settings import ApplySettings
from eventlog.apply.tally import Tally
from eventlog.apply.target import Group, Target
from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.streams.delivery import Delivery

SECONDS = 1.0  # that a transaction of the target waits for others of the source
MOST_CHARACTERS = 16 << 20  # of the values after which it waits for no more

_LONG = (str, bytes)  # the values that may be long

Tell = Callable[[Refused], None]


class Run:
    """Applies deliveries to a target; `refused` hears of each change that was left out. A source that has
    states is told by `kept` that the target holds what it handed out. Once `stop` is true, the run ends
    behind the transaction that it has. With `together` all that one call applies is one group. `forgotten` is
    how far rows were changed of which nothing is known any more."""

    def __init__(
        self,
        target: Target,
        source: str,
        format_name: str,
        settings: ApplySettings,
        refused: Tell,
        kept: Callable[[], None] | None = None,
        stop: Callable[[], bool] = bool,
        *,
        together: bool = False,
        forgotten: str = "",
    ) -> None:
        self.tally = Tally()
        self._held: list[Change] = []  # of whole deliveries, for the next group
        self._last: Delivery | None = None
        self._noted = 0  # refused changes that the target's state passes over
        self._together = together
        self._stop = stop
        self._target = target
        self._settings = settings
        self._refused = refused
        self._clock = time.monotonic
        self._kept = kept or (lambda: None)
        # only a source with states tells what is late
        self._later = LateChanges(forgotten=forgotten) if kept is not None else None
        self._progress: ApplyProgress = progress_of(
            source, format_name, target.state, has_states=kept is not None
        )

    def apply(self, deliveries: Iterable[Delivery | Refused]) -> Tally:
        """Apply the deliveries; how many of their changes became what."""
        self._last, self._noted = None, self.tally.refused
        for _ in self._groups(deliveries):
            self._end_group()
        self._progress.check_end()
        return self.tally

    def rest(self) -> None:
        """Apply what was handed out, for nothing more comes for a moment; to be called while more is awaited.

        A group that is done again ends where it did.
        """
        if self._held and not self._together and self._target.until is None:
            self._end_group()

    def _groups(self, deliveries: Iterable[Delivery | Refused]) -> Iterator[None]:
        """Hold whole deliveries, as many as may share a transaction; stop at the end of each group."""
        characters = 0
        begun = self._clock()
        for delivery in deliveries:
            if isinstance(delivery, Refused):
                self._refused(delivery)
                continue
            self._last = delivery
            if not self._held:
                begun, characters = self._clock(), 0
            admitted = self._admitted(delivery)
            self._held += admitted
            characters += _characters(admitted)
            if self._full(len(self._held), characters, begun, delivery):
                yield
            if self._stop():
                break
        if self._target.until is not None and not self._together and not self._stop():
            raise HalfDone
        noted = self.tally.refused > self._noted  # refused changes are in the state, too
        if self._last is not None and (self._held or noted or not self._last.changes):
            yield

    def _end_group(self) -> None:
        """Apply what is held, with the state behind it."""
        assert self._last is not None
        group = self._group(self._held, self._progress.state(self._last.state))
        self.tally.add(self._target.apply(group))
        self._held, self._noted = [], self.tally.refused
        self._kept()

    def _admitted(self, delivery: Delivery) -> Sequence[Change]:
        """The changes of a delivery that are to be applied; a table that is loaded anew is emptied first."""
        changes = list(delivery.changes)
        new, loaded, begun = self._progress.fresh(changes)
        self.tally.skipped += len(changes) - len(new)
        if delivery.late and (position := self._overtaking(delivery, new)) is not None:
            self._refuse(new, Late(position or "an unknown place"))
            return ()
        if self._later is not None:
            self._later.note(new)
        if not loaded or self._settings.reload == "replace":
            return [*(Change(Op.TRUNCATE, *named) for named in begun), *new]
        for change in new:
            if change.op is Op.SNAPSHOT:
                self._refuse([change], Reload(change.table))
        return [change for change in new if change.op is not Op.SNAPSHOT]

    def _overtaking(self, delivery: Delivery, changes: Sequence[Change]) -> str | None:
        """Return where a later change of the rows of late changes was applied; None if there is none."""
        if delivery.overtaken or self._later is None:
            return delivery.overtaken
        return self._later.overtaking(changes)

    def _full(self, held: int, characters: int, begun: float, delivery: Delivery) -> bool:
        """Whether a group ends here: one that is done again must end where it did."""
        if self._together:
            return False
        if self._target.until is not None:
            return self._progress.state(delivery.state) == self._target.until
        enough = held >= self._settings.group or characters >= MOST_CHARACTERS
        return enough or self._clock() - begun >= SECONDS

    def _refuse(self, changes: Sequence[Change], fault: EventlogError) -> None:
        self.tally.refused += len(changes)
        for change in changes:
            self._refused(refuse(change, fault))

    def _group(self, changes: list[Change], state: str) -> Group:
        kept, marks = self._unmarked(changes)
        return Group(kept, state, marks)

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


def _characters(changes: Sequence[Change]) -> int:
    """How long the values are that these changes tell."""
    length = 0
    for change in changes:
        for _, before, after in change.fields:
            if isinstance(after, _LONG):
                length += len(after)
            if isinstance(before, _LONG):
                length += len(before)
    return length
