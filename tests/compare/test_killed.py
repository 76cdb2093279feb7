"""Publishers that compare are killed anywhere, and their server too: the replica is the table in the end.

EVENTLOG_PROOF_SECONDS makes it longer, _SEED another.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import EventlogError
from tests.world.killable import KILLABLE
from tests.world.replica import Moody, Replica, WritersOfRows
from tests.world.rig import SECONDS, SEED, Arrivals

pytestmark = pytest.mark.long

PATIENCE = 60.0
COMPARING = ("--mode", "compare", "--sync-tables", "usr", "--sink", "http", "--http-timeout", "2")
RETRIES = ("--reconnect", "1", "--retry-wait", "0.1", "--retry-longest", "1")


class Untracked(WritersOfRows):
    """The writers to a table without triggers."""

    choice = None


@pytest.mark.timeout(300 + 12 * SECONDS)
def test_the_replica_is_the_table_whoever_is_killed(tmp_path: Path) -> None:
    dice, replica, arrivals = random.Random(SEED), Replica(), Arrivals()
    arrivals.behave = Moody(replica, random.Random(SEED + 1))
    product = next(iter(KILLABLE))

    def start(rig: Any) -> subprocess.Popen[bytes]:
        found: subprocess.Popen[bytes] = rig.start(
            *COMPARING, *RETRIES, "--http-url", arrivals.url, "--batch-size", dice.choice(("1", "3", "50"))
        )
        return found

    with KILLABLE[product]() as (server, database):
        rig = Untracked(database, tmp_path)
        try:
            start(rig)
            start(rig)
            begun, kills = time.monotonic(), 0
            with rig.writing():
                while _goes_on(replica, time.monotonic() - begun):
                    time.sleep(dice.uniform(1, 5))
                    kills += 1
                    if kills % 4:
                        rig.kill_one()
                        start(rig)
                    else:
                        server.kill()
                        server.start()
            truth = _settled(rig, replica)
        finally:
            rig.close()
            arrivals.close()
            print(f"seed {SEED}, {product}: killed {kills} times, {dict(replica.counts)}")
    assert replica.faults == []
    assert replica.rows == truth
    assert {"add", "modify"} <= replica.counts.keys()


def _goes_on(replica: Replica, seconds: float) -> bool:
    """Return whether too little has happened yet; a busy machine starts publishers late."""
    return seconds < SECONDS or (seconds < PATIENCE and replica.counts["modify"] < 5)


def _settled(rig: Untracked, replica: Replica) -> dict[str, dict[str, str]]:
    """Return the table, once the replica has caught up with it or patience is over."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        try:
            truth = rig.rows()
        except EventlogError:  # the server has just come back
            truth = None
        if truth is not None and replica.rows == truth:
            return truth
        time.sleep(0.2)
    return rig.rows()
