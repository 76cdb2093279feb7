"""A program that reads documents and answers, or does neither."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from eventlog.sinks import open_sink
from eventlog.sinks.sink import Reply
from eventlog.xds.answers import Level, Status
from tests.kit.support import patient, until
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

ECHO = """
import shlex
import sys
for line in sys.stdin:
    print('<nds><output>')
    print('<status level="error"/>' if 'eventlog:2' in line else '')
    print('</output></nds>', flush=True)
"""


def command(program: str, timeout: float | None = None) -> Any:
    settings = {"command_timeout": timeout or patient(5)}
    return open_sink("command", {"command": f"{sys.executable} -c '{program}'", **settings})


def test_command_reads_documents_and_answers(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    sink = open_sink("command", {"command": f"{sys.executable} {tmp_path / 'echo.py'}"})
    replies = list(sink.deliver([make(1), make(2), make(3, "<nds>" + "x" * 1_000_000 + "</nds>")]))
    sink.close()
    assert [[status.level for status in reply.statuses] for reply in replies] == [[], [Level.ERROR], []]


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit", "ended before it had answered"),
        ("import sys; sys.stdin.readline(); print(1)", "ended before"),
        ("import time; time.sleep(9)", "within 0.5 seconds"),
        ('print("</nds>", flush=True); import time; time.sleep(9)', "no XML"),
    ],
)
def test_command_what_is_no_answer_is_none(program: str, reason: str) -> None:
    sink = command(program, 0.5)
    (reply,) = sink.deliver([make(1)])
    sink.close()
    assert reply.arrived
    assert reason in reply.fault or "Broken pipe" in reply.fault


OFF_BY_ONE = """
import re, sys
previous = None
for line in sys.stdin:
    number = re.search("eventlog:([0-9]+)", line)[1]
    status = f'<status level="success" event-id="eventlog:{previous or number}"/>'
    print(f"<nds><output>{status}</output></nds>", flush=True)
    previous = number
"""
STRAY = """
import sys, time
from pathlib import Path
asked, done = map(Path, sys.argv[1:])
for line in sys.stdin:
    print("<nds><output/></nds>", flush=True)
    if not done.exists():
        while not asked.exists():
            time.sleep(0.01)
        print('<nds><output><status level="error"/></output></nds>', flush=True)
        done.touch()
"""


def test_command_that_answers_with_a_blank_event_id_answers_for_the_document() -> None:
    status = '<status level="error" event-id=" ">no</status>'
    program = (
        f"for line in __import__('sys').stdin: print('<nds><output>{status}</output></nds>', flush=True)"
    )
    sink = open_sink("command", {"command": shlex.join((sys.executable, "-c", program))})
    (reply,) = sink.deliver([make(1)])
    sink.close()
    assert reply.statuses == [Status(Level.ERROR, None, "no")]


def test_command_that_answers_to_another_document_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "off_by_one.py").write_text(OFF_BY_ONE)
    sink = open_sink("command", {"command": f"{sys.executable} {tmp_path / 'off_by_one.py'}"})
    replies = list(sink.deliver([make(1), make(2), make(3)]))
    sink.close()
    assert "only events of other documents, first eventlog:1" in str(replies[1].fault)
    assert replies[1].arrived
    assert [[status.event_id for status in replies[at].statuses] for at in (0, 2)] == [
        ["eventlog:1"], ["eventlog:3"],
    ]  # fmt: skip


def test_command_that_answers_without_a_document_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "stray.py").write_text(STRAY)
    asked, done = tmp_path / "asked", tmp_path / "done"
    sink = open_sink("command", {"command": f"{sys.executable} {tmp_path / 'stray.py'} {asked} {done}"})
    first = list(sink.deliver([make(1)]))
    asked.touch()
    until(done.exists)
    second = list(sink.deliver([make(2)]))
    sink.close()
    assert first == second == [Reply([])]


def test_command_that_answers_before_it_has_the_whole_document_has_not() -> None:
    sink = command('import time; print("<nds><output/></nds>", flush=True); time.sleep(9)')
    (reply,) = sink.deliver([make(1, "<nds>" + "x" * 1_000_000 + "</nds>")])
    sink.close()
    assert "answered before it had the whole document" in reply.fault
    assert reply.arrived


MEASURED = """
import sys
for line in sys.stdin.buffer:
    words = f'{len(line)} {sum(line) % 65536}'
    print(f'<nds><output><status level="error">{words}</status></output></nds>', flush=True)
"""
EAGER = """
import os, sys
while os.read(0, 100):
    print("<nds><output/></nds>", flush=True)
    break
sys.stdin.buffer.readline()
"""


def test_command_gets_every_byte_of_documents_that_fill_its_pipe_again_and_again(tmp_path: Path) -> None:
    (tmp_path / "measured.py").write_text(MEASURED)
    sink = open_sink("command", {"command": f"{sys.executable} {tmp_path / 'measured.py'}"})
    texts = [f"<nds>{'xyz' * size}</nds>" for size in (1, 20_000, 200_000, 5)]
    replies = list(sink.deliver([make(number, text) for number, text in enumerate(texts, 1)]))
    sink.close()
    sent = [f"{text}\n".encode() for text in texts]
    assert [reply.statuses[0].text for reply in replies] == [
        f"{len(line)} {sum(line) % 65536}" for line in sent
    ]


def test_command_that_answers_to_the_first_bytes_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text(EAGER)
    sink = open_sink("command", {"command": f"{sys.executable} {tmp_path / 'eager.py'}"})
    (reply,) = sink.deliver([make(1, f"<nds>{'x' * 900_000}</nds>")])
    sink.close()
    assert reply.fault is not None


def test_command_that_cannot_be_started() -> None:
    replies = list(open_sink("command", {"command": "/no/such/program"}).deliver([make(1), make(2)]))
    assert [reply.arrived for reply in replies] == [False, False]
