"""TPC-C by go-tpc: a database with one warehouse, the work on it, and what is known of its tables.

EVENTLOG_TEST_URLS names the servers, because go-tpc needs TCP, and EVENTLOG_PEERS the folder of go-tpc.
EVENTLOG_PROOF_SECONDS, _KILLS and _SEED make a run shorter, or another.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL

from eventlog.embedded import Server
from tests.kit import judges
from tests.kit.databases import AT_HAND, Database, server_url, temporary_database
from tests.kit.statements import run_statements
from tests.kit.support import patient
from tests.world.rig import ROOT

SECONDS = float(os.environ.get("EVENTLOG_PROOF_SECONDS", "120"))
KILLS = int(os.environ.get("EVENTLOG_PROOF_KILLS", "5"))

KEYS = {
    "warehouse": "w_id",
    "district": "d_w_id, d_id",
    "customer": "c_w_id, c_d_id, c_id",
    "history": "h_id",
    "new_order": "no_w_id, no_d_id, no_o_id",
    "orders": "o_w_id, o_d_id, o_id",
    "order_line": "ol_w_id, ol_d_id, ol_o_id, ol_number",
    "stock": "s_w_id, s_i_id",
    "item": "i_id",
}
ALTERED = re.compile(r"^alter table TABLE add ID .*;  -- (.*)$", re.MULTILINE)  # in the page about keys
PAGE = re.compile(r"docs/[\w/]+\.md")
DRIVERS = {"postgresql": ("postgres", "--conn-params", "sslmode=disable"), "mariadb": ("mysql",)}


class Judge:
    """go-tpc on a database."""

    def __init__(self, database: Database) -> None:
        url, (driver, *options) = database.url, DRIVERS[database.dialect.name]
        assert url.password is not None
        self._command = [str(judges.go_tpc()), "tpcc", "--driver", driver, *options, "--host", str(url.host)]
        self._command += [
            "--port",
            str(url.port),
            "--user",
            str(url.username),
            "--password",
            str(url.password),
        ]
        self._command += ["--db", str(url.database), "--warehouses", "1", "--threads", "2"]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Return a command of go-tpc that runs on."""
        return subprocess.Popen(
            [*self._command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *words: str, patience: float = 600) -> None:
        """Run a command of go-tpc to its end."""
        finish(self.start(*words), patience)


def finish(process: subprocess.Popen[str], patience: float) -> None:
    """Wait for a command of go-tpc, which reports faults in its output alone."""
    try:
        output, _ = process.communicate(timeout=patient(patience))
    finally:
        process.kill()
    assert process.returncode == 0, output[-2000:]
    assert not re.search("fail|error", output, re.IGNORECASE), output[-2000:]


@contextmanager
def warehouse(title: str, embedded: Server) -> Iterator[tuple[Database, URL]]:
    """Make a database with one warehouse; return it and its server."""
    name = next((name for name in AT_HAND if name.startswith(f"{title} at ")), None)
    if name is None:
        judges.absent(title, "EVENTLOG_TEST_URLS names none, and go-tpc needs one on TCP")
    with server_url(name, embedded) as url, temporary_database(name, url) as database:
        Judge(database).run("prepare", "--no-check")
        yield database, url


@contextmanager
def copied(database: Database, server: URL) -> Iterator[Database]:
    """Make a copy of a database, with all its rows."""
    has_templates = database.dialect.name == "postgresql"
    template = str(database.url.database) if has_templates else "template0"
    with temporary_database(database.name, server, template=template) as copy:
        for table in () if has_templates else KEYS:
            place = f"{database.url.database}.{table}"
            statements = f"create table {table} like {place}", f"insert into {table} select * from {place}"
            run_statements(copy.engine(), *statements)
        yield copy


def key_by_the_page(refusal: str, dialect: str) -> str:
    """Return the statement that gives `history` a key, from the page that the refusal of `track` names."""
    lines = ALTERED.finditer((ROOT / PAGE.findall(refusal)[-1]).read_text())
    (statement,) = (line[0] for line in lines if dialect in line[1].lower().split(", "))
    return statement.partition(";")[0].replace("TABLE", "history").replace("ID", KEYS["history"])
