"""A live log as a stream of Spark's own: replayed by its checkpoint, its reader and its driver killed."""

from __future__ import annotations

import ast
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import eventlog_spark
import pytest
from eventlog_spark.cluster.stores import s3_settings
from eventlog_spark.io.folder_files import StoreFiles
from eventlog_spark.stream.log_reader import LogStreamReader, files_of
from sqlalchemy.engine import URL

from eventlog.core.errors import Misuse
from eventlog.sql.connect import connect
from tests.databases import EMBEDDED, fresh
from tests.installed import ROOT
from tests.publisher.conftest import world
from tests.publisher.world import Receiver, World, key

pytestmark = pytest.mark.quick

__all__ = ["world"]

GIVEN = {"sync_tables": "usr", "allow_loopback": True}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any) -> None:
    eventlog_spark.register(spark)


@pytest.fixture(scope="module")
def made_world(server: tuple[str, URL]) -> Iterator[World]:
    """A log on one database; test_following has what differs between them."""
    if server[0] != EMBEDDED and not os.environ.get("CI_FULL"):
        pytest.skip("CI_FULL=1 takes every database")
    with fresh(*server) as database:
        engine = connect(database.url, keep_open=4)
        made = World(engine, database.dialect)
        made.make()
        yield made
        engine.dispose()


def message() -> list[str]:
    """Return the columns of Kafka's messages, as the page has them."""
    page = (ROOT / "docs" / "spark-streams.md").read_text("utf-8")
    statement = page.partition("documents.selectExpr(")[2].partition("    )\n")[0]
    columns: tuple[str, ...] = ast.literal_eval(f"({statement})")
    return list(columns)


class Query:
    """A query over the log of a world."""

    def __init__(self, spark: Any, world: World, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        url = world.engine.url.render_as_string(hide_password=False)
        self.options = {"url": url, "sync-tables": "usr", "allow-loopback": "true", "query-limit": "2"}
        self.batches: list[tuple[int, Rows]] = []  # as they were given
        self.plan = ""
        self.messages: list[Any] = []  # as docs/spark-streams.md sends them to Kafka

    def run(self, then: Callable[[int], None] = lambda number: None) -> None:
        """Deliver everything; call `then` in each batch after its rows."""
        stream = self.spark.readStream.format("eventlog").options(
            **self.options, frozen=str(self.folder / "frozen")
        )

        def each(batch: Any, number: int) -> None:
            rows = batch.orderBy("place").collect()
            self.batches.append((number, [row.asDict(recursive=True) for row in rows]))
            self.messages += batch.selectExpr(*message()).collect()
            self.plan += batch._jdf.queryExecution().toString()
            then(number)

        loaded = stream.load()
        self.plan += loaded._jdf.queryExecution().toString()
        checkpoint = str(self.folder / "checkpoint")
        writer = loaded.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            self.plan += json.dumps([progress.json for progress in query.recentProgress])
            query.stop()

    @property
    def rows(self) -> Rows:
        return [row for _, rows in sorted(dict(self.batches).items()) for row in rows]


def write(world: World) -> None:
    world.user(1)
    world.write(key(1), key(2, event_type=4), key(3, event_type=9), key(4, event_type=4), key(5))
    world.write(key(6, event_type=1, column_name="fname", new_value="<ä>"))


def published(world: World) -> list[str]:
    receiver = Receiver()
    world.cycle(receiver, **GIVEN)
    return [document.text for document in receiver.documents]


@pytest.mark.long
def test_a_batch_that_failed_comes_again_as_it_was(spark: Any, world: World, tmp_path: Path) -> None:
    write(world)
    query = Query(spark, world, tmp_path)

    def fail(number: int) -> None:
        assert "S" not in world.letters().values()
        raise RuntimeError("the sink failed")

    with pytest.raises(Exception, match="the sink failed"):
        query.run(fail)
    world.change("update usr set fname = 'later'")
    query.run()
    numbers = [number for number, _ in query.batches]
    assert numbers == [0, 0, 1, 2]
    assert query.batches[0] == query.batches[1]
    assert "".join(world.letters().values()) == "SSESSS"
    world.clear()
    write(world)
    assert [row["document"] for row in query.rows] == published(world)
    assert {(m.key, m.value, m.headers[0].key, bytes(m.headers[0].value)) for m in query.messages} == {
        (row["association"], row["document"], "event-id", row["event_id"].encode()) for row in query.rows
    }
    password = world.engine.url.password
    assert password is None or password not in query.plan
    query.run()  # nothing is there
    assert len(query.batches) == 4


@pytest.mark.long
def test_a_reader_that_was_killed_has_lost_nothing(spark: Any, world: World, tmp_path: Path) -> None:
    write(world)
    query = Query(spark, world, tmp_path)

    def kill(number: int) -> None:
        with world.store.upkeep() as upkeep:
            leader = upkeep.state().leader
        assert leader is not None
        os.kill(int(leader.removeprefix("stream ")), signal.SIGKILL)

    with pytest.raises(Exception, match="eventlog"):
        query.run(kill)
    assert "S" not in world.letters().values()
    query.run()
    assert [number for number, _ in query.batches] == [0, 1, 2]
    assert [row["event_id"] for row in query.rows] == [f"eventlog:{n}" for n in (1, 2, 4, 6)]
    assert "".join(world.letters().values()) == "SSESSS"


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"frozen": ""}, "names the folder of a stream"),
        ({"sink": "http"}, "has no option sink"),
        ({"batch-size": "2"}, "has no option batch-size"),
        ({"path": "log.csv"}, "has no option path"),
        ({"query-limit": "0"}, "query-limit"),
        ({"config": "nowhere.toml"}, "nowhere.toml"),
    ],
)
def test_what_cannot_be_is_reported(given: dict[str, str], reported: str) -> None:
    with pytest.raises(Misuse, match=reported):
        LogStreamReader({"frozen": "there"} | given, {})


def test_a_log_of_compared_tables_is_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTLOG_PUBLICATION_MODE", "compare")
    with pytest.raises(Misuse, match="publication-mode"):
        LogStreamReader({"frozen": "there"}, {})


def test_the_reader_knows_of_stores_what_the_session_does(spark: Any) -> None:
    configured = spark.sparkContext._jsc.hadoopConfiguration()
    given = {"endpoint": "http://127.0.0.1:1", "bucket.lake.access.key": "k", "secret.key": "very-secret"}
    for name, text in given.items():
        configured.set(f"fs.s3a.{name}", text)
    try:
        files = files_of({"frozen": "s3a://lake/of/a/stream/"}, s3_settings(spark))
    finally:
        for name in given:
            configured.unset(f"fs.s3a.{name}")
    assert isinstance(files, StoreFiles)
    reported = dict(files.store.given)
    assert (reported["access_key"], reported["secret_key"]) == ("k", "very-secret")
    assert reported["endpoint_override"] == "127.0.0.1:1"
    assert files.name("x") == "s3a://lake/of/a/stream/x"
    assert "very-secret" not in repr(files)


def test_a_query_ends_with_what_is_wrong(spark: Any, world: World, tmp_path: Path) -> None:
    query = Query(spark, world, tmp_path)
    query.options["log-table"] = "nowhere"
    with pytest.raises(Exception, match="nowhere"):
        query.run()


@pytest.mark.long
def test_the_example(spark: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(world)
    settings = tmp_path / "eventlog.toml"
    given = Query(spark, world, tmp_path).options | {"sink": "http", "http-url": "http://localhost"}
    settings.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()))
    monkeypatch.setattr(sys, "argv", ["live_stream.py", str(settings), str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "live_stream.py"), run_name="__main__")
    assert "".join(world.letters().values()) == "SSESSS"
    written = spark.read.text(str(tmp_path / "documents")).collect()
    world.clear()
    write(world)
    assert sorted(row.value for row in written) == sorted(published(world))


FORMS = ["offset", "batch", "ended", "finish", "offset", "end"]


@pytest.mark.skipif(not os.environ.get("CI_FULL"), reason="CI_FULL=1 kills a stream: six starts of Spark")
@pytest.mark.timeout(900)
def test_killed_at_each_step_nothing_is_lost(world: World, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    url = world.engine.url.render_as_string(hide_password=False)
    known = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'spark'}"}
    for round_, form in enumerate(FORMS):
        world.write(*(key(10 * round_ + n, event_type=4) for n in range(7)))
        command = [sys.executable, "-m", "tests.spark.live_job", url, str(tmp_path), form]
        with (tmp_path / "log").open("ab") as said:
            job = subprocess.Popen(
                command, cwd=ROOT, env=known, stdout=said, stderr=said, start_new_session=True
            )
            code = job.wait(timeout=300)
        assert code == (0 if form == "end" else -signal.SIGKILL), (tmp_path / "log").read_text()[-3000:]
    batches: dict[int, Rows] = {}
    for file in sorted((tmp_path / "out").iterdir(), key=lambda file: file.stat().st_mtime_ns):
        rows = json.loads(file.read_text())
        known_rows = batches.setdefault(int(file.name.partition("-")[0]), rows)
        assert rows[: len(known_rows)] == known_rows[: len(rows)]  # half of a batch is its beginning
        batches[int(file.name.partition("-")[0])] = max(rows, known_rows, key=len)
    given = [row["event_id"] for _, rows in sorted(batches.items()) for row in rows]
    assert given == [f"eventlog:{n}" for n in range(1, 7 * len(FORMS) + 1)]
    assert set(world.letters().values()) == {"S"}
    assert world.remembered() == 0
