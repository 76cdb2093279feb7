"""The times of cycles: day and night, by the first of several publishers, until a stop is requested."""

from __future__ import annotations

import datetime as dt
import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from eventlog.core.errors import EventlogError, Misuse, shortened
from eventlog.files.signals import Signals, StopRequested
from eventlog.opening.config import Config
from eventlog.opening.open_log import opened
from eventlog.opening.publisher_settings import DaemonSettings, read_times
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.publisher.cycle_facts import POINT_EVERY
from eventlog.publisher.lock_watch import watching_locks
from eventlog.publisher.monitor import Monitor
from eventlog.publisher.readiness import Readiness
from eventlog.publisher.session import PublishingSession, check_session, checked_parts
from eventlog.publisher.tally import CycleResult
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.leader import Holder, Leader
from eventlog.sql.log.log_record import DamagedBatch, Notice, NoticeKind
from eventlog.sql.log.position import IdsComeAgain
from eventlog.sql.log.store import Store
from eventlog.sql.schema.migrate import NewerLog, demand_newest
from eventlog.status.log_watch import now

logger = logging.getLogger("eventlog.daemon")

STANDBY = 1.0  # seconds between two attempts to lead
STANDBY_CHECK = 60.0  # seconds between two checks of a standby, whether it could lead
FIRST_NAP = 0.01  # the first nap after work; each is four times as long, for what was in flight meanwhile
NOTIFY_BELOW_ROWS = 8  # after more rows the next cycle comes soon, and no writer needs to notify
BUSY_WAIT = 0.001  # seconds until that cycle
MINUTE = 60.0
DAY = 86_400.0
CLOCK_CHECK = 60.0  # seconds between two looks at the clock, because it may be set during a long sleep
PAUSE_CHECK = 1.0  # seconds between two looks whether the pause is over
ASKED_CHECK = 0.5  # seconds between two looks whether a person ended the wait for the receiver
UNTIL_TIME_OF_DAY = math.inf  # seconds
LONGEST_WORDS = 1_000  # characters of why a publisher stopped, in the history
FIRST_WAIT = 0.5  # seconds after a fault; doubled each time


def seconds_until(times: tuple[dt.time, ...], now: dt.datetime) -> float:
    """Return the seconds from a local time to the next of these times of day, also where clocks change
    between.
    """
    days = (now.date(), now.date() + dt.timedelta(days=1))
    moments = (dt.datetime.combine(day, time).timestamp() for day in days for time in times)
    return min(moment for moment in moments if moment > now.timestamp()) - now.timestamp()


class Wait(NamedTuple):
    """The time between two cycles."""

    seconds: float  # may be UNTIL_TIME_OF_DAY
    is_wakeable: bool = False  # a writer may end it


def next_wait(
    cycle: CycleResult, settings: DaemonSettings, failures: int, nap: float, *, wakes: bool
) -> Wait:
    """Return how long to wait after a cycle; `wakes` is whether writers can wake this publisher."""
    if cycle.down is not None:
        return Wait(growing_wait(failures, settings) if cycle.wait is None else cycle.wait)
    if cycle.paused:
        return Wait(PAUSE_CHECK)
    if cycle.full:
        return Wait(0.0)
    if settings.time_of_day is not None:
        return Wait(UNTIL_TIME_OF_DAY)
    if not wakes:
        return Wait(settings.polling_interval)
    return Wait(BUSY_WAIT) if cycle.rows >= NOTIFY_BELOW_ROWS else Wait(nap, is_wakeable=True)


def growing_wait(failures: int, settings: DaemonSettings) -> float:
    """Return how long to wait after so many faults, one after another."""
    return min(float(settings.reconnect), FIRST_WAIT * 2.0 ** min(failures - 1, 20))


class Disabled(Misuse):
    """the publisher is disabled: disable = true in its settings"""


class AnotherLeads(EventlogError):
    """the leader's lock of this log is taken ({0}); --once does not wait for it"""


class SinkDown(EventlogError):
    """the sink takes nothing: {0}; the rows are new still"""


class TablesUnread(EventlogError):
    """some tables were not published, the others were: {0}"""


class Daemon:
    """The publisher as a process."""

    def __init__(
        self,
        config: Config,
        signals: Signals,
        *,
        once: bool = False,
        monitor: Monitor | None = None,
        clock: Callable[[], dt.datetime] = dt.datetime.now,
    ) -> None:
        self._config = config
        self._settings = config.build(DaemonSettings)
        if self._settings.disable:
            raise Disabled
        self._name = f"{socket.gethostname()}, pid {os.getpid()}"
        self._signals = signals
        self._once = once
        self._monitor = monitor or Monitor()
        self._clock = clock
        self._failures = 0
        self._holder: Holder | None = None  # of the lock, when it was read last
        self._reported: Holder | None = None  # the holder for which the waiting was logged
        self._heard_at = 0.0  # when the receiver last got a document or a heartbeat
        self._paused = False
        self._due = math.inf  # the time of day at which a cycle is due
        self._was_standby = False  # before the present leadership
        self._has_led = False  # before the first leadership a fault ends the daemon

    def run(self) -> None:
        """Lead, publish, wait and connect again, until a signal or a fault that people must mend ends it."""
        while not self._signals.stop:
            try:
                with self._leading() as session:
                    if session is not None:
                        self._publish(session)
            except StopRequested:
                logger.info("stopped while it read: nothing of that was written")
            except (ReceiverFatal, IdsComeAgain, NewerLog, DamagedBatch):
                raise
            except EventlogError as fault:
                self._recover(fault)

    def _publish(self, session: PublishingSession) -> None:
        """Run cycles until a signal comes; between them sleep, longer each time that nothing went out."""
        self._heard_at, nap = time.monotonic(), FIRST_NAP
        if self._due < math.inf:  # the session before this one broke during the wait
            self._sleep_until(session)
        while not self._signals.stop:
            with self._signals.interrupting():
                if self._signals.stop:
                    break
                is_ready = session.prepare()
            cycle = session.publisher.cycle() if is_ready else CycleResult(paused=True)
            self._failures = self._failures + 1 if cycle.down else 0
            nap = FIRST_NAP if cycle.documents else nap
            wait = next_wait(cycle, self._settings, self._failures, nap, wakes=session.sleeper.wakes)
            if is_ready:
                cycle = session.conclude(cycle, wait.seconds)
            self._monitor.cycle(session.progress if is_ready else cycle)
            self._report_pause(cycle.paused)
            self._monitor.alive(self._silence)
            if self._once:
                self._end(cycle)
                return
            if cycle.documents:
                self._heard_at = time.monotonic()
            if cycle.down:
                logger.warning("no answer: %s; next try in %.1f s", cycle.down, wait.seconds)
            self._sleep_after(session, cycle, wait)
            if wait.is_wakeable:
                nap = min(nap * 4, float(self._settings.polling_interval))

    @contextmanager
    def _leading(self) -> Iterator[PublishingSession | None]:
        """Connect, wait, and lead while the block runs; None if a signal comes before."""
        with opened(self._config) as store, self._monitored(store):
            leader = self._elected(store)
            if leader is None:
                yield None
                return
            signals, monitor = self._signals, self._monitor
            with leader:
                with signals.interrupting():
                    demand_newest(store)  # the log may have been upgraded during the wait
                    begun = PublishingSession(self._config, store, leader, signals, monitor, self._silence)
                with begun as session:
                    logger.info("leading", extra={"leader": self._name, "epoch": leader.epoch})
                    self._has_led = True
                    monitor.leading(True)
                    try:
                        with self._on_record(store, leader):
                            yield session
                    finally:
                        monitor.leading(False)

    @contextmanager
    def _on_record(self, store: Store, leader: Leader) -> Iterator[None]:
        """Leave notices of the begin and the end of a leadership, unless it is that of one cycle."""
        if self._once:
            yield
            return
        kind = NoticeKind.TAKEOVER if self._was_standby else NoticeKind.START
        self._note(store, kind, f"epoch {leader.epoch}")
        why = "it was asked to stop"
        try:
            yield
        except EventlogError as fault:
            why = str(fault)
            raise
        finally:
            with suppress(EventlogError):  # the database may be away
                self._note(store, NoticeKind.STOP, why)

    def _note(self, store: Store, kind: NoticeKind, words: str) -> None:
        with store.admin() as admin:
            admin.note(Notice(kind, who=self._name, words=shortened(words, LONGEST_WORDS)))

    @contextmanager
    def _monitored(self, store: Store) -> Iterator[None]:
        self._monitor.connected(store)
        try:
            with watching_locks(store, self._monitor.silent_seconds):
                yield
        finally:
            self._monitor.connected(None)

    def _elected(self, store: Store) -> Leader | None:
        """Wait until we lead; None if a signal comes before. Raise why we could not lead, before the wait."""
        next_check = 0.0
        with store.waits() as waiting:
            while (leader := store.lead(self._name)) is None:
                self._monitor.reached()
                if self._once:
                    raise AnotherLeads(str(store.holder() or "by whom is not ours to see"))
                if time.monotonic() >= next_check:
                    self._check(store, is_first=not next_check)
                    waiting.show(could_lead=not self._monitor.readiness.fault)
                    next_check = time.monotonic() + STANDBY_CHECK
                self._stand_by(store.holder())
                self._monitor.alive(STANDBY)
                self._signals.sleep(STANDBY)
                if self._signals.stop:
                    return None
        self._was_standby = next_check > 0.0
        self._monitor.reached()
        return leader

    def _check(self, store: Store, *, is_first: bool) -> None:
        """Check whether we could lead. Raise what is wrong at the first check, report it later on."""
        before, fault = self._monitor.readiness, ""
        try:
            with self._signals.interrupting():
                demand_newest(store)
                check_session(self._config, store)
        except ConnectionLost:
            raise
        except EventlogError as why:
            if is_first:
                raise
            fault = str(why)
        self._monitor.readiness = Readiness(now(), checked_parts(self._config), fault)
        if fault and fault != before.fault:
            logger.warning("this standby could not take over: %s", fault)
        elif before.fault and not fault:
            logger.info("this standby could take over again")

    def _stand_by(self, holder: Holder | None) -> None:
        """Log once who holds the lock; what a new holder is can't be known at the first look."""
        if holder is not None and holder == self._holder and holder != self._reported:
            level = logging.INFO if holder.publisher else logging.WARNING
            facts = {"role": holder.role, "session": holder.process, "publisher": holder.publisher}
            logger.log(level, "on standby: the leader's lock is held by %s", holder, extra=facts)
            self._reported = holder
        self._holder = holder

    def _report_pause(self, paused: bool) -> None:
        """Log once that the publisher is paused, and once that it goes on."""
        if paused != self._paused:
            logger.info("paused until `eventlog resume`; rows pile up" if paused else "going on")
        self._paused = paused

    @property
    def _silence(self) -> float:
        """The seconds between two signs of life at most."""
        return DAY if self._settings.time_of_day else self._settings.polling_interval

    def _end(self, cycle: CycleResult) -> None:
        """Handle the end of the one cycle of --once."""
        self._signals.request_stop()
        if cycle.down is not None:
            raise SinkDown(cycle.down)
        if cycle.unread:
            raise TablesUnread("; ".join(f"{table}: {why}" for table, why in cycle.unread.items()))

    def _sleep_after(self, session: PublishingSession, cycle: CycleResult, wait: Wait) -> None:
        """Sleep until the next cycle is due, or until a writer or a person wakes us."""
        if wait.is_wakeable:
            session.sleeper.announce()
            self._sleep(session, session.sleeper.sleep, wait.seconds)
            return
        session.sleeper.rise()
        if wait.seconds == UNTIL_TIME_OF_DAY:
            self._sleep_until(session)
        elif cycle.down:
            self._sleep_for_receiver(session, wait.seconds, was_asked_for=cycle.wait is not None)
        else:
            self._sleep(session, self._signals.sleep, wait.seconds)

    def _sleep_for_receiver(self, session: PublishingSession, seconds: float, *, was_asked_for: bool) -> None:
        """Sleep until the receiver is tried again, or until a person asks that what waits is sent now: all of
        it, if the receiver asked for the wait.
        """
        until = time.monotonic() + seconds
        while not self._signals.stop and (remaining := until - time.monotonic()) > 0:
            self._sleep(session, self._signals.sleep, min(remaining, ASKED_CHECK))
            with self._signals.interrupting():
                if session.is_asked_again(only_all=was_asked_for):
                    logger.info("the receiver is tried again: a person asked for it")
                    return

    def _sleep_until(self, session: PublishingSession) -> None:
        """Sleep until the next time of day, also where the clock is set or the machine rests meanwhile."""
        times = read_times(self._settings.time_of_day or "")
        while not self._signals.stop:
            now = self._clock()
            self._due = min(self._due, now.timestamp() + seconds_until(times, now))
            seconds = self._due - now.timestamp()
            if seconds <= 0:
                break
            self._sleep(session, self._signals.sleep, min(seconds, CLOCK_CHECK))
            with self._signals.interrupting():
                session.stay()
        self._due = math.inf

    def _sleep(self, session: PublishingSession, sleep: Callable[[float], bool], seconds: float) -> None:
        """Sleep so long, unless somebody wakes us; heartbeats go out meanwhile."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            silence = self._heard_at + MINUTE * (self._settings.pub_heartbeat_interval or math.inf)
            if now >= silence:
                session.heartbeat()
                self._heard_at = now
            elif sleep(min(until, silence, now + POINT_EVERY) - now):
                return
            with self._signals.interrupting():
                session.look()
            self._monitor.alive(self._silence)

    def _recover(self, fault: EventlogError) -> None:
        """Connect again after a fault, without end; a fault of the first connection ends the daemon."""
        if self._once or (not self._has_led and not isinstance(fault, ConnectionLost)):
            raise fault
        self._failures += 1
        wait = growing_wait(self._failures, self._settings)
        self._monitor.fault(fault, wait)
        logger.warning("%s; next try in %.1f s", fault, wait, extra={"fault": type(fault).__name__})
        self._signals.sleep(wait)
