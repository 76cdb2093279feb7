"""The CPU that spans cost a publisher: off and on in turn, to a collector in a process of its own.

eventlog bench tracing [turns]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from eventlog.core.tables import Tables
from eventlog.embedded import FAST, embedded_postgres
from eventlog.fold import Rules
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.publisher_tables import read_readable
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.delivery import CycleHooks
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.tracing import tracing
from eventlog.sinks import open_sink
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import connect
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.schema import migrate
from eventlog.xds.xds_settings import XdsSettings

Case = tuple[str, int, int, bool]
# The sink, the events of a document, the rows; whether each row has its own cycle, in which it is new.
CASES: list[Case] = [
    ("http", 1, 10_000, False),
    ("http", 1, 2_000, True),
    ("http", 100, 100_000, False),
    ("files", 1, 20_000, False),
    ("files", 10_000, 200_000, False),
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


def cost_of_spans(turns: int = 24) -> None:
    """Print the CPU of each case without spans and with them, in so many turns: off, on, on, off."""
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
                seconds: dict[bool, list[float]] = {False: [], True: []}
                _cpu(store, leader.epoch, url, case, on=True)  # a daemon loads its libraries once in its life
                for turn in range(turns):
                    is_on = turn % 4 in (1, 2)
                    seconds[is_on].append(_cpu(store, leader.epoch, url, case, on=is_on))
                _print(case, seconds[False], seconds[True])
        engine.dispose()


def _print(case: Case, off: list[float], on: list[float]) -> None:
    sink, events, rows, is_single = case
    kind = "one row a cycle" if is_single else "a backlog"
    middle = [statistics.median(values) / rows * 1e6 for values in (off, on)]
    least, total = min(on) / min(off) - 1, sum(on) / sum(off) - 1
    print(
        f"{sink:<6} {events:>6} events a document, {kind:<15}   {middle[0]:>7.1f} -> {middle[1]:>7.1f} µs "
        f"CPU a row   medians {middle[1] / middle[0] - 1:+.1%}, least {least:+.1%}, sums {total:+.1%}",
        flush=True,
    )


def _cpu(store: Store, epoch: int, url: str, case: Case, *, on: bool) -> float:
    """Return the CPU seconds of this process while it publishes and its spans leave."""
    sink_name, events, rows, is_single = case
    with store.engine.begin() as connection:
        connection.exec_driver_sql("truncate eventlog")
        connection.exec_driver_sql("truncate eventlog_batch")
        connection.exec_driver_sql(FILL.format(0 if is_single else rows))
    with store.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find("usr").table])
    reader = PickUpFold(tables, read_readable(store.engine, store.log, tables), Rules(), XdsSettings(events))
    settings, control = PublisherSettings(query_limit=10_000), CycleHooks()
    if on:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
    try:
        with tempfile.TemporaryDirectory() as folder:
            sink = open_sink(sink_name, {"http_url": f"{url}/in", "files_folder": folder})
            with tracing("eventlog", sink_name) as control.tracing:
                publisher = Publisher(store, lambda: reader, sink, epoch, events, settings, control)
                begun, writing, sent = time.process_time(), 0.0, 0
                while sent < rows:
                    if is_single:
                        before = time.thread_time()
                        with store.engine.begin() as connection:
                            connection.exec_driver_sql(FILL.format(1))
                        writing += time.thread_time() - before
                    sent += publisher.cycle().rows
            used = time.process_time() - begun - writing
            sink.close()
    finally:
        os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
    return used


if __name__ == "__main__":
    cost_of_spans(*map(int, sys.argv[1:]))
