"""The CPU that spans cost a publisher: off and on in turn, to a collector in a process of its own.

eventlog bench tracing [rounds]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eventlog.core.tables import Tables
from eventlog.demo.embedded import FAST, embedded_postgres
from eventlog.fold import Rules
from eventlog.publisher import tracing as module
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.deliver import CycleControl
from eventlog.publisher.fold import PickUpFolder
from eventlog.publisher.settings import PublisherSettings
from eventlog.publisher.tables import read_readable
from eventlog.publisher.tracing import tracing
from eventlog.sinks import open_sink
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import connect
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.schema import migrate
from eventlog.xds.settings import XdsSettings

_END = module.__dict__["_end"]
# The sink, the events of a document, the rows; whether each row has its own cycle, in which it is new.
CASES = [
    ("http", 1, 5_000, False),
    ("http", 1, 500, True),
    ("http", 100, 50_000, False),
    ("files", 1, 10_000, False),
    ("files", 10_000, 100_000, False),
]
FILL = (
    "insert into eventlog (event_type, table_name, table_key, column_name, old_value, new_value)"
    " select 3, 'usr', 'idu=' || n, 'fname', null, 'John' || n from generate_series(1, {0}) n"
)
SERVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"" if self.path == "/v1/traces" else b"<nds><output><status level='success'/></output></nds>"
        head = f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
        self.wfile.write(head.encode() + body)
    def log_message(self, *unused): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextmanager
def answering() -> Iterator[str]:
    """Run a process that answers documents and spans; yield its address."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.communicate()


class SpanClock:
    """The CPU seconds of the calls that make spans, and of the thread that sends them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def meter(self, traced: Any) -> None:
        """Count the calls of this tracing."""
        for name in ("_begin", "_cycle_span", "_start"):
            setattr(traced, name, self._metered(getattr(traced, name)))
        module.__dict__["_end"] = self._metered(_END)

    def _metered(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def metered(*words: Any, **options: Any) -> Any:
            begun = time.thread_time()
            self._depth += 1
            try:
                return call(*words, **options)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.thread_time() - begun

        return metered

    def add_worker(self) -> None:
        """Add the time of the thread that sends spans, which has not ended yet."""
        for thread in threading.enumerate():
            if thread.name.startswith("OtelBatch") and thread.ident is not None:
                self.seconds += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def cost_of_spans(rounds: int = 10) -> None:
    """Print the CPU of each case without spans and with them, the least of so many rounds."""
    with embedded_postgres(settings=FAST) as server, answering() as url:
        engine = connect(server.url, keep_open=4)
        log = Log(POSTGRESQL)
        migrate.install(engine, log)
        store = Store(engine, log)
        with engine.begin() as connection:
            connection.exec_driver_sql("create table usr (idu integer primary key, fname text)")
        leader = store.lead("bench")
        assert leader is not None
        with leader:
            for case in CASES:
                _cpu(store, leader.epoch, url, case, on=True)  # a daemon loads its libraries once in its life
                off, on, shares = [], [], []
                for _ in range(rounds):
                    off.append(_cpu(store, leader.epoch, url, case, on=False)[0])
                    seconds, share = _cpu(store, leader.epoch, url, case, on=True)
                    on.append(seconds)
                    shares.append(share)
                sink, events, rows, is_single = case
                kind = "one row a cycle" if is_single else "a backlog"
                before, after = (statistics.median(values) / rows * 1e6 for values in (off, on))
                print(
                    f"{sink:<6} {events:>6} events a document, {kind:<15}   {before:>7.1f} -> {after:>7.1f} "
                    f"µs CPU a row   spans by their own clock {statistics.median(shares):.1%}",
                    flush=True,
                )
        engine.dispose()


def _cpu(
    store: Store, epoch: int, url: str, case: tuple[str, int, int, bool], *, on: bool
) -> tuple[float, float]:
    """Return the CPU seconds of this process while it publishes and its spans leave, and the spans' share."""
    sink_name, events, rows, is_single = case
    with store.engine.begin() as connection:
        connection.exec_driver_sql("truncate eventlog")
        connection.exec_driver_sql("truncate eventlog_batch")
        connection.exec_driver_sql(FILL.format(0 if is_single else rows))
    with store.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find("usr").table])
    reader = PickUpFolder(
        tables, read_readable(store.engine, store.log, tables), Rules(), XdsSettings(events)
    )
    if on:
        os.environ |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }  # else most leave later
    try:
        with tempfile.TemporaryDirectory() as folder:
            sink = open_sink(sink_name, {"http_url": f"{url}/in", "files_folder": folder})
            settings = PublisherSettings(query_limit=10_000)
            with tracing("eventlog", sink_name) as traced:
                control, clock = CycleControl(), SpanClock()
                control.tracing = traced
                if on:
                    clock.meter(traced)
                publisher = Publisher(store, lambda: reader, sink, epoch, events, settings, control)
                begun, writing, sent = time.process_time(), 0.0, 0
                while sent < rows:
                    if is_single:
                        before = time.thread_time()
                        with store.engine.begin() as connection:
                            connection.exec_driver_sql(FILL.format(1))
                        writing += time.thread_time() - before
                    sent += publisher.cycle().rows
                sink.close()
                clock.add_worker()
            used = time.process_time() - begun - writing
    finally:
        os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
    return used, clock.seconds / used


if __name__ == "__main__":
    cost_of_spans(*map(int, sys.argv[1:]))
