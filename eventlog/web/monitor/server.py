"""The small HTTP port: /metrics, /healthz, /readyz, and the status page."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eventlog.core.errors import Misuse
from eventlog.publisher.monitor import Monitor
from eventlog.web.monitor import MonitorSettings, desk
from eventlog.web.monitor.board import EVERY, Board
from eventlog.web.server import BUSY, CLIENTS, PLAIN, Answerer, HttpReply, PageServer, Request, asset

TOGETHER = 4  # pages that are made at a time
WAITING = 3  # requests of one visitor that wait for their turn
PATIENCE = 10.0  # seconds


def _health(good: bool, word: str) -> HttpReply:
    return HttpReply(f"{word if good else 'not ' + word}\n", PLAIN, 200 if good else 503)


PAGES: dict[str, Callable[[Monitor, Request], HttpReply]] = {
    "/metrics": lambda monitor, request: HttpReply(*monitor.exposition(request.headers.get("accept", ""))),
    "/healthz": lambda monitor, _: _health(monitor.healthy(), "alive"),
    "/readyz": lambda monitor, _: _health(monitor.ready and monitor.healthy(), "ready"),
}


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
        if not self._wait_for_turn(visitor):
            return BUSY
        try:
            return self._answer(request)
        finally:
            with self._changed:
                self._working.discard(visitor)
                self._changed.notify_all()

    def _wait_for_turn(self, visitor: str) -> bool:
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


@contextmanager
def serving(settings: MonitorSettings, monitor: Monitor, board: Board | None = None) -> Iterator[int | None]:
    """The port is open while the block runs; its number, None where none is wanted."""
    if not settings.monitor_port:
        yield None
        return
    shown = board or Board(monitor)
    turns = Turns(lambda request: desk.answer(shown, request))

    def answer(request: Request) -> HttpReply | None:
        show = PAGES.get(request.path)
        return show(monitor, request) if show else asset(request) or turns.answer(request)

    try:
        server = PageServer(settings.monitor_host, settings.monitor_port, answer, share=CLIENTS // 2)
    except OSError as fault:
        host, port = settings.monitor_host, settings.monitor_port
        raise Misuse(f"{host}, port {port} (the setting monitor-port): {fault.strerror}") from fault
    ended = threading.Event()
    threads = [
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True),
        threading.Thread(target=_sample, args=(shown, ended), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield server.server_address[1]
    finally:
        ended.set()
        server.shutdown()
        server.server_close()


def _sample(board: Board, ended: threading.Event) -> None:
    while not ended.wait(EVERY):
        board.sample(time.monotonic())
