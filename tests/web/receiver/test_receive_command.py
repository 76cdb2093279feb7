"""eventlog receive as a process: it prints its address, keeps documents, and ends on a signal."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette

from eventlog.web.server import serve
from eventlog.xds import answers
from eventlog.xds.answers import Level
from tests.kit.support import patient, until
from tests.web.receiver.conftest import ADD, Client

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[3]


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[Client, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "eventlog", "receive", "--port", "0", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    assert process.stderr is not None
    try:
        reported = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
        assert reported is not None
        yield Client(int(reported[1])), process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_by_its_level_and_ends_by_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path, "--answer", "warning") as (client, process):
        (status,) = answers.read(client.post(ADD).encode())
        assert (status.level, status.event_id) == (Level.WARNING, "log:1")
        process.send_signal(number)
        assert process.wait(patient(20)) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_second_signal_does_not_close_the_socket_of_a_server_that_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    threads = set(threading.enumerate())
    try:
        with pytest.raises(KeyboardInterrupt), serve(Starlette(), "127.0.0.1", 0):
            signal.setitimer(signal.ITIMER_REAL, 0.001)  # the server ends later
        until(lambda: threads >= set(threading.enumerate()))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert raised == []


def test_documents_are_kept_in_a_temporary_file_unless_reported_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    for options, kept in (((), []), (("--file", "mine.sqlite"), ["mine.sqlite"])):
        folder = tmp_path / f"run{len(kept)}"
        folder.mkdir()
        with started(folder, *options) as (client, process):
            client.post(ADD)
            process.send_signal(signal.SIGTERM)
            assert process.wait(patient(20)) == 0
        assert ([path.name for path in folder.iterdir()], [*scratch.iterdir()]) == (kept, [])


def test_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "eventlog", "receive", "--port", port],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=patient(60),
        )
    assert done.returncode == 2
    assert f"nothing can be received at 127.0.0.1, port {port}" in done.stderr


def test_a_file_that_is_no_archive_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes, which nobody may overwrite\n" * 100)
    done = subprocess.run(
        [sys.executable, "-m", "eventlog", "receive", "--port", "0", "--file", "notes.txt"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert done.returncode == 2
    assert "notes.txt cannot keep documents" in done.stderr
    assert (tmp_path / "notes.txt").read_text().startswith("my notes")
