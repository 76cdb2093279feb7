"""A live log as a stream gives the documents of the publisher, at any crash. Nothing is lost, repeats are
equal, and rows are finished only after their batch has ended."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.stream.log_reader import files_of
from eventlog_spark.stream.pickup_folder import STATE, Altered, StreamFolder
from eventlog_spark.stream.pickups import (
    Following,
    LogTaken,
    NoCheckpoint,
    NoFolder,
    OldCheckpoint,
    OldFolder,
    OtherLog,
    OtherStream,
    SettledElsewhere,
)
from pyarrow import fs

from eventlog.publisher import confirmed_pickups as pickups
from eventlog.publisher.config import Config
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.sql.log.store import Store
from eventlog.xds.answers import Level, Status
from tests import storage
from tests.publisher.conftest import either_way, made_world, world
from tests.publisher.world import Receiver, World, key
from tests.spark.follower import NEVER, Crash, Doom, Spark, dying_store

pytestmark = pytest.mark.quick

__all__ = ["either_way", "made_world", "world"]

GIVEN = {"sync_tables": "usr", "allow_loopback": True, "max_changes": 2}


@pytest.fixture
def spark(world: World, tmp_path: Path) -> Spark:
    url = world.engine.url.render_as_string(hide_password=False)
    return Spark(tmp_path / "frozen", Config({"url": url, **GIVEN}))


def fields(number: int, *names: str, **more: Any) -> list[dict[str, Any]]:
    return [key(number, event_type=1, column_name="fname", new_value=name, **more) for name in names]


def write_all(world: World) -> int:
    """Write rows of every kind: query-backs, an event that is cut, one that is refused, one without
    effect."""
    world.user(1)
    world.user(2)
    world.write(key(1), key(2), key(1, event_type=4), key(2, event_type=9))
    world.write(*fields(3, "a", "b", "c", "d", "e"), key(1, event_type=5), key(7))
    return 11


def letters_after(world: World, rows: int, delete: bool) -> dict[int, str]:
    """Return the documents of the publisher for these rows."""
    reported = {number: "E" if number == 4 else "S" for number in range(1, rows + 1)}
    return {4: "E"} if delete else reported


def expected(world: World, **given: Any) -> Receiver:
    """Return the documents of the pending rows, which a publisher finishes."""
    receiver = Receiver()
    world.cycle(receiver, **(GIVEN | given))
    return receiver


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("delete", [False, True])
def test_the_documents_are_those_of_the_publisher(world: World, spark: Spark, delete: bool) -> None:
    rows = write_all(world)
    spark.run(delete_from_log=delete)
    assert world.letters() == letters_after(world, rows, delete)
    assert world.remembered() == 0
    assert [failed.record_id for failed in world.failures()] == [4]
    world.clear()
    write_all(world)
    receiver = expected(world)
    items = [item for document in receiver.documents for item in document.items]
    assert spark.column("event_id") == [item.event_id for item in items]
    assert spark.column("document") == [document.text for document in receiver.documents]
    assert spark.column("association") == [item.key for item in items]
    assert spark.column("operation") == [item.text[1:].partition(" ")[0] for item in items]
    assert spark.column("place") == list(range(len(items)))
    assert len(items) == 8


def test_one_row_at_a_time(world: World, spark: Spark) -> None:
    world.user(1)
    world.write(key(2, event_type=4), key(5), key(1), key(3, event_type=4), key(7))
    spark.run(query_limit=1, max_changes=9)
    assert [len(rows) for _, rows in sorted(spark.batches.items())] == [1, 1, 1]
    assert spark.column("record_ids") == [[1], [3], [4]]
    assert set(world.letters().values()) == {"S"}
    assert [offset["pick-up"] for offset in spark.offsets] == [1, 2, 3]


def test_rows_are_finished_when_their_batch_has_ended(world: World, spark: Spark) -> None:
    world.write(*(key(n, event_type=4) for n in range(1, 5)))
    seen: list[str] = []
    spark.ended = lambda rows: seen.append("".join(world.letters().values()))
    spark.run(query_limit=2)
    assert seen == ["NNNN", "SSNN"]
    assert "".join(world.letters().values()) == "SSSS"


EVERY = ["freeze", "put", "put it", "commit", "committed", "offset", "batch", "in batch", "batch ended"]


def killed(
    world: World, spark: Spark, monkeypatch: pytest.MonkeyPatch, delete: bool, doom: Doom
) -> str | None:
    """Kill a query and continue it; return the step of the kill, None if the query ended before."""
    monkeypatch.setattr(pickups, "MOST_EVENTS", 2)
    world.clear()
    shutil.rmtree(spark.folder, ignore_errors=True)
    write_all(world)
    query, step = Spark(spark.folder, spark.config), None

    def ended(rows: Sequence[dict[str, Any]]) -> None:
        pending = {number for number, letter in world.letters().items() if letter == "N"}
        assert pending.issuperset(number for row in rows for number in row["record_ids"])

    query.ended = ended
    with monkeypatch.context() as patched:
        patched.setattr(Store, "work", dying_store(doom))
        try:
            query.run(doom, query_limit=4, delete_from_log=delete)
        except Crash as died:
            step = str(died)
    world.user(9)
    world.write(key(9), key(8, event_type=4))
    query.run(query_limit=4, delete_from_log=delete)
    settled = {number for row in query.rows for number in row["record_ids"]}
    assert settled == {2, 3, 5, 6, 7, 8, 9, 10, 12, 13}
    assert len(set(query.column("event_id"))) == len(query.rows) == 11
    assert world.letters() == letters_after(world, 13, delete)
    assert world.remembered() == 0
    return step


@pytest.mark.long
@pytest.mark.parametrize(("delete", "nth"), [(False, 1), (True, 2), (False, 3)])
def test_killed_at_each_step(
    world: World, spark: Spark, monkeypatch: pytest.MonkeyPatch, delete: bool, nth: int
) -> None:
    for step in EVERY:
        assert killed(world, spark, monkeypatch, delete, Doom(step, nth)) == step


@pytest.mark.skipif(
    not os.environ.get("CI_FULL"), reason="CI_FULL=1 kills at each time, not at one of each step"
)
@pytest.mark.parametrize("delete", [False, True])
def test_killed_at_each_time(
    world: World, spark: Spark, monkeypatch: pytest.MonkeyPatch, delete: bool
) -> None:
    steps, nth = set[str](), 1
    while step := killed(world, spark, monkeypatch, delete, Doom(nth=nth)):
        steps.add(step)
        nth += 1
    assert steps == set(EVERY)


@pytest.mark.parametrize(
    ("step", "nth", "value"),
    [
        ("put it", 2, "later"),  # frozen, and not remembered: no receiver has it
        ("offset", 1, "Jack"),  # remembered, and not in the checkpoint
        ("batch", 1, "Jack"),
    ],
)
def test_what_was_remembered_is_given_as_it_was_frozen(
    world: World, spark: Spark, monkeypatch: pytest.MonkeyPatch, step: str, nth: int, value: str
) -> None:
    doom = Doom(step, nth)
    world.user(1)
    world.write(key(1))
    with monkeypatch.context() as patched:
        patched.setattr(Store, "work", dying_store(doom))
        with pytest.raises(Crash):
            spark.run(doom)
    world.change("update usr set fname = 'later'")
    spark.run(available_now=False)
    (row,) = spark.rows[:1]
    assert (row["event_id"], row["pick_up"]) == ("eventlog:1", 1)
    assert f">{value}<" in row["document"]
    assert world.letters() == {1: "S"}


def test_a_second_one_is_reported_and_a_publisher_stands_by(
    world: World, spark: Spark, tmp_path: Path
) -> None:
    first = Following(spark.config, spark.files(), 0)
    try:
        first.begin()
        with pytest.raises(LogTaken, match="process"):
            Spark(tmp_path / "other", spark.config).run()
        assert world.store.lead("publisher") is None
    finally:
        first.close()
    with world.elect():
        pass


def test_no_row_comes_again_under_another_name_in_silence(world: World, spark: Spark, tmp_path: Path) -> None:
    world.write(*(key(n, event_type=4) for n in range(1, 4)))
    spark.run(query_limit=1)
    with pytest.raises(NoCheckpoint, match="pick-up 3"):
        Spark(spark.folder, spark.config).run()
    with pytest.raises(OldCheckpoint, match="after pick-up 2"):
        Spark(spark.folder, spark.config, spark.offsets[:2], 2).run()
    with pytest.raises(OldCheckpoint, match="after pick-up 1"):
        Spark(spark.folder, spark.config, spark.offsets[:2], 1).run()
    with pytest.raises(NoFolder):
        Spark(tmp_path / "lost", spark.config, spark.offsets, 3).run()
    other = Spark(tmp_path / "other", spark.config)
    world.write(key(4, event_type=4))
    other.run()
    with pytest.raises(OtherStream):
        Spark(other.folder, spark.config, spark.offsets, 3).run()
    old = tmp_path / "copy"
    shutil.copytree(spark.folder, old)
    world.write(key(5, event_type=4))
    spark.run()
    with pytest.raises(OldFolder, match="pick-up 4"):
        Spark(old, spark.config, spark.offsets, 4).run()
    assert spark.column("event_id") + other.column("event_id") == [
        f"eventlog:{number}" for number in (1, 2, 3, 5, 4)
    ]


def test_what_was_altered_is_not_given(world: World, spark: Spark, tmp_path: Path) -> None:
    world.write(key(1, event_type=4))
    with pytest.raises(Crash):
        spark.run(Doom("batch"))
    (file,) = (spark.folder / "rows").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"idu=1", b"idu=2"))
    with pytest.raises(Altered, match="parquet"):
        spark.run()
    file.write_bytes(whole)
    state = spark.folder / STATE
    reported = state.read_text()
    state.write_text(reported.replace('"done": 0', '"done": 1'))
    with pytest.raises(Altered, match=STATE):
        spark.run()
    state.write_text(reported)
    file.rename(tmp_path / "elsewhere")
    with pytest.raises(Altered, match="parquet"):
        spark.run()
    assert world.letters() == {1: "N"}
    (tmp_path / "elsewhere").rename(file)
    spark.run()
    assert world.letters() == {1: "S"}


class InStore(Spark):
    """The folder is in a store."""

    def files(self, doom: Doom = NEVER) -> StreamFolder:
        said = {name.removeprefix("spark.hadoop."): text for name, text in storage.conf().items()}
        return StreamFolder(files_of({"frozen": f"s3a://{self.folder.name}/of/a/stream/"}, said))


@pytest.mark.skipif(not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one")
def test_in_a_store(world: World, spark: Spark) -> None:
    query = InStore(Path(storage.bucket()), spark.config)
    world.write(*(key(n, event_type=4) for n in range(1, 5)))
    with pytest.raises(Crash):
        query.run(Doom("in batch", 2), query_limit=2)
    assert "".join(world.letters().values()) == "SSNN"
    query.run(query_limit=2)
    assert query.column("event_id") == [f"eventlog:{n}" for n in range(1, 5)]
    assert "".join(world.letters().values()) == "SSSS"
    left = storage.filesystem().get_file_info(fs.FileSelector(query.folder.name, recursive=True))
    assert sum(file.is_file for file in left) == 2  # the state, and the last pick-up


def test_another_log_is_noticed(world: World, spark: Spark) -> None:
    world.write(key(1, event_type=4))
    spark.run()
    world.change(f"update {world.log.names()['state']} set epoch = 1, known_epoch = 1")
    with pytest.raises(OtherLog):
        spark.run()


def test_a_publisher_that_takes_over_settles_what_was_on_its_way(world: World, spark: Spark) -> None:
    world.user(1)
    world.write(key(1), *fields(3, "a", "b", "c"))
    with pytest.raises(Crash):
        spark.run(Doom("batch ended"))
    receiver = expected(world)
    assert sorted(document.text for document in receiver.documents) == sorted(spark.column("document"))
    with pytest.raises(SettledElsewhere, match="pick-up 1"):
        spark.run()
    assert set(world.letters().values()) == {"S"}


def test_what_was_out_goes_on_after_a_publisher(world: World, spark: Spark) -> None:
    world.write(key(1, event_type=4))
    with pytest.raises(Crash):
        spark.run(Doom("put", 3))  # which would record that it was delivered
    assert world.letters() == {1: "N"}
    assert expected(world).event_ids == spark.column("event_id")
    world.write(key(2, event_type=4))
    spark.run()
    assert spark.column("event_id") == ["eventlog:1", "eventlog:2"]
    assert world.letters() == {1: "S", 2: "S"}


def test_what_a_publisher_left_comes_first_under_its_names(world: World, spark: Spark) -> None:
    world.user(1)
    world.write(*fields(3, "a", "b", "c", "d", "e"), key(1))

    def die(document: OutgoingDocument) -> Reply:
        if "eventlog:6" in document.text:
            raise Crash
        return Reply()

    with pytest.raises(Crash):
        world.cycle(Receiver(die), **GIVEN)
    remembered = world.remembered()
    assert remembered
    world.write(key(3, event_type=4))
    spark.run()
    assert [len(rows) for _, rows in sorted(spark.batches.items())][-1] == 1
    assert spark.column("record_ids")[-1] == [7]
    assert "eventlog:6" in spark.column("event_id")
    assert set(world.letters().values()) == {"S"}
    assert world.remembered() == 0


def test_what_waits_is_sent_again_and_its_object_is_free_then(world: World, spark: Spark) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    busy = Receiver(lambda document: Reply([Status(Level.RETRY, None, "busy")]))
    world.cycle(busy, **GIVEN, retry_wait=0)
    world.write(key(1, event_type=4))
    assert world.letters() == {1: "N", 2: "N", 3: "N"}
    spark.run()
    spark.run()
    assert spark.column("event_id") == ["eventlog:1", "eventlog:2", "eventlog:3"]
    assert world.letters() == {1: "S", 2: "S", 3: "S"}


def test_now_is_what_was_there(world: World, spark: Spark) -> None:
    world.write(*(key(n, event_type=4) for n in range(1, 4)))

    def ended(rows: Sequence[dict[str, Any]]) -> None:
        world.write(key(9 + len(spark.rows), event_type=4))

    spark.ended = ended
    spark.run(query_limit=1)
    assert len(spark.rows) == 4  # one more than there was: it reported that nothing older was left
    assert list(world.letters().values()).count("N") == 3


def test_a_paused_log_gives_nothing_but_what_is_on_its_way(world: World, spark: Spark) -> None:
    world.write(key(1, event_type=4))
    with pytest.raises(Crash):
        spark.run(Doom("in batch"))
    world.write(key(2, event_type=4))
    with world.store.upkeep() as upkeep:
        upkeep.pause("test", "for a while")
    spark.run()
    assert world.letters() == {1: "S", 2: "N"}
    with world.store.upkeep() as upkeep:
        upkeep.resume()
    spark.run()
    assert world.letters() == {1: "S", 2: "S"}
