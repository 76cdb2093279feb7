"""Any failure is reported in a line, with the right exit code and without a traceback."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kit.commands import Done, Shell, environment
from tests.kit.databases import Database
from tests.kit.support import HEADER, USR, patient, until

pytestmark = pytest.mark.quick

LOG = HEADER + "1,4,usr,idu=1,,,\n"
DOCUMENT = (
    '<nds><input><delete class-name="usr" event-id="e"><association>a</association></delete></input></nds>\n'
)
UNREADABLE = "/proc/self/mem"  # a regular file that fails when it is read, also for root
NOWHERE = "/proc/nowhere"  # no folder in which a file can be made
JUNK = ("junk", "junk.csv", "junk.parquet", "junk.csv.gz", "junk.toml", "eventlog.junk.toml")
FILES: dict[str, str | bytes] = {  # good ones, and all kinds of bad ones
    "usr.toml": USR,
    "log.csv": LOG,
    "docs.xml": DOCUMENT,
    "message.bin": b"\0\0\0\x06\0\0\0\0\x01\x00",
    "nothing.jsonl": "",
    **dict.fromkeys(JUNK, b"\x8b\xff\x00\x01 = \n" * 20),
    "deep.toml": "x = " + "[" * 20_000,
    "bom.toml": b'\xef\xbb\xbfurl = "postgresql://127.0.0.1:1/db"\n',
    "digits.toml": "x = " + "9" * 5_000,
    "siez.toml": "batch-siez = 5\n",
    "colums.toml": '[log.colums]\nstatus = "state"\n',
    "inlog.toml": '[log]\nbatch-size = 5\ncolumns = "status"\n',
    "number.toml": "[log.columns]\nstatus = 5\n",
    "deep": "[" * 100_000,
    "list": "[]",
    "odd.memory": "eventlog answers 1\n5\n[1, 2, 3]\n" + "[" * 100_000 + "\n",
    "packed.csv": gzip.compress(LOG.encode()),
    "cut.xml.gz": gzip.compress(DOCUMENT.encode())[:-4],
    "zstd.csv": b"\x28\xb5\x2f\xfd\x04\x00",
    "utf16.csv": LOG.encode("utf-16"),
    "utf16le.csv": LOG.encode("utf-16-le"),
    "utf16.jsonl": '{"op": "insert"}\n'.encode("utf-16"),
    "semicolons.csv": LOG.replace(",", ";"),
    "wide.csv": "x" * 100_000 + ",y\n1,2\n",
    "cut.csv.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03cut",
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    new_shell = Shell(tmp_path_factory.mktemp("situations")).with_files(FILES)
    (new_shell.folder / "folder").mkdir()
    yield new_shell
    new_shell.close()


@pytest.fixture(scope="module")
def folder(shell: Shell) -> Path:
    return shell.folder


class Situation(NamedTuple):
    words: str
    code: int
    reported: str  # what the last line on standard error holds
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed


CONVERT = "convert --from log --to xds --tables usr.toml"
MESSAGES = "convert --from qlik-message --to changes --encoding avro --framing confluent --as messages"
NO_DATABASE = "run --once --url postgres://127.0.0.1:1/db"
STREAM = "convert --from gbase --to changes"
DELIVER = "deliver docs.xml --state memory"
REGISTRY = "schema registry"
UNKNOWN = "there is no such setting; did you mean"
SITUATIONS = [
    Situation(f"{CONVERT} ghost.csv", 2, "ghost.csv: no such file"),
    Situation(f"{CONVERT} --as csv folder", 2, "folder is a folder"),
    Situation(f"{CONVERT} --as csv {UNREADABLE}", 2, "Input/output error"),
    Situation(f"{CONVERT} junk.parquet", 2, "junk.parquet: Parquet magic bytes"),
    Situation(f"{CONVERT} junk.csv.gz", 2, "junk.csv.gz: Not a gzipped file"),
    Situation(f"{CONVERT} --current usr=cut.csv.gz log.csv", 2, "cut.csv.gz"),
    Situation(f"{CONVERT} --current usr=junk.parquet log.csv", 2, "junk.parquet"),
    Situation(f"{CONVERT} -o {NOWHERE}/out.xml log.csv", 2, "there is no folder"),
    Situation(f"{CONVERT} -o folder log.csv", 2, "folder is a folder"),
    Situation(f"{CONVERT} --output-as nothing log.csv", 2, "--output-as"),
    Situation(f"{CONVERT} --to changes --output-as messages log.csv", 2, "use jsonl"),
    Situation(f"{CONVERT} --refused folder log.csv", 2, "folder: Is a directory"),
    Situation(f"{CONVERT} --refused {NOWHERE}/bad log.csv", 2, NOWHERE),
    Situation("convert --from log --to xds --tables junk.toml log.csv", 2, "junk.toml: byte 1 is 0x8B"),
    Situation(
        "convert --from log --to xds --tables deep.toml log.csv",
        2,
        "deep.toml: maximum recursion",
    ),
    Situation(
        "convert --from log --to xds --tables digits.toml log.csv",
        2,
        "digits.toml: Exceeds the limit",
    ),
    Situation(
        "convert --from gbase --to changes --state deep -o out.jsonl junk", 2, "deep is not a state file"
    ),
    Situation(
        "convert --from gbase --to changes --state list -o out.jsonl junk", 2, "list is not a state file"
    ),
    Situation("convert --from gbase --to changes --state junk.toml junk", 2, "is not a state file"),
    Situation(f"{MESSAGES} --schema-registry http://[ message.bin", 2, "is not an address"),
    Situation(f"{MESSAGES} --schema-registry http://h:99999 message.bin", 2, "is not an address"),
    Situation(f"{MESSAGES} --schema-registry http://jo:se/cret@h message.bin", 2, "is not an address"),
    Situation("convert --from qlik-table --to changes --url nothing usr", 2, "that is no URL"),
    Situation(
        "status --url nothing", 2, "a database is named as postgresql://user:password@host:port/database"
    ),
    Situation("status --url nothing://host/db", 2, "is not a supported database"),
    Situation("status --url postgresql://jo:secret@host:port/db", 2, "that is no URL"),
    Situation("status --url postgresql://jo:se@cret@host/db", 2, "an @ in a user"),
    Situation("status --url postgresql://127.0.0.1:99999/db", 2, "a port is a number"),
    Situation("status --url postgresql+nothing://127.0.0.1/db", 2, "not a supported driver"),
    Situation("status --url postgres://127.0.0.1:1/db", 1, "Connection refused"),
    Situation("status --url mysql://root@127.0.0.1:1/db", 1, "(port 1)"),
    Situation("status --url mysql://root@127.0.0.1:1/db?nothing=1", 2, "the driver does not take"),
    Situation("status --config junk.toml", 2, "junk.toml"),
    Situation("status --config folder", 2, "folder"),
    Situation("status --config ghost.toml", 2, "ghost.toml: No such file"),
    Situation("status --config deep.toml", 2, "deep.toml: maximum recursion"),
    Situation("status --config digits.toml", 2, "digits.toml: Exceeds the limit"),
    Situation("status --config bom.toml", 1, "Connection refused"),
    Situation("status --config siez.toml", 2, "there is no such setting; did you mean batch-size?"),
    Situation("status --config colums.toml", 2, "[log] colums: there is no such setting"),
    Situation("status --config inlog.toml", 2, "[log] batch-size: there is no such setting"),
    Situation("status --config inlog.toml", 2, "inlog.toml: [log]: `columns` must be a table"),
    Situation("status --config number.toml", 2, "[log.columns] status: 5 is not the name of a column"),
    Situation(f"{NO_DATABASE} --log-table a.b.c", 2, "--log-table: 'a.b' cannot name anything"),
    Situation(f"{NO_DATABASE} --log-table .", 2, "--log-table: '' cannot name anything"),
    Situation(f"{NO_DATABASE} --log-table {'x' * 129}", 2, "--log-table: "),
    Situation(f"{NO_DATABASE} --sink nothing", 2, "--sink: unknown sink 'nothing'"),
    Situation(f"{NO_DATABASE} --sink http", 2, "the http sink needs --http-url"),
    Situation(f"{NO_DATABASE} --sink command", 2, "the command sink needs --command"),
    Situation(f"{NO_DATABASE} --sink kafka", 2, "the kafka sink needs --kafka-brokers"),
    Situation(f"{NO_DATABASE} --sink kafka --kafka-brokers h:1", 1, "Connection refused"),
    Situation(f"{DELIVER} --sink http --http-url http://h:99999/", 2, "is not an address"),
    Situation(f"{DELIVER} --sink http --http-url https://h/ --http-ca junk", 2, "http-ca junk"),
    Situation(f"{DELIVER} --sink http --http-url https://h/ --http-ca ghost", 2, "http-ca ghost"),
    Situation(f"{DELIVER} --sink http --http-url https://h/ --http-cert junk", 2, "http-cert junk"),
    Situation(f"{DELIVER} --sink http --http-url https://h/ --http-cert folder", 2, "http-cert folder"),
    Situation(
        f"{DELIVER} --sink http --http-url http://127.0.0.1:1/",
        2,
        "EVENTLOG_HTTP_TOKEN: it holds a line end",
        {"EVENTLOG_HTTP_TOKEN": "secret\nX-Evil: secret"},
    ),
    Situation(f"{DELIVER} --sink command --command \\'never", 2, "command"),
    Situation(f"{DELIVER} --sink files --files-folder docs.xml", 2, "docs.xml cannot be written"),
    Situation("deliver docs.xml --state folder --sink stdout", 2, "folder is no regular file"),
    Situation("deliver docs.xml --state /dev/zero --sink stdout", 2, "/dev/zero is no regular file"),
    Situation("deliver docs.xml --state ghost/memory --sink stdout", 2, "there is no folder ghost"),
    Situation("deliver /dev/zero --state memory --sink stdout", 2, "/dev/zero is no regular file"),
    Situation("convert --to changes cut.xml.gz", 2, "cut.xml.gz: the rest of the file cannot be read"),
    Situation(f"{CONVERT} packed.csv", 2, "packed.csv: this is packed with gzip"),
    Situation(f"{CONVERT} zstd.csv", 2, "zstd.csv: this is packed with Zstandard"),
    Situation(f"{CONVERT} utf16.csv", 2, "utf16.csv: this is UTF-16"),
    Situation(f"{CONVERT} utf16le.csv", 2, "utf16le.csv: this is UTF-16"),
    Situation("convert --from changes --to xds utf16.jsonl", 1, "utf16.jsonl:1: this is UTF-16"),
    Situation(f"{CONVERT} semicolons.csv", 2, "name the delimiter with --csv-delimiter ';'"),
    Situation(
        f"{CONVERT} log.csv --current usr=semicolons.csv", 2, "name the delimiter with --csv-delimiter ';'"
    ),
    Situation(f"{CONVERT} nothing.jsonl", 2, "it has none: it is empty"),
    Situation("convert --from qlik-table --to changes nothing.jsonl", 2, "has no columns: it is empty"),
    Situation(f"{CONVERT} wide.csv", 2, "the log lacks the column record_id"),
    Situation(f"{CONVERT} log.csv --max-changes {'9' * 5000}", 2, "is not a whole number"),
    Situation(f"{CONVERT} log.csv --log-name \x01", 2, "--log-name': character U+0001"),
    Situation(f"{CONVERT} log.csv --status new", 2, "--status': 'new' is not one letter"),
    Situation(f"{CONVERT} log.csv --now never", 2, "--now': 'never' is not a time"),
    Situation(f"{STREAM} log.csv --state /dev/zero", 2, "/dev/zero is no regular file"),
    Situation(f"{STREAM} log.csv --state ghost/state", 2, "there is no folder ghost"),
    Situation("receive --port 0 --host=", 2, "the address is empty"),
    Situation(f"{NO_DATABASE} --monitor-port 65535 --monitor-host=", 2, "the address is empty"),
    Situation("receive --port 0 --file folder/nothing/received.sqlite", 2, "received.sqlite"),
    Situation("import-config junk", 2, "junk is no exported configuration"),
    Situation(f"import-config {UNREADABLE}", 2, "Input/output error"),
    Situation("explain --from log --tables junk.toml log.csv", 2, "junk.toml: byte 1"),
    Situation("explain abc", 2, "abc: no such file, and no record_id, which is a whole number"),
    Situation("explain 17 abc", 2, "abc: no such file, and no record_id, which is a whole number"),
    Situation("explain --from log --as csv ''", 2, "'': no such file, and no record_id"),
    Situation("skip 17 --because ''", 2, "why? --because is empty"),
    Situation("receive --port 80x", 2, "'80x' is not a valid whole number"),
    Situation("check --patience soon", 2, "'soon' is not a valid number"),
    Situation(NO_DATABASE, 2, f"EVENTLOG_POLING_INTERVAL: {UNKNOWN} polling-interval?", {
        "EVENTLOG_POLING_INTERVAL": "5",
    }),
    Situation("install", 2, "EVENTLOG_PORT: there is no such setting", {"EVENTLOG_PORT": "9780"}),
    Situation(NO_DATABASE, 1, "Connection refused", {
        "EVENTLOG_MASK_ORDER": "big",  # of another command
        "EVENTLOG_TEST_URLS": "",
        "EVENTLOG_VERSION": "local",
        "EVENTLOG_PORT": "tcp://10.0.0.1:9780",  # of Kubernetes
        "EVENTLOG_PORT_9780_TCP_ADDR": "10.0.0.1",
        "EVENTLOG_SERVICE_HOST": "10.0.0.1",
        "EVENTLOG_SERVICE_PORT_MONITOR": "9780",
    }),
]  # fmt: skip


def last_line(done: Done) -> str:
    lines = done.stderr.splitlines()
    return lines[-1] if lines else ""


def test_a_cause_is_reported_once(shell: Shell) -> None:
    done = shell.run("status", "--url", "postgres://127.0.0.1:1/db")
    assert done.stderr.count("Connection refused") == 1
    assert len(done.stderr.splitlines()) == 1


def test_a_database_that_is_away_is_a_state_of_the_log(shell: Shell) -> None:
    address = "postgres://127.0.0.1:1/db"
    printed = shell.run("status", "--url", address)
    words = (
        r"log +db/eventlog on 127\.0\.0\.1:1\n"
        r"state +Database away for now \(.*Connection refused.*\); .*; start the database.*\n"
    )
    assert (printed.code, re.fullmatch(words, printed.stdout) is not None) == (1, True), printed
    reported = shell.run("status", "--json", "--exit-code", "--url", address)
    (state,) = json.loads(reported.stdout)["states"]
    assert (reported.code, state["state"], state["severity"]) == (2, "database-away", "error")
    assert state["sentence"] in printed.stdout


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.words)
@pytest.mark.family
def test_a_bad_situation_is_reported_in_a_line(situation: Situation, shell: Shell) -> None:
    done = shell.run(*shlex.split(situation.words), **situation.environment)
    assert "Traceback" not in done.stderr
    assert "a bug in eventlog" not in done.stderr
    assert (done.code, situation.reported in done.stderr) == (situation.code, True), done.stderr
    assert "secret" not in done.stderr
    assert "cret" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert len(done.stderr) <= 4000


NOT_TEXT = "'\\udcff' is not text in the encoding of this environment: write UTF-8, and set LC_ALL=C.UTF-8"


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ("track {}", {}),
        ("redrive --because {}", {}),
        ("explain --key {} log.csv", {}),
        ("run --once --sync-tables {}", {}),
        ("run --once --url postgres://127.0.0.1:1/db", {"EVENTLOG_LOG_TABLE": "{}"}),
        (f"{CONVERT} log.csv --driver-user {{}}", {}),
        (f"{CONVERT} log.csv --current {{}}=log.csv", {}),
    ],
)
def test_bytes_that_are_no_text_are_refused(words: str, environment: dict[str, str], shell: Shell) -> None:
    variables = {name: value.format("\udcff") for name, value in environment.items()}
    done = shell.run(*words.format("\udcff").split(), **variables)
    assert (done.code, NOT_TEXT in done.stderr) == (2, True), done.stderr


def test_a_file_may_have_a_name_that_is_no_text(shell: Shell) -> None:
    (shell.folder / "\udcff.csv").write_text(LOG)
    done = shell.run(*CONVERT.split(), "\udcff.csv", "-o", "\udcff.xml")
    assert (done.code, "<delete " in (shell.folder / "\udcff.xml").read_text()) == (0, True), done.stderr


def test_a_table_with_a_name_that_is_no_text_is_refused(shell: Shell, postgres: Database) -> None:
    done = shell.run(
        *("convert", "--from", "qlik-table", "--to", "changes", "--url", postgres.address, "\udcff")
    )
    assert (done.code, NOT_TEXT in done.stderr) == (2, True), done.stderr


def test_names_in_another_encoding_than_that_of_the_environment_are_refused(folder: Path) -> None:
    command = f"{sys.executable} -m eventlog {CONVERT} log.csv --log-name ü"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run(
        command.split(),
        cwd=folder,
        env=environment(**plain),
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert (done.returncode, NOT_TEXT.replace("udcff", "udcc3\\udcbc") in done.stderr) == (2, True)


def test_with_v_the_traceback_is_shown(shell: Shell) -> None:
    done = shell.run(*CONVERT.split(), "ghost.csv", "-v")
    assert done.code == 2
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().endswith("ghost.csv: no such file")


# standard output


def test_a_full_disk_behind_standard_output_is_reported(shell: Shell) -> None:
    done = shell.run(*CONVERT.split(), "log.csv", stdout="/dev/full")
    assert (done.code, last_line(done)) == (1, "eventlog: standard output: No space left on device")
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_reported_by_commands_that_print_lines(shell: Shell) -> None:
    done = shell.run("install", "--sql", "--dialect", "postgresql", stdout="/dev/full")
    assert (done.code, last_line(done)) == (1, "eventlog: standard output: No space left on device")


def test_a_closed_standard_output_is_misuse_and_no_file_takes_its_place(folder: Path) -> None:
    command = f"{sys.executable} -m eventlog {CONVERT} log.csv >&-"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert (done.returncode, done.stderr) == (2, "eventlog: standard output is closed\n")


# a registry that talks nonsense

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x00\xff{[",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{}",
    b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"schema":1}',
    b'HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"schema":"{\\"type\\":1}"}',
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"[" * 60000,
    b"",
]


@pytest.fixture
def nonsense(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a server that answers everything alike."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                client, _ = server.accept()
            except TimeoutError:
                continue
            with client:
                client.recv(1 << 16)
                client.sendall(request.param)

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    over.set()
    thread.join()
    server.close()


@pytest.mark.parametrize("nonsense", ANSWERS, indirect=True)
def test_garbage_of_a_schema_registry_costs_the_record(nonsense: str, shell: Shell) -> None:
    done = shell.run(*MESSAGES.split(), "--schema-registry", nonsense, "message.bin")
    assert "Traceback" not in done.stderr
    assert "a bug in eventlog" not in done.stderr
    assert (done.code, last_line(done)) == (1, "eventlog: 1 bad record was left out")


# signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_with_its_own_code(number: signal.Signals, folder: Path) -> None:
    command = [sys.executable, "-m", "eventlog", *CONVERT.split()]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        rows = "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 20000))
        process.stdin.write(HEADER + rows)
        process.stdin.flush()
        until_reading(process)
        process.send_signal(number)
        _, reported = process.communicate(timeout=patient(60))
    assert reported == f"eventlog: stopped by {number.name}\n"
    assert process.returncode == 128 + number


def test_a_command_under_nohup_goes_on_when_its_terminal_ends(folder: Path) -> None:
    assert code_where_ignored(signal.SIGHUP, folder) == 0


def test_a_job_in_the_background_goes_on_at_a_ctrl_c(folder: Path) -> None:
    """A shell lets the jobs of a script that it puts there ignore it."""
    assert code_where_ignored(signal.SIGINT, folder) == 0


def code_where_ignored(number: signal.Signals, folder: Path) -> int:
    """Return the exit code of a command that was begun to ignore a signal, and gets it."""
    with subprocess.Popen(
        [sys.executable, "-m", "eventlog", *CONVERT.split()],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_IGN),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(HEADER + "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 20_000)))
        process.stdin.flush()
        until_reading(process)
        process.send_signal(number)
        output, _ = process.communicate("20000,4,usr,idu=20000,,,\n", timeout=patient(60))
    assert ("idu=20000" in output) is (process.returncode == 0)
    return process.returncode


def test_a_signal_ends_the_help_likewise() -> None:
    program = (
        "import eventlog.cli as c, os, signal, sys\n"
        "c.Commands.format_commands = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.argv[1:] = ['--help']\n"
        "c.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert (done.returncode, done.stderr.strip()) == (143, "eventlog: stopped by SIGTERM")


@pytest.mark.parametrize(("imported", "code"), [("signal", 128 + signal.SIGINT), ("click", -signal.SIGINT)])
def test_a_ctrl_c_before_the_command_begins_ends_it_without_a_word(imported: str, code: int) -> None:
    program = (
        "import os, runpy, sys\n"
        "class Busy:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == '{imported}':\n"
        f"            os.kill(os.getpid(), {signal.SIGINT:d})\n"
        "sys.meta_path.insert(0, Busy())\n"
        "runpy.run_module('eventlog', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert (done.returncode, done.stderr) == (code, "")


def until_reading(process: subprocess.Popen[str]) -> None:
    """Wait until the process waits for more of its input."""
    wait = Path(f"/proc/{process.pid}/wchan")
    until(lambda: "pipe_read" in wait.read_text())


def test_an_unforeseen_fault_is_reported_as_one_of_ours(folder: Path) -> None:
    program = (
        "import eventlog.transfer.convert as c\n"
        "def broken(*a, **k): raise KeyError('x')\n"
        "c.convert = broken\n"
        "from eventlog.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *CONVERT.split(), "log.csv"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert done.returncode == 1
    assert done.stderr == (
        "eventlog: this is a bug in eventlog, please report it: KeyError: 'x' (-v shows where)\n"
    )


LOSING = """
import signal, sys, time
from eventlog.cli.exits import CommandExit

class PutAway:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def swallowed():
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        pass

def command():
    {}()
    {}

code = CommandExit().carry_out(command)
time.sleep(0.3)
sys.exit(code)
"""
STOPPED = (128 + signal.SIGTERM, "eventlog: stopped by SIGTERM\n")


@pytest.mark.parametrize("lost", ["PutAway", "swallowed"])
@pytest.mark.parametrize(("behind", "expected"), [("time.sleep(60)", STOPPED), ("pass", (0, ""))])
def test_a_signal_that_is_lost_ends_a_command_that_goes_on(
    behind: str, lost: str, expected: tuple[int, str]
) -> None:
    """End a command that goes on after a lost signal.

    Python ignores what a destructor raises; some libraries catch everything.
    """
    words = [sys.executable, "-c", LOSING.format(lost, behind)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert (done.returncode, done.stderr) == expected


def test_a_signal_that_comes_at_the_very_end_changes_nothing() -> None:
    program = (
        "import signal, sys\n"
        "from eventlog.cli.exits import CommandExit\n"
        "def interrupt(frame, event, argument):\n"
        "    if frame.f_code.co_name == '_close_outputs':\n"
        "        sys.settrace(None)\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "ending = CommandExit()\n"
        "sys.settrace(interrupt)\n"
        "sys.exit(ending.carry_out(lambda: print('done')))\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_lines_that_are_no_answers_are_none_in_a_memory(shell: Shell) -> None:
    words = ("deliver", "docs.xml", "--state", "odd.memory", "--sink", "stdout")
    first, again = (shell.run(*words) for _ in range(2))
    assert (first.code, "<delete " in first.stdout) == (0, True)
    assert (again.code, "<delete " in again.stdout) == (0, False)
