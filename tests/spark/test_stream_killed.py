"""A stream into tables under load, which is killed: no table is ever at a part of a transaction."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.installed import ROOT
from tests.spark.messages import deliver, message

pytestmark = pytest.mark.long

KILLS = 5
PARTITIONS = 3
_PATIENCE = 400  # seconds
Row = dict[str, Any]


class Source:
    """Move money between two accounts: a transaction adds two entries and deletes two old ones."""

    def __init__(self) -> None:
        self.accounts: dict[int, Row] = {}
        self.entries: dict[int, Row] = {}
        self._dice = random.Random(18)
        self._number = self.transactions = self._files = 0
        self._waiting: list[list[tuple[str, int, int, bytes]]] = [[] for _ in range(PARTITIONS)]
        self._ends = [0] * PARTITIONS

    def move(self) -> None:
        """One more transaction, whose messages any partition may get."""
        self.transactions += 1
        n = self.transactions
        changes: list[tuple[str, str, Row]] = []
        for account, amount in ((1, -n), (2, n)):
            row = {"id": account, "owner": f"Jack {n}", "amount": amount}
            changes.append(("account", "UPDATE" if account in self.accounts else "INSERT", row))
            self.accounts[account] = row
        for account, amount in ((1, -1), (2, 1)):
            entry = {"id": 2 * n + account, "account": account, "amount": amount}
            changes.append(("entry", "INSERT", entry))
            self.entries[entry["id"]] = entry
        changes += [("entry", "DELETE", self.entries.pop(2 * (n - 3) + a)) for a in (1, 2) if n > 3]
        for counter, (table, op, row) in enumerate(changes, 1):
            self._number += 1
            value = message(table, op, row, self._number, n, counter, counter == len(changes))
            partition = self._dice.randrange(PARTITIONS)
            self._waiting[partition].append(("bank", partition, self._ends[partition], value))
            self._ends[partition] += 1

    def write(self, inbox: Path, most: int) -> None:
        """A file of messages, as a batch of Kafka's source has them: of each partition that has some."""
        taken = [waiting[: self._dice.randint(1, most)] for waiting in self._waiting]
        for waiting, some in zip(self._waiting, taken, strict=True):
            del waiting[: len(some)]
        self._files += 1
        deliver(inbox, f"{self._files:04}", list(chain.from_iterable(taken)))

    @property
    def empty(self) -> bool:
        return not any(self._waiting)


def rows(folder: Path, table: str) -> list[Row]:
    if not DeltaTable.is_deltatable(str(folder / table)):
        return []
    found: list[Row] = DeltaTable(folder / table).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def check(lake: Path) -> None:
    """Each table is at the end of a transaction."""
    accounts, entries = rows(lake, "account"), rows(lake, "entry")
    assert sum(row["amount"] for row in accounts) == 0
    assert len({row["owner"] for row in accounts}) <= 1
    assert len(entries) in (0, 2, 4, 6)
    assert set(Counter((row["id"] - row["account"]) // 2 for row in entries).values()) <= {2}


@contextmanager
def job(inbox: Path, folder: Path, form: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.spark.stream_job", str(inbox), str(folder), form]
    known = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'spark'}"}
    with (folder / "log").open("ab") as said:
        running = subprocess.Popen(
            command, cwd=ROOT, env=known, stdout=said, stderr=said, start_new_session=True
        )
    try:
        yield running
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def until(met: Callable[[], bool], running: subprocess.Popen[bytes], work: Callable[[], None]) -> None:
    """Work goes on until it is met, or the job ends."""
    deadline = time.monotonic() + _PATIENCE
    while not met() and running.poll() is None:
        assert time.monotonic() < deadline
        work()
        time.sleep(0.4)


@pytest.mark.skipif(not os.environ.get("CI_FULL"), reason="CI_FULL=1 kills a stream: six starts of Spark")
@pytest.mark.timeout(1800)
def test_killed_under_load_each_table_is_always_whole_and_equals_the_source(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    source, inbox, lake = Source(), tmp_path / "in", tmp_path / "lake"
    inbox.mkdir()

    def load() -> None:
        source.move()
        if source.transactions % 8 == 1:
            source.write(inbox, 30)
        check(lake)

    def version() -> int:
        return DeltaTable(lake / "entry").version() if (lake / "entry").is_dir() else 0

    def further(than: int) -> bool:
        return version() > than

    load()
    for kill in range(KILLS):
        with job(inbox, tmp_path, "follow" if kill else "between") as running:
            begun = version()
            until(partial(further, begun + 1 if kill else sys.maxsize), running, load)
            assert kill or running.wait() == -signal.SIGKILL
        check(lake)
    while not source.empty:
        source.write(inbox, 1000)
    with job(inbox, tmp_path, "end") as running:
        until(lambda: False, running, lambda: check(lake))
        assert running.wait() == 0, (tmp_path / "log").read_text()[-2000:]
    assert rows(lake, "account") == list(source.accounts.values())
    assert rows(lake, "entry") == list(source.entries.values())
