"""What was tracked, published and applied to a second database is what the first holds, whatever is killed.

EVENTLOG_PROOF_SECONDS makes it longer and runs it on every database, _SEED another.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.sql.connect import connect
from tests.kit.databases import Database, temporary_database
from tests.world.killable import KILLABLE
from tests.world.replica import COLUMNS, WritersOfRows
from tests.world.rig import ROOT, SECONDS, SEED

pytestmark = pytest.mark.long

PRODUCTS = list(KILLABLE) if SECONDS > 6 else ["PostgreSQL"]
TYPES = ", ".join(f'{column} = "varchar(40)"' for column in COLUMNS)
TABLES = f'[tables.usr]\nkey = ["idu"]\ncolumns = {{ idu = "integer", {TYPES} }}\n'
Rows = dict[str, dict[str, str]]


class Applier:
    """A process that applies the documents of a folder in their order, and may be killed."""

    def __init__(self, folder: Path, to_url: str) -> None:
        self._folder = folder
        self._to_url = to_url
        (folder / "tables.toml").write_text(TABLES)

    def start(self, group: int) -> subprocess.Popen[bytes]:
        names = [str(path) for path in sorted((self._folder / "out").glob("*.xml"), key=_written)]
        words = ("apply", "--from", "xds", "--to-url", self._to_url, "--tables", "tables.toml")
        command = [sys.executable, "-m", "eventlog", *words, "--group", str(group), *names]
        with (self._folder / "apply.log").open("ab") as log:
            environment = os.environ | {"PYTHONPATH": str(ROOT)}
            return subprocess.Popen(
                command, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def finish(self) -> str:
        """Apply all; return the command's output."""
        assert self.start(1000).wait() == 0, (self._folder / "apply.log").read_text()[-2000:]
        return (self._folder / "apply.log").read_text().splitlines()[-1]


def _written(path: Path) -> tuple[int, int]:
    """Return when a document was written; those of one clock tick are ordered by their first rows."""
    return path.stat().st_mtime_ns, int(path.name.partition("-")[0])


def rows(database: Database) -> Rows:
    """Return the rows of the second database's table."""
    with connect(database.url).connect() as connection:
        records = connection.execute(text(f"select idu, {', '.join(COLUMNS)} from usr")).all()
    pairs = ((str(idu), dict(zip(COLUMNS, values, strict=True))) for idu, *values in records)
    return {key: {name: value for name, value in row.items() if value is not None} for key, row in pairs}


@pytest.mark.timeout(300 + 12 * SECONDS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_second_database_holds_what_the_first_one_does(product: str, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    kills = 0

    def sizes() -> tuple[str, ...]:
        limit, size = dice.choice(("2", "7", "300")), dice.choice(("1", "3", "50"))
        return "--query-limit", limit, "--batch-size", size

    with KILLABLE[product]() as (server, database), temporary_database(product, database.url) as second:
        rig = WritersOfRows(database, tmp_path)
        applier = Applier(tmp_path, second.url.render_as_string(hide_password=False))
        sink = ("--sink", "files", "--files-folder", "out")
        try:
            rig.start(*sink, *sizes())
            ends = time.monotonic() + SECONDS
            with rig.writing():
                while time.monotonic() < ends:
                    applying = applier.start(dice.choice((1, 3, 1000)))
                    time.sleep(dice.uniform(0.3, 2.5))
                    applying.kill()
                    applying.wait()
                    kills += 1
                    if kills % 3 == 1:
                        rig.kill_one()
                        rig.start(*sink, *sizes())
                    elif kills % 3 == 2:
                        server.kill()
                        server.start()
            while rig.processes:
                rig.kill_one()
            rig.start(*sink, "--query-limit", "300", "--batch-size", "50")
            rig.drain(60 + 10 * SECONDS)
            reported = applier.finish()
            truth = rig.rows()
        finally:
            rig.close()
            print(f"seed {SEED}, {product}: killed {kills} times")
        assert rows(second) == truth, reported
        assert truth
