"""A signal is met wherever a file is being opened: where one is dropped, nothing ends the command."""

from __future__ import annotations

import io
import random
import signal
import sys
import threading
import time

import pytest

from eventlog.files.inputs import open_input

pytestmark = pytest.mark.quick


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
