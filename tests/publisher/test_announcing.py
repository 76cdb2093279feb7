"""The publisher's announcements: what goes where, when it rests, and rows that are its own."""

from __future__ import annotations

import logging

import pytest

from eventlog.cli.run import announcement
from eventlog.publisher.config import Config
from tests.publisher.world import Receiver, World, key

pytestmark = pytest.mark.quick


def test_own_rows_are_said_to_be_finished_without_being_sent(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eventlog")
    world.user(1)
    world.write(*(key(1, perpetrator="idm") for _ in range(3)))
    world.cycle(Receiver(), driver_user="idm")
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
