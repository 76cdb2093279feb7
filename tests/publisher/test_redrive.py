"""A failed event is redriven, skipped and shown whole; a value that would come too late is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from lxml import etree
from sqlalchemy import text

from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status
from tests.publisher.test_commands import busy, call, fail
from tests.publisher.test_deleting import purge_all
from tests.publisher.world import Receiver, World, key

pytestmark = pytest.mark.quick

BAD = "\x01"


def insert(number: int, column: str, value: str | None, **more: Any) -> dict[str, Any]:
    return key(number, event_type=1, column_name=column, new_value=value, **more)


def update(number: int, column: str, value: str) -> dict[str, Any]:
    return key(number, event_type=3, column_name=column, new_value=value)


def failed(world: World) -> dict[int, str]:
    return {row: letter for row, letter in world.letters().items() if letter in "EF"}


def types(world: World) -> dict[int, int]:
    names = world.log.names()
    with world.engine.connect() as connection:
        sql = f"select {names['record_id']}, {names['event_type']} from {names['log']} order by 1"
        return {row[0]: row[1] for row in connection.exec_driver_sql(sql)}


def said(world: World, *words: str) -> str:
    result = call(world, *words)
    return result.output + str(result.exception or "")


def failed_add(world: World) -> None:
    """Make rows 1 and 3 one add that the receiver refused; row 2 is of another object."""
    world.user(1)
    world.user(2)
    world.write(insert(1, "fname", "Jack"), key(2), insert(1, "lname", "Frost"))
    world.cycle(Receiver(fail))


def failed_alone(world: World, level: Level = Level.SUCCESS) -> None:
    """Make row 2 of an add fail alone; the other row was answered with this level."""
    world.user(1)
    world.write(insert(1, "fname", "Jack"), insert(1, "lname", BAD))
    world.cycle(Receiver(lambda document: Reply([Status(level)])))
    assert world.letters() == {1: level.name[0], 2: "E"}


def sent(world: World) -> list[str]:
    """Return a summary of what the next cycle sends."""
    receiver = Receiver()
    world.cycle(receiver)
    return [" ".join([event.tag, *values(event)]) for event in receiver.events]


def values(event: etree._Element) -> Iterator[str]:
    for attribute in event.iter("add-attr", "modify-attr"):
        for value in attribute.iter("value"):
            yield f"{attribute.get('attr-name')}={value.text}"


def test_an_event_is_redriven_whole(world: World) -> None:
    failed_add(world)
    reported = said(world, "redrive", "3")
    assert "2 rows are new again" in reported
    assert world.letters() == {1: "N", 2: "E", 3: "N"}
    assert sent(world) == ["add fname=Jack lname=Frost"]


def test_rows_that_did_not_fail_are_named(world: World) -> None:
    failed_add(world)
    result = call(world, "redrive", "3", "99", "7")
    assert (result.exit_code, result.output.splitlines()) == (
        1,
        ["eventlog: 2 rows are new again", "eventlog: rows 7, 99 did not fail"],
    )
    result = call(world, "redrive", "2", "--table", "other")
    assert (result.exit_code, result.output.splitlines()) == (
        1,
        ["eventlog: 0 rows are new again", "eventlog: row 2 did not fail like that"],
    )
    assert world.letters() == {1: "N", 2: "E", 3: "N"}


def test_an_event_is_shown_whole(world: World) -> None:
    failed_add(world)
    lines = said(world, "errors", "3").splitlines()
    assert [line.split()[0] for line in lines] == ["1", "3"]
    assert "of eventlog:1-3:" in lines[0]
    assert "of eventlog:1-3:" in lines[1]


def test_an_event_is_skipped_whole(world: World) -> None:
    failed_add(world)
    reported = said(world, "skip", "1", "--reason", "test data")
    assert "2 rows are skipped" in reported
    assert "3" in reported
    assert world.letters() == {1: "W", 2: "E", 3: "W"}


def test_an_event_that_waits_is_skipped_whole(world: World) -> None:
    world.write(insert(1, "fname", "Jack"), insert(1, "lname", "Frost"), insert(2, "fname", "Joe"))
    with world.publisher(Receiver(busy)) as publisher:
        publisher.cycle()
    assert call(world, "skip", "2", "--reason", "test data").exit_code == 0
    assert world.letters() == {1: "W", 2: "W", 3: "N"}


@pytest.mark.parametrize("level", [Level.SUCCESS, Level.WARNING])
def test_a_row_of_an_insert_that_failed_alone_goes_read_back(world: World, level: Level) -> None:
    failed_alone(world, level)
    reported = said(world, "redrive", "2")
    assert "row 2 goes read back (type 8)" in reported
    assert "other rows of the insert were sent" in reported
    assert types(world) == {1: 1, 2: 8}
    assert sent(world) == ["modify lname=Frost"]


def test_or_it_goes_as_it_was_logged(world: World) -> None:
    failed_alone(world)
    world.change(f"update {world.log.names()['log']} set new_value = 'Snow' where record_id = 2")
    reported = said(world, "redrive", "2", "--as-logged")
    assert "row 2 goes as type 3" in reported
    assert sent(world) == ["modify lname=Snow"]


def test_values_of_one_column_are_read_back_even_so(world: World) -> None:
    """Read them back, because as type 3 the second value would remove the first."""
    world.user(1)
    world.write(insert(1, "fname", "Jack"), insert(1, "fname", BAD))
    world.cycle(Receiver())
    reported = said(world, "redrive", "2", "--as-logged")
    assert "row 2 goes read back (type 8)" in reported


def test_rows_of_an_insert_of_which_none_was_sent_stay_one_add(world: World) -> None:
    staff = {"table_name": "staff"}
    world.write(insert(1, "fname", "Jack", **staff), insert(1, "lname", "Frost", **staff))
    world.cycle(Receiver())
    assert world.letters() == {1: "E", 2: "E"}
    reported = said(world, "redrive", "2")
    assert "2 rows are new again" in reported
    assert types(world) == {1: 1, 2: 1}


def test_a_life_before_a_delete_is_another_insert(world: World) -> None:
    world.user(1)
    world.write(insert(1, "fname", "Jack"), key(1, event_type=4), insert(1, "lname", BAD))
    world.cycle(Receiver())
    said(world, "redrive", "3")
    assert types(world)[3] == 1


def test_where_rows_were_sent_and_deleted_it_goes_read_back_too(world: World) -> None:
    world.user(1)
    world.write(insert(1, "fname", "Jack"), insert(1, "lname", BAD))
    world.cycle(Receiver(), delete_from_log=True)
    assert world.letters() == {2: "E"}
    result = call(world, "redrive", "2", EVENTLOG_DELETE_FROM_LOG="true")
    assert "may have been sent" in result.output
    assert types(world) == {2: 8}


def test_an_event_of_which_a_row_is_gone_goes_read_back(world: World) -> None:
    failed_add(world)
    world.change(f"delete from {world.log.names()['log']} where record_id = 1")
    reported = said(world, "redrive", "3")
    assert "row 3 goes read back: another row of the event is gone" in reported
    assert types(world)[3] == 7
    assert sent(world) == ["modify lname=Frost"]


def test_an_event_that_cannot_be_read_back_is_refused_with_the_reason(world: World) -> None:
    failed_add(world)
    world.change(f"delete from {world.log.names()['log']} where record_id = 1")
    result = call(world, "redrive", "3", EVENTLOG_SYNC_TABLES="eventlog_notice")
    assert result.exit_code == 1
    assert "row 3 stays: another row of the event is gone" in result.output
    assert "may not be queried back" in result.output
    assert world.letters()[3] == "E"


def test_one_row_that_was_overtaken_keeps_its_event(world: World) -> None:
    failed_add(world)
    world.write(key(1, event_type=2, column_name="fname", old_value="Jack", new_value="Joe"))
    world.cycle(Receiver())
    result = call(world, "redrive", "3")
    assert result.exit_code == 1
    assert world.letters()[1] == world.letters()[3] == "E"
    assert "rows 1, 3 stay: a later event" in result.output
    assert call(world, "redrive", "3", "--as-query-back").exit_code == 0
    assert types(world) == {1: 7, 2: 6, 3: 7, 4: 2}


@pytest.fixture(params=["update", "delete", "purged"])
def handled(world: World, request: pytest.FixtureRequest) -> Callable[[], object]:
    """A log that is finished in some way, and what then becomes of the rows that are handled."""
    way: str = request.param
    world.delete_from_log = way == "delete"
    if way == "purged":
        return partial(purge_all, world)
    return lambda: None


def test_a_delete_that_was_overtaken_stays(world: World, handled: Callable[[], object]) -> None:
    """Leave it, because it would delete the object that was added since."""
    world.write(key(1, event_type=4))
    world.cycle(Receiver(fail))
    world.user(1)
    world.write(key(1, event_type=5))
    world.cycle(Receiver())
    handled()
    result = call(world, "redrive", "1")
    assert result.exit_code == 1
    assert "row 1 stays: a later event of the object was published" in result.output
    assert failed(world) == {1: "E"}


def test_a_value_that_was_overtaken_stays(world: World, handled: Callable[[], object]) -> None:
    """Leave it, because it would put an old value over a new one; read back it may go."""
    world.user(1, "Joe")
    world.write(update(1, "fname", "Jack"))
    world.cycle(Receiver(fail))
    world.write(update(1, "fname", "Joe"))
    world.cycle(Receiver())
    handled()
    result = call(world, "redrive", "--all")
    assert result.exit_code == 1
    assert "row 1 stays: a later event of the column was published" in result.output
    assert call(world, "redrive", "--all", "--as-query-back").exit_code == 0
    assert sent(world) == ["modify fname=Joe"]


def test_an_insert_that_was_overtaken_stays(world: World, handled: Callable[[], object]) -> None:
    """Leave it, though the delete that separated the lives is gone."""
    world.user(1)
    world.write(insert(1, "fname", "Jack"), insert(1, "lname", "Frost"))
    world.cycle(Receiver(fail))
    world.write(key(1, event_type=4))
    world.cycle(Receiver())
    handled()
    world.write(insert(1, "fname", "Joe"), insert(1, "lname", "Frost"))
    world.cycle(Receiver())
    result = call(world, "redrive", "--all")
    assert result.exit_code == 1
    assert "rows 1, 2 stay: a later event of the column was published" in result.output
    assert failed(world) == {1: "E", 2: "E"}


class InOrder(Receiver):
    """A receiver that allows several events of one object in a batch."""

    takes_the_first = True


def test_one_that_fails_where_the_next_one_is_taken_stays(
    world: World, handled: Callable[[], object]
) -> None:
    """Both are answered in one cycle, and finished in one transaction."""
    world.user(1)
    world.write(key(1, event_type=4), key(1, event_type=5))

    def answer(document: OutgoingDocument) -> Reply:
        return fail(document) if "<delete" in document.text else ACCEPTED

    world.cycle(InOrder(answer))
    handled()
    assert call(world, "redrive", "--all").exit_code == 1
    assert failed(world) == {1: "E"}


def test_a_row_without_effect_overtakes_no_event_that_waits(world: World) -> None:
    """Finish row 2 while row 1 waits. Send the failed row 1 again if row 2, which sent nothing, is gone."""
    world.delete_from_log = True
    world.write(key(1, event_type=4), key(1), key(2))
    answers = iter((busy, fail))
    with world.publisher(Receiver(lambda document: next(answers)(document)), retry_wait=0.0) as publisher:
        publisher.cycle()
        assert world.letters() == {1: "N"}
        publisher.cycle()
    assert failed(world) == {1: "E"}
    assert call(world, "redrive", "--all").exit_code == 0
    assert sent(world) == ["delete"]


def test_what_was_not_overtaken_goes(world: World, handled: Callable[[], object]) -> None:
    """Send it though rows of other columns and objects were published, and one failed too."""
    world.user(1)
    world.user(2)
    world.write(update(1, "lname", "Frost"))
    world.cycle(Receiver())
    world.write(update(1, "lname", "Snow"), key(3, event_type=4))
    world.cycle(Receiver(fail))
    world.write(update(1, "fname", "Joe"), update(2, "lname", "Poe"), key(4, event_type=4))
    world.cycle(Receiver())
    world.write(update(1, "lname", "Rain"))
    world.cycle(Receiver(fail))
    handled()
    assert call(world, "redrive", "2", "3").exit_code == 0
    assert sent(world) == ["modify lname=Snow", "delete"]


def test_a_mark_goes_with_the_failure_that_it_is_of(world: World, handled: Callable[[], object]) -> None:
    """Remove the mark of a skipped row before its number comes again."""
    test_a_delete_that_was_overtaken_stays(world, handled)
    assert call(world, "skip", "1", "--reason", "enough").exit_code == 0
    assert world.failures() == []
    with world.engine.connect() as connection:
        assert connection.execute(text(f"select count(*) from {world.log.names()['failed']}")).scalar() == 0


def delete_failed(world: World) -> None:
    """Make row 1, a delete, fail; the object exists again."""
    world.write(key(1, event_type=4))
    world.cycle(Receiver(fail))
    world.user(1)


def test_it_waits_for_what_is_on_its_way(world: World, handled: Callable[[], object]) -> None:
    """An event that a receiver has not answered yet may overtake the delete."""
    delete_failed(world)
    world.write(key(1, event_type=5))
    reported: list[str] = []

    def answer(document: OutgoingDocument) -> Reply:
        reported.append(said(world, "redrive", "--all"))
        return ACCEPTED

    world.cycle(Receiver(answer))
    assert ["row 1 stays: a later event of the object is on its way" in words for words in reported] == [True]
    handled()
    assert "a later event of the object was published" in said(world, "redrive", "--all")


def test_a_redrive_of_nothing_leaves_no_notice(world: World) -> None:
    """Leave none, because each notice makes the publisher pick up anew."""
    delete_failed(world)
    world.write(key(1, event_type=5))
    world.cycle(Receiver())
    for words in (["1"], ["--all"]):
        assert call(world, "redrive", *words).exit_code == 1
    with world.store.upkeep() as upkeep:
        assert upkeep.notices() == []


def test_it_waits_for_what_waits(world: World) -> None:
    delete_failed(world)
    world.write(key(1, event_type=5))
    with world.publisher(Receiver(busy), retry_wait=60.0) as publisher:
        publisher.cycle()
    result = call(world, "redrive", "--all")
    assert (result.exit_code, failed(world)) == (1, {1: "E"})
    assert "on its way" in result.output


def test_it_waits_for_what_a_backlog_may_have_read(world: World, handled: Callable[[], object]) -> None:
    """Wait also for rows that a dead backlog has frozen; rows that nothing will overtake go."""
    delete_failed(world)
    world.write(update(2, "fname", "Joe"))
    world.cycle(Receiver(fail))
    world.write(key(1, event_type=5), update(2, "lname", "Snow"))
    backlog = world.store.lead("backlog 4711")
    assert backlog is not None
    with backlog:
        assert "row 1 stays: a backlog may have read a later event of the object" in said(
            world, "redrive", "1"
        )
    assert "when one with --finish has ended, or a publisher leads" in said(world, "redrive", "1")
    assert "1 row is new again" in said(world, "redrive", "2")
    assert failed(world) == {1: "E"}
    world.cycle(Receiver())
    handled()
    assert "a later event of the object was published" in said(world, "redrive", "--all")


def test_what_was_picked_up_and_did_not_go_yet_goes_behind_it(
    world: World, handled: Callable[[], object]
) -> None:
    """The delete is redriven while the first of two events of another object is answered: the second batch,
    which would bring the object before its delete, is picked up anew."""
    delete_failed(world)
    world.user(2)
    world.write(key(2, event_type=4), key(2, event_type=5), key(1, event_type=5))
    redriven: list[int] = []

    def answer(document: OutgoingDocument) -> Reply:
        if not redriven:
            redriven.append(call(world, "redrive", "--all").exit_code)
        return ACCEPTED

    receiver = Receiver(answer)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        assert publisher.cycle().full
        publisher.cycle()
    assert redriven == [0]
    assert [event.tag for event in receiver.events] == ["delete", "delete", "modify", "modify"]
    assert receiver.objects == ["idu=2", "idu=1", "idu=2", "idu=1"]
    assert world.counts()["N"] == world.remembered() == 0
    handled()


def test_many_events_are_reported_by_reason(world: World) -> None:
    for number in range(1, 41):
        world.write(insert(number, "fname", "x"), insert(number, "lname", BAD))
    world.cycle(Receiver())
    lines = said(world, "redrive", "--all").splitlines()
    assert lines[0].endswith("40 rows are new again")
    assert len(lines) == 2
    assert "rows 2, 4, 6" in lines[1]
    assert ", … (40)" in lines[1]


@pytest.mark.parametrize("words", [["redrive", "1", "--as-logged", "--as-query-back"]])
def test_two_ways_at_once_are_misuse(world: World, words: list[str]) -> None:
    failed_add(world)
    assert "one of" in said(world, *words)
