"""How the rows of a log are finished, changed while nobody publishes."""

from __future__ import annotations

from eventlog.core.errors import EventlogError
from eventlog.sql.log.finishing import FinishMode
from eventlog.sql.log.store import Store


class AtWork(EventlogError):
    """the leader's lock of this log is taken ({0}): stop every publisher before you change this"""


def change_mode(store: Store, mode: FinishMode, who: str) -> bool:
    """Put on record how rows are finished from now on, and leave a notice; whether it was otherwise before.

    The leader's lock keeps every publisher away meanwhile; whoever leads next reads the record first.
    """
    leader = store.lead(who)
    if leader is None:
        raise AtWork(str(store.holder() or "by whom is not ours to see"))
    with leader:
        before = store.finish_mode()
        if before is mode:
            return False
        with store.work(leader.epoch) as work:
            work.set_mode(mode)
        with store.upkeep() as upkeep:
            upkeep.note("finish mode", f"{mode}, before {before or 'none was said'}")
    return True
