"""A program that reads documents and answers, or does neither."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from eventlog.sinks import open_sink
from eventlog.xds.answers import Level
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

ECHO = """
import sys
for line in sys.stdin:
    print('<nds><output>')
    print('<status level="error"/>' if 'eventlog:2' in line else '')
    print('</output></nds>', flush=True)
"""


def command(program: str, timeout: float = 5.0) -> Any:
    return open_sink("command", {"command": f"{sys.executable} -c '{program}'", "command_timeout": timeout})


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


def test_command_that_cannot_be_started() -> None:
    replies = list(open_sink("command", {"command": "/no/such/program"}).deliver([make(1), make(2)]))
    assert [reply.arrived for reply in replies] == [False]
