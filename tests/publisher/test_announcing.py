"""The publisher's announcements: what goes where, when it rests, and rows that are its own."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from eventlog import __version__
from eventlog.cli.run import announcement
from eventlog.opening.config import Config
from eventlog.publisher.monitor import Monitor
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Receiver, answering, key, metrics_text
from tests.world.world import World, call

pytestmark = pytest.mark.quick


def test_own_rows_are_said_to_be_finished_without_being_sent(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eventlog")
    world.user(1)
    world.write(*(key(1, perpetrator="idm") for _ in range(3)))
    cycle = world.cycle(Receiver(), driver_user="idm")
    assert cycle.loopback == 3
    assert "3 rows of idm itself are loopback: finished without being sent" in caplog.messages


def test_the_publisher_says_what_goes_where_without_secrets() -> None:
    given = {
        "url": "postgres://jo:hunter2@host:5433/db?password=hunter2",
        "sink": "http",
        "http_url": "https://receiver/in",
    }
    assert announcement(Config(given), 9464) == (
        "publishing eventlog of postgresql://host:5433/db as jo to http https://receiver/in; "
        "status page at http://127.0.0.1:9464/"
    )
    with_key = given | {"http_url": "https://receiver/in?code=hunter2&sig=hunter2"}
    assert " to http https://receiver/in" in announcement(Config(with_key), None)
    assert "hunter2" not in announcement(Config(with_key), None)
    command = {"url": "mysql://jo:hunter2@host/db", "sink": "command", "command": "send --token hunter2"}
    assert (
        announcement(Config(command), None) == "publishing eventlog of mysql://host/db as jo to command send"
    )


def test_settings_that_a_publisher_ignores_are_not_logged(world: World, tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text('sink = "stdout"\npretty = true\nmax-record = 5000\nbatch-size = 2\n')
    logged = call(world, "run", "--once", "--config", str(file)).stderr
    (settings,) = [line for line in logged.splitlines() if "settings: " in line]
    assert re.findall(r"[a-z-]+(?= = )", settings) == [
        *("batch-size", "delete-from-log", "sink", "sync-tables", "url")
    ]


def test_a_log_is_named_with_its_schema(world: World) -> None:
    """Name the table that is looked for, not one of the same name elsewhere."""
    schema = world.log.dialect.name if not world.log.dialect.schema.transactional else "public"
    result = call(world, "status", "--log-table", f"{schema}.nowhere")
    assert str(result.exception).startswith(f"there is no table {schema}.nowhere: ")


def test_events_that_are_put_off_are_one_line_for_each_reason(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.write(*(key(idu, event_type=4) for idu in range(1, 11)))
    world.cycle(Receiver(answering(Level.RETRY, "the picture service is away")))
    (message,) = caplog.messages
    assert re.fullmatch(
        r"10 events of usr wait: the picture service is away; first again at \d\d:\d\d:\d\dZ", message
    )


def test_of_events_that_wait_for_one_reason_the_earliest_time_is_named(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Let an event that waits for the second time, and so for longer, come before another one."""
    receiver = Receiver(answering(Level.RETRY, "busy"))
    with world.publisher(receiver, retry_wait=3600.0, retry_longest=86_400.0) as publisher:
        world.write(key(1, event_type=4))
        publisher.cycle()
        with world.store.admin() as admin:
            assert admin.try_now(None) == [1]
        world.write(key(2, event_type=4))
        caplog.clear()
        publisher.cycle()
    with world.store.admin() as admin:
        earliest = admin.backlog().next_retry
    assert caplog.messages == [f"2 events of usr wait: busy; first again at {earliest:%H:%M:%S}Z"]


def test_events_that_fail_are_one_line_for_each_reason_up_to_twenty(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.write(*(key(idu, event_type=4) for idu in range(1, 4)))
    world.cycle(Receiver(answering(Level.ERROR, "no such department")))
    assert caplog.messages == ["3 events of usr, first eventlog:1: error: no such department"]
    caplog.clear()
    world.write(*(key(idu, event_type=4) for idu in range(4, 30)))
    reasons = iter(f"reason {number}" for number in range(26))

    def each_its_reason(document: OutgoingDocument) -> Reply:
        return Reply([Status(Level.ERROR, item.event_id, next(reasons)) for item in document.items])

    world.cycle(Receiver(each_its_reason))
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "the same for 6 further reasons"


def test_rows_that_are_refused_are_one_line_for_each_reason(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.write(key(1, event_type=4, table_name="nope"), key(2, event_type=4, table_name="nope"))
    world.cycle(Receiver())
    (message,) = caplog.messages
    assert message.startswith("2 rows are refused, first 1: unknown table 'nope'")


def test_counters_begin_at_nought_and_the_version_is_among_the_figures() -> None:
    figures = metrics_text(Monitor())
    for name in ("cycles", "documents", "rows", "rows_refused", "loopback_rows", "retries", "faults"):
        assert f"\neventlog_{name}_total 0.0\n" in figures
    assert f'eventlog_build_info{{version="{__version__}"}} 1' in figures


def test_settings_are_shown_without_secrets() -> None:
    shown = dict(Config({"url": "postgresql://u:hunter2@h/d", "batch_size": 7, "wake_up": False}).shown())
    assert shown == {"batch-size": "7", "url": "postgresql://***@h/d", "wake-up": "false"}
