"""The care of a log: failures, redrive, skip, pause, purge, and its state."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core.entry import Letter
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import Count, FailureFilter, PendingRows
from eventlog.sql.log.work import Failure, WaitingEvent
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.databases import Database, own_ids

pytestmark = pytest.mark.quick

ROWS = (
    (1, 2, "usr", "idu=1", "fname"),
    (2, 6, "usr", "idu=2", None),
    (3, 2, "grp", "idg=1", "name"),
    (4, 2, "usr", "idu=1", "fname"),
    (5, 2, "usr", "idu=1", "lname"),
)


FAR = datetime(2100, 1, 1)


@pytest.fixture
def store(engine: Engine, database: Database) -> Store:
    """Make rows 1 to 3 fail; 4 was published, 5 is new."""
    log = Log(database.dialect)
    migrate.install(engine, log)
    with engine.begin() as connection:
        for row in ROWS:
            named = dict(zip(("i", "e", "t", "k", "c"), row, strict=True))
            connection.execute(
                text(
                    "insert into eventlog (record_id, event_type, table_name, table_key, column_name)"
                    f" {own_ids(database.dialect)}values (:i, :e, :t, :k, :c)"
                ),
                named,
            )
    store = Store(engine, log)
    leader = store.lead("test")
    assert leader is not None
    with leader, store.work(leader.epoch) as work:
        work.finish({Letter.ERROR: [1, 2], Letter.FATAL: [3], Letter.SUCCESS: [4]})
        work.fail(
            [Failure(1, "eventlog:1", "100% wrong"), Failure(3, "eventlog:3", "it_is fatal", "<nds/>", 5)]
        )
        work.record_cycle('{"documents": 1}')
        work.record_heartbeat()
    return store


def failed(store: Store, which: FailureFilter) -> list[int]:
    with store.upkeep() as upkeep:
        return [failure.record_id for failure in upkeep.failures(which)]


def letters(store: Store) -> str:
    with store.snapshot() as snapshot:
        return "".join(str(cells[1]) for cells in snapshot.rows(range(1, 6)))


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (FailureFilter(), [1, 2, 3]),
        (FailureFilter(ids=(3, 1, 4, 99)), [1, 3]),
        (FailureFilter(table="usr"), [1, 2]),
        (FailureFilter(reason="0% w"), [1]),
        (FailureFilter(reason="t_i"), [3]),
        (FailureFilter(reason="%"), [1]),
        (FailureFilter(table="usr", reason="fatal"), []),
    ],
    ids=str,
)
def test_failures_are_found_by_what_is_known_of_them(
    store: Store, which: FailureFilter, found: list[int]
) -> None:
    assert failed(store, which) == found


def test_a_failure_comes_with_its_reason_and_document(store: Store) -> None:
    with store.upkeep() as upkeep:
        first, second, third = upkeep.failures(FailureFilter())
    assert (third.status, third.reason, third.document, third.tries) == ("F", "it_is fatal", "<nds/>", 5)
    assert (second.reason, second.document, second.tries, second.failed_at) == (None, None, None, None)
    assert first.failed_at is not None


def test_failures_are_paged(store: Store) -> None:
    with store.upkeep() as upkeep:
        assert [f.record_id for f in upkeep.failures(FailureFilter(), limit=2)] == [1, 2]
        assert [f.record_id for f in upkeep.failures(FailureFilter(), limit=2, after=2)] == [3]


def test_redriven_rows_are_new_again_and_their_reasons_gone(store: Store) -> None:
    with store.upkeep() as upkeep:
        assert upkeep.redrive(dict.fromkeys((1, 3, 4, 5), 0)) == 2
        assert [f.reason for f in upkeep.failures(FailureFilter())] == [None]
    assert letters(store) == "NENSN"


def test_a_redriven_row_can_have_another_type(store: Store) -> None:
    with store.upkeep() as upkeep:
        assert upkeep.redrive({1: 8}) == 1
    with store.snapshot() as snapshot:
        (cells,) = snapshot.rows([1])
    assert tuple(cells)[1:3] == ("N", 8)


def test_skipped_rows_are_given_up_with_a_notice(store: Store) -> None:
    with store.upkeep() as upkeep:
        assert upkeep.skip([2, 4, 5, 99], "sent by hand") == {2: "E", 4: "S", 5: "N"}
        (notice,) = upkeep.notices()
    assert letters(store) == "EWFSW"
    assert (notice.kind, notice.words) == ("skip", "rows 2, 5: sent by hand")
    assert notice.username


def test_a_skip_of_nothing_leaves_no_notice(store: Store) -> None:
    with store.upkeep() as upkeep:
        upkeep.skip([2], "sent by hand")
        upkeep.skip([2, 4, 99], "a second time")
        assert len(upkeep.notices()) == 1


def test_a_skip_frees_the_objects_that_waited_for_its_rows(store: Store) -> None:
    leader = store.lead("next")
    assert leader is not None
    with leader, store.work(leader.epoch) as work:
        work.hold_events(
            [
                WaitingEvent("eventlog:5", "usr", "idu=1", (5,), 1000, 1, FAR, "busy"),
                WaitingEvent("eventlog:8", "usr", "idu=2", (8,), 1000, 1, FAR, "busy"),
            ]
        )
    with store.upkeep() as upkeep:
        upkeep.skip([2], "not what idu=2 waits for")
        assert upkeep.backlog().waiting == 2
        upkeep.skip([5, 99], "sent by hand")
        assert upkeep.backlog().waiting == 1


def test_what_lets_rows_go_leaves_a_notice_that_a_snapshot_shows(store: Store) -> None:
    def latest() -> int | None:
        with store.snapshot() as snapshot:
            return snapshot.moment.latest_notice

    assert latest() is None
    with store.upkeep() as upkeep:
        upkeep.redrive({1: 0})
    redriven = latest()
    with store.upkeep() as upkeep:
        upkeep.skip([5], "sent by hand")
    assert latest() != redriven is not None


def test_pausing_is_on_record_until_resumed(store: Store) -> None:
    with store.upkeep() as upkeep:
        upkeep.pause("ada", "the receiver moves")
    with store.upkeep() as upkeep:
        state = upkeep.state()
        assert upkeep.resume("ada")
        assert not upkeep.resume("ada")
    assert (state.paused_by, state.pause_reason) == ("ada", "the receiver moves")
    assert isinstance(state.paused_at, datetime)
    with store.upkeep() as upkeep:
        assert upkeep.state().paused_at is None
        assert [(notice.kind, notice.words) for notice in upkeep.notices()] == [
            ("resume", "by ada"),
            ("pause", "by ada: the receiver moves"),
        ]


def test_the_state_tells_the_leader_and_its_last_cycle(store: Store) -> None:
    with store.upkeep() as upkeep:
        state = upkeep.state()
    assert (state.leader, state.epoch, state.cycle_facts) == ("test", 1, '{"documents": 1}')
    assert state.heartbeat_at is not None


def test_counts_and_backlog(store: Store) -> None:
    with store.snapshot() as snapshot:
        now = datetime.fromisoformat(snapshot.now())
    at = (now + timedelta(minutes=1)).replace(microsecond=0)
    leader = store.lead("next")
    assert leader is not None
    with leader, store.work(leader.epoch) as work:
        work.hold_events([WaitingEvent("eventlog:5", "usr", "idu=1", (5,), 1000, 1, at, "busy")])
    with store.upkeep() as upkeep:
        counts, backlog = upkeep.counts(), upkeep.backlog()
    assert counts == [Count("E", "usr", 2), Count("F", "grp", 1), Count("N", "usr", 1), Count("S", "usr", 1)]
    assert backlog.oldest is not None
    assert backlog == PendingRows(1, backlog.oldest, 1, at)


def test_purging_goes_chunk_by_chunk_and_spares_what_is_not_named(store: Store) -> None:
    with store.snapshot() as snapshot:
        later = datetime.fromisoformat(snapshot.now()) + timedelta(days=1)
    with store.upkeep() as upkeep:
        assert upkeep.purge(later - timedelta(days=2), "SW", 0, 10) == (0, None)
        assert upkeep.purge(later, "SW", 0, 10) == (1, None)
        assert upkeep.purge(later, "E", 0, 1) == (1, 1)
        assert upkeep.purge(later, "E", 1, 1) == (1, 2)
        assert upkeep.purge(later, "E", 2, 1) == (0, None)
        with pytest.raises(ValueError):
            upkeep.purge(later, "x", 0, 1)
    assert letters(store) == "FN"
