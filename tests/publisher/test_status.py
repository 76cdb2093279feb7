"""Which letter may follow which: every status, and everything that may be done to its row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime

import pytest

from eventlog.core.entry import Letter
from eventlog.operate.upkeep import Purge, purge, skip
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.quick

LETTERS = "NSWEFnx"  # the last two are reserved
IDS = range(1, len(LETTERS) + 1)
FAR_FUTURE = datetime(2100, 1, 1)


def answered(level: Level) -> Callable[[World], object]:
    def reply(document: OutgoingDocument) -> Reply:
        return Reply([Status(level, item.event_id) for item in document.items])

    def cycle(world: World) -> None:
        with pytest.raises(ReceiverFatal) if level is Level.FATAL else nullcontext():
            world.cycle(Receiver(reply))

    return cycle


ACTS = {
    "success": (answered(Level.SUCCESS), "SSWEFnx"),
    "warning": (answered(Level.WARNING), "WSWEFnx"),
    "error": (answered(Level.ERROR), "ESWEFnx"),
    "fatal": (answered(Level.FATAL), "FSWEFnx"),
    "retry": (answered(Level.RETRY), "NSWEFnx"),
    "redrive": (lambda world: world.redrive(), "NSWNNnx"),
    "redrive by id": (lambda world: world.redrive(FailureFilter(tuple(IDS))), "NSWNNnx"),
    "skip": (lambda world: skip(world.store, IDS, "so it is"), "WSWWWnx"),
    "purge": (lambda world: purge(world.store, Purge(FAR_FUTURE)), "N  EFnx"),
    "purge by name": (lambda world: purge(world.store, Purge(FAR_FUTURE, list(Letter))), "     nx"),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_letter_becomes_what_it_may_become(world: World, act: str) -> None:
    do, expected = ACTS[act]
    world.write(*(key(number, event_type=4) for number in IDS))
    names = world.log.names()
    for number, letter in zip(IDS, LETTERS, strict=True):
        statement = f"update {names['log']} set {names['status']} = :s where {names['record_id']} = :i"
        world.change(statement, s=letter, i=number)
    do(world)
    found = world.letters()
    assert "".join(found.get(number, " ") for number in IDS) == expected
