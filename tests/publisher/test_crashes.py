"""The files sink and a publisher that dies at each point of a cut event's way: every part once, no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.publisher import delivery
from eventlog.publisher.delivery import CycleHooks
from eventlog.publisher.tally import AnswerTally
from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unreachable
from eventlog.sql.log.leader_transaction import LeadershipLost
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Crash, Receiver, crash, events_of, key
from tests.laws.resume.power import Disk, unsynced
from tests.world.world import World

pytestmark = pytest.mark.quick


class DyingSink(FilesSink):
    """A sink that dies at the n-th call, before or after the documents of that call are out."""

    def __init__(self, folder: Path, call: int, after: bool) -> None:
        super().__init__(folder)
        self._calls_left = call
        self._after = after

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        self._calls_left -= 1
        if self._calls_left == 0 and not self._after:
            raise Crash
        replies = list(super().deliver(documents))
        if self._calls_left == 0:
            raise Crash
        yield from replies


def until(renames: int) -> Callable[[Path, Path], Path]:
    """Return a function that renames files and crashes after so many."""
    rename, calls = Path.rename, iter(range(renames))

    def renamed(path: Path, target: Path) -> Path:
        if next(calls, None) is None:
            raise Crash
        return rename(path, target)

    return renamed


def files(folder: Path) -> dict[str, list[str]]:
    """Return the event-ids of each file."""
    return {
        path.stem: [str(event.get("event-id")) for event in events_of(path.read_text())]
        for path in folder.glob("*.xml")
    }


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("left", range(4))
def test_the_parts_of_a_cut_event_are_out_once(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, delete: bool
) -> None:
    """Write three files of one delivery, each in another place first."""
    world.delete_from_log = delete
    world.write(key(3, event_type=4))
    world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(5)))
    world.write(key(2, event_type=4))
    given = {"batch_size": 10, "max_changes": 2}
    sink = DyingSink(tmp_path, 1, after=True)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", until(left))
        with pytest.raises(Crash):
            world.cycle(sink, **given)
    sink.close()
    whole = FilesSink(tmp_path)
    world.cycle(whole, **given)
    whole.close()
    found = [event_id for event_ids in files(tmp_path).values() for event_id in event_ids]
    assert sorted(event_id.partition(".")[2] for event_id in found) == ["", "", "", "2", "3"]
    assert len(set(found)) == 5
    assert world.letters() == ({} if delete else dict.fromkeys(range(1, 8), "S"))
    assert world.remembered() == 0


def test_rows_of_a_batch_leave_again_after_the_sync_of_a_file_failed(world: World, tmp_path: Path) -> None:
    """Let the disk fail for the second of three files, and lose its power after the next cycle."""
    world.write(*(key(number, event_type=4) for number in range(3)))
    disk = Disk(0, bad_sync=1)
    FilesSink(tmp_path).close()
    with unsynced(disk), closing(FilesSink(tmp_path)) as sink:
        world.cycle(sink, batch_size=1)
        assert (files(tmp_path), world.letters()) == ({}, dict.fromkeys(range(1, 4), "N"))
        world.cycle(sink, batch_size=1)
    disk.fail()
    FilesSink(tmp_path).close()
    assert sorted(files(tmp_path).values()) == [[f"eventlog:{number}"] for number in range(1, 4)]
    assert world.letters() == dict.fromkeys(range(1, 4), "S")


def test_an_object_that_is_gone_after_the_crash_settles_its_rows(world: World) -> None:
    world.user(1)
    world.write(key(1))

    with pytest.raises(Crash):
        world.cycle(Receiver(crash))
    world.change("delete from usr")
    receiver = Receiver()
    world.cycle(receiver)
    assert receiver.documents == []
    assert world.letters() == {1: "S"}


def test_rows_that_were_finished_by_somebody_else_are_not_sent_again(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))

    with pytest.raises(Crash):
        world.cycle(Receiver(crash))
    with world.store.admin() as admin:
        admin.skip([1], "by hand")
    receiver = Receiver()
    world.cycle(receiver)
    assert receiver.event_ids == ["eventlog:2"]
    assert world.letters() == {1: "W", 2: "S"}


def test_a_row_that_is_skipped_while_its_document_is_refused_has_no_failure(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))

    def skip_and_refuse(document: OutgoingDocument) -> Reply:
        with world.store.admin() as admin:
            admin.skip([1], "by hand")
        return Reply((Status(Level.ERROR, None, "never"),))

    world.cycle(Receiver(skip_and_refuse))
    assert world.letters() == {1: "W", 2: "E"}
    with world.engine.connect() as connection:
        failed = connection.execute(text(f"select record_id from {world.log.names()['failed']}"))
        assert failed.scalars().all() == [2]


def test_a_part_that_is_refused_fails_its_event_though_a_later_one_is_taken(world: World) -> None:
    world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(4)))
    replies = iter([Reply((Status(Level.ERROR, None, "never"),)), ACCEPTED])
    world.cycle(Receiver(lambda document: next(replies)), max_changes=2)
    assert set(world.letters().values()) == {"E"}


def test_after_a_crash_a_warning_of_an_earlier_part_is_not_forgotten(world: World) -> None:
    world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(4)))

    def answer(document: OutgoingDocument) -> Reply:
        if document.items[0].event_id.endswith(".2"):
            raise Crash
        return Reply((Status(Level.WARNING),))

    with pytest.raises(Crash):
        world.cycle(Receiver(answer), max_changes=2)
    receiver = Receiver()
    world.cycle(receiver, max_changes=2)
    assert [event_id.partition(".")[2] for event_id in receiver.event_ids] == ["2"]
    assert set(world.letters().values()) == {"W"}


def test_after_a_crash_a_refused_part_is_not_forgotten_if_no_further_part_follows(world: World) -> None:
    world.user(1)
    world.write(key(1))

    def answer(document: OutgoingDocument) -> Reply:
        if document.items[0].event_id.endswith(".2"):
            raise Crash
        return Reply((Status(Level.ERROR, None, "no"),))

    with pytest.raises(Crash):
        world.cycle(Receiver(answer), max_changes=1)
    world.change("delete from usr")
    world.cycle(Receiver(), max_changes=1)
    assert world.letters() == {1: "E"}


def test_after_a_crash_an_event_that_has_fewer_parts_by_then_is_finished(world: World) -> None:
    world.user(1)
    world.write(key(1))

    def answer(document: OutgoingDocument) -> Reply:
        if document.items[0].event_id.endswith(".2"):
            raise Crash
        return Reply((Status(Level.WARNING),))

    with pytest.raises(Crash):
        world.cycle(Receiver(answer), max_changes=2)
    world.change("update usr set fname = null, lname = null")
    receiver = Receiver()
    world.cycle(receiver, max_changes=2)
    assert (receiver.event_ids, world.letters()) == ([], {1: "W"})


@pytest.mark.parametrize("accepted", [0, 1])
def test_parts_that_a_skip_shifts_are_not_passed_over_after_a_crash(world: World, accepted: int) -> None:
    world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)))
    world.user(2)
    world.write(key(2))
    first = Receiver(lambda document: ACCEPTED if len(first.documents) < accepted else crash(document))
    with pytest.raises(Crash):
        world.cycle(first, max_changes=1)
    with world.store.admin() as admin:
        admin.skip([1], "wrong")
    receiver = Receiver()
    world.cycle(receiver, max_changes=1)
    texts = "".join(item.text for document in receiver.documents for item in document.items)
    assert [f">{n}<" in texts for n in range(3)] == [False, True, True]
    assert world.letters() == {1: "W", 2: "S", 3: "S", 4: "S"}


def test_documents_with_the_names_of_others_that_are_out_leave_after_a_crash(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let two documents of three rows be out: without the second row, others have the same names."""
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 2)
    world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)))
    for leaves in (True, False):
        sink = DyingSink(tmp_path, 1, after=leaves)
        with pytest.raises(Crash):
            world.cycle(sink, max_changes=1)
        sink.close()
        with world.store.admin() as admin:
            admin.skip([2], "wrong")
    whole_sink = FilesSink(tmp_path)
    world.cycle(whole_sink, max_changes=1)
    whole_sink.close()
    ids = [event_id for _, event_ids in sorted(files(tmp_path).items()) for event_id in event_ids]
    whole, first, *others = [event_id.rpartition(":")[2] for event_id in ids]
    assert (first, len(others)) == (f"{whole}.2", 2)
    assert others[1] == f"{others[0]}.2"
    assert others[0] != whole
    assert world.letters() == {1: "S", 2: "W", 3: "S"}


def test_later_events_of_an_object_wait_for_what_a_skip_leaves_of_an_earlier_one(world: World) -> None:
    world.write(
        key(1, event_type=1, column_name="fname", new_value="Jack"),
        key(1, event_type=1, column_name="lname", new_value="Frost"),
        key(1, event_type=2, column_name="lname", old_value="Frost", new_value="Snow"),
    )
    with pytest.raises(Crash):
        world.cycle(Ordered(crash), batch_size=1)  # both are on record together
    with world.store.admin() as admin:
        admin.skip([1], "wrong")
    receiver = Receiver()
    world.cycle(receiver, batch_size=1)
    assert receiver.event_ids == ["eventlog:2", "eventlog:3"]
    assert world.letters() == {1: "W", 2: "S", 3: "S"}


class StopAfter(CycleHooks):
    """A stop that is asked for once so many documents were answered."""

    def __init__(self, documents: int) -> None:
        self._documents = documents

    def stop_requested(self) -> bool:
        return self._documents <= 0

    def replied(self, tally: AnswerTally, down: str | None, outage: Collection[str]) -> None:
        self._documents -= 1


@pytest.mark.parametrize("is_down", [False, True])
def test_a_stop_between_the_parts_of_an_event_repeats_none(world: World, is_down: bool) -> None:
    fields = [key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)]
    world.write(*fields, key(2, event_type=4))
    replies = iter([unreachable("down")] * is_down)
    first = Receiver(lambda document: next(replies, ACCEPTED))
    with world.publisher(first, control=StopAfter(1 + is_down), max_changes=1) as publisher:
        for _ in range(1 + is_down):
            publisher.cycle()
    assert [event_id.partition(".")[2] for event_id in first.event_ids][-1:] == [""]
    receiver = Receiver()
    world.cycle(receiver, max_changes=1)
    assert [event_id.partition(".")[2] for event_id in receiver.event_ids] == ["2", "3", ""]
    assert world.letters() == dict.fromkeys(range(1, 5), "S")


def test_a_redrive_between_the_parts_of_an_event_lets_it_go_on(world: World) -> None:
    fields = [key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)]
    world.write(key(2, event_type=4))
    world.cycle(Receiver(lambda document: Reply((Status(Level.ERROR),))))
    world.write(*fields)

    def redrive(document: OutgoingDocument) -> Reply:
        world.redrive()
        return ACCEPTED

    first = Receiver(redrive)
    world.cycle(first, max_changes=1)
    receiver = Receiver()
    world.cycle(receiver, max_changes=1000)
    assert [event_id.partition(".")[2] for event_id in first.event_ids] == [""]
    assert [event_id.partition(".")[2] for event_id in receiver.event_ids[:2]] == ["2", "3"]


class CrashAfter(CycleHooks):
    """A crash once so many documents were answered, before the next batch is remembered."""

    def __init__(self, documents: int) -> None:
        self._documents = documents

    def stop_requested(self) -> bool:
        if self._documents < 0:
            raise Crash
        self._documents -= self._documents == 0
        return False

    def replied(self, tally: AnswerTally, down: str | None, outage: Collection[str]) -> None:
        self._documents -= 1


def test_after_a_crash_between_its_parts_an_event_is_cut_as_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE", 0)
    fields = [key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)]
    world.write(*fields)
    crashing = world.publisher(Receiver(), control=CrashAfter(1), max_changes=1)
    with crashing as publisher, pytest.raises(Crash):
        publisher.cycle()
    receiver = Receiver()
    world.cycle(receiver, max_changes=1000)
    assert [event_id.partition(".")[2] for event_id in receiver.event_ids] == ["", "2", "3"]


class Ordered(Receiver):
    """A sink that sends in order and stops at the first document that was not accepted."""

    def highest(self) -> int | None:
        """Return None: nothing is on record yet."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        for reply in super().deliver(documents):
            yield reply
            if reply != ACCEPTED:
                return


def test_nothing_of_an_object_follows_in_a_batch_once_an_event_of_it_waits(world: World) -> None:
    fields = [key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)]
    world.write(*fields, key(1, event_type=4), key(2, event_type=4))
    receiver = Ordered(lambda d: Reply((Status(Level.RETRY),)) if len(receiver.documents) == 0 else Reply())
    world.cycle(receiver, max_changes=1)
    assert receiver.objects == ["idu=1", "idu=2"]
    assert world.letters() == dict.fromkeys(range(1, 5), "N") | {5: "S"}


def test_a_leader_that_slept_changes_nothing(world: World) -> None:
    world.write(key(1, event_type=4))
    with world.publisher(Receiver()) as publisher:
        with world.engine.begin() as connection:
            state, later = world.log.names()["state"], "epoch + 1"
            connection.execute(text(f"update {state} set epoch = {later}"))
        with pytest.raises(LeadershipLost):
            publisher.cycle()
    assert world.letters() == {1: "N"}
