"""The next rows, read and folded while those before them go out: the database and we work at one time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from eventlog.publishing.reading import Reading

FRESH = 10.0  # seconds for which a reading may wait


class Ahead:
    """At most one reading under way, in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "read-ahead")
        self._coming: Future[Reading] | None = None
        self._begun = 0.0

    def start(self, read: Callable[[], Reading]) -> None:
        """Begin to read."""
        self._begun = time.monotonic()
        self._coming = self._pool.submit(read)

    def take(self) -> Reading | None:
        """What was read, or what went wrong; None where nothing was, or too long ago."""
        if self._coming is None or time.monotonic() > self._begun + FRESH:
            self.drop()
            return None
        coming, self._coming = self._coming, None
        return coming.result()

    def drop(self) -> None:
        """Forget what was read."""
        if self._coming is not None:
            wait([self._coming])
            self._coming = None

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
