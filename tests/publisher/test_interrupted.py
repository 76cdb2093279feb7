"""A stop ends a statement that takes long, in a process of its own; nothing of it remains."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from tests.kit.logs import key
from tests.kit.support import patient, until
from tests.world.world import World, publishing

pytestmark = pytest.mark.quick
WAITING = {
    True: "select count(*) from pg_stat_activity"
    " where datname = current_database() and wait_event_type = 'Lock'",
    False: "select count(*) from information_schema.processlist where db = database()"
    " and state like 'Waiting for table%'",
}


@contextmanager
def locked(world: World, table: str) -> Iterator[Connection]:
    """Lock a table against readers; yield the connection that locked it."""
    is_postgres = world.log.dialect.schema.transactional
    with world.engine.connect() as connection:
        lock = "lock table {} in access exclusive mode" if is_postgres else "lock tables {} write"
        connection.execute(text(lock.format(table)))
        try:
            yield connection
        finally:
            connection.rollback()
            if not is_postgres:
                connection.execute(text("unlock tables"))


def waiting(world: World) -> int:
    """Return how many sessions wait for a lock."""
    with world.engine.connect() as connection:
        return int(connection.execute(text(WAITING[world.log.dialect.schema.transactional])).scalar() or 0)


@pytest.mark.slow("it starts processes")
@pytest.mark.parametrize(
    ("mode", "table", "number"),
    [("compare", "usr", signal.SIGTERM), ("trigger", "eventlog", signal.SIGINT)],
)
def test_a_stop_ends_a_statement_that_waits(
    world: World, tmp_path: Path, mode: str, table: str, number: signal.Signals
) -> None:
    def write(idu: int) -> None:
        world.user(idu) if mode == "compare" else world.write(key(idu, event_type=4))

    def documents() -> int:
        return sum(1 for _ in tmp_path.glob("*.xml"))

    write(1)
    with publishing(world, tmp_path, "--mode", mode) as process:
        until(lambda: documents() == 1)
        write(2)
        until(lambda: documents() == 2)
        until(lambda: set(world.counts()) <= {"S"})  # what is delivered is finished, not interrupted
        with locked(world, table):
            until(lambda: waiting(world) == 1)
            process.send_signal(number)
            _, words = process.communicate(timeout=patient(20))
            assert (process.returncode, b"stopped while it read" in words) == (0, True), words
            until(lambda: waiting(world) == 0)
    write(3)
    with publishing(world, tmp_path, "--mode", mode, "--once") as process:
        _, words = process.communicate(timeout=patient(60))
        assert process.returncode == 0, words
    assert documents() == 3
    assert {letter for letter, _ in world.counts().items()} == {"S"}
