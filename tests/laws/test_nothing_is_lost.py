"""Publishers are killed at random instants under load: nothing is lost, nothing inverted, and repeats
carry the event-id that they had. EVENTLOG_PROOF_SECONDS, _KILLS and _SEED make it longer, or another.

No process is killed before a document has arrived since the last kill, because a starting process loses
nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.databases import Database
from tests.kit.support import until
from tests.world.killable import KILLABLE
from tests.world.rig import BY_COLUMN, KILLS, PATIENCE, SECONDS, Arrivals, Chain, Rig, events_of, first_row

UPDATE, DELETE = False, True  # handled rows
PAUSE = SECONDS / KILLS / 3  # the longest time between something that comes and a kill
SMALL = ("--batch-size", "3", "--query-limit", "20")  # so that cycles are full
HTTP = ("--sink", "http", "--http-timeout", "1", "--retry-wait", "0.1", "--retry-longest", "1")


@pytest.fixture
def rig(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    new_rig = Rig(database, tmp_path)
    new_rig.delete_from_log = request.param
    yield new_rig
    new_rig.close()


def await_more(arrived: Callable[[], int]) -> None:
    """Wait until more has arrived than now."""
    before = arrived()
    until(lambda: arrived() > before, PATIENCE)


def kill_and_restart(rig: Rig, arrived: Callable[[], int], *words: str) -> None:
    """Run two publishers under load; one is killed and started anew at random instants."""
    for _ in range(2):
        rig.start(*words)
    with rig.writing():
        for _ in range(KILLS):
            await_more(arrived)
            time.sleep(rig.random.random() * PAUSE)
            rig.kill_one()
            rig.start(*words)
    rig.drain()


@pytest.mark.quick
@pytest.mark.slow("it starts a dozen publishers, and kills six of them")
@pytest.mark.parametrize(
    ("rig", "more"),
    [
        (UPDATE, ()),
        pytest.param(DELETE, (), marks=pytest.mark.long),
        pytest.param(DELETE, ("--files-per-batch",), marks=pytest.mark.long),
    ],
    indirect=["rig"],
)
def test_files_hold_every_event_once(rig: Rig, more: tuple[str, ...]) -> None:
    folder = rig.folder / "out"
    words = ("--sink", "files", "--files-folder", str(folder), *more, *SMALL)
    kill_and_restart(rig, lambda: len(list(folder.glob("*.xml"))), *words)
    documents = [line for path in folder.glob("*.xml") for line in path.read_text().splitlines()]
    events = [event for document in documents for event in events_of(document)]
    chain = Chain()
    for event in sorted(events, key=first_row):  # a file's time is too coarse for their order
        chain.take_event(event)
    assert chain.ends() == rig.truth()
    assert chain.repeats == 0


@pytest.mark.long
@pytest.mark.parametrize("rig", [UPDATE, DELETE], indirect=True)
def test_http_gets_every_event_in_order_and_repeats_under_the_same_event_id(
    rig: Rig, arrivals: Arrivals
) -> None:
    def accept_late(handler: Any) -> None:
        arrivals.documents.append(handler.document)
        time.sleep(rig.random.random() * PAUSE)  # who is killed meanwhile has sent what it does not know of
        handler.reply(b"<nds><output/></nds>")

    arrivals.behave = accept_late
    words = (*HTTP, "--http-url", arrivals.url, *SMALL)
    kill_and_restart(rig, lambda: len(arrivals.documents), *words)
    chain = Chain()
    for document in arrivals.documents:
        chain.take(document)
    assert chain.ends() == rig.truth()
    assert chain.repeats <= 3 * 500 * KILLS  # a batch each at most


@pytest.mark.long
@pytest.mark.parametrize("rig", [UPDATE, DELETE], indirect=True)
def test_a_backlog_that_is_read_by_column_arrives_in_order(rig: Rig, arrivals: Arrivals) -> None:
    rig.programs = [BY_COLUMN]
    words = (*HTTP, "--http-url", arrivals.url)
    with rig.writing():
        time.sleep(SECONDS / 3)
        for _ in range(KILLS):
            rig.start(*words, "--query-limit", "4")
            await_more(lambda: len(arrivals.documents))
            time.sleep(rig.random.random() * PAUSE)
            rig.kill_one()
    rig.start(*words)  # what is left would take long by fours
    rig.drain()
    chain = Chain()
    for document in arrivals.documents:
        chain.take(document)
    assert chain.ends() == rig.truth()


@pytest.mark.long
@pytest.mark.parametrize("rig", [DELETE, UPDATE], indirect=True)
def test_a_receiver_that_misbehaves_gets_every_event_in_order(rig: Rig, arrivals: Arrivals) -> None:
    def misbehave(handler: Any) -> None:
        choice = rig.random.random()
        if choice < 0.06:
            handler.reply(b"garbage")
        elif choice < 0.12:
            handler.reply(b"<nds><out", length=100)
        elif choice < 0.16:
            handler.reply(b"", status=500)
        elif choice < 0.2:
            handler.connection.close()
        elif choice < 0.21:
            time.sleep(1.5)  # longer than the publisher waits
        else:
            time.sleep(choice * 0.02)
            arrivals.accept(handler)

    arrivals.behave = misbehave
    rig.start(*HTTP, "--http-url", arrivals.url)
    with rig.writing():
        time.sleep(SECONDS)
    rig.drain()
    chain = Chain()
    for document in arrivals.documents:
        chain.take(document)
    assert chain.ends() == rig.truth()
    # what was taken comes again only where a loaded machine brought its answer too late
    assert chain.repeats <= len(arrivals.documents) // 10


@pytest.mark.long
@pytest.mark.parametrize("product", KILLABLE)
def test_the_database_server_is_killed_under_load(product: str, tmp_path: Path, arrivals: Arrivals) -> None:
    with KILLABLE[product]() as (server, database):
        rig = Rig(database, tmp_path)
        try:
            for _ in range(2):
                rig.start(*HTTP, "--http-url", arrivals.url, "--batch-size", "3", "--reconnect", "1")
            with rig.writing():
                for _ in range(max(2, KILLS // 3)):
                    await_more(lambda: len(arrivals.documents))
                    time.sleep(rig.random.random() * PAUSE)
                    server.kill()
                    server.start()
                await_more(lambda: len(arrivals.documents))
            rig.drain()
            chain = Chain()
            for document in arrivals.documents:
                chain.take(document)
            assert chain.ends() == rig.truth()
            assert [process.poll() for process in rig.processes] == [None, None]
        finally:
            rig.close()
