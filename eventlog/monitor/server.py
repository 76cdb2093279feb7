"""The small HTTP port: /metrics, /healthz, /readyz."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from eventlog.errors import Misuse
from eventlog.monitor import MonitorSettings
from eventlog.monitor.metrics import CONTENT_TYPE
from eventlog.monitor.monitor import Monitor

_SILENCE = 10.0  # seconds that a client may take


class Page(NamedTuple):
    """What is answered."""

    status: int
    content_type: str
    body: str


def _health(good: bool, word: str) -> Page:
    return Page(200 if good else 503, "text/plain; charset=utf-8", f"{word if good else 'not ' + word}\n")


PAGES: dict[str, Callable[[Monitor], Page]] = {
    "/metrics": lambda monitor: Page(200, CONTENT_TYPE, monitor.text()),
    "/healthz": lambda monitor: _health(monitor.healthy(), "alive"),
    "/readyz": lambda monitor: _health(monitor.ready and monitor.healthy(), "ready"),
}


@contextmanager
def serving(settings: MonitorSettings, monitor: Monitor) -> Iterator[int | None]:
    """The port is open while the block runs; its number, None where none is wanted."""
    if not settings.monitor_port:
        yield None
        return
    try:
        server = ThreadingHTTPServer((settings.monitor_host, settings.monitor_port), _handler(monitor))
    except OSError as fault:
        raise Misuse(f"monitor-port {settings.monitor_port}: {fault.strerror}") from fault
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _handler(monitor: Monitor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENCE
        server_version = "eventlog"
        sys_version = ""

        def do_GET(self) -> None:
            page = PAGES.get(self.path.partition("?")[0], _missing)(monitor)
            body = page.body.encode()
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes are no news."""

    return Handler


def _missing(monitor: Monitor) -> Page:
    return Page(404, "text/plain; charset=utf-8", f"there are {', '.join(PAGES)}\n")
