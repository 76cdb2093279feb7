"""A failed event is redriven, skipped and shown whole; its values are read back, so that none is old."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner
from lxml import etree

from eventlog.cli import cli
from eventlog.opening.config import Config
from eventlog.opening.recorded_settings import with_recorded, write_settings
from eventlog.operate import redriving
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Receiver, busy, fail, key, leading
from tests.publisher.test_deleting import purge_all
from tests.world.world import World, call

pytestmark = pytest.mark.quick

BAD = "\x01"


def insert(number: int, column: str, value: str | None, **columns: Any) -> dict[str, Any]:
    return key(number, event_type=1, column_name=column, new_value=value, **columns)


def update(number: int, column: str, value: str) -> dict[str, Any]:
    return key(number, event_type=3, column_name=column, new_value=value)


def failed(world: World) -> dict[int, str]:
    return {row: letter for row, letter in world.letters().items() if letter in "EF"}


def types(world: World) -> dict[int, int]:
    names = world.log.names()
    with world.engine.connect() as connection:
        sql = f"select {names['record_id']}, {names['event_type']} from {names['log']} order by 1"
        return {row[0]: row[1] for row in connection.exec_driver_sql(sql)}


def output_of(world: World, *words: str) -> str:
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
    return [" ".join([str(event.tag), *values(event)]) for event in receiver.events]


def values(event: etree._Element) -> Iterator[str]:
    for attribute in event.iter("add-attr", "modify-attr"):
        for value in attribute.iter("value"):
            yield f"{attribute.get('attr-name')}={value.text}"


def test_an_event_is_redriven_whole(world: World) -> None:
    failed_add(world)
    reported = output_of(world, "redrive", "3")
    assert "2 rows are new again" in reported
    assert world.letters() == {1: "N", 2: "E", 3: "N"}
    assert types(world) == {1: 7, 2: 6, 3: 7}
    assert sent(world) == ["modify fname=Jack lname=Frost"]


def test_values_are_sent_as_they_are_now(world: World) -> None:
    world.user(1, "Jack", "Frost")
    world.write(update(1, "fname", "Jack"), key(1, event_type=2, column_name="lname", new_value="Frost"))
    world.cycle(Receiver(fail))
    world.change("update usr set fname = 'Joe' where idu = 1")
    assert "2 rows are new again" in output_of(world, "redrive", "--all")
    assert types(world) == {1: 8, 2: 8}
    assert sent(world) == ["modify fname=Joe lname=Frost"]


def test_values_of_an_object_that_is_gone_have_no_effect(world: World) -> None:
    failed_add(world)
    world.change("delete from usr where idu = 1")
    output_of(world, "redrive", "3")
    assert sent(world) == []
    assert world.letters() == {1: "S", 2: "E", 3: "S"}


def test_rows_are_redriven_by_the_settings_of_the_publisher(world: World) -> None:
    """Read what is published, and how, where the log has it; own settings come first."""
    environment = {"EVENTLOG_URL": world.url}
    invoke = partial(CliRunner().invoke, cli, env=environment)
    world.user(1)
    world.write(update(1, "fname", BAD), update(1, "lname", "Frost"))
    assert invoke(["run", "--once", "--sync-tables", "usr", "--allow-loopback"]).exit_code == 0
    assert failed(world) == {1: "E"}
    result = invoke(["redrive", "--all"], env=environment | {"EVENTLOG_SYNC_TABLES": " "})
    assert (result.exit_code, "may not be queried back" in result.output) == (1, True)
    result = invoke(["redrive", "--all"])
    assert (result.exit_code, result.output) == (0, "eventlog: 1 row is new again\n")
    explained = invoke(["explain", "--table", "usr"]).output
    assert "pending in eventlog:1" in explained
    assert '<value type="string">Jack</value>' in invoke(["preview"]).output


def test_an_address_is_not_left_on_record(world: World) -> None:
    settings = {"sync_tables": "usr", "source_url": "postgresql://ann:hush@host/x", "http_token": "hush"}
    text = write_settings(Config(settings, tables={"usr": {"withhold": ["fname"]}}))
    assert "hush" not in text
    with leading(world.store) as epoch, world.store.as_leader(epoch) as work:
        work.record_settings(text)
    read = with_recorded(Config({"sync_tables": "own"}), world.store)
    assert (read.values, read.tables) == ({"sync_tables": "own"}, {"usr": {"withhold": ["fname"]}})
    result = CliRunner().invoke(cli, ["redrive", "--all"], env={"EVENTLOG_URL": world.url})
    assert "the publisher reads the tables of another database: set source-url as it does" in result.output


def test_rows_that_did_not_fail_are_named(world: World) -> None:
    failed_add(world)
    result = call(world, "redrive", "3", "99", "7")
    assert (result.exit_code, result.output.splitlines()) == (
        1,
        ["eventlog: 2 rows are new again", "eventlog: rows 7, 99 stay: not in the log"],
    )
    result = call(world, "redrive", "2", "--table", "other")
    assert (result.exit_code, result.output.splitlines()) == (
        1,
        ["eventlog: 0 rows are new again", "eventlog: row 2 stays: it did not fail like that"],
    )
    assert world.letters() == {1: "N", 2: "E", 3: "N"}


def test_an_event_is_shown_whole(world: World) -> None:
    failed_add(world)
    lines = output_of(world, "errors", "3").splitlines()
    assert [line.split()[0] for line in lines] == ["1", "3"]
    assert "of eventlog:1-3:" in lines[0]
    assert "of eventlog:1-3:" in lines[1]


def test_one_row_of_a_failed_event_keeps_its_document(world: World) -> None:
    failed_add(world)
    kept = {row.record_id for row in world.failures() if row.document is not None}
    assert kept == {1, 2}


def test_the_document_of_a_failed_event_is_shown_once(world: World) -> None:
    failed_add(world)
    assert output_of(world, "errors", "--with-document").count("<nds") == 2


def test_an_event_is_skipped_whole(world: World) -> None:
    failed_add(world)
    reported = output_of(world, "skip", "1", "--because", "test data")
    assert "2 rows are skipped" in reported
    assert "3" in reported
    assert world.letters() == {1: "W", 2: "E", 3: "W"}


def test_an_event_that_waits_is_skipped_whole(world: World) -> None:
    world.write(insert(1, "fname", "Jack"), insert(1, "lname", "Frost"), insert(2, "fname", "Joe"))
    with world.publisher(Receiver(busy)) as publisher:
        publisher.cycle()
    assert call(world, "skip", "2", "--because", "test data").exit_code == 0
    assert world.letters() == {1: "W", 2: "W", 3: "N"}


@pytest.mark.parametrize("level", [Level.SUCCESS, Level.WARNING])
def test_a_row_of_an_insert_that_failed_alone_makes_no_second_add(world: World, level: Level) -> None:
    failed_alone(world, level)
    output_of(world, "redrive", "2")
    assert types(world) == {1: 1, 2: 8}
    receiver = Receiver()
    world.cycle(receiver, insert_query_back="add")
    assert [event.tag for event in receiver.events] == ["modify"]


def test_rows_of_an_insert_of_which_none_was_sent_make_one_add(world: World) -> None:
    world.user(1, BAD, BAD)
    world.write(insert(1, "fname", BAD), insert(1, "lname", BAD))
    world.cycle(Receiver())
    assert world.letters() == {1: "E", 2: "E"}
    world.change("update usr set fname = 'Jack', lname = 'Frost' where idu = 1")
    assert "2 rows are new again" in output_of(world, "redrive", "2")
    assert types(world) == {1: 7, 2: 7}
    receiver = Receiver()
    world.cycle(receiver, insert_query_back="add")
    assert [event.tag for event in receiver.events] == ["add"]


def test_a_refused_row_between_those_of_an_insert_makes_no_second_add(world: World) -> None:
    world.user(1)
    world.write(insert(1, "fname", "Jack"), update(1, "lname", BAD), insert(1, "lname", BAD))
    world.cycle(Receiver())
    assert world.letters() == {1: "S", 2: "E", 3: "E"}
    output_of(world, "redrive", "3")
    assert types(world)[3] == 8


def test_an_insert_is_redriven_whole_though_a_refused_row_is_between(world: World) -> None:
    world.user(1)
    world.write(insert(1, "fname", BAD), update(1, "lname", BAD), insert(1, "lname", BAD))
    world.cycle(Receiver())
    assert "2 rows are new again" in output_of(world, "redrive", "3")
    assert types(world) == {1: 7, 2: 3, 3: 7}


def test_a_life_before_a_delete_is_another_insert(world: World) -> None:
    world.user(1)
    world.write(insert(1, "fname", "Jack"), key(1, event_type=4), insert(1, "lname", BAD))
    world.cycle(Receiver())
    output_of(world, "redrive", "3")
    assert types(world)[3] == 7


def test_where_rows_may_have_been_sent_and_deleted_it_makes_no_second_add(world: World) -> None:
    world.user(1)
    world.write(insert(1, "fname", "Jack"), insert(1, "lname", BAD))
    world.cycle(Receiver(), delete_from_log=True)
    assert world.letters() == {2: "E"}
    assert call(world, "redrive", "2", EVENTLOG_DELETE_FROM_LOG="true").exit_code == 0
    assert types(world) == {2: 8}


@pytest.mark.parametrize(
    "row", [insert(1, "fname", "Jack"), update(1, "fname", "Jack"), key(1, event_type=4)]
)
def test_rows_of_a_table_that_cannot_be_read_back_stay(world: World, row: dict[str, Any]) -> None:
    world.write(row)
    world.cycle(Receiver(fail))
    result = call(world, "redrive", "1", EVENTLOG_SYNC_TABLES="eventlog_notice")
    assert result.exit_code == 1
    assert "row 1 stays: table usr may not be queried back; mend it or skip it" in result.output
    assert world.letters() == {1: "E"}


@pytest.fixture(params=["update", "delete", "purged"])
def handled(world: World, request: pytest.FixtureRequest) -> Callable[[], object]:
    """A log that is finished in some way, and what then becomes of the rows that are handled."""
    way: str = request.param
    world.delete_from_log = way == "delete"
    if way == "purged":
        return partial(purge_all, world)
    return lambda: None


def failed_delete(world: World) -> None:
    """Make row 1, a delete, fail."""
    world.write(key(1, event_type=4))
    world.cycle(Receiver(fail))


def test_a_delete_whose_object_exists_stays(world: World, handled: Callable[[], object]) -> None:
    """Leave it, because it would delete the object that was added since."""
    failed_delete(world)
    world.user(1)
    world.write(key(1, event_type=5))
    world.cycle(Receiver())
    handled()
    result = call(world, "redrive", "1")
    assert result.exit_code == 1
    assert (
        "row 1 stays: its object exists, and this delete would remove it; mend it or skip it" in result.output
    )
    assert failed(world) == {1: "E"}


def test_a_delete_whose_object_is_absent_goes(world: World, handled: Callable[[], object]) -> None:
    """Send it before the later life of the object, which has ended too."""
    failed_delete(world)
    handled()
    world.write(key(1, event_type=5), key(1, event_type=4))
    assert "1 row is new again" in output_of(world, "redrive", "1")
    assert sent(world) == ["delete", "delete"]


def test_a_delete_of_a_key_that_cannot_be_looked_up_stays(world: World) -> None:
    world.write(key(1, event_type=4) | {"table_key": "idu=one"})
    world.cycle(Receiver(fail))
    result = call(world, "redrive", "--all")
    assert result.exit_code == 1
    assert "row 1 stays: 'one' is not an integer; mend it or skip it" in result.output


class InOrder(Receiver):
    """A receiver that allows several events of one object in a batch."""

    def highest(self) -> int | None:
        """Return None: nothing is on record yet."""


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


def test_a_redrive_of_nothing_leaves_no_notice(world: World) -> None:
    """Leave none, because each notice makes the publisher pick up anew."""
    failed_delete(world)
    world.user(1)
    for words in (["1"], ["--all"]):
        assert call(world, "redrive", *words).exit_code == 1
    with world.store.admin() as admin:
        assert admin.notices() == []


def test_what_was_picked_up_and_did_not_go_yet_goes_after_it(
    world: World, handled: Callable[[], object]
) -> None:
    """The delete is redriven while the first of two events of another object is answered: the second batch,
    which would bring the object before its delete, is picked up anew."""
    failed_delete(world)
    world.user(1)
    world.user(2)
    world.write(key(2, event_type=4), key(2, event_type=5), key(1, event_type=5))
    redriven: list[int] = []

    def answer(document: OutgoingDocument) -> Reply:
        if not redriven:
            world.change("delete from usr where idu = 1")
            redriven.append(call(world, "redrive", "--all").exit_code)
            world.user(1)
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


def test_a_reason_is_looked_for_on_all_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows of another reason have the words by which the database finds them, too."""

    def answer(document: OutgoingDocument) -> Reply:
        words = {item.event_id: f"no {item.event_id}" for item in document.items}
        words |= {name: f"{reason} now" for name, reason in words.items() if name[-1] in "135"}
        return Reply([Status(Level.ERROR, name, reason) for name, reason in words.items()])

    monkeypatch.setattr(redriving, "PAGE", 2)
    world.write(*(key(number, event_type=4) for number in range(1, 7)))
    world.cycle(Receiver(answer))
    assert "3 rows are new again" in output_of(world, "redrive", "--reason", "no eventlog:#")
    assert "".join(world.letters().values()) == "ENENEN"


def test_many_rows_that_stay_are_reported_by_reason(world: World) -> None:
    world.write(*(key(number, event_type=4) for number in range(1, 41)))
    world.cycle(Receiver(fail))
    for number in range(1, 41):
        world.user(number)
    lines = output_of(world, "redrive", "--all").splitlines()
    assert lines[0].endswith("0 rows are new again")
    assert len([line for line in lines if "stay" in line]) == 1
    assert "rows 1, 2, 3" in lines[1]
    assert ", … (40) stay: its object exists" in lines[1]
