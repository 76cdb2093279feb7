"""The care of a log: failures, redrive, skip, pause, purge, and its state."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from eventlog.core.entry import Letter
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.leader_transaction import Failure, WaitingEvent
from eventlog.sql.log.log_admin import Count, FailureFilter, PendingRows
from eventlog.sql.log.store import Store
from tests.kit.logs import leading, write_rows

pytestmark = pytest.mark.quick

ROWS = (
    (1, 2, "usr", "idu=1", "fname"),
    (2, 6, "usr", "idu=2", None),
    (3, 2, "grp", "idg=1", "name"),
    (4, 2, "usr", "idu=1", "fname"),
    (5, 2, "usr", "idu=1", "lname"),
)


@pytest.fixture
def store(store: Store) -> Store:
    """Make rows 1 to 3 fail; 4 was published, 5 is new."""
    columns = ("record_id", "event_type", "table_name", "table_key", "column_name")
    with store.engine.begin() as connection:
        write_rows(connection, store.log, *(dict(zip(columns, row, strict=True)) for row in ROWS))
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.finish({Letter.ERROR: [1, 2], Letter.FATAL: [3], Letter.SUCCESS: [4]})
        work.fail(
            [Failure(1, "eventlog:1", "100% wrong"), Failure(3, "eventlog:3", "it_is fatal", "<nds/>", 5)]
        )
    return store


def failed(store: Store, which: FailureFilter) -> list[int]:
    with store.admin() as admin:
        return [failure.record_id for failure in admin.failures(which)]


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
        (FailureFilter(reason="_"), [3]),
        (FailureFilter(reason="%"), [1]),
        (FailureFilter(table="usr", reason="fatal"), []),
    ],
    ids=str,
)
@pytest.mark.long
def test_failures_are_found_by_what_is_known_of_them(
    store: Store, which: FailureFilter, found: list[int]
) -> None:
    assert failed(store, which) == found


def test_a_failure_comes_with_its_reason_and_document(store: Store) -> None:
    with store.admin() as admin:
        first, second, third = admin.failures(FailureFilter())
    assert (third.status, third.reason, third.document, third.tries) == ("F", "it_is fatal", "<nds/>", 5)
    assert (second.reason, second.document, second.tries, second.failed_at) == (None, None, None, None)
    assert first.failed_at is not None


def test_failures_are_paged(store: Store) -> None:
    with store.admin() as admin:
        assert [f.record_id for f in admin.failures(FailureFilter(), limit=2)] == [1, 2]
        assert [f.record_id for f in admin.failures(FailureFilter(), limit=2, after=2)] == [3]


def test_skipped_rows_are_given_up_with_a_notice(store: Store) -> None:
    with store.admin() as admin:
        assert admin.skip([2, 4, 5, 99], "sent by hand", "ada") == {2: "E", 4: "S", 5: "N"}
        (notice,) = admin.notices()
    assert letters(store) == "EWFSW"
    assert (notice.kind, notice.words, notice.who) == ("skip", "sent by hand", "ada")
    assert (notice.first_id, notice.last_id, notice.row_count, notice.record_ids) == (2, 5, 2, (2, 5))
    assert notice.answer == "E, N"
    assert notice.username


def test_only_failed_rows_are_made_new(store: Store) -> None:
    with store.admin() as admin:
        assert admin.redrive({1: 0, 3: 7, 4: 7, 5: 7}) == 2
    with store.snapshot() as snapshot:
        rows = [(str(cells[1]), int(str(cells[2]))) for cells in snapshot.rows(range(1, 6))]
    assert rows == [("N", 2), ("E", 6), ("N", 7), ("S", 2), ("N", 2)]


def test_a_leader_writes_nothing_until_a_person_has_finished(store: Store) -> None:
    """A leader reads the state under a lock before it writes."""
    state = text(f"select one from {store.log.names()['state']} for update nowait")
    with store.engine.connect() as leader:
        with store.admin() as admin:
            admin.keep_leader_out()
            with pytest.raises(DatabaseFailed):
                leader.execute(state)
            leader.rollback()
        assert leader.execute(state).scalar() == 1


def test_what_lets_rows_go_leaves_a_notice_that_a_snapshot_shows(store: Store) -> None:
    def latest() -> int | None:
        with store.snapshot() as snapshot:
            return snapshot.moment.latest_notice

    assert latest() is None
    with store.admin() as admin:
        admin.redrive({1: 0})
    redriven = latest()
    with store.admin() as admin:
        admin.skip([5], "sent by hand")
    assert latest() != redriven is not None


def test_pausing_is_on_record_until_resumed(store: Store) -> None:
    with store.admin() as admin:
        admin.pause("ada", "the receiver moves")
    with store.admin() as admin:
        state = admin.state()
        assert admin.resume("ada")
        assert not admin.resume("ada")
    assert (state.paused_by, state.pause_reason) == ("ada", "the receiver moves")
    assert isinstance(state.paused_at, datetime)
    with store.admin() as admin:
        assert admin.state().paused_at is None
        assert [(notice.kind, notice.who, notice.words) for notice in admin.notices()] == [
            ("resume", "ada", None),
            ("pause", "ada", "the receiver moves"),
        ]


def test_counts_and_backlog(store: Store) -> None:
    with store.snapshot() as snapshot:
        now = datetime.fromisoformat(snapshot.now())
    at = (now + timedelta(minutes=1)).replace(microsecond=0)
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.hold_events([WaitingEvent("eventlog:5", "usr", "idu=1", (5,), 1000, 1, at, "busy")])
    with store.admin() as admin:
        counts, backlog = admin.counts(), admin.backlog()
    assert counts == [Count("E", "usr", 2), Count("F", "grp", 1), Count("N", "usr", 1), Count("S", "usr", 1)]
    assert backlog.oldest is not None
    assert backlog == PendingRows(1, backlog.oldest, 1, backlog.oldest, None, 1, at)


def test_purging_goes_chunk_by_chunk_and_spares_what_is_not_named(store: Store) -> None:
    with store.snapshot() as snapshot:
        later = datetime.fromisoformat(snapshot.now()) + timedelta(days=1)
    with store.admin() as admin:
        assert admin.purge(later - timedelta(days=2), "SW", 0, 10) == (0, [])
        assert admin.purge(later, "SW", 0, 10) == (1, [4])
        assert admin.purge(later, "E", 0, 1) == (1, [1])
        assert admin.purge(later, "E", 1, 1) == (1, [2])
        assert admin.purge(later, "E", 2, 1) == (0, [])
        with pytest.raises(ValueError):
            admin.purge(later, "x", 0, 1)
    assert letters(store) == "FN"
