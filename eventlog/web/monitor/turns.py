"""The turns of visitors whose pages are made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from eventlog.web.app import Answer, busy

TOGETHER = 4  # pages that are made at a time
WAITING = 3  # requests of one visitor that wait for their turn
PATIENCE = 10.0  # seconds


class Turns:
    """The order in which pages are made: one at a time for each visitor, and a few for all of them."""

    def __init__(self) -> None:
        self._pages = asyncio.Semaphore(TOGETHER)
        self._visitors = WeakValueDictionary[str, asyncio.Lock]()
        self._asking: Counter[str] = Counter()

    async def run(self, answer: Answer, request: Request) -> Response:
        """Return the page in its turn, or a refusal if its visitor asks for too many at once."""
        visitor = request.client.host if request.client else ""
        async with self._turn(visitor) as is_free:
            return await run_in_threadpool(answer, request) if is_free else busy()

    @asynccontextmanager
    async def _turn(self, visitor: str) -> AsyncIterator[bool]:
        """Wait for the turn of a visitor. Yield False if too many wait, or for too long."""
        if self._asking[visitor] > WAITING:
            yield False
            return
        self._asking[visitor] += 1
        lock = self._visitors.setdefault(visitor, asyncio.Lock())
        try:
            async with AsyncExitStack() as turn:
                try:
                    async with asyncio.timeout(PATIENCE):
                        await turn.enter_async_context(lock)
                        await turn.enter_async_context(self._pages)
                except TimeoutError:
                    yield False
                    return
                yield True
        finally:
            self._asking -= Counter((visitor,))  # drops those that are zero
