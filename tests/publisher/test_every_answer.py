"""Every answer to a row is shown with its time and its reason, also after the row was redriven."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from eventlog.operate.recent import RecentRecord, recent_records
from eventlog.sinks.sink import ACCEPTED, Reply, unanswered
from eventlog.sql.log import pending
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Receiver, answering, key
from tests.publisher.test_tries import tables_of_tries, tries
from tests.world.world import World, call

pytestmark = pytest.mark.quick
BOTH_ERRORS = [(1, "error", "no such department"), (2, "error", "still no such department")]


@pytest.fixture(params=["by row", "by column"])
def any_way(request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A log whose rows are read by row, or by column."""
    if request.param == "by column":
        monkeypatch.setattr(pending, "BY_COLUMN_FROM", 0)
    return world


def recent(world: World) -> list[RecentRecord]:
    """Return the recent records, oldest first."""
    records, older = recent_records(world.store, 100)
    assert older is None
    return records[::-1]


def explained(world: World, row: int) -> list[tuple[int, str, str]]:
    """Return the tries of a row as `explain --json` has them."""
    (line,) = call(world, "explain", "--json", str(row)).stdout.splitlines()
    answers = json.loads(line)["tries"]
    times = [datetime.fromisoformat(each["at"]) for each in answers]
    assert times == sorted(times)
    return [(each["number"], each["answer"], each["words"]) for each in answers]


def play(world: World, *answers: Reply) -> None:
    """Publish the pending rows so often, and redrive them in between."""
    for number, reply in enumerate(answers):
        if number:
            assert call(world, "redrive", "--all", "--by", "ada").exit_code == 0
        world.cycle(always(reply))


def always(reply: Reply) -> Receiver:
    """Return a receiver that gives the same answer each time."""
    return Receiver(lambda document: reply)


def error(words: str) -> Reply:
    return Reply([Status(Level.ERROR, None, words)])


NO = error("no such department")
STILL_NO = error("still no such department")


@pytest.mark.slow("six commands read the log")
def test_each_answer_is_shown_everywhere(any_way: World, tmp_path: Path) -> None:
    world = any_way
    world.user(1)
    world.write(key(1))
    play(world, NO, STILL_NO, ACCEPTED)
    assert world.counts() == {"S": 1}
    assert explained(world, 1) == [*BOTH_ERRORS, (3, "success", "")]
    lines = [
        re.sub(r" ?\(?(at )?20\S+ \S+Z\)?", "", line.strip())
        for line in call(world, "explain", "1").stdout.splitlines()
    ]
    assert lines[2:] == [
        "try 1: error: no such department",
        "redrive by ada: usr idu=1: row 1: --all",
        "try 2: error: still no such department",
        "redrive by ada: usr idu=1: row 1: --all",
        "try 3: success",
    ]
    listed = call(world, "history").stdout
    assert listed.count("try 1: error: no such department (20") == 2
    assert listed.count("try 3: success (20") == 2
    notices = [json.loads(line) for line in call(world, "history", "--json").stdout.splitlines()]
    answers = [[each["answer"] for each in notice["tries"]] for notice in notices]
    assert answers == [["error", "error", "success"]] * 2
    documents = recent(world)
    assert [(dict(each.answers), each.reason) for each in documents] == [
        ({"error": 1}, "no such department"),
        ({"error": 1}, "still no such department"),
        ({"success": 1}, ""),
    ]
    assert [each.at for each in documents] == sorted(each.at for each in documents if each.at)
    assert len({each.at for each in documents}) == 3
    receipt = call(world, "audit", "--object", "usr", "idu=1", "--delivered", str(tmp_path)).stdout
    assert re.findall(r"try \d: .*", receipt) == [
        "try 1: error: no such department",
        "try 2: error: still no such department",
        "try 3: success",
    ]


def test_where_rows_are_deleted_answers_live_as_long_as_the_row(any_way: World) -> None:
    world = any_way
    world.delete_from_log = True
    world.user(1)
    world.user(2)
    world.write(key(1), key(2))
    play(world, NO, STILL_NO)
    assert world.counts() == {"E": 2}
    assert explained(world, 1) == BOTH_ERRORS
    assert [(dict(each.answers), each.reason) for each in recent(world)] == [
        ({"error": 2}, "no such department"),
        ({"error": 2}, "still no such department"),
    ]
    assert "try 1: error: no such department" in call(world, "history").stdout
    assert tables_of_tries(world) == (2, 4)
    assert call(world, "redrive", "1").exit_code == 0
    world.cycle(Receiver())
    assert world.letters() == {2: "E"}
    assert tables_of_tries(world) == (2, 2)
    assert explained(world, 2) == BOTH_ERRORS


def test_a_redriven_row_without_an_event_takes_its_tries_along(world: World) -> None:
    """A row that is read back has no event, because its object is gone."""
    world.delete_from_log = True
    world.write(key(1, event_type=8, column_name="fname", old_value="a"))
    play(world, NO, ACCEPTED)
    assert (world.counts(), tables_of_tries(world)) == ({}, (0, 0))


def test_a_leader_that_comes_later_forgets_the_tries_of_redriven_rows(world: World) -> None:
    world.delete_from_log = True
    world.user(1)
    world.write(key(1))
    world.cycle(Receiver(answering(Level.ERROR, "no")))
    receiver = Receiver()
    with world.publisher(receiver) as publisher:
        publisher.cycle()
        world.redrive()
        publisher.cycle()
    assert (world.counts(), tables_of_tries(world)) == ({}, (0, 0))


def test_the_first_three_tries_are_kept_and_the_last_seven(world: World) -> None:
    world.write(key(1, event_type=4))
    receiver = Receiver()
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        for number in range(1, 16):
            receiver.answering = answering(Level.RETRY, f"busy {number}")
            publisher.cycle()
    assert [(number, words) for _, _, number, _, words in tries(world, 1)] == [
        (number, f"busy {number}") for number in (1, 2, 3, *range(9, 16))
    ]
    assert tables_of_tries(world) == (10, 10)


@pytest.mark.slow("an event is redriven twelve times")
def test_documents_whose_answer_was_dropped_show_no_other(world: World) -> None:
    world.user(1)
    world.write(key(1))
    play(world, *(error(f"no {number}") for number in range(1, 13)), ACCEPTED)
    numbers = [number for number, _, _ in explained(world, 1)]
    assert numbers == [1, 2, 3, *range(6, 14)]
    answers = [[*each.answers] for each in recent(world)]
    assert answers == [["error"]] * 3 + [["answered"]] * 2 + [["error"]] * 7 + [["success"]]


def test_what_no_answer_came_to_is_a_try_with_its_reason(world: World) -> None:
    world.write(key(1, event_type=4))
    receiver = Receiver(lambda document: unanswered("it hung up", wait=0.0))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        publisher.cycle()
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert explained(world, 1) == [(1, "retry", "it hung up"), (2, "retry", "it hung up"), (3, "success", "")]


def test_why_a_row_was_refused_is_kept_by_a_redrive_and_by_a_skip(world: World) -> None:
    world.write(key(1, event_type=9), key(2, event_type=9))
    world.cycle(Receiver())
    assert tables_of_tries(world) == (0, 0)
    call(world, "redrive", "1")
    call(world, "skip", "2", "--because", "a test")
    words = "event_type is 9, not 1 to 8"
    for row in (1, 2):
        assert tries(world, row) == [(row, None, 1, "refused", words)]
        assert f"try 1: refused: {words}" in call(world, "explain", str(row)).stdout


def test_the_list_of_recent_records_has_why_a_redriven_row_was_refused(world: World) -> None:
    world.user(1)
    world.write(key(1, event_type=9))
    world.cycle(Receiver())
    call(world, "redrive", "1")
    names = world.log.names()
    world.change(f"update {names['log']} set {names['event_type']} = 6")
    world.cycle(Receiver())
    assert world.counts() == {"S": 1}
    assert [(dict(each.answers), each.reason) for each in recent(world)] == [
        ({"refused": 1}, "event_type is 9, not 1 to 8"),
        ({"success": 1}, ""),
    ]


def test_each_part_of_a_cut_event_has_the_answer_to_the_whole(world: World) -> None:
    world.user(1)
    world.write(*(key(1, event_type=1, column_name="fname", new_value=f"value {n}") for n in range(4)))
    world.cycle(Receiver(lambda document: NO), max_changes=2)
    call(world, "redrive", "--all")
    world.cycle(Receiver(), max_changes=2)
    assert {*world.letters().values()} == {"S"}
    assert explained(world, 1) == [(1, "error", "no such department"), (2, "success", "")]
    answers = [[*each.answers] for each in recent(world)]
    assert answers[:2] == [["error"], ["error"]]
    assert {*answers[2]} == {"success"}


def test_a_row_that_goes_in_another_event_keeps_the_answer_to_the_former(world: World) -> None:
    world.user(1)
    world.write(key(1, event_type=2, column_name="fname", old_value="a", new_value="b"))
    world.cycle(Receiver(lambda document: NO))
    world.write(key(1, event_type=2, column_name="lname", old_value="a", new_value="b"))
    call(world, "redrive", "1")
    world.cycle(Receiver(lambda document: STILL_NO))
    first, second = tries(world, 1)
    assert first[1] == "eventlog:1"
    assert explained(world, 1) == BOTH_ERRORS
    assert explained(world, 2)[-1][1:] == ("error", "still no such department")
    assert second[1] is not None


def test_the_words_of_a_receiver_do_not_reach_a_terminal_as_they_are(world: World) -> None:
    world.user(1)
    world.write(key(1))
    play(world, error("\x1b[2Jno\nsuch\x07"), ACCEPTED)
    for words in (("explain", "1"), ("history",)):
        shown = call(world, *words).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert len([line for line in shown.splitlines() if "such" in line]) == 1


def test_an_audit_names_a_row_whose_bad_answer_was_painted_over(world: World, tmp_path: Path) -> None:
    """A person gives a failed row the letter of success, and takes its reason away."""
    world.user(1)
    world.user(2)
    world.write(key(1), key(2))
    receiver = Receiver(lambda document: NO)
    with world.publisher(receiver) as publisher:
        publisher.cycle()
    delivered = tmp_path / "delivered.xml"
    delivered.write_text("".join(document.text for document in receiver.documents))
    words = ("audit", "--allow-loopback", "--delivered", str(delivered))
    before = call(world, *words)
    assert before.exit_code == 0, before.stdout
    call(world, "redrive", "2")
    world.cycle(receiver := Receiver())
    delivered.write_text(delivered.read_text() + "".join(document.text for document in receiver.documents))
    assert call(world, *words).exit_code == 0
    names = world.log.names()
    world.change(f"update {names['log']} set {names['status']} = 'S' where {names['record_id']} = 1")
    world.change(f"delete from {names['failed']}")
    after = call(world, *words)
    assert after.exit_code == 1
    assert "it is S, and the receiver refused its event, by the record" in after.stdout
