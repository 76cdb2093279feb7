"""How rows are finished: a fact of the log, which no setting of one process overrules."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from eventlog.core.errors import Misuse
from eventlog.operate.finishing import AtWork, change_mode
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.sql.log.finishing import Contradiction, FinishMode, UnknownMode, agreed
from eventlog.xds.answers import Level, Status
from tests.publisher.test_commands import call
from tests.publisher.world import Receiver, World, key

pytestmark = pytest.mark.quick


def every_third_fails(document: OutgoingDocument) -> Reply:
    failed = (item for item in document.items if item.event_id.endswith(("3", "6", "9")))
    return Reply([Status(Level.ERROR, item.event_id, "no") for item in failed])


@pytest.mark.parametrize("mode", FinishMode)
def test_rows_are_finished_as_the_log_says_and_failed_ones_are_kept(world: World, mode: FinishMode) -> None:
    assert change_mode(world.store, mode, "test")
    world.write(*(key(number, event_type=4) for number in range(1, 10)))
    receiver = Receiver(every_third_fails)
    world.cycle(receiver)
    kept = dict.fromkeys((3, 6, 9), "E")
    done = {} if mode is FinishMode.DELETE else dict.fromkeys(range(1, 10), "S")
    assert world.letters() == done | kept
    assert receiver.event_ids == [f"eventlog:{number}" for number in range(1, 10)]


def test_delete_from_log_is_put_on_record_where_nobody_said_otherwise(world: World) -> None:
    assert world.store.finish_mode() is None
    world.cycle(Receiver())
    assert world.store.finish_mode() is None
    world.cycle(Receiver(), delete_from_log=True)
    assert world.store.finish_mode() is FinishMode.DELETE
    world.write(key(1, event_type=4))
    world.cycle(Receiver())
    assert world.letters() == {}


@pytest.mark.parametrize("mode", FinishMode)
def test_a_setting_that_says_otherwise_is_misuse(world: World, mode: FinishMode) -> None:
    change_mode(world.store, mode, "test")
    world.write(key(1, event_type=4))
    with pytest.raises(Contradiction) as reported:
        world.cycle(Receiver(), delete_from_log=mode is not FinishMode.DELETE)
    assert isinstance(reported.value, Misuse)
    assert f"finished by {mode}" in str(reported.value)
    assert world.letters() == {1: "N"}
    assert agreed(mode, mode is FinishMode.DELETE) is mode


def test_a_mode_of_a_later_version_stops_this_one(world: World) -> None:
    world.change(f"update {world.log.names()['state']} set finish_mode = 'later'")
    with pytest.raises(UnknownMode, match="'later'"):
        world.cycle(Receiver())


def test_it_changes_only_while_nobody_leads(world: World) -> None:
    leader = world.elect()
    with leader, pytest.raises(AtWork):
        change_mode(world.store, FinishMode.DELETE, "test")
    assert world.store.finish_mode() is None


def test_the_command_tells_and_changes_it_and_leaves_a_notice(world: World) -> None:
    assert call(world, "finish-mode").output == "update\n"
    assert call(world, "finish-mode", "delete").stderr == "eventlog: rows are finished by delete\n"
    assert call(world, "finish-mode", "delete").stderr == "eventlog: rows are finished by delete already\n"
    assert call(world, "finish-mode").output == "delete\n"
    with world.engine.connect() as connection:
        found = connection.execute(text(f"select kind, words from {world.log.names()['notice']}")).all()
    assert [tuple(row) for row in found] == [("finish mode", "delete, before none was said")]
    assert call(world, "finish-mode", "sometimes").exit_code == 2
