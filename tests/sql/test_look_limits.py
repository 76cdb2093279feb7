"""The limits of a look: each door of a store has them, they take no round trip, and no session keeps them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import Engine

from eventlog.sql.common.dialect import TimeLimits
from eventlog.sql.connect import connect, limited
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.log_lock import LogLocked, LookEnded, naming_lock
from eventlog.sql.log.store import Store
from eventlog.sql.mysql import MYSQL
from eventlog.status.log_status import read_log_status
from tests.publisher.test_locked_log import locked
from tests.world.world import World

pytestmark = pytest.mark.quick

DOORS: dict[str, Callable[[Store], object]] = {
    "admin": lambda store: _failures(store),
    "snapshot": lambda store: _first_pending(store),
    "engine": lambda store: store.waiting(datetime(2100, 1, 1)),
    "whole": read_log_status,
}
SLEEP = {"postgresql": "select pg_sleep(30)", "mariadb": "select sleep(30)", "mysql": "select sleep(30)"}
LIMITS = {
    "postgresql": "select current_setting('lock_timeout') || ' ' || current_setting('statement_timeout')",
    "mariadb": "select concat(@@lock_wait_timeout, ' ', @@max_statement_time)",
    "mysql": "select concat(@@lock_wait_timeout, ' ', @@max_execution_time)",
}


def _failures(store: Store) -> object:
    with store.admin() as admin:
        return admin.failures(FailureFilter())


def _first_pending(store: Store) -> object:
    with store.snapshot() as snapshot:
        return snapshot.first_pending(0)


@pytest.mark.slow("each look waits for a lock, for a second")
@pytest.mark.parametrize("briefly", [True, False])
@pytest.mark.parametrize("door", ["admin", "snapshot", "whole"])
@pytest.mark.family
def test_each_door_of_a_store_for_looks_waits_no_longer_than_its_limit(
    door: str, briefly: bool, world: World
) -> None:
    store = Store(world.engine, world.log, 1)
    look = store.looking(briefly=briefly)
    with locked(world):
        for look_at in (DOORS[door], Store.demand_unlocked):
            with pytest.raises(LogLocked, match="the log is locked"):
                look_at(look)
    DOORS[door](look)


def test_a_session_keeps_no_limit_of_a_look(world: World) -> None:
    """Use one connection for looks and for a publisher: the limits end with the look."""
    engine, question = connect(world.engine.url, keep_open=1), LIMITS[world.log.dialect.name]

    def limits(of: Engine) -> str:
        with of.connect() as connection:
            return str(connection.execute(text(question)).scalar())

    before, store = limits(engine), Store(engine, world.log, 7)
    for briefly, expected in ((True, "7s 70s"), (False, "7s 0")):
        look = store.looking(briefly=briefly)
        for door in (_failures, _first_pending):
            door(look)
        if world.log.dialect.name == "postgresql":
            assert limits(look.engine) == expected
        assert limits(engine) == before
    engine.dispose()


@pytest.mark.slow("a look waits for a lock, for a second")
def test_a_role_sees_who_locks_the_log_and_what_would_show_the_rest(world: World) -> None:
    """Look as a role that may read the log alone: a statement of another role takes a right more."""
    if world.log.dialect.name != "postgresql":
        pytest.skip("statements of others need the same right as their sessions here")
    role = f"looks_{secrets.token_hex(4)}"
    names = world.log.names()
    world.change(f"create role {role}")
    try:
        for table in ("log", "state", "notice", "retry", "failed", "sent"):
            world.change(f"grant select on {names[table]} to {role}")
        engine = connect(world.engine.url, (f"set role {role}",))
        with locked(world) as process, pytest.raises(LogLocked) as fault:
            _failures(Store(engine, world.log, 1).looking())
        engine.dispose()
    finally:
        world.change(f"drop owned by {role}")
        world.change(f"drop role {role}")
    assert f"process {process}" in str(fault.value)
    needs = "its statement is not shown, which needs `grant pg_read_all_stats to ROLE`"
    assert str(fault.value).endswith(needs)


@pytest.mark.slow("a statement takes a second")
def test_a_statement_of_a_brief_look_ends_at_its_limit(world: World) -> None:
    limits, sleep = TimeLimits(1, 1), SLEEP[world.log.dialect.name]
    look = limited(world.engine, world.log.dialect, limits)
    with (
        pytest.raises(LookEnded, match=r"longer than a look may \(1 s by look-limit\): "),
        naming_lock(world.engine, world.log, limits),
        look.connect() as connection,
    ):
        connection.execute(text(sleep))


@contextmanager
def round_trips(engine: Engine, trace: Path) -> Iterator[Callable[[], int]]:
    """Yield what counts the answers of the server inside the block, on an engine with one connection."""
    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        sent.append(statement)

    with engine.connect() as connection, trace.open("w") as file:
        session: Any = connection.connection.dbapi_connection
        if engine.dialect.driver == "psycopg":
            session.pgconn.trace(file.fileno())
            connection.close()
            yield lambda: len(re.findall(r"\tB\t\d+\tReadyForQuery", trace.read_text()))
            session.pgconn.untrace()
        else:  # a statement is a round trip
            connection.close()
            event.listen(engine, "before_cursor_execute", note)
            yield lambda: len(sent)
            event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("door", ["admin", "snapshot", "engine", "whole"])
def test_a_limit_takes_no_round_trip(door: str, world: World, tmp_path: Path) -> None:
    engine, look_at = connect(world.engine.url, keep_open=1), DOORS[door]
    store = Store(engine, world.log)

    def trips(look: Store) -> int:
        look_at(look)  # what comes twice is prepared
        look_at(look)
        with round_trips(engine, tmp_path / "trace") as count:
            look_at(look)
            return count()

    without = trips(store)
    assert without > 0
    assert [trips(store.looking()), trips(store.looking(briefly=True))] == [without, without]
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "limited_statement"),
    [
        ("select 1", "select /*+ set_var(lock_wait_timeout = 3) max_execution_time(30000) */ 1"),
        (
            "-- why\nselect a\nfrom b",
            "-- why\nselect /*+ set_var(lock_wait_timeout = 3) max_execution_time(30000) */ a\nfrom b",
        ),
        ("update a set b = 1", "update a set b = 1"),
        ("selection", "selection"),
    ],
)
def test_a_query_of_mysql_has_hints(statement: str, limited_statement: str) -> None:
    assert MYSQL.sessions.limit is not None
    assert MYSQL.sessions.limit(statement, TimeLimits(3, 30)) == limited_statement
