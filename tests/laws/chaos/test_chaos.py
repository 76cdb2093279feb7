"""The short form of `make chaos`: everything goes wrong at once, and nothing is lost or inverted.

EVENTLOG_PROOF_SECONDS makes it longer, _SEED another, with other types.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.laws.chaos.run import MODES, run
from tests.world.killable import KILLABLE
from tests.world.rig import SECONDS, SEED

pytestmark = pytest.mark.long

LONGER = 2.5  # times as long as other proofs
OFTEN = {("PostgreSQL", "update"), ("PostgreSQL", "slot"), ("MariaDB", "delete"), ("MariaDB", "compare")}


@pytest.mark.timeout(300 + 12 * LONGER * SECONDS)
@pytest.mark.parametrize(
    ("product", "mode"),
    [
        pytest.param(product, mode, marks=() if (product, mode) in OFTEN else pytest.mark.nightly)
        for product in KILLABLE
        for mode in MODES[product]
    ],
)
def test_the_receiver_and_a_second_database_hold_what_the_table_does(
    product: str, mode: str, tmp_path: Path
) -> None:
    outcome = run(product, mode, LONGER * SECONDS, SEED, tmp_path)
    print(f"{product}, {mode}, seed {SEED}: {outcome.reported}")
    assert outcome.faults == ()
