"""The log as a store, on every database at hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from eventlog.core.entry import Letter, read_entry
from eventlog.publisher.read_back import Allowance
from eventlog.sql import connect
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import KeyColumn, TableKeys, TooMuch, byte_count
from eventlog.sql.log.leader_transaction import Failure, LeadershipLost, LeaderTransaction, WaitingEvent
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.log_record import RecordedBatch
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from tests.kit.databases import Database
from tests.kit.logs import leading, write_rows

pytestmark = pytest.mark.quick


def write(store: Store, *rows: dict[str, Any]) -> None:
    with store.engine.begin() as connection:
        write_rows(connection, store.log, *rows)


def keys(*numbers: int) -> list[dict[str, Any]]:
    return [{"table_key": f"idu={number}"} for number in numbers]


def pick_up(store: Store, **choice: Any) -> list[str]:
    with store.snapshot() as snapshot:
        return [
            read_entry(tuple(cells)).table_key for cells in snapshot.pick_up(PickUpFilter(**choice)).cells
        ]


def ids(store: Store) -> list[int]:
    with store.snapshot() as snapshot:
        return [read_entry(tuple(cells)).record_id for cells in snapshot.pick_up(PickUpFilter()).cells]


def now(store: Store) -> datetime:
    with store.snapshot() as snapshot:
        return datetime.fromisoformat(snapshot.now())


def finish(store: Store, letter: Letter, rows: list[int]) -> int:
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.finish({letter: rows})
    return work.finished


def test_a_row_as_a_trigger_writes_it_has_its_defaults(store: Store) -> None:
    write(store, {"table_key": "idu= 1", "column_name": "fname", "new_value": "Jörg 🎈 \\ ' \" %s :x"})
    with store.snapshot() as snapshot:
        (cells,) = snapshot.pick_up(PickUpFilter()).cells
        entry = read_entry(tuple(cells))
        clock = datetime.fromisoformat(snapshot.now())
    assert (entry.record_id, entry.status, entry.event_type) == (1, "N", 6)
    assert (entry.table_name, entry.table_key) == ("usr", "idu= 1")
    assert (entry.old_value, entry.new_value) == (None, "Jörg 🎈 \\ ' \" %s :x")
    assert entry.perpetrator
    assert "@" not in entry.perpetrator
    assert timedelta() <= clock - datetime.fromisoformat(entry.event_time) < timedelta(minutes=1)


def test_rows_come_in_order_of_record_id_up_to_the_limit(store: Store) -> None:
    write(store, *keys(5, 4, 3, 2, 1))
    assert pick_up(store, limit=3) == ["idu=5", "idu=4", "idu=3"]


def test_all_pending_rows_come_by_their_ids(store: Store) -> None:
    write(store, {"table_key": "idu=0", "record_id": -1}, *keys(*range(1, 8)))
    with store.snapshot() as snapshot:
        assert [row[0] for row in snapshot.every_pending(PickUpFilter(limit=2), upto=6)] == [*range(1, 7)]


def test_objects_differ_by_case_blanks_and_table(store: Store) -> None:
    rows = [
        {"table_key": "a=x"},
        {"table_key": "a=X"},
        {"table_key": "a=x "},
        {"table_key": "a=x", "table_name": "USR"},
    ]
    write(store, *rows)
    assert pick_up(store, limit=1) == ["a=x"]
    assert pick_up(store, limit=2) == ["a=x", "a=X"]
    with store.snapshot() as snapshot:
        assert len(list(snapshot.rows_about("a=x"))) == 3


def test_excluded_rows_do_not_fill_the_limit(store: Store) -> None:
    others = ({"table_key": "idu=90", "perpetrator": "jane"}, {"table_key": "idu=91", "perpetrator": None})
    write(store, *({**key, "perpetrator": "idm"} for key in keys(*range(20))), *others)
    assert pick_up(store, limit=2, driver_user="idm") == ["idu=90", "idu=91"]


def test_the_rows_of_a_waiting_object_are_held_and_only_they(store: Store) -> None:
    write(store, *keys(1, 2, 1))
    at = now(store)
    wait = WaitingEvent("eventlog:1", "usr", "idu=1", (1,), 1000, 1, at + timedelta(minutes=1), "busy")
    with leading(store) as epoch:
        with store.as_leader(epoch) as work:
            work.hold_events([wait])
            work.hold_events([wait._replace(tries=2)])
        assert pick_up(store) == ["idu=2"]
        assert store.waiting(at) == []
        assert store.waiting(at + timedelta(minutes=2)) == [wait._replace(tries=2)]
        # no wait is so long, so that the clock was set back
        assert store.waiting(at, latest_retry=at) == [wait._replace(tries=2)]
        with store.as_leader(epoch) as work:
            work.release_events([(("usr", "idu=1"), "eventlog:1")])
    assert pick_up(store) == ["idu=1", "idu=2", "idu=1"]


def test_a_snapshot_does_not_see_what_comes_later(store: Store) -> None:
    write(store, *keys(1))
    with store.snapshot() as snapshot:
        assert len(snapshot.pick_up(PickUpFilter()).cells) == 1
        write(store, *keys(2))
        assert len(snapshot.pick_up(PickUpFilter()).cells) == 1


def test_one_connection_is_kept_between_transactions_on_wish(store: Store) -> None:
    taken: list[str] = []
    for name in ("checkout", "checkin"):
        event.listen(store.engine, name, lambda *_, name=name: taken.append(name))
    with leading(store) as epoch:
        taken.clear()
        with store.keep_connection():
            for _ in range(2):
                with store.snapshot():
                    pass
                with store.as_leader(epoch) as work:
                    work.finish({Letter.SUCCESS: [1]})
            assert taken == ["checkout"]
            with pytest.raises(LeadershipLost), store.as_leader(epoch + 1):
                pass
            assert taken == ["checkout", "checkin"]
            with store.snapshot():
                pass
        assert taken == ["checkout", "checkin"] * 2


def test_handled_rows_are_deleted_on_wish_but_never_failed_ones(store: Store) -> None:
    write(store, *keys(1, 2, 3, 4))
    one, two, three, four = ids(store)
    with leading(store) as epoch, store.as_leader(epoch) as work:
        letters = {Letter.SUCCESS: [one], Letter.ERROR: [two], Letter.FATAL: [three], Letter.WARNING: [four]}
        work.finish(letters, delete=True)
    assert work.finished == 4
    with store.snapshot() as snapshot:
        assert [(cells[0], cells[1]) for cells in snapshot.rows([one, two, three, four])] == [
            (two, "E"),
            (three, "F"),
        ]


def test_a_row_that_has_a_letter_keeps_it(store: Store) -> None:
    write(store, *keys(*range(3000)))
    rows = ids(store)
    assert finish(store, Letter.ERROR, rows[:2]) == 2
    assert finish(store, Letter.SUCCESS, rows[:3]) == 1
    assert finish(store, Letter.WARNING, rows) == 2997  # in one range, where the database can
    with store.snapshot() as snapshot:
        assert [cells[1] for cells in snapshot.rows(rows[:4])] == ["E", "E", "S", "W"]


@pytest.mark.long
def test_many_rows_are_finished_in_chunks(store: Store) -> None:
    write(store, *keys(*range(25_000)))
    with store.snapshot() as snapshot:
        picked = [int(str(cells[0])) for cells in snapshot.pick_up(PickUpFilter(limit=25_000)).cells]
    assert len(picked) == 25_000
    assert finish(store, Letter.SUCCESS, picked) == 25_000
    assert ids(store) == []


def _finish_and_fail(work: LeaderTransaction) -> None:
    work.finish({Letter.SUCCESS: [1]})
    work.remember(1, "first", (1, 1))
    work.remember(1, "the number is taken", (1, 1))


def test_a_failed_block_changes_nothing(store: Store) -> None:
    write(store, *keys(1))
    with leading(store) as epoch:
        with pytest.raises(DatabaseFailed), store.as_leader(epoch) as work:
            _finish_and_fail(work)
        assert store.remembered() == []
    assert ids(store) == [1]


def test_what_goes_out_is_remembered_until_it_is_settled(store: Store) -> None:
    content = "long " * 100_000
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.remember(1, content, (1, 9))
        work.remember(2, "second", (5, 5))
        work.remember(3, "third", (7, 8))
    with leading(store) as later:
        assert [(b.number, b.epoch, b.content) for b in store.remembered()] == [
            (1, epoch, content),
            (2, epoch, "second"),
            (3, epoch, "third"),
        ]
        with store.as_leader(later) as work:
            work.adopt()
            work.forget_batch(1)
            work.settle_batch(3)
        assert store.remembered() == [
            RecordedBatch(2, later, None, "second", store.log.companion_name("batch"))
        ]
        assert store.latest_batch() == 3


def test_settled_batches_are_found_by_their_rows_until_they_are_purged(store: Store) -> None:
    with leading(store) as epoch, store.as_leader(epoch) as work:
        for number, rows in enumerate(((1, 3), (2, 9), (4, 4)), 1):
            work.remember(number, f"batch {number}", rows)
            work.settle_batch(number)
        work.remember(4, "on its way", (1, 9))
    with store.admin() as admin:
        for row, numbers in {1: [1], 3: [1, 2], 4: [2, 3], 10: []}.items():
            assert [batch.content for batch in admin.settled_with([row])] == [f"batch {n}" for n in numbers]
        assert [batch.content for batch in admin.settled_last()] == ["batch 3", "batch 2", "batch 1"]
        before = datetime.fromisoformat(f"{store.read(lambda snapshot: snapshot.now())}"[:19])
        assert admin.forget_settled(before - timedelta(hours=1), 10) is False
        assert admin.forget_settled(before + timedelta(hours=1), 2) is True
        assert [batch.content for batch in admin.settled_with([4])] == ["batch 3"]
        assert admin.forget_settled(before + timedelta(hours=1), 2) is False
    assert [batch.number for batch in store.remembered()] == [4]


def test_why_a_row_failed_is_kept(store: Store) -> None:
    write(store, *keys(1))
    with leading(store) as epoch:
        for tries in (1, 2):
            with store.admin() as admin:
                admin.redrive({1: 0})
            with store.as_leader(epoch) as work:
                work.fail([Failure(1, "eventlog:1", "refused: <x>", "<nds/>", tries)])
                work.finish({Letter.ERROR: [1]})
    with store.admin() as admin:
        (error,) = admin.failures(FailureFilter())
    assert (error.record_id, error.status, error.table_key) == (1, "E", "idu=1")
    assert (error.event_id, error.reason, error.document, error.tries) == (
        "eventlog:1",
        "refused: <x>",
        "<nds/>",
        2,
    )


class Usr:
    """A table as the catalogue describes it to the query-back."""

    key = (KeyColumn("t.idu", "integer"), KeyColumn("t.part", "varchar(9)"))
    expressions = ("t.fname",)
    source = "usr"
    places = (("public", "usr"),)
    functions = ""
    elsewhere = None
    view = False


@pytest.fixture
def usr(store: Store) -> type[Usr]:
    with store.engine.begin() as connection:
        connection.execute(
            text("create table usr (idu integer, part varchar(9), fname varchar(9), primary key (idu, part))")
        )
        rows = [{"i": n, "p": f"p'{n}", "f": None if n == 2 else f"n{n}"} for n in range(5)]
        connection.execute(text("insert into usr values (:i, :p, :f)"), rows)
    return Usr


def test_current_rows_are_read_by_typed_keys(store: Store, usr: type[Usr]) -> None:
    wanted = [("3", "p'3"), ("2", "p'2"), ("9", "p'9"), ("1", "p'2"), ("3", "p'3")]
    with store.snapshot() as snapshot:
        assert list(snapshot.current_rows(usr(), wanted)) == [(0, ("n3",)), (1, (None,)), (4, ("n3",))]


def test_current_rows_are_too_much_when_they_come_to_so_many_bytes(store: Store, usr: type[Usr]) -> None:
    wanted = [("3", "p'3"), ("9", "p'9"), ("2", "p'2"), ("1", "p'1")]  # two bytes, no row, null, two
    by_column = [TableKeys(usr(), list(zip(*wanted, strict=True)))]
    with store.snapshot() as snapshot:
        places, (texts,) = snapshot.current_columns(by_column, 5)
        assert (places.tolist(), texts.to_pylist()) == ([0, 2, 3], ["n3", None, "n1"])
        assert len(list(snapshot.current_rows(usr(), wanted, 5))) == 3
        for bound in (2, 3, 4):
            with pytest.raises(TooMuch):
                list(snapshot.current_rows(usr(), wanted, bound))
            with pytest.raises(TooMuch):
                snapshot.current_columns(by_column, bound)
        assert len(list(snapshot.current_rows(usr(), wanted))) == 3  # the connection can go on


def test_letters_of_two_bytes_count_twice(store: Store, usr: type[Usr]) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("update usr set fname = 'ää' where idu = 1"))
    key, allowance = ("1", "p'1"), Allowance(5)
    with store.snapshot() as snapshot:
        (current,) = snapshot.current_rows(usr(), [key], allowance.remaining)
        for bound in (3, 4):
            with pytest.raises(TooMuch):
                list(snapshot.current_rows(usr(), [key], bound))
            with pytest.raises(TooMuch):
                snapshot.current_columns([TableKeys(usr(), [[part] for part in key])], bound)
    allowance.use(byte_count(current.texts))
    assert allowance.remaining == 1


def test_tables_share_the_bound_of_bytes(store: Store, usr: type[Usr]) -> None:
    keys = [("3", "p'3"), ("9", "p'9"), ("1", "p'1")]  # two bytes, no row, two
    asked = [TableKeys(usr(), list(zip(*some, strict=True))) for some in (keys, [], keys[1:])]
    with store.snapshot() as snapshot:
        places, (texts,) = snapshot.current_columns(asked, 7)
        assert (places.tolist(), texts.to_pylist()) == ([0, 2, 4], ["n3", "n1", "n1"])
        for bound in (2, 4, 6):
            with pytest.raises(TooMuch):
                snapshot.current_columns(asked, bound)


def test_many_keys_of_a_table_are_read_by_several_statements(store: Store, usr: type[Usr]) -> None:
    dialect = store.log.dialect
    log = Log(replace(dialect, statements=replace(dialect.statements, chunk=2)))
    keys = [("3", "p'3"), ("9", "p'9"), ("1", "p'1"), ("2", "p'2"), ("4", "p'4")]
    asked = [TableKeys(usr(), list(zip(*some, strict=True))) for some in (keys[:1], keys, keys[2:3])]
    with Store(store.engine, log).snapshot() as snapshot:
        places, (texts,) = snapshot.current_columns(asked, 11)
        assert (places.tolist(), texts.to_pylist()) == (
            [0, 1, 3, 4, 5, 6],
            ["n3", "n3", "n1", None, "n4", "n1"],
        )
        with pytest.raises(TooMuch):
            snapshot.current_columns(asked, 10)


def test_current_rows_are_those_of_the_snapshot(store: Store, usr: type[Usr]) -> None:
    with store.snapshot() as snapshot:
        snapshot.pick_up(PickUpFilter())
        with store.engine.begin() as connection:
            connection.execute(text("delete from usr"))
        assert len(list(snapshot.current_rows(usr(), [("1", "p'1")]))) == 1


TOKYO = {
    "postgresql": ("alter database {place} set timezone to 'Asia/Tokyo'", "select 1"),
    "mariadb": ("set global time_zone = '+09:00'", "set global time_zone = 'SYSTEM'"),
    "mysql": ("set global time_zone = '+09:00'", "set global time_zone = 'SYSTEM'"),
}


@pytest.mark.cold
def test_a_log_of_the_original_may_count_in_the_servers_own_zone(store: Store, database: Database) -> None:
    if database.dialect.name not in TOKYO:
        pytest.skip(f"{database.name}: its zone is the operating system's")
    away, back = TOKYO[database.dialect.name]
    clock = now(store)
    for hours in (1, 8, 10):  # in Tokyo it is nine hours later
        write(store, {"table_key": f"h={hours}", "event_time": clock + timedelta(hours=hours)})
    local = Store(store.engine, Log(database.dialect, local_time=True))
    with store.engine.begin() as connection:
        connection.execute(text(away.format(place=database.url.database)))
    try:
        assert pick_up(local, future=True) == ["h=1", "h=8"]
        with local.snapshot() as snapshot:
            first = read_entry(tuple(snapshot.pick_up(PickUpFilter()).cells[0]))
        assert datetime.fromisoformat(first.event_time) == clock - timedelta(hours=8)
    finally:
        with store.engine.begin() as connection:
            connection.execute(text(back))
    assert pick_up(store, future=True) == []


def test_the_lock_goes_with_its_leader_though_connections_are_kept(database: Database, store: Store) -> None:
    engine = connect.connect(database.url, keep_open=2)
    kept = Store(engine, store.log)
    for _ in range(3):
        with leading(kept) as epoch, kept.as_leader(epoch) as work:
            work.record_heartbeat()
    engine.dispose()
