"""The demo as a newcomer runs it: it shows everything, waits on a terminal, ends, and leaves nothing."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from eventlog.cli.demo.commands import CommandFailed, DemoLog
from eventlog.cli.demo.story import CROWD, MERGED_PEOPLE, STEPS
from tests.kit.support import patient, until

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[3]
WITH_SPARK = [sys.executable, "-m", "eventlog", "demo"]
COMMAND = [*WITH_SPARK, "--without-spark"]
HIDDEN = "import sys; sys.modules['pyspark'] = None; from eventlog.cli import main; main()"
PAUSE = "Press any key to continue"
PATIENCE = 120.0


def environment(folder: str) -> dict[str, str]:
    """Return our environment, with settings that a user may have and the demo must not take."""
    theirs = {"EVENTLOG_URL": "mysql://elsewhere/db", "EVENTLOG_BATCH_SIZE": "many"}
    return os.environ | theirs | {"PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}", "TMPDIR": folder}


def processes_in(folder: str) -> list[str]:
    """Return the command lines that name the folder."""
    command_lines = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if folder in os.readlink(path / "cwd") or folder.encode() in (path / "cmdline").read_bytes():
                command_lines.append((path / "cmdline").read_text())
        except OSError:
            pass  # it ended
    return command_lines


@pytest.fixture
def folder() -> Iterator[str]:
    """A short folder that the database's user may enter."""
    with tempfile.TemporaryDirectory(prefix="ev-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield name


def cpu_seconds() -> float:
    """Return the processor time of the processes that have ended below this one."""
    times = os.times()
    return times.children_user + times.children_system


class Terminal:
    """A demo at a terminal of its own."""

    def __init__(self, folder: str, command: Sequence[str] = COMMAND) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command,
            env=environment(folder),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),  # Ctrl-C is a signal
        )
        os.close(theirs)
        self.output = ""

    def read_until(self, text: str) -> str:
        """Return the output up to that text, or to the end."""
        begun = len(self.output)
        while text not in self.output[begun:] and self._read_piece():
            pass
        return self.output[begun:]

    def press(self, key: bytes) -> None:
        """Send a key as soon as the demo reads keys, because earlier ones are dropped."""
        while termios.tcgetattr(self._ours)[3] & termios.ICANON:
            assert self.process.poll() is None
            time.sleep(0.01)
        os.write(self._ours, key)

    def close(self) -> int:
        code = self.process.wait(patient(PATIENCE))
        os.close(self._ours)
        return code

    def _read_piece(self) -> bool:
        waiting = select.poll()  # `select.select` takes no high numbers
        waiting.register(self._ours, select.POLLIN)
        assert waiting.poll(patient(PATIENCE) * 1000), self.output
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # Linux reports it when the other end is closed
            return False
        self.output += piece.decode("utf-8", "replace")
        return bool(piece)


@pytest.mark.slow("it is the whole demo")
def test_the_demo_tells_what_becomes_of_every_row_in_little_time(folder: str) -> None:
    narrow = environment(folder) | {"COLUMNS": "80"}
    before = cpu_seconds()
    done = subprocess.run(COMMAND, env=narrow, capture_output=True, text=True, timeout=patient(PATIENCE))
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        '<add class-name="usr" event-id="eventlog:1-2:17f8af97">',
        '<modify class-name="usr" event-id="eventlog:5-7:9988e8a7">',
        '<delete class-name="usr" event-id="eventlog:9">',
        "E: malformed key: at character 6",
        f"{CROWD:,} of {CROWD:,} events have come: nothing is lost",
    ):
        assert part in done.stdout
    assert re.search(r"^  [1-9][\d,]* rows of the log are still new$", done.stdout, re.MULTILINE)
    assert re.search(r"^  [1-9][\d,]* were sent again under the same event-ids", done.stdout, re.MULTILINE)
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    assert not re.search(r"^  \d+ .*…", done.stdout, re.MULTILINE)
    assert re.search(r"^  row +status +type +table +key +column +old +new$", done.stdout, re.MULTILINE)
    assert "It is a modify that replaces each value (<remove-all-values/>)" in " ".join(done.stdout.split())
    assert "they are what NetIQ Identity" in done.stdout
    assert "A receiver recognises them" in done.stdout
    assert "\x1b[" not in done.stdout
    assert PAUSE not in done.stdout
    words = [word for line in done.stdout.splitlines() if not line.startswith("  ") for word in line.split()]
    assert re.search(r"^All of this took \d+ seconds\.$", done.stdout, re.MULTILINE)
    assert "Nothing is left to do." in done.stdout.splitlines()[-1]
    assert cpu_seconds() - before < patient(30)  # a minute of a machine that is not busy
    assert 100 < len(words) < 300  # two hundred a minute; what is indented is looked at
    assert list(Path(folder).iterdir()) == []
    assert processes_in(folder) == []


@pytest.mark.long
def test_at_a_terminal_sections_wait_while_the_receivers_page_shows_what_came(folder: str) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    terminal = Terminal(folder, WITH_SPARK)
    for step in STEPS:
        terminal.read_until(PAUSE)
        terminal.press(b" ")
        terminal.read_until(step.title)
    terminal.read_until(PAUSE)
    (url,) = set(re.findall(r"http://127\.0\.0\.1:\d+/", terminal.output))
    with urllib.request.urlopen(url, timeout=patient(30)) as page:
        assert "idu=3" in page.read().decode()
    for words in (PAUSE, PAUSE, "takes about a minute: press s to skip it"):
        terminal.press(b"\n")
        terminal.read_until(words)
    terminal.press(b"s")
    assert "eventlog backlog" not in terminal.read_until("until you press a key")
    terminal.press(b"q")
    terminal.read_until("never said")
    assert terminal.close() == 0
    assert processes_in(folder) == []


@pytest.mark.long
def test_fast_waits_for_nobody_and_without_spark_its_remedy_is_reported(folder: str) -> None:
    terminal = Terminal(folder, [sys.executable, "-c", HIDDEN, "demo", "--fast"])
    reported = terminal.read_until("never said")
    assert terminal.close() == 0
    assert reported.count("holds   ") == 6
    assert "eventlog demo --keep" in reported
    assert "The demo can end with a backlog on Spark: pip install" in reported
    assert PAUSE not in reported


@pytest.mark.long  # the demo starts
def test_ctrl_c_at_a_pause_ends_it(folder: str) -> None:
    terminal = Terminal(folder)
    terminal.read_until(PAUSE)
    terminal.press(b"\x03")
    terminal.read_until("never said")
    assert terminal.close() == 130
    assert list(Path(folder).iterdir()) == []
    assert processes_in(folder) == []


@pytest.mark.long  # the demo starts
def test_a_demo_that_is_killed_leaves_no_process(folder: str) -> None:
    terminal = Terminal(folder)
    terminal.read_until(PAUSE)
    assert len(processes_in(folder)) > 2
    terminal.process.kill()
    terminal.close()
    until(lambda: processes_in(folder) == [], PATIENCE, 0.05)


@pytest.mark.long
def test_with_keep_the_database_stays_until_somebody_ends_it(folder: str) -> None:
    demo = subprocess.Popen([*COMMAND, "--keep"], env=environment(folder), stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    reported = next(line for line in demo.stdout if "EVENTLOG_URL=" in line)
    url = reported.split("'")[1]
    script = f"from eventlog.sql.connect import connect; connect({url!r}).connect()"
    assert subprocess.run([sys.executable, "-c", script], env=environment(folder)).returncode == 0
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(patient(60)) == 0
    demo.stdout.close()
    assert processes_in(folder) == []


@pytest.mark.long
@pytest.mark.slow("Spark folds a backlog")
def test_the_story_ends_with_a_backlog_on_spark(folder: str) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    done = subprocess.run(WITH_SPARK, env=environment(folder), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    story, _, reported = done.stdout.partition("== A backlog on Spark")
    assert "== What next" in story
    assert "This takes about a minute" in " ".join(reported.split())
    assert re.search(rf"^  eventlog: {MERGED_PEOPLE} documents in", reported, re.MULTILINE)
    assert f"{MERGED_PEOPLE} rows finished in the log" in reported
    assert re.search(r"^  Spark took \d+ seconds, its start included$", reported, re.MULTILINE)
    assert "WARN" not in reported
    assert processes_in(folder) == []


def test_what_a_command_prints_is_reported_when_it_fails(tmp_path: Path) -> None:
    log = DemoLog(tmp_path, "postgresql://nobody@127.0.0.1:1/none", create_engine("sqlite://"))
    reported = r"(?s)^`eventlog status` did not finish its work; its output: .*no connection to the database"
    with pytest.raises(CommandFailed, match=reported):
        log.run("eventlog status")
    process = log.start("eventlog status")
    with pytest.raises(CommandFailed, match=reported):
        process.wait_until(lambda: False)
    process.wait()
