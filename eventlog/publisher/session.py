"""Everything that stands and falls with one leadership: the lock, the sink, the publisher, the bed."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Self

from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.fold import Rules
from eventlog.publisher.answering import KnownTables, QueryAnswers
from eventlog.publisher.children import describe_children
from eventlog.publisher.column_record import ColumnRecord, halted
from eventlog.publisher.comparing import ComparingSettings, comparing
from eventlog.publisher.config import Config, statements
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.former_tables import former_tables, read_bases
from eventlog.publisher.log_session import Cycle
from eventlog.publisher.open_log import driver_user, read_tables, readable_of
from eventlog.publisher.postpoll import check_safe, run_statements
from eventlog.publisher.reading import Reader
from eventlog.publisher.settings import PublisherSettings
from eventlog.publisher.sleep import Signals, Sleeper, make_sleeper
from eventlog.sinks import open_sink, sink_kind
from eventlog.sinks.sink import OutgoingDocument
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.receiver_state import Base
from eventlog.sql.log.store import Store
from eventlog.sql.stored import demand_time
from eventlog.xds.documents import HEARTBEAT
from eventlog.xds.settings import XdsSettings

logger = logging.getLogger("eventlog.publishing")

ISOLATION_LEVELS = ("read committed", "repeatable read", "serializable")
_NOTED_EVERY = 1.0  # seconds between two notes of the last cycle
_READ_EVERY = 5.0  # seconds between two looks whether a withheld column was renamed


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session does beside publishing."""

    sink: str = setting(
        "stdout",
        "where documents go: stdout, files, http, command, kafka",
        metavar="SINK",
        check=sink_kind,
    )
    wake_up: bool = setting(True, "let writers wake the publisher (PostgreSQL)")
    wake_interval: int = setting(
        50,
        "milliseconds between two looks for new rows at rest, where PostgreSQL can prepare transactions",
        metavar="MS",
        within=(1, 60_000),
    )
    post_poll_stmt: str | None = setting(
        None, "SQL after each cycle that published something, `;` between", metavar="SQL"
    )
    transaction_isolation_level: str = setting(
        "read committed", "of post-poll statements only", choices=ISOLATION_LEVELS
    )
    max_queries: int = setting(
        100, "how often a receiver may ask before it answers a document", metavar="N", within=(0, 1_000_000)
    )


def read_rules(config: Config, store: Store) -> Rules:
    """What rows mean: our own are loopback, and events are named after the log, unless the settings say."""
    rules = config.build(Rules)
    if rules.handle_future_events:
        demand_time(store.log.stored, "handle-future-events")
    if "association" not in config.given:
        rules = replace(rules, association=store.association())
    if rules.driver_user is None:
        rules = replace(rules, driver_user=driver_user(store.engine, store.log))
    if "log_name" not in config.given:
        rules = replace(rules, log_name=store.log.table)
    return rules


def read_known(config: Config, store: Store) -> KnownTables:
    """What is known of the tables as the catalogue has them now, and how the settings tell their values."""
    bases = read_former(config, store)
    tables = read_tables(store.engine, store.log, config, bases=bases)
    readable = readable_of(config, store.engine, store.log, tables)
    if config.build(ComparingSettings).on_dropped_table == "delete":
        tables = tables.with_others(former_tables(bases, tables))
    return KnownTables(tables, readable, read_rules(config, store), config.build(XdsSettings))


def read_former(config: Config, store: Store) -> dict[str, Base]:
    """Return what is on record of the states of tables, where the publisher compares them."""
    if config.build(ComparingSettings).publication_mode != "compare":
        return {}
    with store.engine.connect() as connection:
        return read_bases(connection, store.log)


def make_reader(config: Config, store: Store) -> Reader:
    """What reads and folds rows as the settings say."""
    return Reader(*read_known(config, store))


class PublishingSession:
    """One leadership, from its election to its end."""

    def __init__(
        self,
        config: Config,
        store: Store,
        leader: Leader,
        signals: Signals,
        pulse: Callable[[], None] = lambda: None,
        report: Callable[[Cycle], None] = lambda cycle: None,
    ) -> None:
        self.store = store
        self._config = config
        self._leader = leader
        self._settings = config.build(SessionSettings)
        self._after = statements(self._settings.post_poll_stmt)
        self._noted = 0.0
        self._said: list[str] = []  # of children that are read
        self._halted: dict[str, str] = {}  # tables of which nothing is sent for now, and why
        self._columns = ColumnRecord()
        self._read = 0.0  # when the tables were last read
        self._signals = signals
        self._pulse = pulse  # called before each document: the publisher is alive
        self._report = report  # takes how far a cycle is
        self._noted_down: str | None = None  # why the receiver is down, as it was reported last
        self._partial = False  # whether a cycle was noted before its end
        self._unread: dict[str, str] = {}  # tables of which nothing is published, and why
        with ExitStack() as stack:
            stack.callback(leader.close)
            with store.work(leader.epoch) as work:
                work.agree(config.build(PublisherSettings).delete_from_log)
            check_safe(self._after, store.log, store.finish_mode())
            answers = QueryAnswers(store, lambda: read_known(config, store), self._settings.max_queries)
            self._sink = open_sink(self._settings.sink, config.given, answers)
            stack.callback(self._sink.close)
            self.bed: Sleeper = make_sleeper(
                signals,
                store.engine,
                store.log,
                self._settings.wake_up,
                self._settings.wake_interval / 1000,
            )
            stack.callback(self.bed.close)
            self._publisher = Publisher(
                store,
                self._make_reader,
                self._sink,
                leader.epoch,
                config.build(XdsSettings).batch_size,
                config.build(PublisherSettings),
                self._stopping,
                self._progress,
            )
            self._comparing = comparing(config, store, leader.epoch)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def cycle(self) -> Cycle:
        """One cycle, unless somebody asked the publisher to rest."""
        self._leader.ping()
        with self.store.upkeep() as upkeep:
            if upkeep.state().paused_at is not None:
                return Cycle(paused=True)
        if self._comparing is not None:
            self._comparing.poll()
            if self._comparing.changed:
                self._publisher.refresh()
        elif self._publisher.tables.sure and time.monotonic() > self._read + _READ_EVERY:
            self._publisher.refresh()
        self._unread = halted(self._publisher.tables)
        if self._comparing is not None:
            self._unread |= self._comparing.unread
        cycle = self._publisher.cycle()
        cycle.unread = self._unread
        if cycle.documents and self._after:
            run_statements(self.store, self._after, self._settings.transaction_isolation_level)
        self._note()
        return cycle

    def stay(self) -> None:
        """Keep the lock while we rest: a server may end sessions that say nothing for long."""
        self._leader.ping()

    def _make_reader(self) -> Reader:
        """What reads rows with the tables as they are now; says which children are read, if that is new."""
        reader = make_reader(self._config, self.store)
        self._read = time.monotonic()
        if not self._columns.is_current(reader.tables):
            with self.store.work(self._leader.epoch) as work:
                self._columns.write(work, reader.tables)
        for table, why in (self._halted_now(reader.tables)).items():
            logger.warning("%s is not published: %s", table, why, extra={"table": table})
        said = list(describe_children(reader.tables))
        if said != self._said:
            self._said = said
            for words in said:
                logger.info(words)
        return reader

    def _halted_now(self, tables: Tables) -> dict[str, str]:
        """Return the tables that were not halted before, and why they are now."""
        before, self._halted = self._halted, halted(tables)
        return {table: why for table, why in self._halted.items() if before.get(table) != why}

    def _stopping(self) -> bool:
        self._pulse()
        return self._signals.stop

    def heartbeat(self) -> str | None:
        """Send a heartbeat; why it did not arrive."""
        name = f"heartbeat-{time.time_ns()}"
        (reply,) = self._sink.deliver([OutgoingDocument(name, (), HEARTBEAT)])
        self._publisher.receiver_down = reply.fault
        self._note()
        if reply.fault is None:
            with self.store.work(self._leader.epoch) as work:
                work.record_heartbeat()
        return reply.fault

    @property
    def progress(self) -> Cycle:
        """The last cycle, or how far the present one is; `down` follows the receiver's last answer."""
        return replace(self._publisher.progress, unread=self._unread)

    def _progress(self) -> None:
        """Report how far a cycle is, within it too."""
        if self._is_due:
            self._report(self.progress)
            self._note()
            self._partial = True

    @property
    def _is_due(self) -> bool:
        """Whether people should see how it stands: the receiver's state changed, or some time passed."""
        changed = self._publisher.receiver_down != self._noted_down
        return changed or time.monotonic() > self._noted + _NOTED_EVERY

    def _note(self) -> None:
        """Leave on record what `status` shows, not more often than people look."""
        if self._is_due or self._partial:
            cycle, self._partial = self.progress, False
            self._noted, self._noted_down = time.monotonic(), cycle.down
            with self.store.work(self._leader.epoch) as work:
                facts = asdict(replace(cycle, answers=Counter()))
                work.record_cycle(json.dumps(facts))
