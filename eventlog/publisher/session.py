"""What lasts as long as one leadership: the lock, the sink, the publisher, and where the daemon sleeps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Self

from eventlog.core.tables import Tables
from eventlog.files.signals import Signals
from eventlog.opening.comparing_settings import ComparingSettings, SourceOfTriggers
from eventlog.opening.config import Config, statements
from eventlog.opening.filling import Filler, Sleeper
from eventlog.opening.post_poll import naming_log, run_statements, why_warned
from eventlog.opening.published import describe_children
from eventlog.opening.publisher_settings import PublisherSettings, SessionSettings
from eventlog.opening.recorded_settings import write_published, write_settings
from eventlog.opening.sent_documents import document_name
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.cycle_facts import CycleFacts
from eventlog.publisher.delivery import CycleHooks
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.monitor import Monitor
from eventlog.publisher.preparation import make_reader
from eventlog.publisher.sleep import make_sleeper
from eventlog.publisher.tally import AnswerTally, CycleResult
from eventlog.sinks import check_sink, open_sink, sink_remedy, speedups_of
from eventlog.sinks.sink import Speedup
from eventlog.slot.slot_tables import demand_slots, refuse_slot
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.store import Store
from eventlog.xds.xds_settings import XdsSettings

logger = logging.getLogger("eventlog.publishing")

_NOTED_EVERY = 1.0  # seconds between two notes of the last cycle
_NOTED_IDLE = 10.0  # seconds between two of them while nothing changes


def filler_of(config: Config, store: Store, epoch: int) -> Filler:
    """Return what fills the log before each cycle."""
    settings = config.build(ComparingSettings)
    if settings.publication_mode != "slot":
        refuse_slot(store)
    if settings.publication_mode == "compare":
        from eventlog.publisher.comparison import Comparison, refuse_tracked  # Arrow takes a while to load

        refuse_tracked(config, store)
        return Comparison(config, store, epoch, settings)
    if config.values.get("source_url") is not None:
        raise SourceOfTriggers
    if settings.publication_mode == "slot":
        demand_slots(store.log.dialect)
        from eventlog.slot.filler import SlotFiller

        return SlotFiller(config, store, epoch)
    return Filler()


def check_session(config: Config, store: Store) -> None:
    """Raise why a session could not begin, or could not read the tables or open the sink; nothing is sent."""
    check_sink(config.build(SessionSettings).sink, config.values)
    filler_of(config, store, epoch=0).close()
    make_reader(config, store)


def checked_parts(config: Config) -> tuple[str, ...]:
    """Return the names of what `check_session` checks."""
    source = ("the source database",) if config.values.get("source_url") else ()
    sink = f"the sink {config.build(SessionSettings).sink} with its settings, packages, files and folders"
    return "the database of the log", *source, "the tables", sink


class TableReading:
    """Reads the tables for one leader, and reports what changed of them."""

    def __init__(self, config: Config, store: Store, epoch: int) -> None:
        self._config = config
        self._store = store
        self._epoch = epoch
        self._published = ""  # as it is on record
        self._halted: dict[str, str] = {}  # tables that send nothing for now, and why
        self._children: list[str] = []  # sentences about children that are read

    def make_reader(self) -> PickUpFold:
        """Return a reader with the tables as they are now."""
        reader = make_reader(self._config, self._store)
        self._report_halted(reader.tables)
        self._note_published(reader.tables)
        children = list(describe_children(reader.tables))
        if children != self._children:
            self._children = children
            for sentence in children:
                logger.info(sentence)
        return reader

    def _note_published(self, tables: Tables) -> None:
        """Leave on record which columns are published and how, if that is new."""
        published = write_published(tables, self._config, document_name(self._config))
        if published != self._published:
            with self._store.as_leader(self._epoch) as work:
                work.note_published(published)
            self._published = published

    def _report_halted(self, tables: Tables) -> None:
        before, self._halted = self._halted, tables.halted()
        for table, why in self._halted.items():
            if before.get(table) != why:
                logger.warning("%s is not published: %s", table, why, extra={"table": table})


class SessionHooks(CycleHooks):
    """Stops a cycle at a signal, and shows how far it is: to the monitor, and on record in the log."""

    def __init__(
        self,
        store: Store,
        leader: Leader,
        signals: Signals,
        monitor: Monitor,
        silence: float,
        remedy_of: Callable[[str], str],
        speedups: Sequence[Speedup],
    ) -> None:
        self.tracing = monitor.tracing
        self._store = store
        self._leader = leader
        self._signals = signals
        self._monitor = monitor
        self._silence = silence  # seconds between two signs of life at most
        self._noted_at = self._looked_at = 0.0
        self._noted_down: str | None = None  # why the receiver is down, as it was noted last
        self._rested: datetime | None = None  # the pause in which the rest is on record
        self._is_partial = False  # whether a cycle was noted before its end
        self._record = CycleFacts(store, remedy_of, speedups)
        self.unread: Mapping[str, str] = {}  # tables that publish nothing, and why
        self.stopped_tables: Iterable[str] = ()  # those among them that max-deletes stopped

    def stop_requested(self) -> bool:
        """Return whether a signal came; the publisher is alive."""
        self._monitor.alive(self._silence)
        return self._signals.stop

    def interrupting(self) -> AbstractContextManager[None]:
        """Return a block that a stop ends at once."""
        return self._signals.interrupting()

    def replied(self, tally: AnswerTally, down: str | None, outage: Collection[str]) -> None:
        """Show how far a cycle is, within it too."""
        self._record.take_point(tally.cycle.finished)
        if self._is_due(down):
            cycle = self.complete(tally.progress(down, outage))
            self._monitor.progress(cycle)
            self._is_partial = True
            self._noted_at, self._noted_down = time.monotonic(), cycle.down
            with self._store.as_leader(self._leader.epoch) as work:
                work.record_cycle(self._facts(cycle))

    def note(self, cycle: CycleResult) -> None:
        """Leave on record what `status` shows, not more often than people look."""
        if self._is_due(cycle.down) or self._is_partial:
            self._is_partial = False
            self._noted_at, self._noted_down = time.monotonic(), cycle.down
            with self._store.as_leader(self._leader.epoch) as work:
                work.record_cycle(self._facts(cycle))

    def look(self, cycle: CycleResult) -> None:
        """Count the pending rows between cycles, if that is due, and leave it on record if it is news."""
        is_news = self._record.take_point(0)
        if is_news or time.monotonic() > max(self._looked_at, self._noted_at) + _NOTED_IDLE:
            self._looked_at = time.monotonic()
            with self._store.as_leader(self._leader.epoch) as work:
                work.record_cycle(self._facts(cycle))

    @property
    def former_outage(self) -> Sequence[str]:
        """Return the reasons of the outage that the former leader saw last and did not see end."""
        return self._record.former_outage

    def begins(self) -> None:
        """Note that a cycle begins."""
        self._record.begin()

    def ended(self, cycle: CycleResult, wait: float) -> None:
        """Count what a cycle did that has ended, so many seconds before the next one."""
        self._record.end(cycle, wait)

    def note_rest(self, since: datetime) -> None:
        """Leave on record, once in a pause, that no cycle is under way any more."""
        if since != self._rested:
            with self._store.as_leader(self._leader.epoch) as work:
                work.record_rest()
            self._rested = since

    def complete(self, cycle: CycleResult) -> CycleResult:
        """Return the cycle with what this process lacks: tables that are unread, and its page."""
        return replace(
            cycle,
            unread=dict(self.unread),
            stopped_tables=sorted(self.stopped_tables),
            no_page=self._monitor.no_page,
        )

    def _is_due(self, down: str | None) -> bool:
        """Return whether the receiver's state changed, or some time passed."""
        return down != self._noted_down or time.monotonic() > self._noted_at + _NOTED_EVERY

    def _facts(self, cycle: CycleResult) -> str:
        """Return what is left on record of how far a cycle is."""
        return self._record.facts(cycle, is_running=self._is_partial)


class PublishingSession:
    """One leadership, from its election to its end."""

    def __init__(
        self, config: Config, store: Store, leader: Leader, signals: Signals, monitor: Monitor, silence: float
    ) -> None:
        self.store = store
        self._leader = leader
        self._settings = settings = config.build(SessionSettings)
        self._after = statements(settings.post_poll_stmt)
        batch_size = config.build(XdsSettings).batch_size
        self._watch = SessionHooks(
            store,
            leader,
            signals,
            monitor,
            silence,
            partial(sink_remedy, settings.sink, config.values),
            [*speedups_of(settings.sink, config.values, batch_size)],
        )
        self._tables = TableReading(config, store, leader.epoch)
        with ExitStack() as stack:
            stack.enter_context(store.keep_connection())
            for statement in naming_log(self._after, store.log):
                logger.warning(why_warned(statement))
            sink = open_sink(settings.sink, config.values)
            stack.callback(sink.close)
            self._filler = filler_of(config, store, leader.epoch)
            stack.callback(self._filler.close)
            self.sleeper: Sleeper = self._filler.sleeper(signals) or make_sleeper(
                signals, store.engine, store.log, settings.wake_up
            )
            stack.callback(self.sleeper.close)
            self.publisher = Publisher(
                store,
                self._tables.make_reader,
                sink,
                leader.epoch,
                batch_size,
                config.build(PublisherSettings),
                self._watch,
                self._watch.former_outage,
            )
            with store.as_leader(leader.epoch) as work:
                work.record_settings(write_settings(config))
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self._stack.close()

    def prepare(self) -> bool:
        """Fill the log before a cycle. Return False if the publisher is paused."""
        if self._rests():
            self._filler.drain()
            return False
        self._filler.prepare(self.publisher)
        self._show_unread()
        self.look()
        self._watch.begins()
        return True

    def look(self) -> None:
        """Count the pending rows between two cycles, now and then."""
        self._watch.look(self.progress)

    def _show_unread(self) -> None:
        """Show the tables that publish nothing for now, and why."""
        self._watch.unread = {**self.publisher.tables.halted(), **self._filler.unread}
        self._watch.stopped_tables = self._filler.stopped_tables

    def conclude(self, cycle: CycleResult, wait: float) -> CycleResult:
        """Run the operator's statements if documents went out, and note the cycle and the seconds until the
        next one. Return it complete."""
        if cycle.documents and self._after:
            run_statements(self.store, self._after)
        self._show_unread()
        self._watch.ended(cycle, wait)
        self._watch.note(self.progress)
        return self._watch.complete(cycle)

    def stay(self) -> None:
        """Keep the lock during a long sleep, because a server may end sessions without statements."""
        self._rests()
        self._filler.drain()

    def is_asked_again(self, *, only_all: bool) -> bool:
        """Return whether a person asked since the last try that events are sent, or only if all are."""
        return self._leader.asked_after(self.publisher.latest_notice, only_all=only_all)

    def _rests(self) -> bool:
        """Return whether the publisher is paused, and between two cycles."""
        since = self._leader.paused_since()
        if since is not None:
            self._watch.note_rest(since)
        return since is not None

    def heartbeat(self) -> str | None:
        """Send a heartbeat. Return why it did not arrive."""
        fault = self.publisher.heartbeat()
        self._watch.note(self.progress)
        if fault is None:
            with self.store.as_leader(self._leader.epoch) as work:
                work.record_heartbeat()
        return fault

    @property
    def progress(self) -> CycleResult:
        """The last cycle, or how far the present one is; `down` follows the receiver's last answer."""
        return self._watch.complete(self.publisher.progress)
