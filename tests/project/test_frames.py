"""From a cycle to each of its statements there are few frames, each with a name of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from eventlog.embedded import Server
from eventlog.files.signals import Signals
from eventlog.opening.config import Config
from eventlog.publisher.daemon import Daemon
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.sql.common.dialect import Call
from eventlog.sql.connect import connect
from eventlog.sql.postgresql import pipeline
from tests.kit.databases import EMBEDDED, server_url, temporary_database
from tests.kit.logs import Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
MAX_FRAMES = 8


def our_frames() -> list[str]:
    """Return the names of our functions on the stack, outermost first."""
    frame, names = sys._getframe(1), list[str]()
    while frame.f_back is not None:
        frame = frame.f_back
        if Path(frame.f_code.co_filename).is_relative_to(ROOT / "eventlog"):
            names.append(frame.f_code.co_qualname)
    return names[::-1]


class Sent(NamedTuple):
    """The statements of one round trip of a cycle, with the stack from Publisher.cycle on.

    What `status` shows is no part of the delivery: its stack begins where it is counted.
    """

    statements: list[str]
    stack: list[str]


@contextmanager
def round_trips() -> Iterator[list[Sent]]:
    """Yield what cycles send inside the block."""
    trips: list[Sent] = []

    def note(statements: list[str]) -> None:
        frames = our_frames()
        if "Publisher.cycle" in frames:
            begin = "SessionHooks.replied" if "SessionHooks.replied" in frames else "Publisher.cycle"
            trips.append(Sent(statements, frames[frames.index(begin) :]))

    def alone(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        note([statement])

    def run_in_pipeline(connection: Connection, calls: Sequence[Call], *, commit: bool = False) -> Any:
        note([call.clause.text for call in calls])
        return original(connection, calls, commit=commit)

    original = pipeline.run_in_pipeline  # without SQLAlchemy's events
    event.listen(Engine, "before_cursor_execute", alone)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pipeline, "run_in_pipeline", run_in_pipeline)
            yield trips
    finally:
        event.remove(Engine, "before_cursor_execute", alone)


@pytest.mark.parametrize("many", [0, 300], ids=["by column", "row by row"])
def test_a_statement_of_a_cycle_has_a_short_stack(
    embedded: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", many)
    monkeypatch.setattr("eventlog.publisher.cycle_facts.POINT_EVERY", 0)
    monkeypatch.setattr("eventlog.publisher.cycle_facts._SHARE", 0)  # so each reply is counted
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        engine = connect(database.url)
        world = World(engine, database.dialect)
        world.make()
        world.user(2)
        world.write(key(1, event_type=3, column_name="fname", new_value="Jack"), key(2, event_type=6))
        address = database.url.render_as_string(hide_password=False)
        settings = {"url": address, "sync_tables": "usr", "allow_loopback": True}
        config = Config(settings | {"sink": "files", "files_folder": str(tmp_path)})
        with round_trips() as trips:
            Daemon(config, Signals(), once=True).run()
        assert world.counts() == {"S": 2}
        engine.dispose()
    assert {"old_value", "epoch", "batch", "fname"} <= {
        word for trip in trips for statement in trip.statements for word in re.findall(r"\w+", statement)
    }
    for _, stack in trips:
        assert len(stack) <= MAX_FRAMES, " ".join(stack)
        assert len(set(stack)) == len(stack)
    assert any(stack[0] == "SessionHooks.replied" for _, stack in trips)


def test_a_cycle_of_one_row_takes_four_round_trips(embedded: Server, tmp_path: Path) -> None:
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        world = World(connect(database.url), database.dialect)
        world.make()
        world.user(1)
        with world.publisher(Receiver()) as publisher:
            world.write(key(1, event_type=6))
            publisher.cycle()
            world.write(key(1, event_type=6))
            with round_trips() as trips:
                publisher.cycle()
        assert world.counts() == {"S": 2}
        world.engine.dispose()
    assert len(trips) == 4, trips


def test_a_further_batch_takes_one_round_trip(
    embedded: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.publisher.delivery.MAX_DOCUMENTS", 1)
    monkeypatch.setattr("eventlog.publisher.cycle.DUE_EVERY", 0.0)
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        world = World(connect(database.url), database.dialect)
        world.make()
        with world.publisher(Receiver()) as publisher:
            world.write(key(1, event_type=4))
            publisher.cycle()
            world.write(*(key(number, event_type=4) for number in range(2, 5)))
            with round_trips() as trips:
                publisher.cycle()
        assert world.counts() == {"S": 4}
        world.engine.dispose()
    demands = [sum("paused_at" in statement for statement in trip.statements) for trip in trips]
    assert demands[-4:] == [1, 1, 1, 1], trips
    assert len(trips) <= 6, trips


def test_the_rest_of_a_cut_event_is_on_record_in_the_transaction_that_finishes_its_first_part(
    embedded: Server, tmp_path: Path
) -> None:
    """Write both together, because a crash in between would send the first part again, under other rows."""
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        world = World(connect(database.url), database.dialect)
        world.make()

        def pause(document: OutgoingDocument) -> Reply:
            with world.store.admin() as admin:
                admin.pause("ada", "the receiver moves")
            return ACCEPTED

        world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)))
        with world.publisher(Receiver(pause), max_changes=1) as publisher, round_trips() as trips:
            publisher.cycle()
        assert world.remembered() == 1
        world.engine.dispose()
    texts = [" ".join(trip.statements) for trip in trips]
    (refused, written) = [text for text in texts if re.search(r"(?s)update \S*batch\b.*settled_at", text)]
    assert all("insert into" in text for text in (refused, written))


def test_one_function_of_the_publisher_picks_up() -> None:
    sources = sorted((ROOT / "eventlog" / "publisher").glob("*.py"))
    assert [path.name for path in sources if "def pick_up(" in path.read_text()] == ["pick_up.py"]
