"""What an input may hold is a setting of all commands that read one; the error names it and the place."""

from __future__ import annotations

import json

import pytest

from tests.kit.commands import Shell
from tests.kit.support import HEADER, USR

pytestmark = pytest.mark.quick

ADD = (
    '<nds dtdversion="4.0"><input><add class-name="usr" event-id="1">'
    "<association>idu=1,table=usr</association>"
    '<add-attr attr-name="fname"><value type="string">{0}</value></add-attr></add></input></nds>\n'
)
CHANGE = '{{"op":"insert","table":"usr","key":{{"idu":1}},"fields":[{{"column":"fname","after":"{0}"}}]}}\n'
TO_CHANGES = "convert --to changes --tables usr.toml"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"usr.toml": USR})


def rows(*names: str) -> str:
    return HEADER + "".join(f"{n},1,usr,idu={n},fname,,{name}\n" for n, name in enumerate(names, 1))


@pytest.mark.parametrize(
    ("name", "content", "reported"),
    [
        ("in.csv", rows("Jack", "x" * 400, "John"), "in.csv:3: the line has over 300 bytes (--max-record)"),
        (
            "in.jsonl",
            CHANGE.format("a") + CHANGE.format("x" * 400) + CHANGE.format("b"),
            "in.jsonl:2: the line has over 300 bytes (--max-record)",
        ),
    ],
)
def test_a_record_over_the_limit_is_refused_alone(
    name: str, content: str, reported: str, shell: Shell
) -> None:
    (shell.folder / name).write_text(content)
    assert shell.run(*TO_CHANGES.split(), name).code == 0
    done = shell.run(*TO_CHANGES.split(), "--max-record", "300", name)
    assert (done.code, done.stderr.splitlines()[0]) == (1, reported)
    assert len(done.stdout.splitlines()) == 2
    assert shell.run(*TO_CHANGES.split(), name, EVENTLOG_MAX_RECORD="300").stderr == done.stderr


@pytest.mark.parametrize("limit", [1, len(HEADER) // 2, HEADER.rindex(",")])
def test_a_header_over_the_limit_costs_its_file(limit: int, shell: Shell) -> None:
    (shell.folder / "in.csv").write_text(rows("Jack"))
    done = shell.run(*TO_CHANGES.split(), "--max-record", str(limit), "in.csv")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"in.csv: the header line has over {limit} bytes (--max-record)")


def test_an_event_over_the_limit_is_refused_alone(shell: Shell) -> None:
    (shell.folder / "in.xml").write_text(ADD.format("a") + ADD.format("x" * 3_000_000) + ADD.format("b"))
    done = shell.run(*TO_CHANGES.split(), "--max-record", "1000000", "in.xml")
    reported = "in.xml:document 2 (byte 196): an event is over 1000000 bytes (--max-record)"
    assert (done.code, done.stderr.splitlines()[0]) == (1, reported)
    assert len(done.stdout.splitlines()) == 2


def test_a_message_over_the_limit_ends_its_file(shell: Shell) -> None:
    (shell.folder / "in.bin").write_bytes(len(b"x" * 400).to_bytes(4, "big") + b"x" * 400)
    words = ("--from", "qlik-message", "--as", "messages", "--max-record", "300", "in.bin")
    done = shell.run(*TO_CHANGES.split(), *words)
    assert done.code == 1
    assert done.stderr.startswith("in.bin:1: the message is cut short, or its length 400 is over the 300 of")


def test_a_value_over_the_limit_is_refused(shell: Shell) -> None:
    (shell.folder / "in.xml").write_text(ADD.format("ä" * 6))
    done = shell.run(*TO_CHANGES.split(), "--max-value", "11", "in.xml")
    assert (done.code, "a value of 12 bytes is over the limit of 11" in done.stderr) == (1, True)
    assert shell.run(*TO_CHANGES.split(), "--max-value", "12", "in.xml").code == 0


def test_what_of_json_is_no_text_has_its_share_of_a_record(shell: Shell) -> None:
    (shell.folder / "in.jsonl").write_text(json.dumps([{} for _ in range(2000)]) + "\n")
    done = shell.run(*TO_CHANGES.split(), "--max-record", "262144", "in.jsonl")
    reported = "in.jsonl:1: apart from its texts it has over 4096 characters (1/64 of --max-record)\n"
    assert (done.code, done.stderr.startswith(reported)) == (1, True)
