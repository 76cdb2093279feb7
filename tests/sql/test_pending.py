"""Every way to read pending rows finds the unfinished ones, and no others."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import text

from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError
from eventlog.sql.log import pending
from eventlog.sql.log.log_admin import LogInUse
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.snapshot import Fates
from eventlog.sql.log.store import Store
from eventlog.sql.schema import migrate
from eventlog.sql.schema.migrate import LogLed
from tests.kit.databases import own_ids
from tests.kit.logs import leading

pytestmark = pytest.mark.quick

IDS = [*range(1, 8), *range(20, 26), *range(2039, 2057), 6144]  # and gaps that stay


@pytest.fixture
def epoch(store: Store) -> Iterator[int]:
    with leading(store) as epoch:
        yield epoch


def write(store: Store, ids: list[int]) -> None:
    """Write rows whose times run against their ids; every fifth is of the driver's own user."""
    names = store.log.names()
    columns = ("record_id", "event_type", "table_name", "table_key", "event_time", "perpetrator")
    marks = f":id, 4, 'usr', :key, {LONG_AGO[store.log.dialect.name]}, :user"
    rows = [{"id": n, "key": f"k={n % 3}", "user": "idm" if n % 5 == 0 else None} for n in ids]
    with store.engine.begin() as connection:
        into = ", ".join(names[name] for name in columns)
        values = f"{own_ids(store.log.dialect)}values ({marks})"
        connection.execute(text(f"insert into {names['log']} ({into}) {values}"), rows)


_MY = "timestamp'2025-01-01 00:00:00' - interval :id second"
LONG_AGO = {
    "postgresql": "timestamp'2025-01-01 00:00:00' - cast(:id as integer) * interval '1 second'",
    "mysql": _MY,
    "mariadb": _MY,
}


def ids_of(cells: Any) -> list[int]:
    return [int(row[0]) for row in cells]


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_pending_rows_are_those_that_are_not_finished(
    store: Store, epoch: int, seed: int, delete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "BY_COLUMN_FROM", 0)
    dice = random.Random(seed)
    late = [n for n in IDS if dice.random() < 0.2]
    write(store, [n for n in IDS if n not in late])
    there = set(IDS).difference(late)
    done: set[int] = set()
    for ids in (
        [n for n in there if dice.random() < 0.6],
        [n for n in there if n < 2048 and dice.random() < 0.5],
    ):
        letters = {Letter.SUCCESS: ids[::2], Letter.ERROR: ids[1::2]}
        with store.as_leader(epoch) as work:
            work.finish(letters, delete=delete)
        assert work.finished == len(set(ids) - done)
        done.update(ids)
        every_way(store, sorted(there - done))
    write(store, late)  # what was numbered before commits now
    every_way(store, sorted({*IDS} - done))


def every_way(store: Store, pending_ids: list[int]) -> None:
    """Each way of reading finds exactly these."""
    free = [n for n in pending_ids if n % 5]
    with store.snapshot() as snapshot:
        assert ids_of(snapshot.pick_up(PickUpFilter()).cells) == pending_ids
        assert ids_of(snapshot.pick_up(PickUpFilter(driver_user="idm")).cells) == free
        by_time = snapshot.pick_up(PickUpFilter(driver_user="idm", future=True)).cells
        assert ids_of(by_time) == free[::-1]
        columns = snapshot.read_pending(PickUpFilter(by_column=True)).columns
        assert columns is not None
        assert columns.ids.tolist() == pending_ids
        first = snapshot.pick_up(PickUpFilter(2)).cells
        assert ids_of(first) == pending_ids[:2]
        assert (
            ids_of(snapshot.every_pending(PickUpFilter(2), pending_ids[0], pending_ids[-2]))
            == pending_ids[1:-1]
        )
        assert ids_of(snapshot.pending_after(pending_ids[1], 5)) == pending_ids[2:7]
        assert snapshot.loopback("idm", 100) == [n for n in pending_ids if n % 5 == 0]
        fates = snapshot.fates(PickUpFilter(driver_user="idm"))
        assert {fate: reported.rows for fate, reported in fates.items()} == {
            "free": len(free),
            "loopback": len(pending_ids) - len(free),
        }
        assert fates["free"].first == min(str(row[3]) for row in by_time)
        assert isinstance(fates["free"], Fates)
        letters = {int(str(row[0])): row[1] for row in snapshot.rows(IDS)}
        assert [n for n, letter in letters.items() if letter == "N"] == pending_ids
    with store.admin() as admin:
        reported = admin.backlog()
        assert reported.pending == len(pending_ids)
        assert reported.oldest is not None
        assert {count.status: count.rows for count in admin.counts()}.get("N") == len(pending_ids)
    with store.snapshot() as snapshot:
        assert len(snapshot.read_pending(PickUpFilter(limit=5, most_bytes=10**9)).ids) == 5


def test_rows_of_a_halted_table_are_left_however_they_spell_it(store: Store) -> None:
    names = store.log.names()
    columns = ", ".join(names[name] for name in ("record_id", "event_type", "table_name", "table_key"))
    rows = [{"id": n, "name": name} for n, name in enumerate(("usr", "USR", "Usr", "grp"), 1)]
    into = f"insert into {names['log']} ({columns}) {own_ids(store.log.dialect)}values (:id, 4, :name, 'k=1')"
    with store.engine.begin() as connection:
        connection.execute(text(into), rows)
    with store.snapshot() as snapshot:
        assert snapshot.read_pending(PickUpFilter(halted=frozenset(("usr",)))).ids == [4]


@pytest.mark.long
def test_the_leader_and_people_write_letters_at_the_same_time(store: Store, epoch: int) -> None:
    """Let them work without deadlocks; what was skipped stays so."""
    write(store, list(range(1, 401)))
    faults: list[EventlogError] = []
    skipped: set[int] = set()
    person = Thread(target=look_after, args=(store, skipped, faults))
    person.start()
    for low in range(1, 401, 5):
        with store.as_leader(epoch) as work:
            work.finish({Letter.ERROR: range(low, low + 5)})
            work.note_highest(low)
    person.join()
    assert faults == []
    with store.snapshot() as snapshot:
        letters = {int(str(row[0])): row[1] for row in snapshot.rows(range(1, 401))}
    assert {*letters.values()} == set("NEW")
    assert {row for row, letter in letters.items() if letter == "W"} == skipped


def look_after(store: Store, skipped: set[int], faults: list[EventlogError]) -> None:
    """Call redrive and skip for rows of any state."""
    dice = random.Random(1)
    try:
        for _ in range(40):
            ids = dice.sample(range(1, 401), 5)
            with store.admin() as admin:
                admin.redrive(dict.fromkeys(ids[:3], 0) | {ids[0]: 6})
                admin.skip(ids[3:], "enough")
                time.sleep(0.005)  # the longer it is open, the more meet it
            skipped.update(ids[3:])
    except EventlogError as fault:
        faults.append(fault)


def test_a_log_is_taken_away_unasked_once_every_row_has_its_letter_and_no_publisher_leads(
    store: Store,
) -> None:
    write(store, [1, 2, 3])
    with leading(store) as epoch:
        with store.as_leader(epoch) as work:
            work.finish({Letter.SUCCESS: [1, 2]})
        with pytest.raises(LogLed, match=r"is not uninstalled while a publisher runs \(.*\d+.*\): stop it"):
            migrate.uninstall(store.engine, store.log, discard=True)
    with pytest.raises(LogInUse, match="1 row"):
        migrate.uninstall(store.engine, store.log)
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.finish({Letter.WARNING: [3]})
    assert migrate.uninstall(store.engine, store.log)
