"""The signals that end a run."""

from __future__ import annotations

import os
import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from eventlog.files.ready import ready


class StopRequested(KeyboardInterrupt):
    """A stop was requested where it ends the work at once; drivers end a statement that it interrupts."""


class Signals:
    """The signals of the process: each sets a mark and ends a sleep."""

    def __init__(self) -> None:
        self.stop = False
        self._interrupts = False
        self.pipe, self._writer = os.pipe()
        for end in (self.pipe, self._writer):
            weakref.finalize(self, os.close, end)
        os.set_blocking(self.pipe, False)
        os.set_blocking(self._writer, False)

    @contextmanager
    def caught(self) -> Iterator[Signals]:
        """Turn signals into marks while the block runs."""
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._stop) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Raise StopRequested at a signal to stop while the block runs, also in the midst of a statement."""
        self._interrupts = True
        try:
            yield
        finally:
            self._interrupts = False

    def request_stop(self) -> None:
        """Stop as a signal would."""
        self.stop = True
        self._wake()

    def drain(self) -> None:
        """Forget what woke us."""
        with suppress(BlockingIOError):
            os.read(self.pipe, 1024)

    def sleep(self, seconds: float) -> bool:
        """Sleep until a signal comes, or so long. Return whether a signal came."""
        if not self.stop:
            ready([self.pipe], seconds=seconds)
            self.drain()
        return self.stop

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.request_stop()
        if self._interrupts:
            self._interrupts = False  # once: what was begun is put away
            raise StopRequested

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._writer, b"!")
