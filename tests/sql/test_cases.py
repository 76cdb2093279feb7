"""Cascades, partitions, views, rules and other people's triggers: what the log holds, case by case, on every
PostgreSQL at hand. The cases are read in capture.cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.sql.capture import track
from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.databases import temporary_database
from tests.sql.cases import Case, read_cases, written
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

CASES = list(read_cases())


@pytest.fixture(scope="module")
def installed(server: tuple[str, URL]) -> Iterator[Tracked | None]:
    """A log in a schema of its own; none where there is no PostgreSQL."""
    if not server[1].get_backend_name().startswith("postgresql"):
        yield None
        return
    with temporary_database(*server) as database:
        engine = database.engine()
        with engine.begin() as connection:
            execute_plain(connection, "create schema log")
        log = Log(database.dialect, schema="log")
        migrate.install(engine, log)
        yield Tracked(engine, log)
        engine.dispose()


@pytest.fixture
def pg(installed: Tracked | None) -> Tracked:
    """The installed log with nothing tracked, and an empty schema for the case."""
    if installed is None:
        pytest.skip("MariaDB and MySQL have cases of their own: a cascade fires no trigger there")
    installed.run(
        "drop schema public cascade",
        "create schema public",
        "delete from log.eventlog_tracked",
        "delete from log.eventlog",
    )
    return installed


def test_there_are_enough_cases_and_each_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 66


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.family
def test_what_the_log_holds(pg: Tracked, case: Case) -> None:
    if _version(pg) < case.version:
        pytest.skip(f"its statements are of PostgreSQL {case.version}")
    pg.run(*case.preparations)
    if case.refused:
        table, _, reason = case.refused.partition(" ")
        with pytest.raises(CannotTrack, match=reason):
            track.track(pg.engine, pg.log, table, Choice())
        return
    for table, choice in case.tracked:
        track.track(pg.engine, pg.log, table, choice)
    for fails, statements in case.done:
        _transact(pg, statements, fails)
    assert _logged(pg) in (case.rows, case.other_rows or case.rows)


def _transact(pg: Tracked, statements: list[str], fails: bool) -> None:
    with pg.engine.connect() as connection:
        try:
            for statement in statements:
                execute_plain(connection, statement)
            connection.commit()
        except DatabaseFailed:
            assert fails, statements
        else:
            assert not fails, statements


def _logged(pg: Tracked) -> list[str]:
    columns = "table_name, event_type, table_key, column_name, old_value, new_value"
    with pg.engine.connect() as connection:
        rows = connection.execute(text(f"select {columns} from log.eventlog order by record_id")).all()
    return [written(table, Logged(*row)) for table, *row in rows]


def _version(pg: Tracked) -> int:
    with pg.engine.connect() as connection:
        return int(connection.execute(text("show server_version_num")).scalar_one()) // 10000
