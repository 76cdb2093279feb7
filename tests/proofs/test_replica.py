"""What a receiver makes of the events is what the tables hold, whatever happens to publishers and server.

Cycles are small, so that pick-ups are cut everywhere. EVENTLOG_PROOF_SECONDS makes it longer, _SEED another.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.killable import KILLABLE
from tests.proofs.replica import Moody, Replica, WritersOfRows
from tests.proofs.rig import SECONDS, SEED, Arrivals

LIMITS = ("1", "2", "7", "300")
HTTP = ("--sink", "http", "--http-timeout", "2", "--reconnect", "1")
RETRIES = ("--retry-wait", "0.1", "--retry-longest", "1")


@pytest.mark.timeout(300 + 12 * SECONDS)
@pytest.mark.parametrize("product", KILLABLE)
def test_the_replica_of_a_receiver_is_the_table(product: str, tmp_path: Path) -> None:
    dice, replica, arrivals = random.Random(SEED), Replica(), Arrivals()
    moody = Moody(replica, random.Random(SEED + 1))
    arrivals.behave = moody

    def start() -> None:
        sizes = ("--query-limit", dice.choice(LIMITS), "--batch-size", dice.choice(("1", "3", "50")))
        rig.start(*HTTP, *RETRIES, "--http-url", arrivals.url, *sizes)

    with KILLABLE[product]() as (server, database):
        rig = WritersOfRows(database, tmp_path)
        try:
            start()
            start()
            ends = time.monotonic() + SECONDS
            kills = 0
            with rig.writing():
                while time.monotonic() < ends:
                    time.sleep(dice.uniform(0.5, 4))
                    kills += 1
                    if kills % 3:
                        rig.kill_one()
                        start()
                    else:
                        server.kill()
                        server.start()
            while rig.processes:
                rig.kill_one()
            rig.start(
                *HTTP, *RETRIES, "--http-url", arrivals.url, "--query-limit", "300", "--batch-size", "50"
            )
            rig.drain(60 + 10 * SECONDS)
            truth = rig.rows()
        finally:
            rig.close()
            arrivals.close()
            told = f"{dict(replica.counts)}, answers {dict(moody.answers)}"
            print(f"seed {SEED}, {product}: killed {kills} times, {told}")
    assert replica.faults == []
    assert replica.rows == truth
