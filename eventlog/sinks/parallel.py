"""The documents of a batch over several connections at once; replies come in the documents' order.

At most one document a connection has a reply that was not handed on. After a reply that halts, or when the
sink is stopped, no document begins; those on their way are awaited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Protocol

from eventlog.sinks.sink import OutgoingDocument, Reply


class Way(Protocol):
    """A way to the receiver: it carries one exchange after another."""

    def exchange(self, text: str) -> Reply:
        """Return the receiver's reply."""

    def close(self) -> None: ...


class ParallelSink:
    """A sink with several connections to one receiver."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._free = list(ways)
        self._pool = ThreadPoolExecutor(len(ways), "sink")
        self._most = len(ways)
        self._halted = False

    def deliver(self, documents: Sequence[OutgoingDocument]) -> Iterator[Reply]:
        self._halted = False
        if len(documents) == 1:  # it needs no thread
            yield self._converse(documents[0])
            return
        coming = iter(documents)
        begun: deque[Future[Reply]] = deque()
        try:
            while True:
                room = 0 if self._halted else self._most - len(begun)
                begun.extend(self._pool.submit(self._converse, one) for one in islice(coming, room))
                if not begun:
                    return
                yield begun.popleft().result()
        finally:
            wait(begun)

    def stop(self) -> None:
        """Begin no further document of the batch; the replies of those on their way still come."""
        self._halted = True

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None:
        """Wait for what is on its way, and end the ways."""
        self._pool.shutdown()
        for way in self._free:
            way.close()

    def _converse(self, document: OutgoingDocument) -> Reply:
        """Return the reply to a document, over a free way: there is one for each thread."""
        way = self._free.pop()
        try:
            reply = way.exchange(document.text)
        except BaseException:
            self._halted = True
            raise
        finally:
            self._free.append(way)
        if reply.halts:
            self._halted = True
        return reply
