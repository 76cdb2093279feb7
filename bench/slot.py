"""How fast a replication slot fills the log: one large transaction, many small ones, an old one open.

    eventlog bench slot [CHANGES]

The time is that from the start of the publisher's stream until all changes are in the log.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.embedded import FAST, embedded_postgres
from eventlog.opening.config import Config
from eventlog.operate.changing import fill_by_slot
from eventlog.slot.filler import SlotFiller
from eventlog.sql.connect import connect
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.schema import migrate

CHANGES = 1_000_000
SMALL = 100  # changes of a small transaction
IDLE = 5.0  # seconds


class Cycle:
    """A publisher that sends nothing."""

    is_down = True  # all that has arrived is logged at once

    def refresh(self) -> None:
        """Do nothing."""


def main() -> None:
    """Print the figures."""
    changes = int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES
    with embedded_postgres(settings=FAST | {"wal_level": "logical", "max_wal_size": "8GB"}) as server:
        engine = connect(server.url, keep_open=4)
        store = Store(engine, Log(POSTGRESQL))
        migrate.install(engine, store.log)
        _run(engine, "create table usr (idu integer primary key, fname text, lname text)")
        config = Config({"url": server.url, "sync_tables": "usr", "publication_mode": "slot"})
        list(fill_by_slot(config, store, "bench"))
        _measure("one transaction", store, config, changes, changes)
        _measure(f"transactions of {SMALL}", store, config, changes, SMALL)
        with _old_transaction(engine):
            _measure(f"transactions of {SMALL}, an old one open", store, config, changes, SMALL)
        _idle(store, config)
        engine.dispose()


def _measure(name: str, store: Store, config: Config, changes: int, size: int) -> None:
    """Write changes, and print how fast they come into the log."""
    _run(store.engine, "truncate eventlog")
    for first in range(0, changes, size):
        span = f"generate_series({first}, {first + size - 1})"
        _run(
            store.engine,
            f"insert into usr select n, 'a', 'b' from {span} n on conflict (idu) do update set fname = 'c'",
        )
    with _leading(store, config) as filler:
        begun, worked, logged = time.monotonic(), time.process_time(), 0
        while logged < changes:
            logged += filler.prepare(Cycle())
        seconds, cpu = time.monotonic() - begun, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    figures = (
        f"{logged / seconds:,.0f} changes/s, {1e6 * cpu / logged:.1f} us of CPU each, {peak} MiB at most"
    )
    print(f"{name}: {figures}", flush=True)


def _idle(store: Store, config: Config) -> None:
    """Print how much of a core a filler takes that is asked every 10 ms and finds nothing."""
    with _leading(store, config) as filler:
        filler.prepare(Cycle())
        begun, worked = time.monotonic(), time.process_time()
        while time.monotonic() < begun + IDLE:
            filler.prepare(Cycle())
            filler.wait(0.01)
        print(f"idle: {100 * (time.process_time() - worked) / IDLE:.2f} % of a core")


@contextmanager
def _leading(store: Store, config: Config) -> Iterator[SlotFiller]:
    leader = store.lead("bench")
    assert leader is not None
    with leader:
        filler = SlotFiller(config, store, leader.epoch)
        try:
            yield filler
        finally:
            filler.close()


@contextmanager
def _old_transaction(engine: Engine) -> Iterator[None]:
    """Keep a transaction open that has written something."""
    with engine.connect() as connection:
        connection.execute(text("create table old_one (n integer)"))
        yield
        connection.rollback()


def _run(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


if __name__ == "__main__":
    main()
