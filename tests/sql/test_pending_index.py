"""The index of pending rows on PostgreSQL: dropped under ranges if every row of the log is pending."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, text

from eventlog.core.entry import Letter
from eventlog.operate.finishing import change_mode
from eventlog.sql.capture.check import check
from eventlog.sql.log.finishing import FinishMode
from eventlog.sql.log.pending import Selection, pending_statement
from eventlog.sql.log.store import Store
from tests.sql.tracked import Tracked

pytestmark = pytest.mark.quick

ADD = "insert into eventlog (event_type, table_name, table_key) select 6, 'usr', 'k=' || i from {} i"


@pytest.fixture
def store(postgres_tracking: Tracked) -> Store:
    return Store(postgres_tracking.engine, postgres_tracking.log)


def run(store: Store, statement: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(statement))


def indexed(store: Store) -> bool:
    return "eventlog_pending" in {index["name"] for index in inspect(store.engine).get_indexes("eventlog")}


def change(store: Store, mode: FinishMode) -> None:
    """Change how rows are finished, and expect that `check` misses no index."""
    assert change_mode(store, mode, "test")
    with store.engine.connect() as connection:
        assert not [finding for finding in check(connection, store.log) if "no index" in finding.what]


@pytest.mark.parametrize("other", [FinishMode.UPDATE, FinishMode.DELETE])
def test_only_ranges_do_without_it(store: Store, other: FinishMode) -> None:
    run(store, ADD.format("generate_series(1, 3)"))
    change(store, FinishMode.RANGES)
    assert not indexed(store)
    change(store, other)
    assert indexed(store)
    change(store, FinishMode.RANGES)
    assert not indexed(store)


def test_it_stays_while_a_row_has_a_letter_of_its_own(store: Store) -> None:
    run(store, ADD.format("generate_series(1, 3)"))
    run(store, "update eventlog set status = 'S' where record_id = 2")
    change(store, FinishMode.RANGES)
    assert indexed(store)
    run(store, "delete from eventlog where record_id = 2")
    assert not change_mode(store, FinishMode.RANGES, "repeated after a purge")
    assert not indexed(store)


def test_it_stays_while_another_transaction_reads_the_log(store: Store) -> None:
    with store.engine.begin() as reading:
        reading.execute(text("select * from eventlog"))
        change(store, FinishMode.RANGES)
    assert indexed(store)


def test_a_log_that_has_lost_it_gets_it_back_with_letters(store: Store) -> None:
    run(store, ADD.format("generate_series(1, 3)"))
    change(store, FinishMode.RANGES)
    leader = store.lead("test")
    assert leader is not None
    with leader, store.snapshot() as snapshot:
        rows = [int(str(row[0])) for row in snapshot.pick_up(Selection()).cells]
        with store.work(leader.epoch) as work:
            work.finish({Letter.SUCCESS: rows[:2]})
        assert work.finished == 2
    change(store, FinishMode.UPDATE)
    assert indexed(store)
    with store.snapshot() as snapshot:
        assert [row[0] for row in snapshot.pick_up(Selection()).cells] == rows[2:]


def test_without_it_the_pick_up_scans_the_primary_key(store: Store) -> None:
    change(store, FinishMode.RANGES)
    run(store, ADD.format("generate_series(1, 20000)"))
    run(store, "analyze eventlog")
    statement, values = pending_statement(store.queries, "pick_up", Selection(limit=100))
    with store.engine.connect() as connection:
        plan = connection.execute(text(f"explain {statement}"), values).scalars().all()
    assert any("Index Scan using eventlog_key" in line for line in plan), plan
    assert not any("Sort" in line for line in plan), plan
