"""A receiver that is back: a person ends the wait for it, from any machine, and on each database."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from eventlog.cli.run import serving
from eventlog.publisher import daemon as loop
from eventlog.status.log_status import LogStatus, read_log_status
from tests.kit.logs import key
from tests.kit.support import until
from tests.publisher.test_daemon import configured, running
from tests.world.rig import Arrivals
from tests.world.world import World, call, publishing

pytestmark = pytest.mark.quick

LONG = 600  # seconds; no test waits so long
SLOW = "waits for looks of a publisher"


class Moody:
    """The behaviour of a receiver that may be down, and counts what reaches it."""

    def __init__(self, arrivals: Arrivals, **headers: str) -> None:
        self.tries = 0
        self.is_down = True
        self._arrivals, self._headers = arrivals, headers
        arrivals.behave = self.answer

    def answer(self, handler: Any) -> None:
        self.tries += 1
        if self.is_down:
            handler.reply(b"", status=503, headers=self._headers.items())
        else:
            self._arrivals.accept(handler)


@pytest.fixture(autouse=True)
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first wait for a receiver be longer than a test may take."""
    monkeypatch.setattr(loop, "FIRST_WAIT", float(LONG))


def waits_long(world: World) -> bool:
    """Return whether the publisher waits for the receiver, and for long."""
    status = read_log_status(world.store, counted=False)
    return status.next_try is not None and seconds_left(status) > LONG / 2


def seconds_left(status: LogStatus) -> float:
    assert status.next_try is not None
    return (status.next_try - status.now).total_seconds()


@pytest.mark.slow(SLOW)
def test_a_retry_of_all_ends_the_wait_for_the_receiver(
    world: World, arrivals: Arrivals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    receiver = Moody(arrivals)
    world.write(*(key(number, event_type=4) for number in (1, 2, 3)))
    with running(world, arrivals, reconnect=LONG, retry_wait=LONG):
        until(lambda: waits_long(world))
        first_tries = receiver.tries
        assert "the receiver is tried now" in call(world, "retry", "--all", "--by", "ada").stderr
        until(lambda: receiver.tries == first_tries + 1)  # it is still down, and waited for anew
        until(lambda: caplog.text.count("; next try in ") == 2 and waits_long(world))
        assert receiver.tries == first_tries + 1
        receiver.is_down = False
        assert call(world, "retry", "--all").exit_code == 0
        until(lambda: world.counts() == {"S": 3})
    assert caplog.text.count("the receiver is tried again: a person asked for it") == 2
    assert receiver.tries == first_tries + 1 + 3
    assert "ada" in call(world, "history").output
    assert "the receiver" in call(world, "history").output


@pytest.mark.slow(SLOW)
def test_a_wait_that_the_receiver_asked_for_holds_unless_all_is_asked_for(
    world: World, arrivals: Arrivals
) -> None:
    receiver = Moody(arrivals, **{"Retry-After": str(LONG)})
    (row,) = world.write(key(1, event_type=4))
    with running(world, arrivals, retry_wait=LONG):
        until(lambda: waits_long(world))
        receiver.is_down = False
        done = call(world, "retry", str(row))
        assert (done.exit_code, done.stderr.splitlines()[0]) == (0, "eventlog: 1 row goes again now")
        assert "nothing goes at present: the receiver is down since" in done.stderr
        for number in (2, 3):  # between two points of its course the publisher has looked
            look_again(world, number)
        assert receiver.tries == 1
        done = call(world, "retry", "--all")
        assert "the receiver is tried now" in done.stderr
        assert "nothing goes" not in done.stderr
        until(lambda: world.counts() == {"S": 3})


def look_again(world: World, number: int) -> None:
    """Write a row, and wait until the publisher has reported another cycle."""
    before = read_log_status(world.store).cycle_at
    world.write(key(number, event_type=4))
    until(lambda: read_log_status(world.store).cycle_at != before)


@pytest.mark.slow(SLOW)
def test_a_retry_of_rows_ends_a_wait_that_the_receiver_did_not_ask_for(
    world: World, arrivals: Arrivals
) -> None:
    receiver = Moody(arrivals)
    row, *_ = world.write(*(key(number, event_type=4) for number in (1, 2, 3)))
    with running(world, arrivals, reconnect=LONG, retry_wait=LONG):
        until(lambda: waits_long(world))
        receiver.is_down = False
        assert "1 row goes again now; the receiver is tried now" in call(world, "retry", str(row)).stderr
        until(lambda: world.letters()[row] == "S")


@pytest.mark.slow(SLOW)
def test_the_button_ends_the_wait_for_the_receiver(world: World, arrivals: Arrivals, free_port: int) -> None:
    receiver = Moody(arrivals)
    world.write(*(key(number, event_type=4) for number in (1, 2, 3)))
    settings = {"monitor_port": free_port, "monitor_token": "let me", "reconnect": LONG, "retry_wait": LONG}
    config = configured(world, arrivals, **settings)
    with running(world, arrivals, **settings) as run, serving(config, run.monitor) as port:
        until(lambda: waits_long(world))
        receiver.is_down = False
        body = urlencode({"token": "let me", "act": "retry"}).encode()
        with urlopen(f"http://127.0.0.1:{port}/", body) as answer:
            assert "The receiver is tried now." in answer.read().decode()
        until(lambda: world.counts() == {"S": 3})


@pytest.mark.slow("starts a publisher")
def test_a_port_that_is_taken_leaves_a_publisher_without_its_page(world: World, tmp_path: Path) -> None:
    world.write(key(1, event_type=4))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with publishing(world, tmp_path / "out", "--monitor-port", port):
            until(lambda: world.counts() == {"S": 1})
            words = f"The publisher has no status page: 127.0.0.1, port {port} (the setting monitor-port): "
            until(lambda: words in call(world, "status").output)


def test_a_remedy_that_changes_nothing_reports_what_it_did_not_do(world: World) -> None:
    (row,) = world.write(key(1, event_type=4))
    for words, code, sentence in (
        (("retry", "--all"), 0, "no event waits, and the receiver is not down: nothing was changed"),
        (("retry", str(row)), 1, f"row {row} does not wait: its status is N"),
        (("resume",), 0, "the publisher was not paused: nothing was changed"),
        (("redrive", "--all"), 0, "no row has failed"),
        (("redrive", str(row)), 1, f"row {row} stays: it did not fail"),
        (("skip", "--table", "usr", "--because", "so"), 0, "no row of these has failed"),
    ):
        done = call(world, *words)
        assert (done.exit_code, sentence in done.stderr) == (code, True), done.stderr
    assert world.counts() == {"N": 1}
