"""TPC-C, a workload of others, goes through triggers and a slot into a second database.

go-tpc loads one warehouse, and works on it for two minutes. Meanwhile a publisher writes documents into a
folder, and `apply` makes rows of them in a copy of the loaded database. Both are killed five times. At the
end the nine tables are equal, value by value, go-tpc finds its conditions true on the copy, and `eventlog
audit --state` holds. EVENTLOG_PROOF_SECONDS, _KILLS and _SEED make it shorter, or another.

EVENTLOG_TEST_URLS names the servers, because go-tpc needs TCP, and EVENTLOG_PEERS the folder of go-tpc.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, Engine

from eventlog.embedded import Server
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows
from tests.kit.support import patient, until
from tests.laws.tpcc import KEYS, KILLS, SECONDS, Judge, copied, finish, key_by_the_page, warehouse
from tests.world.commands import Commands
from tests.world.rig import SEED

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200 + 5 * SECONDS)]

WITH_DATA = tuple(table for table in KEYS if table != "new_order")  # which has only key columns
WAYS = {  # the commands that begin it, and the settings of all commands
    "values": ((("track", *WITH_DATA, "--insert", "1", "--update", "2"), ("track", "new_order")), {}),
    "query-back": ((("track", *KEYS),), {}),
    "slot": (
        (("install", "--mode", "slot"),),
        {"EVENTLOG_PUBLICATION_MODE": "slot", "EVENTLOG_SYNC_TABLES": " ".join(KEYS)},
    ),
}
CASES = [*(("PostgreSQL", way) for way in WAYS), ("MariaDB", "values"), ("MariaDB", "query-back")]
SETTINGS = {
    "EVENTLOG_SINK": "files",
    "EVENTLOG_FILES_FOLDER": "out",
    "EVENTLOG_POLLING_INTERVAL": "1",
    "EVENTLOG_BATCH_SIZE": "20",
    "EVENTLOG_TIME_SYNTAX": "3",
    "EVENTLOG_ALLOW_LOOPBACK": "true",  # go-tpc writes as the user of the publisher
}
CHANGE = "update item set i_price = i_price + 1 where i_id = 1"  # of the table that go-tpc only reads
PENDING = (
    "select count(case when status = 'N' then 1 end), count(case when table_name like '%item' then 1 end)"
    " from eventlog"
)
GROUP = "200"  # changes of a transaction of `apply`: few, so that a kill meets one
PAUSE = 0.5  # the longest time between something that comes and a kill


class Replica:
    """A publisher of a database into a folder, and `apply` of that folder into a copy."""

    def __init__(self, source: Database, copy: Database, folder: Path, way: str) -> None:
        self._dice = random.Random(SEED)
        self._begin, settings = WAYS[way]
        self._commands = Commands(source.address, folder, SETTINGS | settings)
        self._source, self._target, self._to = source.engine(), copy.engine(), copy.address
        self._out = folder / "out"
        self._publisher: subprocess.Popen[bytes] | None = None
        self._applying: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Begin to capture, start the publisher, and let it send a first change."""
        for words in self._begin:
            self.run(*words)
        self.run("check", "--write-tables", "tables.toml")
        self.run(*self._apply_words, os.devnull)  # makes the tables of its progress
        self._publish()
        run_statements(self._source, CHANGE)
        until(lambda: self.documents, fault=lambda: self.output)

    def run(self, *words: str, code: int = 0) -> None:
        """Run a command to its end."""
        assert self._commands.run(*words) == code, self.output

    @property
    def output(self) -> str:
        """Return all that the commands have written."""
        return self._commands.output()

    @property
    def documents(self) -> list[str]:
        """Return the documents in the order in which they left."""
        return sorted(f"out/{path.name}" for path in self._out.glob("*.xml"))

    def kill_publisher(self, working: subprocess.Popen[str]) -> bool:
        """Kill the publisher after a document, and start another; return False if go-tpc ended before."""
        before = len(self.documents)
        until(lambda: len(self.documents) > before or working.poll() is not None, fault=lambda: self.output)
        if len(self.documents) == before:
            return False
        time.sleep(self._dice.random() * PAUSE)
        assert self._publisher is not None
        self._publisher.send_signal(signal.SIGKILL)
        assert self._publisher.wait() == -signal.SIGKILL, self.output
        self._publish()
        return True

    def kill_apply(self, working: subprocess.Popen[str]) -> bool:
        """Kill `apply`, again if it had too little to do; return False if go-tpc ended before."""
        while not self._killed_apply():
            if working.poll() is not None:
                return False
        return True

    def _killed_apply(self) -> bool:
        """Kill `apply` a moment after it has committed; return whether it was still at work."""
        before = self._applied
        words = *self._apply_words, "--group", GROUP, *self.documents
        self._applying = apply = self._commands.start(*words)
        until(lambda: self._applied > before or apply.poll() is not None, fault=lambda: self.output)
        time.sleep(self._dice.random() * PAUSE / 10)
        apply.send_signal(signal.SIGKILL)
        assert apply.wait() in (0, -signal.SIGKILL), self.output
        return apply.returncode != 0

    def drain(self) -> None:
        """Publish what is left, up to a last change, and apply it."""
        run_statements(self._source, CHANGE)
        until(lambda: select_rows(self._source, PENDING) == [(0, 2)], 900, 1, lambda: self.output)
        assert self._publisher is not None
        self._publisher.terminate()
        assert self._publisher.wait(patient(60)) == 0, self.output
        before = -1
        while before < len(self.documents):
            before = len(self.documents)
            self.run("run", "--once")
        self.run(*self._apply_words, *self.documents)

    def close(self) -> None:
        """End what still runs."""
        for process in (self._publisher, self._applying):
            if process is not None:
                process.kill()
                process.wait()
        self._target.dispose()

    def _publish(self) -> None:
        self._publisher = self._commands.start("run")

    @property
    def _apply_words(self) -> tuple[str, ...]:
        return "apply", "--to-url", self._to, "--from", "xds", "--tables", "tables.toml"

    @property
    def _applied(self) -> int:
        """The number of events that the copy has."""
        return int(select_rows(self._target, "select count(*) from eventlog_applied_marks")[0][0])


@pytest.fixture(scope="module", params=["PostgreSQL", "MariaDB"])
def loaded(request: pytest.FixtureRequest, embedded: Server) -> Iterator[tuple[Database, URL]]:
    """A database with one warehouse, and its server."""
    with warehouse(request.param, embedded) as database_and_server:
        yield database_and_server


def first_difference(source: Engine, copy: Engine, table: str) -> str:
    """Return the first rows of a table that differ, and nothing if all are equal."""
    query = text(f"select * from {table} order by {KEYS[table]}")
    streamed = {"stream_results": True}
    with source.connect() as one_side, copy.connect() as other_side:
        rows = one_side.execute(query, execution_options=streamed)
        copied_rows = other_side.execute(query, execution_options=streamed)
        pairs = zip_longest(map(tuple, rows), map(tuple, copied_rows))
        return next((f"{table}: {row} is {copy}" for row, copy in pairs if row != copy), "")


@pytest.mark.parametrize(("loaded", "way"), CASES, indirect=["loaded"])
def test_a_copy_is_equal_after_kills(loaded: tuple[Database, URL], way: str, tmp_path: Path) -> None:
    with copied(*loaded) as source, copied(*loaded) as copy:
        engines = source.engine(), copy.engine()
        replica = Replica(source, copy, tmp_path, way)
        try:
            replica.run("install")
            replica.run("track", "history", code=1)
            for engine in engines:
                run_statements(engine, key_by_the_page(replica.output, source.dialect.name))
            replica.begin()
            work_and_kill(source, replica)
            replica.drain()
            replica.run("audit", "--delivered", "out", "--state")
        finally:
            replica.close()
        assert [first_difference(*engines, table) for table in KEYS] == [""] * len(KEYS)
        orders = "select count(*) from orders"
        assert select_rows(engines[1], orders) > select_rows(loaded[0].engine(), orders)
        # without an index go-tpc reads the history for each customer, which takes minutes
        run_statements(engines[1], "create index of_customer on history (h_c_w_id, h_c_d_id, h_c_id)")
        Judge(copy).run("check")
    assert "Traceback" not in replica.output


def work_and_kill(source: Database, replica: Replica) -> None:
    """Let go-tpc work, again if it ends before the kills, and kill the publisher and `apply`."""
    kills = 0
    while kills < KILLS:
        began = time.monotonic()
        working = Judge(source).start("run", "--interval", "24h", "--time", f"{SECONDS:.0f}s")
        try:
            while kills < KILLS and working.poll() is None:
                time.sleep(max(0.0, began + SECONDS * kills / KILLS - time.monotonic()))
                kills += replica.kill_publisher(working) and replica.kill_apply(working)
            finish(working, SECONDS + 60)
        finally:
            working.kill()
            working.wait()
