"""The way in which rows of a log are finished, changed while no publisher runs."""

from __future__ import annotations

from eventlog.core.errors import EventlogError
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.finishing import FinishMode
from eventlog.sql.log.store import Store

CHUNK = 10_000  # letters that one transaction writes into the log


class AtWork(EventlogError):
    """the leader's lock of this log is taken ({0}): stop every publisher before you change this"""


class NoRanges(EventlogError):
    """the rows of {0} cannot be finished by ranges: {1}"""


class NoIndex(EventlogError):
    """the index of pending rows of {0} cannot be made ({1}): run `eventlog finish-mode` as the owner of \
the log, when no transaction holds a lock on it for long"""


def change_mode(store: Store, mode: FinishMode, who: str) -> bool:
    """Record how rows are finished from now on, and leave a notice. Return whether this was a change.

    The leader's lock keeps every publisher away meanwhile; the next leader reads the record first. Letters
    outside of the log are written into it before the mode changes. A killed call loses nothing, and goes on
    when it is repeated. The log has an index of pending rows, except under ranges if no row has a letter.
    """
    if mode is FinishMode.RANGES:
        _demand_ranged(store)
    leader = store.lead(who)
    if leader is None:
        raise AtWork(str(store.holder() or "by whom is not ours to see"))
    with leader:
        before = store.finish_mode()
        if before is not mode:
            _switch(store, leader.epoch, before, mode)
        if mode is FinishMode.RANGES:
            _run(store, "drop_pending")
    return before is not mode


def _switch(store: Store, epoch: int, before: FinishMode | None, mode: FinishMode) -> None:
    if before is FinishMode.RANGES:
        _make_index(store)
        _write_letters(store, epoch)
    with store.work(epoch) as work:
        if before is FinishMode.RANGES:
            work.forget_done()
        work.set_mode(mode)
    with store.upkeep() as upkeep:
        upkeep.note("finish mode", f"{mode}, before {before or 'none was said'}")


def _demand_ranged(store: Store) -> None:
    """Raise NoRanges if a range of record ids may contain other rows than those of its integers."""
    if store.attached():
        raise NoRanges(store.log.table, "it is an attached log, whose status others may read")
    if not store.log.ranged:
        raise NoRanges(store.log.table, "its record_id is no integer column with a unique key of its own")


def _write_letters(store: Store, epoch: int) -> None:
    with store.snapshot() as snapshot:
        _ = snapshot.done  # which refuses letters that belong to other rows
    more = True
    while more:
        with store.work(epoch) as work:
            more = work.write_letters(CHUNK)


def _make_index(store: Store) -> None:
    try:
        _run(store, "make_pending")
    except DatabaseFailed as error:
        raise NoIndex(store.log.table, str(error)) from error


def _run(store: Store, name: str) -> None:
    """Run the statements of a name in a transaction of their own."""
    with store.engine.begin() as connection:
        store.queries.run_every(connection, name, **store.log.names())
