"""Why an event failed or waits is kept, whatever words the receiver found for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from sqlalchemy.engine import URL

from eventlog.sinks.sink import Reply, unanswered
from eventlog.sql.connect import connect
from eventlog.xds.answers import Level, Status
from tests.kit.databases import temporary_database
from tests.kit.logs import Receiver, World, key

pytestmark = pytest.mark.quick

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
def test_an_event_waits_for_whatever_reason(any_world: World, reply: Reply) -> None:
    any_world.write(key(1, event_type=4))
    any_world.cycle(Receiver(lambda document: reply))
    (waiting,) = any_world.store.waiting(datetime(9000, 1, 1))
    assert waiting.reason.startswith(r"no \x00, nor ")


def test_an_event_fails_for_whatever_reason(any_world: World) -> None:
    any_world.write(key(1, event_type=4), key(2, event_type=4))
    said = {"idu=1": Reply([Status(Level.ERROR, None, WORDS)])}
    any_world.cycle(Receiver(lambda document: said.get(document.items[0].association[:5], Reply())))
    assert any_world.letters() == {1: "E", 2: "S"}
    (failure,) = any_world.failures()
    assert str(failure.reason).startswith(r"no \x00, nor ")
