"""The small HTTP port: /metrics, /healthz, /readyz, and the status page."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from eventlog.core.errors import Misuse
from eventlog.publisher.monitor import Monitor
from eventlog.web.monitor import CLOSING, MonitorSettings
from eventlog.web.monitor.board import EVERY, Board

logger = logging.getLogger("eventlog.monitor")


@contextmanager
def serving(settings: MonitorSettings, monitor: Monitor, board: Board | None = None) -> Iterator[int | None]:
    """The port is open while the block runs; its number, None where none is wanted."""
    host, port = settings.monitor_host, settings.monitor_port
    if not port:
        yield None
        return
    from eventlog.web.monitor.desk import monitor_app  # imports Starlette, uvicorn and Jinja2
    from eventlog.web.server import PausingConnection, serve

    ended, shown = threading.Event(), board or Board(monitor)
    with ExitStack() as stack:
        try:
            app = monitor_app(monitor, shown, host)
            address = stack.enter_context(serve(app, host, port, PausingConnection))
        except OSError as fault:
            raise Misuse(f"{host}, port {port} (the setting monitor-port): {fault.strerror}") from fault
        stack.callback(ended.set)
        if settings.readers:
            logger.warning("%s: %s", settings.readers, CLOSING)
        threading.Thread(target=_sample, args=(shown, ended), daemon=True).start()
        yield address.port


def _sample(board: Board, ended: threading.Event) -> None:
    while not ended.wait(EVERY):
        board.sample(time.monotonic())
