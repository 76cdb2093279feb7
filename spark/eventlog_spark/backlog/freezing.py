"""A live log frozen into the job's folder: its pending rows and their current rows, of one snapshot.

The driver only holds the snapshot and shares out the work; executors read and write. A rerun after a
crash reads what was frozen, so it delivers the same under the same event-ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eventlog.core.entry import read_event_time
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.publisher.config import Config, statements
from eventlog.publisher.open_log import DatabaseSettings
from eventlog.sql.log.pending import Selection
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.readable import ReadableTable
from eventlog_spark.backlog.frozen import FrozenFolder
from eventlog_spark.backlog.live_current import ask
from eventlog_spark.backlog.shares import CHUNK, Access, FreezeShare, share_out
from eventlog_spark.backlog.unfinished import settle
from eventlog_spark.io.batches import ANSWER, answers
from eventlog_spark.io.folder_files import spark_names
from eventlog_spark.io.pieces import load

_ASKING = 200_000  # rows of the log that make one more task ask for current rows


@dataclass(frozen=True)
class LiveLog:
    """A live log, and what its rows mean."""

    store: Store
    config: Config
    tables: Tables
    readable: Mapping[Table, ReadableTable]
    rules: Rules


def freeze(spark: Any, source: LiveLog, frozen: FrozenFolder) -> None:
    """Freeze rows and current rows as they are now; the rest of an interrupted freeze is removed."""
    frozen.begin()
    with source.store.snapshot() as snapshot:
        access = _access(source, snapshot)
        settled = _freeze_remembered(source, snapshot, frozen)
        logs = _freeze_rows(spark, source, snapshot, access, settled, frozen)
        current = _freeze_current(spark, source, access, logs, frozen)
    frozen.finish({"logs": list(logs), "current": current})


def _access(source: LiveLog, snapshot: Snapshot) -> Access:
    store = source.store
    init = statements(source.config.build(DatabaseSettings).connection_init)
    shared = snapshot.share() if store.log.dialect.shares_snapshots else None
    return Access(store.engine.url, init, store.log, shared)


def _freeze_remembered(source: LiveLog, snapshot: Snapshot, frozen: FrozenFolder) -> frozenset[int]:
    """Return the rows that a publisher remembers; no other event may be made of them."""
    settlement, lines = settle(
        source.store.remembered(), snapshot, source.tables, source.readable, source.rules, source.config
    )
    frozen.remember(settlement.text(), "".join(lines))
    return settlement.rows


def _freeze_rows(
    spark: Any,
    source: LiveLog,
    snapshot: Snapshot,
    access: Access,
    without: frozenset[int],
    frozen: FrozenFolder,
) -> dict[str, int]:
    """Return the files of the pending rows, and how many each holds."""
    rules = source.rules
    user = None if rules.allow_loopback else rules.driver_user
    halted = source.tables.halted_spellings()
    choice = Selection(CHUNK, user, tables=source.tables, halted=halted)
    now = read_event_time(snapshot.now()) if rules.handle_future_events else None
    shares = share_out(snapshot, choice, access.shared is not None, frozen.files)
    work = FreezeShare(access, choice, now, without, frozen.files, snapshot.held())
    return dict(answers(load(spark, ANSWER, shares, work)))


def _freeze_current(
    spark: Any, source: LiveLog, access: Access, logs: Mapping[str, int], frozen: FrozenFolder
) -> list[str]:
    """Return the files of the current rows of every object that a query-back row names."""
    frame = spark.read.parquet(*spark_names(frozen.files, list(logs)))
    tasks = max(spark.sparkContext.defaultParallelism, sum(logs.values()) // _ASKING)
    return ask(frame, access, source.tables, source.readable, frozen.files, tasks)
