"""Database servers that a test may kill, each with a folder of its own, and start again on the same data."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from eventlog.core.errors import EventlogError
from eventlog.embedded import FAST, embedded_postgres
from eventlog.sql.connect import connect
from eventlog.sql.mariadb import MARIADB
from eventlog.sql.postgresql import POSTGRESQL
from tests.kit.databases import LOGICAL, Database
from tests.kit.support import patient


class Killable(Protocol):
    """A server that can be killed and started again."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


class MariaServer:
    """A MariaDB from the programs of the system; what it has committed survives its process."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder, self._data, self._temporary = folder, folder / "data", folder / "temporary"
        self._options = options
        self._temporary.mkdir()
        self._password = secrets.token_hex(8)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self._user: dict[str, Any] = (
            {"user": "mysql", "group": "mysql", "extra_groups": ()} if os.getuid() == 0 else {}
        )
        if self._user:
            for place in (folder, self._temporary):
                shutil.chown(place, "mysql", "mysql")
        users = (
            f"create user eventlog@'%' identified by '{self._password}';\ngrant all on *.* to eventlog@'%';\n"
        )
        (folder / "users.sql").write_text(users)
        installation = self._run(
            *("mariadb-install-db", "--no-defaults", f"--datadir={self._data}", "--skip-test-db"),
            f"--tmpdir={self._temporary}",  # what begins clears that of others away
        )
        assert installation.wait() == 0, self._reported()
        self._server = self._serve(f"--init-file={folder / 'users.sql'}")

    @property
    def url(self) -> str:
        return f"mariadb+pymysql://eventlog:{self._password}@127.0.0.1:{self._port}/mysql"

    def kill(self) -> None:
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()

    def start(self) -> None:
        self._server = self._serve()

    def stop(self) -> None:
        self._server.terminate()
        self._server.wait()

    def _serve(self, *words: str) -> subprocess.Popen[bytes]:
        """Return the server, once it answers."""
        server = self._run(
            *("mariadbd", "--no-defaults", f"--datadir={self._data}", "--bind-address=127.0.0.1"),
            *(f"--port={self._port}", f"--socket={self._folder}/socket", "--skip-name-resolve"),
            f"--tmpdir={self._temporary}",
            *("--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"),
            *self._options,
            *words,
        )
        deadline = time.monotonic() + patient(300)
        while True:
            try:
                with connect(self.url).connect():
                    return server
            except EventlogError:
                assert server.poll() is None, self._reported()
                if time.monotonic() > deadline:
                    server.kill()
                    raise AssertionError(self._reported()) from None
                time.sleep(0.1)

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self._user
            )

    def _reported(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]


@contextmanager
def killable_postgres() -> Iterator[tuple[Killable, Database]]:
    settings = FAST | LOGICAL | {"max_connections": "50"}
    with embedded_postgres(settings=settings) as server:
        yield server, Database("killed PostgreSQL", make_url(server.url), POSTGRESQL)


@contextmanager
def killable_mariadb(*options: str) -> Iterator[tuple[Killable, Database]]:
    for program in ("mariadbd", "mariadb-install-db"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")
    folder = Path(tempfile.mkdtemp(prefix="eventlog-mariadb-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server = MariaServer(folder, *options)
        stack.callback(server.stop)
        engine = connect(server.url)
        with engine.begin() as connection:
            connection.execute(text("create database proof character set utf8mb4"))
        yield server, Database("killed MariaDB", make_url(server.url).set(database="proof"), MARIADB)


KILLABLE: dict[str, Callable[[], AbstractContextManager[tuple[Killable, Database]]]] = {
    "PostgreSQL": killable_postgres,
    "MariaDB": killable_mariadb,
}
