"""What became of row 4711: explain by record_id, from the log alone."""

from __future__ import annotations

import json
import re

import pytest

from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Receiver, fail, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick

IDM = {"EVENTLOG_DRIVER_USER": "idm"}
TIME = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ"


def became(world: World, *words: str) -> dict[int, str]:
    """Return what explain reports of each row, after its key, without the tries of its event."""
    lines = call(world, "explain", *words, **IDM).stdout.splitlines()
    return {int(line.split()[0]): line[42:] for line in lines if line.split()[0].isdecimal()}


def field(number: int, kind: int = 2) -> dict[str, object]:
    return key(number, event_type=kind, column_name="fname", old_value="Jack", new_value="Joe")


def test_a_sent_row_has_its_event_its_document_and_the_time(world: World) -> None:
    world.user(1)
    world.write(field(1), field(1), key(2, event_type=4))
    world.cycle(Receiver(), batch_size=1)
    rows = became(world, "1", "2", "3")
    assert rows[1] == rows[2]
    assert re.fullmatch(rf"sent in eventlog:1-2:[0-9a-f]{{8}}: document 1-2, answered at {TIME}", rows[1])
    assert rows[3].startswith("sent in eventlog:3: document 3-3, answered at")
    assert list(became(world, "3", "1")) == [1, 3]


def test_a_superseded_row_names_the_row_that_superseded_it(world: World) -> None:
    world.user(1)
    world.write(field(1), key(1), field(1))
    world.cycle(Receiver())
    rows = became(world, "1", "2", "3")
    assert rows[2].startswith("sent in eventlog:1-3:")
    for row in (1, 3):
        assert rows[row].startswith("superseded in eventlog:1-3:")
        assert ", by row 2: type 6 reads the current row; document 1-3, answered at" in rows[row]


def test_an_event_that_was_tried_again_has_the_document_of_its_last_try(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    receiver = Receiver(lambda document: busy_with(document, "eventlog:2"))
    with world.publisher(receiver, batch_size=9, retry_wait=0.0) as publisher:
        publisher.cycle()
        assert "held: eventlog:2 goes again at" in became(world, "2")[2]
        receiver.answering = lambda document: Reply(())
        while world.counts()["N"]:
            publisher.cycle()
    rows = became(world, "1", "2")
    assert rows[1].startswith("sent in eventlog:1: document 1-2, answered at")
    assert rows[2].startswith("sent in eventlog:2: document 2-2, answered at")


def busy_with(document: OutgoingDocument, name: str) -> Reply:
    return Reply([Status(Level.RETRY, name)] if any(item.event_id == name for item in document.items) else ())


def test_rows_without_an_event_have_a_trace_of_their_own(world: World) -> None:
    world.write(key(1, event_type=4, perpetrator="idm"), key(2), key(3, event_type=4))
    world.cycle(Receiver(), driver_user="idm")
    assert world.counts() == {"S": 3}
    rows = became(world, "1", "2", "3")
    assert rows[1].startswith("loopback: done by the driver's own user; finished without being sent at 20")
    assert rows[2].startswith("without effect: ")
    assert "; finished without being sent at 20" in rows[2]
    assert rows[3].startswith("sent in eventlog:3")


def test_a_loopback_row_alone_has_a_trace(world: World) -> None:
    world.write(key(1, event_type=4, perpetrator="idm"))
    world.cycle(Receiver(), driver_user="idm")
    assert became(world, "1")[1].startswith("loopback: done by the driver's own user")


def test_a_failed_row_has_its_reason_and_a_refused_one_too(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=9))
    world.cycle(Receiver(fail))
    rows = became(world, "1", "2")
    assert rows[1].startswith("failed in eventlog:1: no eventlog:1 (20")
    assert rows[2].startswith("refused: event_type is 9, not 1 to 8 (20")


def test_a_skipped_row_names_who_skipped_it_and_why(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    world.cycle(Receiver(lambda document: Reply([Status(Level.WARNING, "eventlog:2")])))
    world.write(key(3, event_type=4))
    assert call(world, "skip", "3", "--because", "a test: rows 1, 2", "--by", "ada").exit_code == 0
    rows = became(world, "2", "3")
    assert ", answered with a warning at" in rows[2]
    assert rows[3].startswith("skipped: by ada at 20")
    assert rows[3].endswith("Z: a test: rows 1, 2")


def test_a_row_on_its_way_has_its_event(world: World) -> None:
    class Crash(BaseException):
        pass

    def crash(document: OutgoingDocument) -> Reply:
        raise Crash

    world.write(key(1, event_type=4), key(1, event_type=4))
    with pytest.raises(Crash):
        world.cycle(Receiver(crash), batch_size=1)
    assert became(world, "1") == {1: "pending in eventlog:1: on its way, and not answered yet"}


def test_a_redriven_row_has_its_last_event(world: World) -> None:
    world.user(1)
    world.write(field(1), key(2, event_type=4))
    world.cycle(Receiver(fail))
    world.redrive()
    world.write(field(1))
    world.cycle(Receiver())
    assert became(world, "1")[1].startswith("sent in eventlog:1-3:")
    assert ", by row 1: type 8 reads the current value of fname; document" in became(world, "3")[3]


def test_what_is_not_on_record_is_reported_so(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4), key(3, event_type=4), key(4, event_type=4))
    world.change(
        f"update {world.log.names()['log']} set {world.log.names()['status']} = 'S' where record_id = 1"
    )
    world.cycle(Receiver())
    world.change(f"delete from {world.log.names()['log']} where record_id = 3")
    rows = became(world, "1", "2", "3", "4", "99")
    assert rows[1] == "finished: its status is S, and its event is not on record any more, or never was"
    assert rows[3].endswith("; the row is not in the log any more")
    assert rows[99].startswith("not in the log: it never was, or it was deleted")
    call(world, "purge", "--older-than", "2099-01-01 00:00:00", "--letters", "W,S")
    assert became(world, "2")[2].startswith("not in the log")
    with world.store.admin() as admin:
        assert list(admin.settled_with(range(1, 5))) == []


def test_nothing_is_kept_of_rows_that_are_deleted(world: World) -> None:
    world.delete_from_log = True
    world.write(key(1, event_type=4), key(2, event_type=4, perpetrator="idm"))
    world.cycle(Receiver(), driver_user="idm")
    assert became(world, "1", "2")[2].startswith("not in the log: it never was, or it was deleted")
    assert world.store.latest_batch() == 0


def test_a_key_joins_what_is_kept_and_json_has_it_too(world: World) -> None:
    world.write(key(1, event_type=4), key(1, event_type=4), key(2, event_type=4))
    world.cycle(Receiver(lambda document: Reply([Status(Level.ERROR, "eventlog:2", "no such object")])))
    world.write(key(1, event_type=4))
    rows = became(world, "--key", "idu=1")
    assert list(rows) == [1, 2, 4]
    assert rows[1].startswith("sent in eventlog:1: document")
    assert rows[2].startswith("failed in eventlog:2: no such object (")
    assert rows[4] == "pending in eventlog:4"
    facts = json.loads(call(world, "explain", "--json", "2").stdout)
    assert (facts["record_id"], facts["outcome"], facts["event_id"]) == (2, "failed", "eventlog:2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1", __file__), "name record_ids or files"),
        (("1", "--key", "idu=1"), "--key chooses rows"),
        (("1", "--all"), "--all chooses rows"),
        (("1", "--now", "2025-01-01"), "--now is for files"),
        (("9" * 30,), "is no record_id"),
    ],
)
def test_words_that_do_not_fit_together_are_refused(
    world: World, words: tuple[str, ...], message: str
) -> None:
    assert message in str(call(world, "explain", *words).exception)


def test_many_rows_are_looked_up_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.operate.account.ON_RECORD", 3)
    world.write(*(key(number, event_type=4) for number in range(1, 12)))
    world.cycle(Receiver(), batch_size=2)
    assert all("answered at" in text for text in became(world, *map(str, range(1, 12))).values())
