"""DDL that commits after a snapshot has begun, and before a table is read in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import text
from sqlalchemy.engine import Connection

from tests.kit.support import patient, until
from tests.world.world import World

WAITING = {
    "postgresql": "select count(*) from pg_stat_activity where datname = current_database()"
    " and wait_event_type = 'Lock' and query not like '%lock table%'",
    "mysql": "select count(*) from information_schema.processlist where state like 'Waiting for table%lock'",
}


class Running(threading.Thread):
    """A function that runs next to the test."""

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._run = run
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            self._run()
        except BaseException as fault:
            self.fault = fault

    def end(self) -> None:
        """Wait for the end, and raise what the function raised."""
        self.join(patient(60))
        assert not self.is_alive()
        if self.fault is not None:
            raise self.fault


def transactional(world: World) -> bool:
    return world.log.dialect.schema.transactional


def await_waiting(world: World) -> None:
    """Wait until somebody waits for a lock."""
    kind = "postgresql" if transactional(world) else "mysql"

    def is_waiting() -> bool:
        with world.engine.connect() as connection:
            return bool(connection.execute(text(WAITING[kind])).scalar())

    until(is_waiting)


@contextmanager
def locked(world: World, statement: str) -> Iterator[Connection]:
    """Hold the table while the block runs; the statement is done before it is released."""
    with world.engine.connect() as connection:
        if transactional(world):
            connection.execute(text(statement))
            yield connection
        else:
            connection.execute(text("lock tables usr write"))
            yield connection
            connection.execute(text(statement))
            connection.execute(text("unlock tables"))
        connection.commit()


def change_under(world: World, run: Callable[[], object], statement: str) -> None:
    """Run a function, and the statement after its snapshot began and before it reads the table."""
    with locked(world, statement):
        running = Running(run)
        running.start()
        await_waiting(world)
    running.end()
