"""A publisher that dies between remember and finish, a backlog, the publisher again: nothing is lost, and
what comes twice comes under the same event-id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.opening.config import Config
from eventlog.operate.redriving import redrive
from eventlog.operate.upkeep import Purge, purge, skip
from eventlog.publisher.preparation import make_reader
from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.store import Store
from eventlog.xds.answers import Level, Status
from tests.kit.databases import Database
from tests.kit.logs import Archive, Crash, Receiver, events_of, fail
from tests.spark.lives import (
    CONFIG,
    ROWS,
    audit,
    backlog,
    documents,
    failures,
    letters,
    make_store,
    publish,
    write,
)

pytestmark = pytest.mark.long

VALUES = [str(n) for n in range(7)]
CUT = [(1, "idu=1", "lname", None, value) for value in VALUES]  # three parts of three values
BY_HAND = "it is S, and no event on record has it"  # of the rows that `stopped` gave letters
LATER_ROWS = [(2, "idu=1", "fname", "b", "c"), (4, "idu=7", None, None, None)]


@pytest.fixture
def store(engine: Engine, database: Database) -> Store:
    return stopped(engine, database)


def stopped(engine: Engine, database: Database) -> Store:
    """Return a log whose pending rows are a long event, which is cut, and one of another object."""
    store = make_store(engine, database.dialect)
    with engine.begin() as connection:
        connection.execute(text(f"update {store.log.names()['log']} set {store.log.names()['status']} = 'S'"))
    write(store, CUT)
    write(store, [(6, "idu=2", None, None, None)])
    return store


def crashing(at: str, level: Level) -> Callable[[OutgoingDocument], Reply]:
    """Answer with this level, and die at the part of that number."""

    def answer(document: OutgoingDocument) -> Reply:
        if any(item.event_id.endswith(at) for item in document.items):
            raise Crash
        return Reply((Status(level, None, "as reported"),))

    return answer


def event_ids(documents: Iterator[str]) -> list[str]:
    return [str(event.get("event-id")) for document in documents for event in events_of(document)]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("level", "letter"), [(Level.SUCCESS, "S"), (Level.WARNING, "W"), (Level.ERROR, "E")]
)
def test_nothing_is_lost_and_nothing_gets_another_name(
    spark: Any, store: Store, tmp_path: Path, level: Level, letter: str
) -> None:
    dying = Receiver(crashing(".2", level))
    with pytest.raises(Crash):
        publish(store, dying)
    before = dying.event_ids
    write(store, LATER_ROWS)
    out = tmp_path / "out"
    backlog(spark, store, out)
    assert store.remembered()  # nothing is settled before --finish
    assert letters(store).count("N") == len(CUT) + 1 + len(LATER_ROWS)
    found = event_ids(iter(documents(out)))
    assert [name.partition(".")[2] for name in found[:2]] == ["2", "3"]
    assert len(set(before) | set(found)) == len(before) + len(found)
    backlog(spark, store, out, finish=True)
    assert not store.remembered()
    assert letters(store)[len(ROWS) :] == letter * len(CUT) + "SSS"
    assert set(failures(store).values()) == ({"as reported"} if letter == "E" else set())
    receiver = Receiver()
    publish(store, receiver)
    assert receiver.event_ids == []
    write(store, [(4, "idu=1", None, None, None)])
    publish(store, receiver)
    assert len(receiver.event_ids) == 1


@pytest.mark.one_database
@pytest.mark.parametrize("skipped_after", ["the publisher", "a job that died"])
@pytest.mark.parametrize("level", [Level.SUCCESS, Level.ERROR])
def test_the_other_rows_of_an_event_that_lost_one_to_a_skip_go_anew(
    spark: Any, store: Store, tmp_path: Path, level: Level, skipped_after: str
) -> None:
    """Let a skip break up what is on record: once the rows left had S, and no document contained them."""
    with pytest.raises(Crash):
        publish(store, Receiver(crashing(".2", level)))
    write(store, LATER_ROWS)
    first, out = len(ROWS) + 1, tmp_path / "out"

    def skip_one(dies: bool = True) -> None:
        assert skip(store, [first + 1], "a test").rows == 1
        if dies:
            raise Crash

    if skipped_after == "the publisher":
        skip_one(dies=False)
    else:
        with pytest.raises(Crash):
            backlog(spark, store, out, skip_one)
    backlog(spark, store, out, finish=True)
    attributes = [each for text in documents(out) for event in events_of(text) for each in event]
    found = [
        each
        for attribute in attributes
        for each in attribute.iter("value")
        if attribute.get("attr-name") == "lname" and each.text in VALUES
    ]
    assert [value.text for value in found] == [value for value in VALUES if value != "1"]
    assert letters(store)[len(ROWS) :] == "SW" + "S" * (len(CUT) - 2) + "SSS"
    assert not store.remembered()
    assert failures(store) == {}
    assert audit(store, out)[0] == [BY_HAND]
    receiver = Receiver()
    publish(store, receiver)
    assert receiver.event_ids == []


@pytest.mark.one_database
@pytest.mark.parametrize("then", ["the same", "other values", "one event of two", "a purge"])
def test_what_was_refused_and_leaves_again_by_a_backlog_is_not_accused(
    spark: Any, store: Store, tmp_path: Path, then: str
) -> None:
    """Deliver texts that are on record already: as the sum of a backlog they were once missed."""
    archive, out = Archive(), tmp_path / "out"
    archive.answering = fail
    publish(store, archive)
    if then == "one event of two":  # each was refused, and a backlog makes one of both
        write(store, LATER_ROWS[:1])
        publish(store, archive)
    if then == "other values":
        write(store, [], "update usr set lname = 'Other' where idu = 2")
    if then == "a purge":
        purge(store, Purge(datetime.now(UTC)))
    redrive(store, FailureFilter(), make_reader(CONFIG, store))
    write(store, LATER_ROWS)
    backlog(spark, store, out, finish=True)
    assert letters(store)[len(ROWS) :].strip("S") == ""
    by_hand = [] if then == "a purge" else [BY_HAND]
    assert audit(store, out, archive.archived) == (by_hand, 0)
    part = max(out.glob("documents/part-*"), key=lambda file: file.stat().st_size)
    part.write_text("".join(part.read_text().splitlines(keepends=True)[:-1]))
    count = len(documents(out))
    lost = f"of {count + 1} documents of backlogs the receiver has {count}"
    assert audit(store, out, archive.archived)[0] == [*by_hand, lost]


def test_a_publisher_that_comes_first_settles_it_itself(
    spark: Any, postgres: Database, tmp_path: Path
) -> None:
    store = stopped(postgres.engine(), postgres)
    with pytest.raises(Crash):
        publish(store, Receiver(crashing(".2", Level.SUCCESS)))
    out = tmp_path / "out"
    backlog(spark, store, out)
    receiver = Receiver()
    publish(store, receiver)
    assert receiver.event_ids == event_ids(iter(documents(out)))
    write(store, CUT)
    with pytest.raises(Crash):
        publish(store, Receiver(crashing(".3", Level.SUCCESS)))
    left = store.remembered()
    assert backlog(spark, store, out, finish=True).rows == 0
    assert store.remembered() == left


def test_what_the_files_sink_knows_to_be_out_is_not_repeated(
    spark: Any, postgres: Database, tmp_path: Path
) -> None:
    store = stopped(postgres.engine(), postgres)

    class Dying(FilesSink):
        def deliver(self, documents: Any) -> Iterator[Reply]:
            yield from super().deliver(islice(documents, 2))
            raise Crash

    folder = tmp_path / "documents"
    with closing(Dying(folder)) as dying, pytest.raises(Crash):
        publish(store, dying)
    config = Config({**CONFIG.values, "sink": "files", "files_folder": str(folder)}, tables=CONFIG.tables)
    backlog(spark, store, tmp_path / "out", finish=True, config=config)
    known = event_ids(path.read_text() for path in folder.glob("*.xml"))
    found = event_ids(iter(documents(tmp_path / "out")))
    assert sorted(name.partition(".")[2] for name in known) == ["", "2"]
    assert [name.partition(".")[2] for name in found] == ["3", ""]
    assert set(letters(store)) == {"S"}
