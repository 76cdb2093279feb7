"""When cycles run: day and night, by the first of several publishers, until somebody says stop."""

from __future__ import annotations

import datetime as dt
import logging
import math
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.settings import setting
from eventlog.publisher.config import Config
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.publisher.log_session import Cycle
from eventlog.publisher.monitor import Monitor
from eventlog.publisher.open_log import opened
from eventlog.publisher.schedule import read_times, seconds_until
from eventlog.publisher.session import PublishingSession
from eventlog.publisher.sleep import Signals
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.leader import Holder
from eventlog.sql.log.position import IdsComeAgain
from eventlog.sql.log.store import Store

logger = logging.getLogger("eventlog.daemon")

STANDBY = 1.0  # seconds between two attempts to lead
NAPS = 0.01  # the first nap after work; each is four times as long, for what was in flight meanwhile
MINUTE = 60.0
DAY = 86_400.0
LOOK = 60.0  # seconds between two looks at the clock, which may be set while we sleep until a time of day
PAUSED = 1.0  # seconds between two looks whether the pause is over
FIRST_WAIT = 0.5  # seconds after a fault; doubled each time


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """When cycles run."""

    disable: bool = setting(False, "do not publish: `run` ends at once, and says so")
    polling_interval: int = setting(
        10, "seconds of inactivity between cycles", metavar="S", within=(1, 604_800)
    )
    time_of_day: str | None = setting(
        None, "hh:mm:ss, several with commas: instead of polling-interval", metavar="TIME", check=read_times
    )
    pub_heartbeat_interval: int = setting(
        0, "minutes of silence before a heartbeat document; 0: none", metavar="MIN", within=(0, 2**31)
    )
    reconnect: int = setting(30, "the longest wait before connecting again", metavar="S", within=(1, 604_800))


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
        reload: Callable[[], Config],
        signals: Signals,
        *,
        once: bool = False,
        monitor: Monitor | None = None,
        clock: Callable[[], dt.datetime] = dt.datetime.now,
    ) -> None:
        self._config = config
        self._settings = config.build(DaemonSettings)
        self._reload = reload
        self._signals = signals
        self._once = once
        self._monitor = monitor or Monitor()
        self._clock = clock
        self._failures = 0
        self._seen: Holder | None = None  # with the lock, when we looked last
        self._told: Holder | None = None  # of whom our log speaks already
        self._spoke = 0.0  # when the receiver last heard of us
        self._paused = False
        self._due = math.inf  # the time of day for which we wait
        self._begun = False  # whether a session was ever open: before, a fault ends the daemon

    def run(self) -> None:
        """Lead, publish, stand by and connect again, until a signal or what is for people to mend ends it."""
        while not self._signals.stop:
            try:
                self._reread()
                if self._settings.disable:
                    raise Disabled
                with opened(self._config) as store:
                    self._monitor.connected(store)
                    try:
                        self._lead(store)
                    finally:
                        self._monitor.connected(None)
            except (ReceiverFatal, Disabled, IdsComeAgain):
                raise
            except EventlogError as fault:
                self._recover(fault)

    def _lead(self, store: Store) -> None:
        """Stand by until we lead, then run cycles."""
        name = f"{socket.gethostname()}:{os.getpid()}"
        while (leader := store.lead(name)) is None:
            if self._once:
                raise AnotherLeads(str(store.holder() or "by whom is not ours to see"))
            self._stand_by(store.holder())
            self._monitor.alive(STANDBY)
            self._signals.sleep(STANDBY)
            if self._interrupted:
                return
        report = self._monitor.progress
        with PublishingSession(self._config, store, leader, self._signals, self._alive, report) as session:
            logger.info("leading", extra={"leader": name, "epoch": leader.epoch})
            self._begun = True
            self._monitor.leading(True)
            try:
                self._cycles(session)
            finally:
                self._monitor.leading(False)

    def _stand_by(self, holder: Holder | None) -> None:
        """Say once for whom we stand by: of who has just taken the lock we can't know yet what it is."""
        if holder is not None and holder == self._seen and holder != self._told:
            level = logging.INFO if holder.publisher else logging.WARNING
            facts = {"role": holder.role, "session": holder.process, "publisher": holder.publisher}
            logger.log(level, "standing by: the leader's lock is held by %s", holder, extra=facts)
            self._told = holder
        self._seen = holder

    def _cycles(self, session: PublishingSession) -> None:
        self._spoke, nap = time.monotonic(), NAPS
        if self._due < math.inf:  # the session before this one broke while we waited
            self._sleep_until(session)
        while not self._interrupted:
            cycle = session.cycle()
            self._monitor.cycle(cycle if cycle.paused else session.progress)
            self._tell_pause(cycle.paused)
            self._alive()
            if self._once:
                self._end(cycle)
                return
            self._failures = self._failures + 1 if cycle.down else 0
            if cycle.documents:
                self._spoke, nap = time.monotonic(), NAPS
            if cycle.full and not cycle.down:
                continue
            self._rest(session, cycle, nap)
            nap = min(nap * 4, float(self._settings.polling_interval))

    def _tell_pause(self, paused: bool) -> None:
        """Say once that we rest, and once that we go on."""
        if paused != self._paused:
            logger.info("paused until `eventlog resume`; rows pile up" if paused else "going on")
        self._paused = paused

    def _alive(self) -> None:
        self._monitor.alive(DAY if self._settings.time_of_day else self._settings.polling_interval)

    def _end(self, cycle: Cycle) -> None:
        """After the one cycle of --once."""
        self._signals.request_stop()
        if cycle.down is not None:
            raise SinkDown(cycle.down)
        if cycle.unread:
            raise TablesUnread("; ".join(f"{table}: {why}" for table, why in cycle.unread.items()))

    def _rest(self, session: PublishingSession, cycle: Cycle, nap: float) -> None:
        """Sleep until the next cycle is due, or until somebody wakes us."""
        sleep = self._signals.sleep
        if cycle.down is not None:
            self._sleep(session, sleep, self._growing() if cycle.wait is None else cycle.wait)
        elif cycle.paused:
            self._sleep(session, sleep, PAUSED)
        elif self._settings.time_of_day is not None:
            self._sleep_until(session)
        elif session.bed.wakes:
            session.bed.announce()
            self._sleep(session, session.bed.sleep, nap)
            session.bed.rise()
        else:
            self._sleep(session, sleep, self._settings.polling_interval)

    def _sleep_until(self, session: PublishingSession) -> None:
        """Sleep until the next time of day, also where the clock is set or the machine rests meanwhile."""
        times = read_times(self._settings.time_of_day or "")
        while not self._interrupted:
            now = self._clock()
            self._due = min(self._due, now.timestamp() + seconds_until(times, now))
            left = self._due - now.timestamp()
            if left <= 0:
                break
            self._sleep(session, self._signals.sleep, min(left, LOOK))
            session.stay()
        self._due = math.inf

    def _sleep(self, session: PublishingSession, sleep: Callable[[float], bool], seconds: float) -> None:
        """Sleep so long, unless somebody wakes us; heartbeats go out meanwhile."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            silence = self._spoke + MINUTE * (self._settings.pub_heartbeat_interval or math.inf)
            if now >= silence:
                session.heartbeat()
                self._spoke = now
            elif sleep(min(until, silence) - now):
                return

    @property
    def _interrupted(self) -> bool:
        return self._signals.stop or self._signals.reload

    def _recover(self, fault: EventlogError) -> None:
        """After a fault: connect again, for ever; what is wrong from the start ends the daemon."""
        if self._once or (not self._begun and not isinstance(fault, ConnectionLost)):
            raise fault
        self._failures += 1
        self._monitor.fault()
        wait = self._growing()
        logger.warning("%s; going on in %.1f s", fault, wait, extra={"fault": type(fault).__name__})
        self._signals.sleep(wait)

    def _growing(self) -> float:
        return min(float(self._settings.reconnect), FIRST_WAIT * 2.0 ** min(self._failures - 1, 20))

    def _reread(self) -> None:
        """After SIGHUP: the settings as they are now; what is wrong with them leaves the old ones."""
        if not self._signals.reload:
            return
        self._signals.reload = False
        try:
            self._config = self._reload()
            self._settings = self._config.build(DaemonSettings)
            logger.info("settings are read again")
        except EventlogError as fault:
            logger.error("the settings stay as they were: %s", fault)
