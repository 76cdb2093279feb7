"""Record ids as ranges: what is written so is what was named, and nothing that was not."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from eventlog.core.entry import COLUMNS, Letter
from eventlog.sql.connect import connect
from eventlog.sql.log.binding import bind
from eventlog.sql.log.leader_transaction import LONG, long_ranges
from eventlog.sql.log.log_record import ranges_of
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from tests.kit.logs import leading, write_rows

pytestmark = pytest.mark.quick

RUNS = st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 3 * LONG)), max_size=6)


def every(ranges: Iterable[tuple[int, int]]) -> list[int]:
    return [number for low, high in ranges for number in range(low, high + 1)]


@given(RUNS)
def test_ranges_are_the_ids_again(runs: list[tuple[int, int]]) -> None:
    ids = every((low, low + size) for low, size in runs)
    found = ranges_of(ids)
    assert every(found) == sorted(set(ids))
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(found))


@given(RUNS)
def test_long_ranges_and_the_rest_are_the_ids_again(runs: list[tuple[int, int]]) -> None:
    ids = every((low, low + size) for low, size in runs)
    long, rest = long_ranges(ids)
    assert sorted(every(long) + rest) == sorted(set(ids))
    assert all(high - low + 1 >= LONG and high + 1 in rest for low, high in long)


@pytest.fixture
def store(store: Store) -> Store:
    with store.engine.connect() as connection:
        return Store(store.engine, bind(connection, store.log))


def write(store: Store, rows: int) -> None:
    with store.engine.begin() as connection:
        write_rows(connection, store.log, *[{"table_key": "idu=1"}] * rows)


def finish(store: Store, ids: Sequence[int], *, delete: bool) -> int:
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.finish({Letter.SUCCESS: ids}, delete=delete)
    return work.finished


def letters(store: Store) -> dict[int, str]:
    with store.snapshot() as snapshot:
        return {int(str(row[0])): str(row[1]) for row in snapshot.rows(range(1, 1001))}


@pytest.mark.parametrize("delete", [False, True])
def test_only_what_was_named_is_finished(store: Store, delete: bool) -> None:
    write(store, 1000)
    ids = [n for n in range(1, 1001) if n % 7 or n < 500]
    assert store.log.ranged
    assert finish(store, ids[:300], delete=False) == 300
    assert finish(store, ids[::-1], delete=delete) == len(ids) - 300
    left = dict.fromkeys(set(range(1, 1001)).difference(ids), "N")
    done = dict.fromkeys(ids[:300] if delete else ids, "S")
    assert letters(store) == left | done


@pytest.mark.parametrize("delete", [False, True])
def test_a_writer_who_has_the_next_row_open_is_not_waited_for(store: Store, delete: bool) -> None:
    write(store, 300)
    with store.engine.connect() as writer:
        write_rows(writer, store.log, {"table_key": "idu=2"})
        impatient = connect(store.engine.url, IMPATIENT[store.log.dialect.name])
        assert finish(Store(impatient, store.log), range(1, 301), delete=delete) == 300
        writer.commit()
    assert letters(store)[301] == "N"


IMPATIENT = {
    "postgresql": ("set lock_timeout = '2s'",),
    "mariadb": ("set innodb_lock_wait_timeout = 2",),
    "mysql": ("set innodb_lock_wait_timeout = 2",),
    "oracle": (),
}


@pytest.mark.parametrize("delete", [False, True])
def test_a_row_that_commits_after_its_neighbours_were_finished_is_not_lost(
    store: Store, delete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write and roll back at random; finish at once what is read, in ranges of two and more."""
    monkeypatch.setattr("eventlog.sql.log.leader_transaction.LONG", 1)
    committed: set[str] = set()
    picked: Counter[str] = Counter()
    writers = [Thread(target=keep_writing, args=(store, number, committed)) for number in range(4)]
    with leading(store) as epoch:
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            picked += read_and_finish(store, epoch, delete=delete)
        while found := read_and_finish(store, epoch, delete=delete):
            picked += found
    assert picked == Counter(committed)


def keep_writing(store: Store, number: int, committed: set[str]) -> None:
    dice = random.Random(number)
    for transaction in range(60):
        keys = [f"idu={number}_{transaction}_{row}" for row in range(dice.randint(1, 4))]
        with store.engine.connect() as connection:
            for key in keys:
                write_rows(connection, store.log, {"table_key": key})
                time.sleep(dice.random() * 0.01)
            if dice.random() < 0.8:
                connection.commit()
                committed.update(keys)


def read_and_finish(store: Store, epoch: int, *, delete: bool) -> Counter[str]:
    with store.snapshot() as snapshot:
        rows = snapshot.pick_up(PickUpFilter()).cells
    if rows:
        with store.as_leader(epoch) as work:
            work.finish({Letter.SUCCESS: [int(str(row[0])) for row in rows]}, delete=delete)
        assert work.finished == len(rows)
    return Counter(str(row[6]) for row in rows)


def test_a_log_whose_record_id_has_no_unique_key_of_its_own_is_finished_by_ids(store: Store) -> None:
    number, names = store.log.dialect.values.integer.replace("signed", "bigint"), store.log.names()
    types = dict.fromkeys(COLUMNS, "varchar(300)") | dict.fromkeys(("record_id", "event_type"), number)
    columns = ", ".join(
        f"{names[name]} {kind}" for name, kind in (types | {"event_time": "timestamp"}).items()
    )
    other = Log(store.log.dialect, "other")
    key = names["record_id"]
    with store.engine.begin() as connection:
        connection.execute(text(f"create table other ({columns}, unique ({key}, {names['event_type']}))"))
        assert not bind(connection, other).ranged
        connection.execute(text(f"create unique index other_ids on other ({key})"))
        assert bind(connection, other).ranged
        connection.execute(text("drop table other"))
