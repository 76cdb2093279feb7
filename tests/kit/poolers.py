"""PgBouncer next to a test's server, on a Unix socket of its own; Debian has it as a package.

Without the program a test is skipped with the reason; with EVENTLOG_TEST_ALL it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from eventlog.embedded import start_child
from tests.kit.support import until

_PORT = 6432  # names the socket
_USER = "nobody"  # it does not run for root
_CONFIGURATION = """
[databases]
* = {server}
[pgbouncer]
pool_mode = {mode}
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = scram-sha-256
auth_file = {folder}/users
"""


def _program() -> str:
    """Return the program; without it the test is over."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    if (program := shutil.which("pgbouncer", path=path)) is not None:
        return program
    reason = "PgBouncer is not installed"
    if os.environ.get("EVENTLOG_TEST_ALL"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def pooler(url: URL, mode: str) -> Iterator[URL]:
    """Start a pooler in this mode before the server of a database; yield the database's address there."""
    program = _program()
    host = url.host or url.query["host"]
    server = f"host={host}" + (f" port={url.port}" if url.port else "")
    identity: dict[str, Any] = {} if os.getuid() else {"user": _USER, "extra_groups": ()}
    with tempfile.TemporaryDirectory(prefix="eventlog-pooler-") as name:
        folder = Path(name)
        text = _CONFIGURATION.format(server=server, mode=mode, port=_PORT, folder=folder)
        (folder / "ini").write_text(text)
        (folder / "users").write_text(f'"{url.username}" "{url.password}"\n')
        if identity:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, _USER)
        with (folder / "log").open("wb") as log:
            command = [program, str(folder / "ini")]
            process = start_child(command, stdout=log, stderr=subprocess.STDOUT, **identity)
            try:
                until((folder / f".s.PGSQL.{_PORT}").exists)
                yield url.set(host=None, port=_PORT).update_query_dict({"host": name})
            finally:
                process.kill()
                process.communicate()
