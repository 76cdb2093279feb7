"""Runs that are stopped at every step in which something becomes durable, and at every record of a source.

A meter counts these steps: writes and syncs of files, renames and removals, statements and commits of a
database. A stop names one of them, and whether the run fails, dies or is ended there.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from enum import StrEnum
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy.pool.base import _ConnectionRecord

from eventlog.core.errors import EventlogError, Refused
from eventlog.files.durable import NamedFile
from eventlog.transfer.report import Report
from tests.laws.resume.power import Disk, unsynced


class How(StrEnum):
    """The ways in which a run is stopped."""

    ENDED = "ended"  # as a signal ends it, after a whole delivery
    FAILED = "failed"  # by an error of the disk or the connection
    INTERRUPTED = "interrupted"  # by an exception that no one expects
    KILLED = "killed"  # with the process
    DARK = "dark"  # with the machine, whose disk loses what was not brought to it


class When(StrEnum):
    """The moment of a step at which a run is stopped."""

    BEFORE = "before"
    WITHIN = "within"  # a part of a write is on disk
    AFTER = "after"


class Stop(NamedTuple):
    """A point at which a run is stopped."""

    how: How
    number: int  # of the step or of the record, from 0 on
    when: When | None = None  # None for a record that the source hands out

    def __str__(self) -> str:
        place = "record" if self.when is None else f"{self.when}-step"
        return f"{self.how}-{place}-{self.number}"


class Interrupted(BaseException):
    """An exception that no code under test expects."""


class Step(NamedTuple):
    """A step that was counted: its name, and whether a part of it can be done."""

    name: str
    divisible: bool


class Meter:
    """A counter of steps and records that stops the run at one of them. Steps of several threads are done one
    after another, in an order that no one chooses."""

    def __init__(self, stop: Stop | None = None) -> None:
        self._lock = threading.RLock()
        self.steps: list[Step] = []
        self.records = 0
        self.is_ended = False
        self._stop = stop
        self._is_paused = False
        self.disk = Disk(stop.number) if stop is not None and stop.how is How.DARK else None

    @property
    def is_reached(self) -> bool:
        """Return whether the run was stopped, or is not to be."""
        return self._stop is None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing inside the block."""
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    def record(self) -> None:
        """Count a record that the source handed out."""
        stop = self._stop
        if stop is not None and stop.when is None and stop.number == self.records:
            self._end(stop, KeyboardInterrupt)
        self.records += 1

    def step(
        self,
        name: str,
        work: Callable[[], Any],
        part: Callable[[], Any] | None = None,
        fail: Callable[[], BaseException] = lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    ) -> Any:
        """Do a step, unless the run is stopped at it; `part` does some of it."""
        with self._lock:
            return self._step(name, work, part, fail)

    def _step(
        self,
        name: str,
        work: Callable[[], Any],
        part: Callable[[], Any] | None,
        fail: Callable[[], BaseException],
    ) -> Any:
        if self._is_paused:
            return work()
        stop, number = self._stop, len(self.steps)
        self.steps.append(Step(name, part is not None))
        if stop is None or stop.when is None or stop.number != number:
            return work()
        if stop.when is When.WITHIN and part is not None:
            part()
        elif stop.when is When.AFTER:
            with suppress(OSError):  # a file to be removed may not exist
                work()
        self._end(stop, fail)
        return None

    def _end(self, stop: Stop, fail: Callable[[], BaseException]) -> None:
        self._stop = None
        match stop.how:
            case How.ENDED:
                self.is_ended = True
            case How.DARK:
                assert self.disk is not None
                self.disk.fail()
                os.kill(os.getpid(), signal.SIGKILL)
            case How.KILLED:
                os.kill(os.getpid(), signal.SIGKILL)
            case How.INTERRUPTED:
                raise Interrupted
            case How.FAILED:
                raise fail()


class MeteredReport(Report):
    """A report that counts the records of a source."""

    def __init__(self, meter: Meter, show: Callable[[Refused], None], rejects: Any = None) -> None:
        super().__init__(show, rejects, inform=lambda text: None)
        self._meter = meter

    def accepted(self, records: Iterable[Any]) -> Iterator[Any]:
        """Yield the records that were not refused."""
        for record in super().accepted(records):
            self._meter.record()
            yield record


@contextmanager
def metered_files(meter: Meter) -> Iterator[None]:
    """Count the steps on files inside the block."""
    disk = nullcontext() if meter.disk is None else unsynced(meter.disk)
    with disk, pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "link", "replace", "rename", "unlink", "ftruncate"):
            patch.setattr(os, name, _counted(meter, name, getattr(os, name)))
        written, write = NamedFile.write, os.write

        def write_some(file: NamedFile, data: Any) -> int:
            part = memoryview(data)[: len(data) // 2]
            return int(meter.step("write", lambda: written(file, data), lambda: written(file, part)))

        def write_descriptor(file: int, data: Any) -> int:
            part = memoryview(data)[: len(data) // 2]
            return int(meter.step("write", lambda: write(file, data), lambda: write(file, part)))

        patch.setattr(NamedFile, "write", write_some)
        patch.setattr(os, "write", write_descriptor)
        yield


def _counted(meter: Meter, name: str, function: Any) -> Any:
    return lambda *args, **named: meter.step(name, lambda: function(*args, **named))


@contextmanager
def metered_statements(meter: Meter) -> Iterator[None]:
    """Count the statements and commits on PostgreSQL; one that fails loses its connection."""
    with pytest.MonkeyPatch.context() as patch:
        for cursor in (psycopg.Cursor, psycopg.ServerCursor):
            for name in ("execute", "executemany"):
                function = getattr(cursor, name)
                patch.setattr(cursor, name, _sent(meter, function, lambda cursor: cursor.connection))
            patch.setattr(cursor, "copy", _sent(meter, cursor.copy, lambda cursor: cursor.connection))
        patch.setattr(
            psycopg.Connection,
            "commit",
            _sent(meter, psycopg.Connection.commit, lambda connection: connection),
        )
        patch.setattr(_ConnectionRecord, "__init__", _uncounted(meter, _ConnectionRecord.__init__))
        yield


@contextmanager
def metered_files_and_statements(meter: Meter) -> Iterator[None]:
    """Count both."""
    with metered_files(meter), metered_statements(meter):
        yield


def _sent(meter: Meter, function: Any, connection_of: Callable[[Any], Any]) -> Any:
    def counted(of: Any, *args: Any, **named: Any) -> Any:
        def fail() -> BaseException:
            connection_of(of).pgconn.finish()
            return psycopg.OperationalError("the connection is cut")

        name = str(args[0])[:60] if args else function.__name__
        return meter.step(name, lambda: function(of, *args, **named), fail=fail)

    return counted


def _uncounted(meter: Meter, function: Any) -> Any:
    """Return a function whose steps are not counted: it opens a connection, where nothing was done yet."""

    def run(*args: Any, **named: Any) -> Any:
        with meter.paused():
            return function(*args, **named)

    return run


def stops(meter: Meter, hows: Sequence[How] = tuple(How)) -> list[Stop]:
    """Return every point at which a run with these counts can be stopped."""
    points = [Stop(how, n) for how in hows if how is not How.FAILED for n in range(meter.records)]
    for number, step in enumerate(meter.steps):
        whens = tuple(When) if step.divisible else (When.BEFORE, When.AFTER)
        points += [Stop(how, number, when) for how in hows if how is not How.ENDED for when in whens]
    return points


def stop_at(work: Callable[[Meter], None], stop: Stop, *, is_certain: bool = True) -> None:
    """Do the work until it is stopped; in a process of its own if that ends.

    Raise AssertionError if it ends before a stop that is certain.
    """
    meter = Meter(stop)
    if stop.how not in (How.KILLED, How.DARK):
        with suppress(Interrupted, OSError, EventlogError, KeyboardInterrupt):
            work(meter)
        assert meter.is_reached or not is_certain, f"{stop} was never reached"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the child does not use
        child = os.fork()
    if not child:
        try:
            work(meter)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or (status == 0 and not is_certain), (
        f"{stop}: the child ended with {status}"
    )
