"""Turns: bounds what the visitors of a page may use of the process that serves it."""

from __future__ import annotations

import threading
from collections import Counter

from eventlog.web.server import BUSY, Answerer, HttpReply, Request

TOGETHER = 4  # pages that are made at a time
WAITING = 3  # requests of one visitor that wait for their turn
PATIENCE = 10.0  # seconds


class Turns:
    """Makes one page at a time for each visitor, and a few for all of them."""

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self._working: set[str] = set()  # visitors
        self._waiting: Counter[str] = Counter()

    def answer(self, request: Request) -> HttpReply | None:
        """Return the page in its turn, or a refusal if its visitor asks for too many at once."""
        visitor = request.visitor
        if not self._begin(visitor):
            return BUSY
        try:
            return self._answer(request)
        finally:
            with self._changed:
                self._working.discard(visitor)
                self._changed.notify_all()

    def _begin(self, visitor: str) -> bool:
        """Wait for the turn of a visitor. Return False if too many wait, or for too long."""
        with self._changed:
            if self._waiting[visitor] >= WAITING:
                return False
            self._waiting[visitor] += 1
            free = self._changed.wait_for(lambda: self._is_free(visitor), PATIENCE)
            self._waiting -= Counter((visitor,))  # drops those that are zero
            if free:
                self._working.add(visitor)
            return free

    def _is_free(self, visitor: str) -> bool:
        return visitor not in self._working and len(self._working) < TOGETHER
