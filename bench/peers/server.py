"""The PostgreSQL of one run: Debian's with PgQ where it can be had, else the embedded one; on loopback.

Its `wal_level` is logical, for all that is measured on it alike, and it waits for no disk: it compares work,
not the moods of a disk. Its data are scratch.
"""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import URL, Engine, make_url

from bench.peers.installing import Skipped, pgq
from eventlog import embedded
from eventlog.core.errors import EventlogError
from eventlog.sql.connect import connect

SETTINGS = embedded.FAST | {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "jit": "off",
}


@contextmanager
def peers_server(settings: dict[str, str] | None = None) -> Iterator[URL]:
    """Yield the server's URL, over TCP."""
    chosen = SETTINGS | (settings or {}) | {"port": str(_free_port())}
    try:
        programs = pgq()
    except Skipped:
        with embedded.embedded_postgres(settings=chosen) as server:
            yield _over_tcp(server, chosen)
        return
    with tempfile.TemporaryDirectory(prefix="eventlog-", ignore_cleanup_errors=True) as folder:
        server = embedded.Server(embedded._adopt(Path(folder).resolve()), chosen, programs)
        try:
            server.start()
        except (EventlogError, OSError) as fault:
            raise Skipped(f"Debian's server in EVENTLOG_PEERS does not start: {fault}") from fault
        try:
            yield _over_tcp(server, chosen)
        finally:
            server.stop()


@contextmanager
def own_database(url: URL) -> Iterator[Engine]:
    """A new database of that server, as long as the block."""
    name = f"peers_{secrets.token_hex(4)}"
    server = connect(url)
    _run(server, f"create database {name}")
    engine = connect(url.set(database=name), keep_open=4)
    try:
        yield engine
    finally:
        engine.dispose()
        _run(server, f"drop database {name}")
        server.dispose()


def _run(engine: Engine, statement: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))


def _over_tcp(server: embedded.Server, settings: dict[str, str]) -> URL:
    address = make_url(server.url)
    return address.set(host="127.0.0.1", port=int(settings["port"]), query={})


def _free_port() -> int:
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return int(attempt.getsockname()[1])
