"""A row of a slot keeps every answer, as a row that a trigger wrote."""

from __future__ import annotations

import pytest

from eventlog.operate.redriving import redrive_by
from eventlog.operate.tries import tries_of_rows
from eventlog.sinks.sink import ACCEPTED, Reply
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Answering, Receiver
from tests.slot.rig import SlotWorld, life

pytestmark = pytest.mark.quick


def always(reply: Reply) -> Answering:
    """Return what gives the same answer each time."""
    return lambda document: reply


@pytest.mark.parametrize("deletes", [False, True])
def test_each_answer_is_kept_after_redrives(world: SlotWorld, deletes: bool) -> None:
    world.fill()
    world.run("insert into usr values (1, 'Jack', 'Frost')")
    receiver, answers = Receiver(), list[list[str]]()
    with life(world, receiver, delete_from_log=deletes) as publisher:
        for words in ("no such department", "still no such department", ""):
            reply = Reply([Status(Level.ERROR, None, words)]) if words else ACCEPTED
            receiver.answering = always(reply)
            publisher.cycle()
            with world.store.admin() as admin:
                (row,) = world.letters() or (1,)
                answers.append([f"{each.answer} {each.words}" for each in tries_of_rows(admin, [row])[row]])
            redrive_by(world.settings(delete_from_log=deletes), world.store, FailureFilter(), "ada")
    first, second = "error no such department", "error still no such department"
    assert answers == [[first], [first, second], [] if deletes else [first, second, "success "]]
    assert [*world.letters().values()] == ([] if deletes else ["S"])
