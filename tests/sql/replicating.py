"""Two databases of one server, one replicating to the other by a subscription."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.engine import URL, Engine

from eventlog.sql.connect import connect, execute_plain
from tests.kit.databases import temporary_database
from tests.kit.statements import run_statements
from tests.kit.support import until
from tests.sql.tracked import Tracked, tracked

PATIENCE = 60.0


@dataclass(frozen=True)
class Replication:
    """A source, and a copy with a log."""

    source: Engine
    copy: Tracked

    def run(self, *statements: str) -> None:
        """Run each statement at the source, and wait until the copy has applied it."""
        run_statements(self.source, *statements, autocommit=True)
        self.caught_up()

    def both(self, *statements: str) -> None:
        """Run each statement on either side."""
        for engine in (self.source, self.copy.engine):
            run_statements(engine, *statements)

    def subscribe(self, *, owner: str = "") -> None:
        """Copy all tables of the source, and wait until their content is copied."""
        with self.source.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            execute_plain(connection, "create publication everything for all tables")
            execute_plain(
                connection, "select pg_create_logical_replication_slot(current_database(), 'pgoutput')"
            )
            slot = connection.execute(text("select current_database()")).scalar()
        # the server takes the address as a constant of its grammar
        address = _address(self.source.url)
        self.copy.run(
            f"create subscription copied connection '{address}' publication everything"
            f" with (create_slot = false, slot_name = '{slot}', enabled = false)"
        )
        if owner:
            self.copy.run(f"alter subscription copied owner to {owner}")
        self.copy.run("alter subscription copied enable")
        copied = "select count(*) = 0 from pg_subscription_rel where srsubstate <> 'r'"
        until(lambda: self._is_true(copied))
        self.caught_up()

    def caught_up(self) -> None:
        """Wait until the copy has applied all that the source has written."""
        with self.source.begin() as connection:
            position = connection.execute(text("select pg_current_wal_insert_lsn()")).scalar()
        applied = (
            f"select confirmed_flush_lsn >= '{position}' from pg_replication_slots"
            " where slot_name = current_database()"
        )
        with self.source.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            until(lambda: bool(connection.execute(text(applied)).scalar()))

    def faults(self) -> int:
        """Return how often a worker ended by an error, if the server counts it."""
        counted = "select apply_error_count + sync_error_count from pg_stat_subscription_stats"
        if self._is_true("select to_regclass('pg_stat_subscription_stats') is null"):
            return 0  # before PostgreSQL 15 a worker that fails never catches up
        with self.copy.engine.connect() as connection:
            return int(connection.execute(text(counted)).scalar_one())

    def drop(self) -> None:
        """End the replication."""
        self.copy.run("alter subscription copied disable", "alter subscription copied set (slot_name = none)")
        self.copy.run("drop subscription copied")
        idle = "select count(*) = 0 from pg_replication_slots where slot_name = current_database() and active"
        with self.source.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            until(lambda: bool(connection.execute(text(idle)).scalar()))
            execute_plain(connection, "select pg_drop_replication_slot(current_database())")

    def _is_true(self, question: str) -> bool:
        with self.copy.engine.connect() as connection:
            return bool(connection.execute(text(question)).scalar())


@contextmanager
def replicating(server: URL) -> Iterator[Replication]:
    """Make two new databases of a server that writes its log for replication."""
    with (
        temporary_database("source", server) as source,
        temporary_database("copy", server) as copy,
        tracked(copy) as log,
    ):
        engine = connect(source.url)
        replication = Replication(engine, log)
        try:
            yield replication
        finally:
            replication.drop()
            engine.dispose()


def _address(url: URL) -> str:
    host = url.query.get("host") or url.host
    port = f" port={url.port}" if url.port else ""
    return f"host={host}{port} dbname={url.database} user={url.username} password={url.password}"
