"""Honest histories: whatever happened between a log and its receiver, the receipt accuses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from eventlog.audit.audit_report import AuditReport, Law
from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.laws import Arrivals, judge
from eventlog.audit.on_record import read_log
from eventlog.core.entry import OBJECT
from eventlog.files.long_columns import ColumnMemory
from eventlog.publisher import delivery
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Archive, Crash, answering, busy, fail, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick

DELETE = {"event_type": 4}


class Story:
    """A log and its receiver, in which things happen."""

    def __init__(self, world: World, options: dict[str, Any]) -> None:
        self.world = world
        self.receiver = Archive()
        self._options = options
        for number in range(1, 4):
            world.user(number)

    def write(self) -> None:
        """Log rows of many types about some objects."""
        self.world.write(
            *(key(1, event_type=1, column_name=name, new_value="a") for name in ("fname", "lname")),
            key(2),
            key(3, event_type=8, column_name="fname"),
        )

    def change(self) -> None:
        self.world.change("update usr set fname = concat(fname, 'x')")

    def answer(self, answering: Callable[[OutgoingDocument], Reply]) -> None:
        """Run a cycle in which the receiver answers so, and may end the publisher."""
        self.receiver.answering = answering
        with suppress(Crash, ReceiverFatal):
            self.cycle()
        self.receiver.answering = lambda document: ACCEPTED

    def cycle(self, **settings: Any) -> None:
        self.world.cycle(self.receiver, **{"retry_wait": 0.0, **self._options, **settings})

    def be_down_for_a_change(self) -> None:
        """Run a publisher that cannot send, and goes on with other values."""
        self.receiver.answering = lambda document: unreachable("it is down")
        with self.world.publisher(self.receiver, retry_wait=0.0, **self._options) as publisher:
            publisher.cycle()
            self.change()
            self.receiver.answering = lambda document: ACCEPTED
            publisher.cycle()

    def end(self) -> None:
        """Publish until nothing is new."""
        for _ in range(6):
            if "N" in self.world.counts():
                self.cycle()
        assert "N" not in self.world.counts()


def crash_after_the_send(document: OutgoingDocument) -> Reply:
    raise Crash


def crash_at_the_second(story: Story) -> Callable[[OutgoingDocument], Reply]:
    """Answer one document, and lose the answer to the next one with the publisher."""

    def answer(document: OutgoingDocument) -> Reply:
        if len(story.receiver.archived) > 1:
            raise Crash
        return ACCEPTED

    return answer


def nothing(story: Story) -> None:
    story.write()


def crash(story: Story) -> None:
    story.write()
    story.answer(crash_after_the_send)


def crash_and_change(story: Story) -> None:
    crash(story)
    story.change()


def crash_twice(story: Story) -> None:
    crash_and_change(story)
    story.answer(crash_after_the_send)
    story.change()


def crash_at_a_later_document(story: Story) -> None:
    story.write()
    story.answer(crash_at_the_second(story))
    story.change()


def crash_and_delete(story: Story) -> None:
    crash(story)
    story.world.change("delete from usr")


def hang_up(story: Story) -> None:
    story.write()
    story.answer(lambda document: unanswered("it hung up"))
    story.change()


def hang_up_for_long(story: Story) -> None:
    story.write()
    for _ in range(4):
        story.answer(lambda document: unanswered("it hung up"))
        story.change()


def be_down(story: Story) -> None:
    story.write()
    story.answer(lambda document: unreachable("it is down"))
    story.change()


def crash_and_be_down(story: Story) -> None:
    story.write()
    story.answer(crash_at_the_second(story))
    story.be_down_for_a_change()


def retry(story: Story) -> None:
    story.write()
    story.answer(busy)
    story.change()
    story.write()


def warn(story: Story) -> None:
    story.write()
    story.answer(answering(Level.WARNING))


def refuse_and_redrive(story: Story) -> None:
    story.write()
    story.answer(fail)
    story.change()
    story.write()
    story.cycle()
    story.world.redrive()


def refuse_and_skip(story: Story) -> None:
    story.write()
    story.answer(fail)
    ids = sorted(row for row, letter in story.world.letters().items() if letter == "E")
    if ids:
        assert call(story.world, "skip", *map(str, ids), "--because", "a test").exit_code == 0


def end_with_fatal(story: Story) -> None:
    story.write()
    story.answer(answering(Level.FATAL))
    story.world.redrive()


def purge(story: Story) -> None:
    crash_and_change(story)
    story.end()
    assert call(story.world, "purge", "--older-than", "0s").exit_code == 0
    story.write()


def refuse_purge_and_redrive(story: Story) -> None:
    """Send an event again with another text once the record of the first one is deleted."""
    refuse_purge_and_go_on(story, fail)
    story.world.redrive()


def retry_and_purge(story: Story) -> None:
    refuse_purge_and_go_on(story, busy)


def refuse_purge_and_go_on(story: Story, answer: Callable[[OutgoingDocument], Reply]) -> None:
    story.write()
    story.answer(answer)
    assert call(story.world, "purge", "--older-than", "0s").exit_code == 0
    story.change()


def pause(story: Story) -> None:
    story.write()
    story.answer(crash_after_the_send)
    assert call(story.world, "pause").exit_code == 0
    story.change()
    story.cycle()
    assert call(story.world, "resume").exit_code == 0


def change_the_size_of_documents(story: Story) -> None:
    crash_and_change(story)
    story.cycle(batch_size=2)


def rows_without_an_event(story: Story) -> None:
    story.world.write(key(9), key(8, event_type=9), key(1, event_type=8, column_name="idu"), key(2, **DELETE))


def repeats(story: Story) -> None:
    story.receiver.copies = 2
    story.write()
    story.answer(crash_after_the_send)


HISTORIES = (
    *(nothing, crash, crash_and_change, crash_twice, crash_at_a_later_document, crash_and_delete, hang_up),
    *(
        hang_up_for_long,
        be_down,
        crash_and_be_down,
        retry,
        warn,
        refuse_and_redrive,
        refuse_and_skip,
        end_with_fatal,
        purge,
        refuse_purge_and_redrive,
        retry_and_purge,
    ),
    *(pause, change_the_size_of_documents, rows_without_an_event, repeats),
)
OPTIONS = (
    *({"batch_size": 1}, {"batch_size": 9}, {"batch_size": 1, "max_changes": 1}),
    {"batch_size": 9, "delete_from_log": True},
)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("happens", HISTORIES)
@pytest.mark.family
def test_an_honest_history_is_not_accused(
    world: World, happens: Callable[[Story], None], options: dict[str, Any]
) -> None:
    deletes = options.get("delete_from_log", False)
    world.delete_from_log = deletes
    story = Story(world, options)
    happens(story)
    story.write()
    story.end()
    report = judged(world, story.receiver.archived, deletes=deletes)
    assert report.first_breaches == {}
    assert report.rows or deletes


def judged(world: World, documents: Sequence[DeliveredDocument], *, deletes: bool = False) -> AuditReport:
    """Return the report, which is the same if columns are on disk and few numbers are handled at a time."""
    in_memory, on_disk = (
        judged_with(memory, world, documents, deletes=deletes)
        for memory in (ColumnMemory(), ColumnMemory(0, block=2))
    )
    assert on_disk == in_memory
    return in_memory


def judged_with(
    memory: ColumnMemory, world: World, documents: Sequence[DeliveredDocument], *, deletes: bool
) -> AuditReport:
    with world.store.snapshot() as snapshot:
        log = read_log(snapshot, memory)
        objects = {int(cells[0] or 0): str(cells[OBJECT]) for cells in snapshot.rows(log.ids.tolist())}
    arrivals, report = Arrivals(log), AuditReport(is_purged=log.facts.is_purged or deletes)
    if deletes:
        report.open_laws |= dict.fromkeys((Law.DELIVERED, Law.EXPLAINED, Law.IN_ORDER), "rows are deleted")
    for _ in arrivals.add(documents):
        pass
    judge(log, arrivals, report, "eventlog", lambda ids: objects)
    return report


@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_slow_receiver_leaves_each_event_on_record_once(
    world: World, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    """Write what became of the first documents of a batch before the others were answered."""
    monkeypatch.setattr(delivery, "PATIENCE", 0.0)
    story = Story(world, {"batch_size": batch_size})
    for number in range(4, 30):
        world.user(number)
    world.write(*(key(number, event_type=6) for number in range(1, 30)))
    story.end()
    with world.store.snapshot() as snapshot:
        log = read_log(snapshot)
    assert len(log.digests) == len(set(log.digests.tolist())) == 29
    assert judged(world, story.receiver.archived).first_breaches == {}


def test_a_part_that_is_lost_is_named(world: World) -> None:
    story = Story(world, {"batch_size": 1, "max_changes": 1})
    story.write()
    story.end()
    (lost,) = [document for document in story.receiver.archived if b".2" in document.texts[0][:80]][:1]
    report = judged(world, [document for document in story.receiver.archived if document != lost])
    assert report.first_breaches.keys() == {Law.DELIVERED}


def cut_event(world: World, first: Level) -> Story:
    """Publish an event in two parts; the receiver answers the first one so."""
    story = Story(world, {"batch_size": 1, "max_changes": 1})
    story.write()
    answer_first = answering(first, "so")
    story.answer(lambda sent: ACCEPTED if story.receiver.archived[1:] else answer_first(sent))
    story.end()
    return story


@pytest.mark.parametrize("first", [Level.WARNING, Level.ERROR])
def test_rows_of_a_cut_event_have_the_letter_of_its_worst_answer(world: World, first: Level) -> None:
    story = cut_event(world, first)
    assert world.letters()[1] == first.name[0]
    assert judged(world, story.receiver.archived).first_breaches == {}


def test_a_part_that_the_receiver_refused_contradicts_the_letter_of_its_rows(world: World) -> None:
    first, *further = cut_event(world, Level.SUCCESS).receiver.archived
    report = judged(world, [first._replace(levels=["error"]), *further])
    assert report.first_breaches.keys() == {Law.ANSWERED}


def test_an_event_that_goes_anew_has_the_answers_to_its_new_parts_alone(world: World) -> None:
    """Forget the warning to a part whose event waited then, and left with other values."""
    story = Story(world, {"batch_size": 1, "max_changes": 2})
    world.write(key(1, event_type=6))
    answers = iter((answering(Level.WARNING), busy))
    story.answer(lambda document: next(answers)(document))
    story.change()
    story.end()
    assert world.letters() == {1: "S"}
    assert judged(world, story.receiver.archived).first_breaches == {}


def test_an_event_that_went_anew_has_the_parts_on_record_that_went_last(world: World) -> None:
    story = Story(world, {"batch_size": 1, "max_changes": 2})
    world.write(key(1, event_type=6))
    story.answer(busy)
    story.end()
    with world.store.snapshot() as snapshot:
        log = read_log(snapshot)
    assert log.parts
    assert all(parts == [*range(1, len(log.digests))] for parts in log.parts.values())


def test_entries_without_digests_are_counted_as_not_judged(world: World) -> None:
    """Read a record as an early 0.1.0 wrote it."""
    story = Story(world, {"batch_size": 9})
    story.receiver.answering = lambda document: Reply(
        [Status(Level.WARNING, item.event_id, "nearly") for item in document.items]
    )
    story.write()
    story.cycle()
    with world.store.snapshot() as snapshot:
        batches = [batch for batch, _ in snapshot.record().journal()]
    for batch in batches:
        early = [[name, [*map(without_digest, entries)]] for name, entries in json.loads(batch.content)]
        early = [named for named in early if named[0] != "warned"]
        statement = f"update {world.log.names()['batch']} set content = :content where batch = :batch"
        world.change(statement, content=json.dumps(early), batch=batch.number)
    report = judged(world, story.receiver.archived)
    assert (report.first_breaches, report.not_judged > 0) == ({}, True)


def without_digest(entry: Any) -> Any:
    """Return what an early 0.1.0 recorded of events."""
    if isinstance(entry, list):
        return entry[:3] + entry[4:]
    return {name: fact for name, fact in entry.items() if name != "digests"}
