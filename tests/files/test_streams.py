"""Streams are waited for whatever their numbers are, and a signal is met wherever a file is being opened."""

from __future__ import annotations

import fcntl
import io
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from eventlog.files.inputs import open_input
from eventlog.files.ready import ready

pytestmark = pytest.mark.quick


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose ends have higher numbers than `select` takes."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4096), before[1]))
    low_ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 2000) for end in low_ends)
    for end in low_ends:
        os.close(end)
    yield reading, writing
    for end in (reading, writing):
        os.close(end)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_stream_of_a_high_number_is_ready_when_something_is_in_it(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    assert ready([reading], [writing], 0.01) == (False, True)
    os.write(writing, b"x")
    assert ready([reading]) == (True, False)


class Met(Exception):
    """The signal was met."""


def meet(*_: object) -> None:
    raise Met


def open_until_it_comes(pause: float) -> None:
    """Open a file again and again until another thread has sent the signal."""
    here = threading.get_ident()

    def send() -> None:
        time.sleep(pause)
        signal.pthread_kill(here, signal.SIGUSR1)

    sender = threading.Thread(target=send)
    sender.start()
    while sender.is_alive():
        with open_input("log.csv", opened=lambda _: io.BytesIO()):
            pass
    sender.join()


def test_a_signal_is_met_wherever_a_file_is_being_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    put_away = list[object]()  # met where nothing can be raised, which the command sees to
    monkeypatch.setattr(sys, "unraisablehook", lambda reported: put_away.append(reported.exc_type))
    dice = random.Random(0)
    before = signal.signal(signal.SIGUSR1, meet)
    try:
        for sent in range(300):
            met = len(put_away)
            try:
                open_until_it_comes(dice.random() * 0.0005)
            except Met:
                continue
            assert len(put_away) > met, f"signal {sent} was dropped"
    finally:
        signal.signal(signal.SIGUSR1, before)
