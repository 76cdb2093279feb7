"""finish-mode ranges: the log does not change, and finished rows are recorded in another table."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from eventlog.operate import finishing
from eventlog.operate.finishing import NoRanges, change_mode
from eventlog.operate.upkeep import Purge, purge, skip
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.sql.log.finished_ranges import DoneOfOther
from eventlog.sql.log.finishing import FinishMode
from eventlog.sql.log.position import IdsComeAgain
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from eventlog.xds.answers import Level, Status
from tests.databases import own_ids
from tests.publisher.test_commands import call
from tests.publisher.world import Receiver, World, key
from tests.targets.test_meeting import WAITING, kind, until

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("either_way")]


@pytest.fixture
def world(world: World) -> World:
    """A log that is finished by ranges."""
    change_mode(world.store, FinishMode.RANGES, "test")
    return world


def answered(levels: dict[str, Level]) -> Receiver:
    """Return a receiver that answers events so, and the others with success."""

    def answer(document: OutgoingDocument) -> Reply:
        known = (item.event_id for item in document.items if item.event_id in levels)
        return Reply([Status(levels[event_id], event_id, "so") for event_id in known])

    return Receiver(answer)


def deletes(*numbers: int) -> list[dict[str, Any]]:
    return [key(number, event_type=4) for number in numbers]


def a_lock_is_waited_for(world: World) -> bool:
    """Return whether a session waits for another one's lock."""
    with world.engine.connect() as connection:
        return bool(connection.execute(text(WAITING[kind(world.engine)])).scalar_one())


def purge_all(world: World) -> int:
    """Purge what is handled, however new it is; how many rows that were."""
    with world.store.snapshot() as snapshot:
        later = datetime.fromisoformat(snapshot.now()) + timedelta(hours=1)
    return purge(world.store, Purge(later))


def in_the_log(world: World) -> set[str]:
    """Return the letters in the log itself."""
    with world.engine.connect() as connection:
        return {row[0] for row in connection.execute(text("select status from eventlog"))}


def ranges(world: World) -> list[tuple[int, int, str]]:
    with world.engine.connect() as connection:
        found = connection.execute(
            text("select first_id, last_id, letter from eventlog_done order by first_id")
        )
        return [(row[0], row[1], row[2]) for row in found]


def every_letter(world: World) -> dict[int, str]:
    """Make rows 1 to 7 with every letter; row 5 waits."""
    world.write(*deletes(*range(1, 8)))
    levels = {"2": Level.WARNING, "3": Level.ERROR, "5": Level.RETRY, "7": Level.FATAL}
    receiver = answered({f"eventlog:{row}": level for row, level in levels.items()})
    with pytest.raises(ReceiverFatal):
        world.cycle(receiver)
    return {1: "S", 2: "W", 3: "E", 4: "S", 5: "N", 6: "S", 7: "F"}


def test_letters_stand_beside_the_log_and_nothing_in_it_changes(world: World) -> None:
    letters = every_letter(world)
    assert world.letters() == letters
    assert in_the_log(world) == {"N"}
    assert ranges(world) == [(1, 1, "S"), (2, 2, "W"), (3, 3, "E"), (4, 4, "S"), (6, 6, "S"), (7, 7, "F")]
    assert "E" in call(world, "status").output
    assert "finished     by ranges" in call(world, "status").output
    assert "3" in call(world, "errors").output
    assert "its status is S" in call(world, "explain", "--key", "idu=1").output


def test_neighbours_with_one_letter_become_one_range(world: World) -> None:
    for number in range(1, 8):
        world.write(*deletes(number))
        world.cycle(Receiver())
    assert ranges(world) == [(1, 7, "S")]


def test_failed_rows_are_redriven_and_others_skipped(world: World) -> None:
    letters = every_letter(world)
    assert call(world, "redrive", "3").exit_code == 0
    assert skip(world.store, [5, 7, 99], "enough").rows == 2
    assert world.letters() == letters | {3: "N", 5: "W", 7: "W"}
    receiver = Receiver()
    world.cycle(receiver)
    assert receiver.event_ids == ["eventlog:3"]
    assert world.letters() == letters | {3: "S", 5: "W", 7: "W"}
    assert in_the_log(world) == {"N"}
    assert call(world, "redrive", "--all").exit_code == 0
    assert world.write(*deletes(100)) == [8]  # what is not there was not skipped


def test_a_row_may_come_into_a_gap_at_any_time(world: World) -> None:
    """Commit a row with an old number after its neighbours were finished."""
    names = world.log.names()
    insert = text(f"insert into {names['log']} (event_type, table_name, table_key) values (4, 'usr', :key)")
    with world.publisher(receiver := Receiver()) as publisher, world.engine.connect() as late:
        world.write(*deletes(1))
        late.execute(insert, {"key": "idu=2"})
        world.write(*deletes(3, 4))
        publisher.cycle()
        assert ranges(world) == [(1, 1, "S"), (3, 4, "S")]
        late.commit()
        publisher.cycle()
    assert receiver.objects == ["idu=1", "idu=3", "idu=4", "idu=2"]
    assert ranges(world) == [(1, 4, "S")]


def test_a_number_that_was_drawn_before_its_transaction_had_an_id_is_not_lost(world: World) -> None:
    """Find a row whose transaction had no id when its number was drawn."""
    names = world.log.names()
    columns = "record_id, event_type, table_name, table_key"
    values = f"{own_ids(world.log.dialect)}values (:id, 4, 'usr', 'idu=2')"
    insert = text(f"insert into {names['log']} ({columns}) {values}")
    drawing = {"postgresql": "select nextval(pg_get_serial_sequence('eventlog', 'record_id'))"}
    with world.publisher(receiver := Receiver()) as publisher, world.engine.connect() as late:
        world.write(*deletes(1))
        drawn = drawing.get(world.log.dialect.name)
        number = late.execute(text(drawn)).scalar() if drawn else 2
        assert number == 2
        if not drawn:
            world.change(str(insert).replace(":id", "3"))
        world.write(*deletes(3 if drawn else 4, 5))
        for _ in range(3):
            world.change("insert into usr values (1, 'a', 'b')")  # transactions pass by
            world.change("delete from usr")
            publisher.cycle()
        late.execute(insert, {"id": number})
        late.commit()
        publisher.cycle()
    assert "eventlog:2" in receiver.event_ids
    assert world.counts()["S"] == len(receiver.event_ids)


def test_the_mode_changes_to_and_fro_and_every_letter_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finishing, "CHUNK", 2)
    letters = every_letter(world)
    for mode in (FinishMode.UPDATE, FinishMode.RANGES, FinishMode.DELETE, FinishMode.RANGES):
        assert change_mode(world.store, mode, "test")
        assert world.letters() == letters
        assert ranges(world) == []
        assert in_the_log(world) == set("NSWEF")
    assert skip(world.store, [3], "enough").rows == 1  # with a letter of the log itself
    world.write(*deletes(8))
    world.cycle(receiver := Receiver())
    assert receiver.event_ids == ["eventlog:8"]
    assert world.letters() == letters | {3: "W", 8: "S"}


def test_a_change_that_was_killed_goes_on(world: World) -> None:
    letters = every_letter(world)
    with world.elect() as leader, world.store.work(leader.epoch) as work:
        assert work.write_letters(3)
    assert world.letters() == letters
    assert len(ranges(world)) == 3
    assert world.store.finish_mode() is FinishMode.RANGES
    world.write(*deletes(8))
    world.cycle(receiver := Receiver())
    assert receiver.event_ids == ["eventlog:8"]
    assert change_mode(world.store, FinishMode.UPDATE, "test")
    assert world.letters() == letters | {8: "S"}
    assert ranges(world) == []


def test_purging_takes_rows_and_their_ranges_and_leaves_one_row_to_know_the_log_by(world: World) -> None:
    letters = every_letter(world)
    world.write(*deletes(8))
    world.cycle(Receiver())
    assert purge_all(world) == 4
    assert world.letters() == {row: letter for row, letter in letters.items() if letter in "NEF"} | {8: "S"}
    assert ranges(world) == [(3, 3, "E"), (7, 7, "F"), (8, 8, "S")]
    world.write(*deletes(9))
    world.cycle(receiver := Receiver())
    assert receiver.event_ids == ["eventlog:9"]
    assert purge_all(world) == 1


def test_a_log_that_was_truncated_is_recognised_and_nothing_in_it_is_taken_as_done(world: World) -> None:
    world.write(*deletes(1, 2, 3))
    world.cycle(Receiver())
    world.change("delete from eventlog")
    assert world.write(*deletes(4)) == [4]
    receiver = Receiver()
    with pytest.raises(DoneOfOther, match=r"row 3 of .* is gone"):
        world.cycle(receiver)
    reported = call(world, "check")
    assert reported.exit_code == 1
    assert "belongs to other rows" in reported.output
    assert call(world, "finish-mode", "update").exit_code == 1
    assert "is forgotten" in call(world, "check", "--advance-sequence").output
    assert "is forgotten" not in call(world, "check", "--advance-sequence").output
    world.cycle(receiver)
    assert receiver.event_ids == ["eventlog:4"]


def test_numbers_that_came_again_while_nobody_looked_are_not_taken_as_done(world: World) -> None:
    """Check the rows, because the sequence is past the published rows by now."""
    world.write(*deletes(1, 2, 3))
    world.cycle(Receiver())
    begin_again = " restart identity" if world.log.dialect.transactional_ddl else ""
    world.change(f"truncate eventlog{begin_again}")
    world.write(*deletes(*range(11, 17)))
    receiver = Receiver()
    with pytest.raises((DoneOfOther, IdsComeAgain)):
        world.cycle(receiver)
    assert receiver.documents == []
    assert "is forgotten" in call(world, "check", "--advance-sequence").output
    world.cycle(receiver)
    assert receiver.objects == [f"idu={number}" for number in range(11, 17)]


def test_a_leader_at_work_recognises_it_too(world: World) -> None:
    with world.publisher(receiver := Receiver()) as publisher:
        world.write(*deletes(1, 2))
        publisher.cycle()
        begin_again = " restart identity" if world.log.dialect.transactional_ddl else ""
        world.change(f"truncate eventlog{begin_again}")
        world.write(*deletes(3))
        with pytest.raises(DoneOfOther):
            publisher.cycle()
    assert receiver.objects == ["idu=1", "idu=2"]


def test_ranges_that_were_lost_are_recognised(world: World) -> None:
    world.write(*deletes(1, 2, 3))
    world.cycle(Receiver())
    world.change("delete from eventlog_done")
    with pytest.raises(DoneOfOther, match="it reached up to row 3, and reaches up to 0"):
        world.cycle(Receiver())


def test_an_attached_log_and_one_without_integers_are_refused(world: World) -> None:
    world.change("create table other as select * from eventlog where 1 = 0")
    other = Log(world.log.dialect, "other", unique=False)
    try:
        migrate.install(world.engine, other)
        with pytest.raises(NoRanges, match="attached"):
            change_mode(Store(world.engine, other), FinishMode.RANGES, "test")
        world.change("update other_state set attached = 0")
        with pytest.raises(NoRanges, match="no integer column with a unique key"):
            change_mode(Store(world.engine, other), FinishMode.RANGES, "test")
        world.change("update other_state set attached = 1")
    finally:
        migrate.uninstall(world.engine, other, discard=True)
        world.change("drop table other")


@pytest.mark.slow("it publishes one log in each mode")
@pytest.mark.parametrize(("seed", "kinds"), [(0, (3, 3, 6)), (1, (3, 3, 4))])
def test_every_mode_sends_the_same_and_comes_to_the_same_letters(
    world: World, seed: int, kinds: Sequence[int]
) -> None:
    """Compare the modes where every row has an event.

    The same rows and the same answers, some of them retry; some rows are skipped, some redriven, and what
    is handled is purged now and then. What stays when it is redriven stays in every mode.
    """
    runs = {mode: history(world, mode, seed, kinds) for mode in FinishMode}
    assert len(runs[FinishMode.UPDATE].documents) > 20
    assert 1 in {code for code, _ in runs[FinishMode.UPDATE].redriven}
    assert runs[FinishMode.RANGES] == runs[FinishMode.UPDATE]
    assert runs[FinishMode.DELETE] == runs[FinishMode.UPDATE]


class History(NamedTuple):
    """The fates of some rows."""

    documents: list[str]
    letters: dict[int, str]  # of rows that were not published
    redriven: list[tuple[int, str]]  # each with its exit code and its output


def some_row(dice: random.Random, kinds: Sequence[int]) -> dict[str, Any]:
    """Return a row of one of six users, of one of these types."""
    kind = dice.choice(kinds)
    field = {"column_name": dice.choice(("fname", "lname")), "new_value": "x"} if kind == 3 else {}
    return key(dice.randint(1, 6), event_type=kind, **field)


def history(world: World, mode: FinishMode, seed: int, kinds: Sequence[int]) -> History:
    world.clear()
    for number in range(1, 7):
        world.user(number)
    change_mode(world.store, mode, "test")
    dice = random.Random(seed)
    redriven = []

    def answer(document: OutgoingDocument) -> Reply:
        level = random.Random(f"{seed}{document.name}").choice([*[Level.SUCCESS] * 5, *list(Level)[:4]])
        return Reply([Status(level, item.event_id, "so") for item in document.items])

    receiver = Receiver(answer)
    with world.publisher(receiver, query_limit=7, retry_wait=0.0) as publisher:
        for _ in range(16):
            for _ in range(dice.randint(0, 4)):
                world.write(*(some_row(dice, kinds) for _ in range(3)))
            publisher.cycle()
            row = dice.randint(1, 100)
            if world.letters().get(row, "S") in "EF":
                skip(world.store, [row], "enough")
            if dice.random() < 0.3:
                purge_all(world)
            if dice.random() < 0.3:
                result = call(world, "redrive", "--all")
                redriven.append((result.exit_code, result.output))
    letters = {row: letter for row, letter in world.letters().items() if letter in "NEF"}
    return History([document.text for document in receiver.documents], letters, redriven)


def test_a_skip_that_meets_a_change_of_the_mode_writes_where_letters_stand_then(world: World) -> None:
    world.write(*deletes(1))
    skipping = threading.Thread(target=skip, args=(world.store, [1], "why"))
    with world.engine.connect() as changing:
        state = world.log.names()["state"]
        changing.execute(text(f"update {state} set finish_mode = 'update' where one = 1"))
        skipping.start()
        until(lambda: a_lock_is_waited_for(world))
        changing.commit()
    skipping.join(60)
    assert in_the_log(world) == {"W"}
