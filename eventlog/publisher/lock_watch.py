"""A watch over a publisher whose statements wait for a lock on the log, as long as it takes: the publisher's
own log has the reason."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eventlog.core.errors import EventlogError
from eventlog.sql.log.log_lock import LogLocked
from eventlog.sql.log.store import Store

logger = logging.getLogger("eventlog.daemon")


@contextmanager
def watching_locks(store: Store, silent_seconds: Callable[[], float]) -> Iterator[None]:
    """Look at the log while the publisher is silent, and log once that another session locks it."""
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(store, silent_seconds, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


def _watch(store: Store, silent_seconds: Callable[[], float], ended: threading.Event) -> None:
    is_reported = False
    while not ended.wait(store.look_limit):
        is_silent = silent_seconds() > store.look_limit
        locked = _lock_of(store) if is_silent else None
        if locked is not None and not (is_reported or ended.is_set()):
            logger.warning("%s; the publisher waits until it is free", locked)
            is_reported = True
        elif is_reported and not is_silent:
            logger.info("the log is free again, and the publisher goes on")
            is_reported = False


def _lock_of(store: Store) -> LogLocked | None:
    """Return that another session locks the log; None if none does, or if that cannot be known."""
    try:
        store.demand_unlocked()
    except LogLocked as fault:
        return fault
    except EventlogError:  # the publisher itself reports that the database is away
        pass
    return None
