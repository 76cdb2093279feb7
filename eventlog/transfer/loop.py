"""The loop in which all changes travel from a source to a target."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.transactions.delivery import Delivery, NotCopied
from eventlog.transfer.report import Prepare, Report


class ChangeSource(Protocol):
    """One round reads what is there; the next one goes on after it."""

    def round(self, follow: bool = False, /) -> Iterator[Delivery | Refused]:
        """Return what is there; with `follow`, other rounds come."""

    @property
    def blocks(self) -> bool:
        """Return whether a round waits by itself for new changes."""

    @property
    def tables(self) -> Tables | None:
        """The tables as the source describes them, where it does."""

    @property
    def ended(self) -> bool:
        """Return whether nothing can come any more, even if the source is followed."""

    @property
    def state(self) -> str | None:
        """The state after everything that was handed out; None for a source without positions."""

    def commit(self) -> None:
        """Note that everything that was handed out is safely written, with the state after it.

        Raise NotCopied if a copy of the state that others hold is not up to date.
        """

    def close(self) -> None: ...


class ChangeTarget(Protocol):
    """Takes the deliveries of a source, and cuts them into what it writes at once."""

    def write(self, deliveries: Iterator[Delivery], read_state: ReadState, /) -> None:
        """Write all of them; when it returns they are durable, with the source's state after them."""


ReadState = Callable[[], str | None]  # of the source, after the deliveries that were taken
Wait = Callable[[float], bool]  # so many seconds, unless there are none; whether the run goes on


def sleep(seconds: float) -> bool:
    """Wait, and go on."""
    time.sleep(seconds)
    return True


class RunLength(NamedTuple):
    """The length of a run: one round, or as long as the source grows."""

    follow: bool = False
    wait: Wait = sleep
    stop: Callable[[], bool] = bool  # once it is true, the run ends after the delivery that it has


ONE_ROUND = RunLength()


def transfer(
    source: ChangeSource,
    target: ChangeTarget,
    prepare: Prepare,
    report: Report,
    run_length: RunLength = ONE_ROUND,
    *,
    interval: float,
    copy: str = "",
    is_paced: bool = False,
) -> None:
    """Write what a source holds to a target, round after round.

    `copy` names who gets a copy of a state that the target keeps: that it was not taken is a warning then.
    `is_paced` waits between rounds also for a source that waits by itself.
    """
    warned = False
    while True:
        target.write(_round(source, prepare, report, run_length), lambda: source.state)
        report.sync_rejects()
        try:
            source.commit()
        except NotCopied as fault:
            if not copy:
                raise
            if not warned:
                report.refuse(Refused(copy, str(fault), fault=False))
            warned = True
        if (
            not run_length.follow
            or source.ended
            or run_length.stop()
            or not run_length.wait(0 if source.blocks and not is_paced else interval)
        ):
            return


def _round(
    source: ChangeSource, prepare: Prepare, report: Report, run_length: RunLength
) -> Iterator[Delivery]:
    for delivery in report.accepted(source.round(run_length.follow)):
        yield delivery._replace(changes=report.count(prepare(delivery.changes)))
        if run_length.stop():
            return
