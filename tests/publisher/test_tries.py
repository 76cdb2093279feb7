"""Each row has its tries on record with their answers; a first success is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered
from eventlog.sql.connect import connect
from eventlog.sql.log.log_record import RecordedBatch
from eventlog.xds.answers import Level, Status
from tests.kit.databases import temporary_database
from tests.kit.logs import Crash, Receiver, answering, crash, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick


def tries(world: World, *ids: int) -> list[tuple[int, str | None, int, str, str]]:
    """Return the tries of these rows: row, event, number, answer and words."""
    with world.store.admin() as admin:
        tries_of = admin.tries_of(ids)
    for row_tries in tries_of.values():
        assert [each.at for each in row_tries] == sorted(each.at for each in row_tries)
    return [
        (row, each.event_id, each.number, each.answer, each.words)
        for row, row_tries in tries_of.items()
        for each in row_tries
    ]


def tables_of_tries(world: World) -> tuple[int, int]:
    """Return how many answers and tries are on record."""
    names = world.log.names()
    with world.engine.connect() as connection:
        answers, each_try = (
            connection.execute(text(f"select count(*) from {names[name]}")).scalar_one()
            for name in ("answer", "try")
        )
    return answers, each_try


def settled(world: World) -> list[RecordedBatch]:
    with world.store.admin() as admin:
        return list(admin.settled_last())


def by_name(answers: Mapping[str, Status]) -> Receiver:
    """Return a receiver that answers for some events, and accepts the others."""

    def answer(document: OutgoingDocument) -> Reply:
        named = [answers[item.event_id] for item in document.items if item.event_id in answers]
        return Reply(named) if named else ACCEPTED

    return Receiver(answer)


def test_each_try_is_kept_with_its_answer_also_of_what_was_sent_in_the_end(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    receiver = by_name({"eventlog:2": Status(Level.RETRY, "eventlog:2", "busy, come again")})
    with world.publisher(receiver, batch_size=9, retry_wait=0.0) as publisher:
        publisher.cycle()
        assert tries(world, 2) == [(2, "eventlog:2", 1, "retry", "busy, come again")]
        receiver.answering = answering(Level.RETRY)
        publisher.cycle()
        receiver.answering = answering(Level.WARNING, "nearly")
        publisher.cycle()
    assert world.counts() == {"S": 1, "W": 1}
    assert tries(world, 1, 2) == [
        (2, "eventlog:2", 1, "retry", "busy, come again"),
        (2, "eventlog:2", 2, "retry", "the receiver answered retry"),
        (2, "eventlog:2", 3, "warning", "nearly"),
    ]


def test_nothing_is_kept_of_a_first_success(world: World) -> None:
    """Write no batch but that of the document, and no answer but the bad ones."""
    world.write(*(key(number, event_type=4) for number in range(1, 5)))
    answers = {
        "eventlog:2": Status(Level.ERROR, "eventlog:2", "no"),
        "eventlog:3": Status(Level.WARNING, "eventlog:3", "nearly"),
        "eventlog:4": Status(Level.SUCCESS, "eventlog:4", "with pleasure"),
    }
    with world.statements() as statements:
        world.cycle(by_name(answers), batch_size=9)
    assert any("eventlog_try" in statement for statement in statements)
    assert world.counts() == {"S": 2, "E": 1, "W": 1}
    assert tries(world, 1, 2, 3, 4) == [
        (2, "eventlog:2", 1, "error", "no"),
        (3, "eventlog:3", 1, "warning", "nearly"),
    ]
    assert sorted(len(batch.documents()) for batch in settled(world)) == [0, 1]  # and that of the warning
    world.write(key(5, event_type=4))
    with world.statements() as statements:
        world.cycle(Receiver())
    assert tables_of_tries(world) == (2, 2)
    assert not any(re.search("into .*eventlog_(try|answer)", statement) for statement in statements)


def test_a_plain_yes_ends_the_tries_and_a_redrive_goes_on_with_them(world: World) -> None:
    world.user(1)
    world.write(key(1), key(1))
    receiver = Receiver(answering(Level.RETRY, "later"))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        receiver.answering = answering(Level.ERROR, "never")
        publisher.cycle()
        world.redrive()
        receiver.answering = answering(Level.RETRY, "later again")
        publisher.cycle()
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert world.counts() == {"S": 2}
    for row in (1, 2):
        assert [(number, answer, words) for _, _, number, answer, words in tries(world, row)] == [
            (1, "retry", "later"),
            (2, "error", "never"),
            (3, "retry", "later again"),
            (4, "success", ""),
        ]


def test_a_try_whose_answer_was_lost_is_one(world: World) -> None:
    """Take the second try for out by the sink's record, after a crash."""

    class Recorder(Receiver):
        def knows(self, name: str) -> bool:
            return True

    receiver = Recorder(answering(Level.RETRY, "later"))
    world.write(key(1, event_type=4))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        receiver.answering = crash
        with pytest.raises(Crash):
            publisher.cycle()
    world.cycle(receiver, retry_wait=0.0)
    assert world.counts() == {"S": 1}
    assert tries(world, 1) == [
        (1, "eventlog:1", 1, "retry", "later"),
        (1, "eventlog:1", 2, "success", "sent; its answer was lost"),
    ]


def test_long_answers_are_kept_short_and_odd_ones_as_they_are(world: World) -> None:
    words = "\x00'\"\\ é 😀 " + "x" * 5_000
    world.write(key(1, event_type=4))
    world.cycle(Receiver(lambda document: Reply([Status(Level.RETRY, None, words)])))
    ((*_, kept),) = tries(world, 1)
    assert kept == words[:999].replace("\0", r"\x00") + "…"


def test_many_events_with_one_answer_have_it_once(world: World) -> None:
    words = "the directory is being restarted"
    world.write(*(key(number, event_type=4) for number in range(1, 41)))
    world.cycle(Receiver(lambda document: Reply([Status(Level.RETRY, None, words)])), batch_size=20)
    assert len(tries(world, *range(1, 41))) == 40
    assert tables_of_tries(world) == (1, 40)


def test_explain_shows_each_try_once_for_each_event(world: World) -> None:
    world.user(1)
    world.write(key(1), key(1), key(2, event_type=4))
    receiver = Receiver(answering(Level.RETRY, "later"))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        receiver.answering = answering(Level.ERROR, "never")
        publisher.cycle()
    world.write(key(3, event_type=4))
    world.cycle(Receiver())
    lines = call(world, "explain", "1", "2", "3", "4").stdout.splitlines()
    tried = [re.sub(r"\(20\S+ \S+Z\)", "(T)", line.strip()) for line in lines if "try" in line]
    assert tried == ["try 1: retry: later (T)", "try 2: error: never (T)"] * 2
    assert len(lines) == 8 + 4  # and the change of each row
    facts = [json.loads(line) for line in call(world, "explain", "--json", "2", "3", "4").stdout.splitlines()]
    assert [[(t["number"], t["answer"], t["words"]) for t in fact["tries"]] for fact in facts] == [
        [(1, "retry", "later"), (2, "error", "never")],
        [(1, "retry", "later"), (2, "error", "never")],
        [],
    ]
    assert all(t["at"].startswith("20") for fact in facts for t in fact["tries"])


@pytest.mark.parametrize("last", [ACCEPTED, Reply([Status(Level.WARNING, None, "nearly")])])
def test_tries_are_forgotten_with_rows_that_are_deleted(world: World, last: Reply) -> None:
    world.delete_from_log = True
    world.write(key(1, event_type=4), key(2, event_type=9))
    receiver = Receiver(answering(Level.RETRY, "later"))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        assert tries(world, 1) == [(1, "eventlog:1", 1, "retry", "later")]
        receiver.answering = lambda document: last
        publisher.cycle()
    assert world.counts() == {"E": 1}
    assert (tables_of_tries(world), settled(world)) == ((0, 0), [])


def test_refused_rows_are_on_record_and_no_row_of_an_event(world: World) -> None:
    world.write(key(1, event_type=9), key(2, event_type=4), key(3, event_type=10))
    world.cycle(Receiver())
    refused, *documents = sorted(settled(world), key=lambda batch: -len(batch.refused()))
    assert (refused.refused(), refused.documents(), dict(refused.rows())) == ([1, 3], [], {})
    (entry,) = refused.read().entries()
    assert (entry.name, [*entry.sizes]) == ("refused", [])
    assert [len(batch.documents()) for batch in documents] == [1]


def test_a_purge_takes_the_tries_too(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4), key(3, event_type=4))
    words = {number: f"no {min(number, 2)}" for number in (1, 2, 3)}
    said = {f"eventlog:{n}": Status(Level.ERROR, f"eventlog:{n}", words[n]) for n in words}
    world.cycle(by_name(said), batch_size=9)
    call(world, "skip", "1", "2", "--because", "a test")
    assert tables_of_tries(world) == (2, 3)
    assert call(world, "purge", "--older-than", "2099-01-01 00:00:00", "--letters", "W").exit_code == 0
    assert tries(world, 1, 2, 3) == [(3, "eventlog:3", 1, "error", "no 2")]
    assert tables_of_tries(world) == (1, 1)


WORDS = "no \0, nor \U0001f600"


@pytest.fixture(params=["", " encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'"], ids=["as it is", "LATIN1"])
def any_world(request: pytest.FixtureRequest, server: tuple[str, URL]) -> Iterator[World]:
    """An installed log in a database of each encoding."""
    name, url = server
    if request.param and not url.get_backend_name().startswith("postgresql"):
        pytest.skip("the log's texts are UTF-8 there, whatever the database's are")
    with temporary_database(name, url, request.param) as database:
        engine = connect(database.url)
        world = World(engine, database.dialect)
        world.make()
        yield world
        engine.dispose()


@pytest.mark.parametrize("reply", [unanswered(WORDS), Reply([Status(Level.RETRY, None, WORDS)])])
@pytest.mark.family
def test_an_event_waits_for_whatever_reason(any_world: World, reply: Reply) -> None:
    any_world.write(key(1, event_type=4))
    any_world.cycle(Receiver(lambda document: reply))
    (waiting,) = any_world.store.waiting(datetime(9000, 1, 1))
    assert waiting.reason.startswith(r"no \x00, nor ")


@pytest.mark.long
def test_an_event_fails_for_whatever_reason(any_world: World) -> None:
    any_world.write(key(1, event_type=4), key(2, event_type=4))
    said = {"idu=1": Reply([Status(Level.ERROR, None, WORDS)])}
    any_world.cycle(Receiver(lambda document: said.get(document.items[0].association[:5], Reply())))
    assert any_world.letters() == {1: "E", 2: "S"}
    (failure,) = any_world.failures()
    assert str(failure.reason).startswith(r"no \x00, nor ")
