"""The small HTTP port: /metrics, /healthz, /readyz, and the status page."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eventlog.core.errors import Misuse
from eventlog.publisher.metrics import CONTENT_TYPE
from eventlog.publisher.monitor import Monitor
from eventlog.web.monitor import MonitorSettings, desk
from eventlog.web.monitor.board import EVERY, Board
from eventlog.web.request_limits import Turns
from eventlog.web.server import CLIENTS, PLAIN, HttpReply, PageServer, Request, asset


def _health(good: bool, word: str) -> HttpReply:
    return HttpReply(f"{word if good else 'not ' + word}\n", PLAIN, 200 if good else 503)


PAGES: dict[str, Callable[[Monitor], HttpReply]] = {
    "/metrics": lambda monitor: HttpReply(monitor.text(), CONTENT_TYPE),
    "/healthz": lambda monitor: _health(monitor.healthy(), "alive"),
    "/readyz": lambda monitor: _health(monitor.ready and monitor.healthy(), "ready"),
}


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
        return show(monitor) if show else asset(request) or turns.answer(request)

    try:
        server = PageServer(settings.monitor_host, settings.monitor_port, answer, share=CLIENTS // 2)
    except OSError as fault:
        raise Misuse(f"monitor-port {settings.monitor_port}: {fault.strerror}") from fault
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
