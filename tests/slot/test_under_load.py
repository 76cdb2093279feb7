"""A change of the mode while others write: it gives way to them, tries again, and ends in time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from eventlog.operate import changing
from eventlog.operate.changing import StillInUse, fill_by_triggers
from eventlog.sql.capture.track import track
from eventlog.sql.relation import Choice
from tests.kit.logs import Receiver
from tests.kit.support import patient, until
from tests.slot.rig import SlotWorld, once

pytestmark = [pytest.mark.quick, pytest.mark.cold]

_TABLES = "hr_other usr"
_TRIGGERS = "select count(*) from pg_trigger where not tgisinternal"
_WAITING = """select count(*) from pg_locks
    where not granted and relation in ('usr'::regclass, 'hr_other'::regclass) and pid <> pg_backend_pid()"""


def to_slot(world: SlotWorld) -> None:
    world.fill(_TABLES)


def to_triggers(world: SlotWorld) -> None:
    list(fill_by_triggers(world.settings(_TABLES), world.store))


@contextmanager
def logged_by(world: SlotWorld, change: Callable[[SlotWorld], None]) -> Iterator[None]:
    """Prepare two tables for a change of the mode, whose rows are all in the log at the end."""
    world.run("create table hr_other (n integer primary key)")
    for table in _TABLES.split():
        track(world.engine, world.log, table, Choice())
    if change is to_triggers:
        to_slot(world)
    else:  # the command makes none, which would wait for all transactions
        world.run(f'create publication "{world.slot}" for table usr')
        world.run(f"select pg_create_logical_replication_slot('{world.slot}', 'pgoutput')")
    world.user(1)
    yield
    if change is to_slot:
        once(world, Receiver(), _TABLES)
    changed = [(table, key) for _, table, key in world.logged()]
    assert changed == [("usr", "idu=1"), ("usr", "idu=1"), ("hr_other", "n=3"), ("hr_other", "n=2")]


@pytest.mark.parametrize("change", [to_slot, to_triggers])
def test_a_writer_that_meets_it_crosswise_goes_on_and_so_does_the_command(
    world: SlotWorld, change: Callable[[SlotWorld], None]
) -> None:
    """Each waits for a table that the other one has. The server would end the one that looks first."""
    faults: list[Exception] = []

    def work() -> None:
        try:
            change(world)
        except Exception as fault:
            faults.append(fault)

    command = threading.Thread(target=work)
    with logged_by(world, change):
        with world.engine.connect() as writer, writer.begin():
            writer.execute(text("set local deadlock_timeout = '1h'"))
            writer.execute(text("update usr set fname = 'June'"))
            command.start()
            until(lambda: world.value(_WAITING) or not command.is_alive(), pause=0)
            writer.execute(text("insert into hr_other values (3)"))
        command.join(patient(60))
        assert faults == []
        world.run("insert into hr_other values (2)")
    assert (world.value(_TRIGGERS) > 0) == (change is to_triggers)


def test_a_table_that_is_always_in_use_ends_it_and_the_triggers_stay(
    world: SlotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "_PAUSES", (0.0, 0.0))
    track(world.engine, world.log, "usr", Choice())
    count = world.value(_TRIGGERS)
    with world.engine.begin() as writer:
        writer.execute(text("lock table usr in access share mode"))
        with pytest.raises(StillInUse, match="usr"):
            world.fill()
    assert world.value(_TRIGGERS) == count
    assert world.fill()[0].endswith("fills the log")
    assert world.value(_TRIGGERS) == 0
