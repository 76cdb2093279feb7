"""The daemon's sleep: until a time, until a signal, or until a writer reports new work.

PostgreSQL's NOTIFY is only a hint. The daemon holds an advisory lock while few rows come, and the triggers
notify only while that lock is held.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from sqlalchemy.engine import Engine

from eventlog.files.ready import ready
from eventlog.files.signals import Signals
from eventlog.opening.filling import Sleeper
from eventlog.sql.common import templates
from eventlog.sql.connect import ConnectionLost, connect_at
from eventlog.sql.names import Log
from eventlog.sql.postgresql.triggers import wake_key

_INTERVAL = 0.05  # seconds between two looks for a newer row


class ListeningSleeper(Sleeper):
    """A sleeper on PostgreSQL that a writer can wake."""

    wakes = True

    def __init__(self, signals: Signals, engine: Engine, log: Log) -> None:
        super().__init__(signals)
        self._connection = connect_at(engine, "AUTOCOMMIT")
        self._driver: Any = self._connection.connection.driver_connection
        self._connection.detach()
        self._key = dict(zip(("wake_class", "wake_key"), map(str, wake_key(log)), strict=True))
        self._log = log
        self._announced = False
        self._connection.exec_driver_sql("listen eventlog")

    def announce(self) -> None:
        if not self._announced:
            self._run("announce")
            self._announced = True

    def sleep(self, seconds: float) -> bool:
        """Sleep until a writer of this log notifies, or for that many seconds."""
        until = time.monotonic() + seconds
        while not self._signals.stop and (remaining := until - time.monotonic()) > 0:
            ready([self._signals.pipe, self._driver], seconds=remaining)
            self._signals.drain()
            if self._log.dialect.fold(self._log.table) in self._notified_logs():
                return True
        return self._signals.stop

    def _notified_logs(self) -> list[str]:
        """Return the logs that writers notified about."""
        try:
            return [notice.payload for notice in self._driver.notifies(timeout=0)]
        except psycopg.Error as fault:
            raise ConnectionLost(" ".join(str(fault).split())) from fault

    def rise(self) -> None:
        if self._announced:
            self._run("rise")
            self._announced = False

    def close(self) -> None:
        self._connection.close()

    def _run(self, name: str) -> None:
        (statement,) = templates.statements(self._log.dialect, name, self._key)
        self._connection.exec_driver_sql(statement)


class PollingSleeper(Sleeper):
    """A sleeper on a PostgreSQL with prepared transactions, which cannot notify.

    It reads every few milliseconds whether the log has a newer row than at the last look.
    """

    wakes = True

    def __init__(self, signals: Signals, engine: Engine, log: Log) -> None:
        super().__init__(signals)
        self._connection = connect_at(engine, "AUTOCOMMIT")
        self._connection.detach()
        self._statement = templates.statement(log.dialect, "newest_row", **log.names())
        self._before = self._newest()

    def sleep(self, seconds: float) -> bool:
        """Sleep until the newest row is another one, or so long."""
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            if self._signals.sleep(min(_INTERVAL, remaining)):
                return True
            before, self._before = self._before, self._newest()
            if self._before != before:
                return True
        return False

    def close(self) -> None:
        self._connection.close()

    def _newest(self) -> object:
        return self._connection.exec_driver_sql(self._statement).scalar()


def make_sleeper(signals: Signals, engine: Engine, log: Log, wake_up: bool) -> Sleeper:
    """Return the sleeper that the database allows."""
    if not (wake_up and log.dialect.sessions.wakes):
        return Sleeper(signals)
    with engine.connect() as connection:
        notifies = connection.exec_driver_sql(templates.statement(log.dialect, "notifies")).scalar()
    return ListeningSleeper(signals, engine, log) if notifies else PollingSleeper(signals, engine, log)
