"""One cycle against real databases: what goes out, and what becomes of every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog.fold.understand import why_unknown
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import OutgoingDocument, Reply, answered, unanswered, unreachable
from eventlog.sql.catalogue import Catalogue
from eventlog.xds.answers import Level, Status
from tests.compare.rig import Replica, rows_of
from tests.kit.logs import Answering, Crash, Receiver, crash, key
from tests.world.world import World

pytestmark = pytest.mark.quick

NO_STATUS = b"<nds><output/></nds>"


def answer(level: Level, *event_ids: str) -> Answering:
    """Answer this level for these events, and success for the others."""
    return lambda document: Reply([Status(level, event_id, "so it is") for event_id in event_ids])


def test_a_row_is_read_back_sent_and_finished(world: World) -> None:
    world.user(1)
    world.write(key(1))
    receiver = Receiver()
    with world.publisher(receiver) as publisher:
        cycle = publisher.cycle()
        assert publisher.cycle().rows == 0
    (event,) = receiver.events
    assert (event.tag, event.get("class-name"), event.get("event-id")) == ("modify", "usr", "eventlog:1")
    assert event.xpath("modify-attr/@attr-name") == ["fname", "lname"]
    assert world.letters() == {1: "S"}
    assert (cycle.rows, cycle.documents, cycle.events, cycle.full) == (1, 1, 1, False)
    assert world.remembered() == 0


def test_a_column_that_its_table_lacks_is_warned_of_once_and_looked_for_anew(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.user(1)
    receiver = Receiver()
    with world.engine.connect() as connection:
        table = str(Catalogue(connection).find("usr").table)
    with world.publisher(receiver) as publisher:
        for number in (1, 2):
            world.write(key(number, event_type=3, column_name="age", new_value="07"))
            publisher.cycle()
        assert [record.message for record in caplog.records if "'age'" in record.message] == [
            why_unknown((table, "age"))
        ]
    world.change("alter table usr add column age integer")
    try:
        with world.publisher(receiver) as publisher:
            world.change("alter table usr add column size integer")
            for name in ("age", "size"):
                world.write(key(1, event_type=3, column_name=name, new_value="07"))
                publisher.cycle()
    finally:
        for name in ("age", "size"):
            world.change(f"alter table usr drop column {name}")
    values = [event.xpath("string(.//value)") for event in receiver.events]
    assert values == ["07", "07", "7", "7"]


def test_a_column_that_its_table_lacks_is_refused_where_that_is_set(world: World) -> None:
    world.write(*(key(1, event_type=kind, column_name="age", new_value="7") for kind in (1, 2, 3, 7, 8)))
    world.cycle(Receiver(), unknown_columns="refuse")
    assert world.counts() == {"E": 5}


@pytest.mark.parametrize(
    ("level", "letter"),
    [(Level.SUCCESS, "S"), (Level.WARNING, "W"), (Level.ERROR, "E"), (Level.RETRY, "N")],
)
def test_the_letter_is_the_level_that_was_answered(world: World, level: Level, letter: str) -> None:
    world.user(1)
    world.user(2)
    world.write(key(1), key(2))
    world.cycle(Receiver(answer(level, "eventlog:1")))
    assert world.letters() == {1: letter, 2: "S"}


def test_an_error_keeps_its_reason_and_its_document(world: World) -> None:
    world.user(1)
    world.write(key(1))
    world.cycle(Receiver(answer(Level.ERROR, "eventlog:1")))
    (failed,) = world.failures()
    assert (failed.record_id, failed.event_id, failed.reason) == (1, "eventlog:1", "so it is")
    assert failed.document is not None
    assert failed.document.startswith("<nds")
    assert "Jack" in failed.document


def test_fatal_stops_after_what_was_answered_is_finished(world: World) -> None:
    for number in (1, 2, 3):
        world.user(number)
    world.write(key(1), key(2), key(3))
    with pytest.raises(ReceiverFatal, match="so it is"):
        world.cycle(Receiver(answer(Level.FATAL, "eventlog:2")))
    assert world.letters() == {1: "S", 2: "F", 3: "N"}
    world.cycle(Receiver())
    assert world.letters() == {1: "S", 2: "F", 3: "S"}


def test_a_status_without_event_id_holds_for_the_rest_of_its_document(world: World) -> None:
    for number in (1, 2):
        world.user(number)
    world.write(key(1), key(2))
    statuses = [Status(Level.WARNING), Status(Level.ERROR, "eventlog:2"), Status(Level.SUCCESS, "eventlog:2")]
    world.cycle(Receiver(lambda document: Reply(statuses)), batch_size=10)
    assert world.letters() == {1: "W", 2: "E"}


def test_rows_of_one_event_share_its_letter(world: World) -> None:
    world.user(1)
    old = {"event_type": 2, "column_name": "fname", "old_value": "a", "new_value": "b"}
    world.write(key(1), key(1, **old), key(1))
    receiver = Receiver(lambda document: Reply([Status(Level.WARNING)]))
    world.cycle(receiver)
    assert world.letters() == {1: "W", 2: "W", 3: "W"}
    assert receiver.event_ids[0].startswith("eventlog:1-3:")


def test_rows_that_say_nothing_or_have_no_effect_are_finished_in_silence(world: World) -> None:
    null = {"event_type": 2, "column_name": "fname", "old_value": "a", "new_value": "a"}
    world.write(key(1), key(2, **null))
    receiver = Receiver()
    world.cycle(receiver)
    assert receiver.documents == []
    assert world.letters() == {1: "S", 2: "S"}


def test_a_wrong_row_costs_itself_and_keeps_its_reason(world: World) -> None:
    world.user(1)
    world.write(
        {"table_name": "secrets", "table_key": "idu=1"},
        key(1, event_type=9),
        {"table_key": "idu"},
        {"table_key": "fname=x"},
        key(1, event_type=1),
        {"table_key": "idu=99999999999999999999"},
        key(1),
    )
    world.cycle(Receiver())
    assert "".join(world.letters().values()) == "EEEEEES"
    reasons = [str(failed.reason) for failed in world.failures()]
    for words, reason in zip(
        ["unknown table", "1 to 8", "malformed", "key", "column_name", ""], reasons, strict=True
    ):
        assert words in reason


def test_documents_hold_up_to_batch_size_events_and_one_of_an_object_at_most(world: World) -> None:
    for number in (1, 2, 3):
        world.user(number)
    world.write(key(1), key(2), key(1, event_type=4), key(3))
    receiver = Receiver()
    world.cycle(receiver, batch_size=10)
    # the life that the delete of 1 ended has no effect any more
    assert receiver.objects == ["idu=2", "idu=1", "idu=3"]
    world.write(key(1, event_type=1, column_name="fname", new_value="x"), key(1, event_type=4), key(2))
    receiver = Receiver()
    world.cycle(receiver, batch_size=10)
    assert [len(document.items) for document in receiver.documents] == [1, 2]


def test_a_cycle_that_fills_its_limit_says_so(world: World) -> None:
    for number in range(5):
        world.user(number)
    world.write(*(key(number) for number in range(5)))
    receiver = Receiver()
    with world.publisher(receiver, query_limit=3) as publisher:
        assert publisher.cycle().full
        assert not publisher.cycle().full
    assert world.counts() == {"S": 5}


FNAME = {"column_name": "fname", "old_value": "Jack", "new_value": "John"}


@pytest.mark.parametrize(
    ("first", "further", "together", "apart"),
    [
        ({"event_type": 2, **FNAME}, [{"event_type": 8, **FNAME}], ["modify 1-4"], ["modify 1", "modify 4"]),
        ({"event_type": 6}, [{"event_type": 6}], ["modify 1-4"], ["modify 1", "modify 4"]),
        (
            {"event_type": 6},
            [{"event_type": 4}, {"event_type": 5}],
            ["delete 4", "add 5"],
            ["modify 1", "delete 4", "add 5"],
        ),
    ],
    ids=["a field is read back", "a row is read back", "a row is deleted and comes again"],
)
def test_rows_of_an_object_farther_apart_than_the_limit_make_more_events_and_the_same_end(
    world: World,
    first: dict[str, Any],
    further: list[dict[str, Any]],
    together: list[str],
    apart: list[str],
) -> None:
    others = [key(number, event_type=4) for number in (8, 9)]
    for limit, events in ((10, together), (2, apart)):
        world.clear()
        world.user(1, "Joe")
        world.write(key(1, **first), *others, *(key(1, **row) for row in further))
        receiver = Replica()
        receiver.rows = {"idu=1": {"fname": "Jack", "lname": "Frost"}, "idu=8": {}, "idu=9": {}}
        with world.publisher(receiver, query_limit=limit, insert_query_back="add") as publisher:
            while publisher.cycle().rows:
                pass
        sent = [f"{event.tag!s} {str(event.get('event-id')).split(':')[1]}" for event in receiver.events]
        assert [event for event in sent if event not in ("delete 2", "delete 3")] == events
        assert receiver.rows == rows_of(world)


def test_an_event_to_be_retried_holds_only_its_own_object(world: World) -> None:
    for number in (1, 2):
        world.user(number)
    world.write(key(1), key(2))
    receiver = Receiver(answer(Level.RETRY, "eventlog:1"))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        world.write(key(1, event_type=4), key(2, event_type=4))
        assert world.letters() == {1: "N", 2: "S", 3: "N", 4: "N"}
        publisher.cycle()
        assert world.letters() == {1: "N", 2: "S", 3: "N", 4: "S"}
        receiver.answering = lambda document: Reply()
        publisher.cycle()
    assert receiver.event_ids == [
        "eventlog:1", "eventlog:2", "eventlog:1", "eventlog:4", "eventlog:1", "eventlog:3",
    ]  # fmt: skip
    assert world.counts() == {"S": 4}


def test_later_events_of_the_same_cycle_wait_behind_a_retry(world: World) -> None:
    world.user(2)
    world.write(key(1, event_type=1, column_name="fname", new_value="x"), key(1, event_type=4), key(2))
    receiver = Receiver(answer(Level.RETRY, "eventlog:1"))
    world.cycle(receiver, batch_size=2)
    assert receiver.event_ids == ["eventlog:1", "eventlog:3"]
    assert world.letters() == {1: "N", 2: "N", 3: "S"}


def test_a_document_without_an_answer_is_held_and_the_others_flow(world: World) -> None:
    for number in (1, 2, 3):
        world.user(number)
    world.write(key(1), key(2), key(3))

    def hang(document: OutgoingDocument) -> Reply:
        return unanswered("time-out") if "eventlog:2" in document.text else answered(NO_STATUS, document)

    cycle = world.cycle(Receiver(hang))
    assert cycle.down is None
    assert world.letters() == {1: "S", 2: "N", 3: "S"}


def test_a_receiver_that_answers_nothing_is_down_after_two_documents(world: World) -> None:
    for number in range(5):
        world.user(number)
    world.write(*(key(number) for number in range(5)))
    receiver = Receiver(lambda document: answered(b"garbage", document))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        cycle = publisher.cycle()
        assert cycle.down is not None
        assert "no XML" in cycle.down
        assert len(receiver.documents) == 2
        receiver.answering = lambda document: Reply()
        publisher.cycle()
    assert world.counts() == {"S": 5}
    assert sorted(set(receiver.event_ids)) == [f"eventlog:{n}" for n in range(1, 6)]


def test_after_an_outage_one_new_event_goes_first_and_each_goes_once(world: World) -> None:
    for number in range(1, 6):
        world.user(number)
    world.write(key(1), key(2))
    receiver = Receiver(lambda document: answered(b"garbage", document))
    with world.publisher(receiver) as publisher:
        publisher.cycle()
        world.write(key(3), key(4), key(5))
        publisher.cycle()
        assert receiver.event_ids == ["eventlog:1", "eventlog:2", "eventlog:3"]
        receiver.answering = lambda document: Reply()
        publisher.cycle()
    assert receiver.event_ids[3:] == ["eventlog:4", "eventlog:5"]
    assert world.counts() == {"N": 3, "S": 2}


def test_what_did_not_arrive_goes_first_when_the_receiver_is_back(world: World) -> None:
    for number in (1, 2):
        world.user(number)
    world.write(key(1), key(2))
    receiver = Receiver(lambda document: unreachable("connection refused"))
    with world.publisher(receiver) as publisher:
        assert publisher.cycle().down == "connection refused"
        assert world.remembered() == 1
        world.write(key(1))
        receiver.answering = lambda document: Reply()
        publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2", "eventlog:3"]
    assert world.counts() == {"S": 3}
    assert world.remembered() == 0


def test_after_a_crash_the_same_rows_go_first_under_the_same_event_ids(world: World) -> None:
    world.user(1)
    world.write(key(1), key(1))

    receiver = Receiver(crash)
    with pytest.raises(Crash):
        world.cycle(receiver)
    world.write(key(1), key(2, event_type=4))
    world.change("update usr set fname = 'John'")
    after = Receiver()
    world.cycle(after)
    assert [event_id.partition(":")[2][:3] for event_id in after.event_ids] == ["1-2", "3", "4"]
    assert "John" in after.documents[0].text
    assert world.counts() == {"S": 4}


def test_the_parts_of_a_cut_event_are_documents_and_its_rows_get_the_worst(world: World) -> None:
    values = [key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(5)]
    world.write(*values, key(2, event_type=4))
    receiver = Receiver(lambda d: Reply([Status(Level.WARNING)] if ".2" in d.items[0].event_id else []))
    world.cycle(receiver, batch_size=10, max_changes=2)
    assert [[item.event_id.partition(".")[2] for item in d.items] for d in receiver.documents] == [
        [""],
        ["2"],
        ["3", ""],
    ]
    assert world.letters() == dict.fromkeys(range(1, 6), "W") | {6: "S"}


def test_files_are_named_by_a_number_and_first_and_last_record_id(world: World, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        world.user(number)
    world.write(key(1), key(2), key(3))
    sink = FilesSink(tmp_path)
    world.cycle(sink, batch_size=2)
    sink.close()
    names = ["000000000000001-1-2.xml", "000000000000002-3-3.xml"]
    assert sorted(path.name for path in tmp_path.glob("*.xml")) == names
    assert world.counts() == {"S": 3}


def test_loopback_rows_are_finished_and_do_not_interrupt(world: World) -> None:
    world.user(1)
    world.write(key(1), key(1, event_type=4, perpetrator="idm"), key(1))
    receiver = Receiver()
    world.cycle(receiver, driver_user="idm")
    assert receiver.event_ids[0].startswith("eventlog:1-3:")
    assert world.letters() == {1: "S", 2: "S", 3: "S"}
    assert len(receiver.event_ids) == 1


def test_loopback_rows_are_published_on_wish(world: World) -> None:
    world.write(key(1, event_type=4, perpetrator="idm"))
    receiver = Receiver()
    world.cycle(receiver, driver_user="idm", allow_loopback=True)
    assert receiver.event_ids == ["eventlog:1"]


def test_future_rows_wait_and_the_others_leave_by_their_time(world: World) -> None:
    world.write(
        key(1, event_type=4, event_time="2100-01-01 00:00:00"),
        key(2, event_type=4, event_time="2020-01-02 00:00:00"),
        key(3, event_type=4, event_time="2020-01-01 00:00:00"),
    )
    receiver = Receiver()
    world.cycle(receiver, handle_future_events=True)
    assert receiver.event_ids == ["eventlog:3", "eventlog:2"]
    assert world.letters() == {1: "N", 2: "S", 3: "S"}
    world.cycle(receiver)
    assert receiver.event_ids[2:] == ["eventlog:1"]


def test_many_loopback_rows_are_finished_at_once(world: World) -> None:
    world.write(*(key(number, event_type=4, perpetrator="idm") for number in range(5)))
    with world.publisher(Receiver(), driver_user="idm", query_limit=2) as publisher:
        assert [publisher.cycle().full for _ in range(3)] == [True, True, False]
    assert world.counts() == {"S": 5}


def test_while_the_receiver_is_down_one_event_a_cycle_finds_out(world: World) -> None:
    world.write(*(key(number, event_type=4) for number in range(40)))
    receiver = Receiver(lambda document: unanswered("500"))
    with world.publisher(receiver, retry_wait=60.0, batch_size=10, query_limit=10) as publisher:
        assert [publisher.cycle().down for _ in range(4)] == [None, "500", "500", "500"]
        assert [len(document.items) for document in receiver.documents] == [10, 10, 1, 1]
        receiver.answering = lambda document: Reply()
        assert [publisher.cycle().down for _ in range(2)] == [None, None]
    assert world.counts() == {"S": 18, "N": 22}


def test_events_of_one_object_have_one_key_however_it_is_spelled(world: World) -> None:
    world.write(key(1, event_type=4), key(1, event_type=4, table_name="USR"))
    world.write({"event_type": 4, "table_key": 'IDU="1"'}, key(2, event_type=4))
    receiver = Receiver()
    world.cycle(receiver, association="as-logged")
    items = [item for document in receiver.documents for item in document.items]
    assert len({item.text.partition("<association>")[2] for item in items[:3]}) == 2
    assert len({item.association for item in items[:3]}) == 1
    assert items[0].association != items[3].association
    assert {item.element for item in items} == {"delete"}
