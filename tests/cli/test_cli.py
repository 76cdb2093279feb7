"""The command line: exit codes, where data and talk go, settings from flag and environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.cli import COMMANDS
from tests.kit.commands import Shell
from tests.kit.support import HEADER, USR, patient

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"usr.toml": USR})


CONVERT = ("convert", "--from", "log", "--to", "xds", "--tables", "usr.toml")
GOOD = "1,4,usr,idu=1,,,\n"
BAD = "x,4,usr,idu=1,,,\n"


def test_data_goes_to_standard_output_and_talk_to_standard_error(shell: Shell) -> None:
    done = shell.run(*CONVERT, stdin=HEADER + GOOD + BAD)
    assert done.stdout.count("\n") == 1
    assert done.stderr == (
        "-:3: record_id is 'x', not an integer\n"
        "eventlog: 1 change was converted\n"
        "eventlog: 1 bad record was left out\n"
    )
    assert done.code == 1


def test_done_is_zero_and_a_line_of_counts(shell: Shell) -> None:
    done = shell.run(*CONVERT, stdin=HEADER + GOOD)
    assert (done.code, done.stderr) == (0, "eventlog: 1 change was converted\n")


def test_a_delivery_of_no_events_is_not_one_that_is_done(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "empty.csv").touch()
    assert shell.run("deliver", "empty.csv").stderr == "eventlog: empty.csv holds no event\n"
    assert shell.run("deliver", "--state", "m").stderr == "eventlog: standard input holds no event\n"
    assert shell.run(*CONVERT, "-o", "documents.xml", stdin=HEADER + GOOD).code == 0
    done = [shell.run("deliver", "documents.xml").stderr for _ in range(2)]
    assert done == ["eventlog: 1 success\n", "eventlog: nothing was left to send\n"]


def test_a_change_that_could_not_be_written_is_not_counted(shell: Shell) -> None:
    lines = '{"op":"delete","table":"usr","key":{"idu":1}}\n{"op":"truncate","table":"usr"}\n'
    done = shell.run("convert", "--from", "changes", "--to", "xds", stdin=lines)
    assert done.stderr.splitlines()[-2:] == [
        "eventlog: 1 change was converted",
        "eventlog: 1 bad record was left out",
    ]


def test_a_truncate_names_the_option_for_its_rows_as_a_shell_takes_it(tmp_path: Path, shell: Shell) -> None:
    line = '{"op":"truncate","table":"usr; echo x"}\n'
    words = ("convert", "--from", "changes", "--to", "xds", "--expand-truncate", "--tables", "t.toml")
    (tmp_path / "t.toml").write_text('[tables."usr; echo x"]\nkey = ["idu"]\ncolumns = { idu = "integer" }\n')
    assert "--current 'usr; echo x'=FILE" in shell.run(*words, stdin=line).stderr


def test_bad_records_are_kept_as_they_came(tmp_path: Path, shell: Shell) -> None:
    shell.run(*CONVERT, "--refused", "bad.csv", stdin=HEADER + GOOD + BAD)
    assert (tmp_path / "bad.csv").read_text() == BAD


def test_strict_stops_at_the_first(tmp_path: Path, shell: Shell) -> None:
    done = shell.run(*CONVERT, "--strict", "-o", "out.xml", stdin=HEADER + BAD + GOOD)
    assert done.code == 1
    assert "stopped at the first bad record" in done.stderr
    assert not (tmp_path / "out.xml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("convert", "--from", "log"), "give --to, one of"),
        (("convert", "--from", "log", "--to", "nothing"), "is not one of"),
        ((*CONVERT, "ghost.csv"), "ghost.csv: no such file"),
        ((*CONVERT, "--current", "usr"), "expected TABLE=FILE"),
        (("nothing",), "No such command"),
    ],
)
def test_misuse_is_two(arguments: tuple[str, ...], message: str, shell: Shell) -> None:
    done = shell.run(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_program_alone_prints_its_help(shell: Shell) -> None:
    assert shell.run() == shell.run("--help")


@pytest.mark.parametrize(
    ("words", "message"),
    [((), "which database?"), (("--url", ""), "which database?"), (("--url", "nothing"), "that is no URL")],
)
def test_nothing_is_logged_before_a_database_is_named(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    done = shell.run("run", "--once", *words)
    assert (done.code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(f"eventlog: {message}")


def test_a_setting_comes_from_the_flag_then_from_the_environment(shell: Shell) -> None:
    two = HEADER + GOOD + "2,4,usr,idu=2,,,\n"
    assert shell.run(*CONVERT, stdin=two).stdout.count("<nds ") == 2
    assert shell.run(*CONVERT, stdin=two, EVENTLOG_BATCH_SIZE="5").stdout.count("<nds ") == 1
    flagged = shell.run(*CONVERT, "--batch-size", "1", stdin=two, EVENTLOG_BATCH_SIZE="5")
    assert flagged.stdout.count("<nds ") == 2


def test_a_faulty_tables_file_is_reported_in_one_line(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "bad.toml").write_text("[tables.a]\nkeys = []\n")
    done = shell.run("convert", "--from", "log", "--to", "xds", "--tables", "bad.toml")
    assert done.code == 2
    assert done.stderr.startswith(
        "eventlog: tables file (--tables FILE): bad.toml: tables.a: unknown entry 'keys'"
    )


def test_help_all_explains_every_setting_with_its_default(shell: Shell) -> None:
    text = shell.run("convert", "--help-all").stdout
    for name in ("--insert-query-back", "--max-changes", "--time-syntax", "[default: 1000]", "Settings: xds"):
        assert name in text


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.family
def test_help_fits_on_two_screens(shell: Shell, command: str) -> None:
    assert shell.run(command, "--help").stdout.count("\n") <= 96


def test_help_explains_the_settings_of_the_formats_on_the_command_line(shell: Shell) -> None:
    text = shell.run("convert", "--from", "linter", "--to=xds", "--help").stdout
    assert "Settings: linter:" in text
    assert "Settings: xds:" in text
    assert "Settings: gbase:" not in text
    assert "Settings: sink http:" in shell.run("run", "--sink", "http", "--help").stdout


def test_explain_tells_json_lines_and_filters(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "log.csv").write_text(HEADER + GOOD + "2,4,usr,idu=2,,,\n")
    done = shell.run("explain", "--tables", "usr.toml", "--json", "--key", "idu=2", "log.csv")
    assert json.loads(done.stdout) == {
        "record_id": 2,
        "where": "log.csv:3",
        "outcome": "sent",
        "event_id": "eventlog:2",
        "by": None,
        "reason": "",
    }


def test_explain_cuts_long_keys_in_its_listing(tmp_path: Path, shell: Shell) -> None:
    key = f"idu={'9' * 200}"
    (tmp_path / "log.csv").write_text(f"{HEADER}1,4,usr,{key},,,\n")
    done = shell.run("explain", "--tables", "usr.toml", "log.csv")
    assert done.stdout == f"       1  4  {f'usr {key}'[:80]}…  sent in eventlog:1\n"


def test_explain_reads_standard_input_whatever_database_is_configured(shell: Shell) -> None:
    words = ("explain", "--tables", "usr.toml")
    piped = shell.run(*words, stdin=HEADER + GOOD)
    assert (piped.code, piped.stdout) == (0, "       1  4  usr idu=1                    sent in eventlog:1\n")
    configured = {"EVENTLOG_URL": "postgresql://nobody@127.0.0.1:1/none"}
    assert shell.run(*words, "-", stdin=HEADER + GOOD, **configured) == piped
    unnamed = shell.run(*words, stdin=HEADER + GOOD, **configured)
    assert (unnamed.code, unnamed.stderr) == (
        2,
        "eventlog: --tables is for files: name them, or - for standard input\n",
    )


def test_a_folder_takes_a_file_for_each_sheet(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "c.jsonl").write_text('{"op":"delete","schema":null,"table":"usr","key":{"idu":1}}\n')
    done = shell.run("convert", "--from", "changes", "--to", "log", "-o", "out/", "c.jsonl")
    assert (done.code, done.stderr) == (0, "eventlog: 1 change was converted\n")
    assert (tmp_path / "out" / "eventlog.csv").read_text().count("\n") == 2


def test_a_broken_pipe_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "usr.toml").write_text(USR)
    (tmp_path / "log.csv").write_text(HEADER + "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 5000)))
    command = f"{sys.executable} -m eventlog {' '.join(CONVERT)} log.csv | head -1"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_half_a_bad_record_that_a_kill_left_stands_alone(tmp_path: Path, shell: Shell) -> None:
    heading = "header__change_seq,header__change_oper,header__change_mask,id\n"
    (tmp_path / "usr__ct.csv").write_text(f"{heading}20240101000000000000000000000000001,X,01,1\n")
    (tmp_path / "bad.csv").write_text("2023,half")
    words = ("--from", "qlik-table", "--to", "changes", "--state", "state", "--refused", "bad.csv")
    assert shell.run("convert", *words, "usr__ct.csv").code == 1
    half, kept = (tmp_path / "bad.csv").read_text().splitlines()
    assert (half, kept) == ("2023,half", "20240101000000000000000000000000001,X,01,1")


def test_a_table_that_no_source_describes_is_reported_once(tmp_path: Path, shell: Shell) -> None:
    """Report once that its key is {} and its values are texts, so that readers learn it."""
    header = "header__change_seq,header__change_oper,header__change_mask,header__timestamp,idu,fname\n"
    for table in ("usr", "dept"):
        rows = [
            f'202503231057190000000000000000000{n:02},I,"",2025-03-23 10:57:19,{n},Jack\n' for n in (1, 2)
        ]
        (tmp_path / f"{table}__ct.csv").write_text(header + "".join(rows))
    words = ("convert", "--to", "changes", "usr__ct.csv", "dept__ct.csv")
    done = shell.run(*words)
    assert done.code == 0
    assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == [{}] * 4
    without = "its changes are written without one and its values are texts"
    *lines, counted = done.stderr.splitlines()
    assert counted == "eventlog: 4 changes were converted"
    assert sorted(line.partition(";")[0] for line in lines) == [
        f"eventlog: no source describes the key of {table}: {without}" for table in ("dept", "usr")
    ]
    described = shell.run(*words[:4], "--tables", "usr.toml")
    assert (described.code, described.stderr) == (0, "eventlog: 2 changes were converted\n")


def test_a_key_that_a_record_lacks_is_not_asked_for(tmp_path: Path, shell: Shell) -> None:
    """Name the column that is absent where the tables file has the key, and the message does not."""
    headers = {"operation": "INSERT", "changeSequence": "20240101120000" + f"{1:021}"}
    message = {"schema": "app", "table": "usr", "data": {"name": "Jack"}, "headers": headers}
    (tmp_path / "m.jsonl").write_text(json.dumps(message) + "\n")
    (tmp_path / "t.toml").write_text('[tables.usr]\nkey = ["idu", "name"]\n')
    words = ("convert", "--from", "qlik-message", "--to", "changes", "--tables", "t.toml", "m.jsonl")
    done = shell.run(*words)
    assert (done.code, json.loads(done.stdout)["key"]) == (0, {})
    assert done.stderr.splitlines()[0] == (
        "eventlog: records of usr lack idu of its key: their changes are written without one;"
        " let the source capture idu"
    )


def test_a_key_that_a_raw_image_hides_is_not_asked_for(tmp_path: Path, shell: Shell) -> None:
    """Ask for a record layout where the tables file has the key, but the image could not be decoded."""
    names = "TRANSACT_ID,SYSLOG_ADDR,TYP,TABNUM_SRC,LEN1,LEN2,DATA\n"
    (tmp_path / "queue.csv").write_text(f"{names}5,100,8,7,4,0,01000000\n5,200,4,,0,0,\n")
    stated = '[tables.usr]\nkey = ["idu"]\nnumber = 7\ncolumns = { idu = "integer" }\n'
    words = ("convert", "--from", "linter", "--to", "changes", "--tables", "queue.toml", "queue.csv")
    (tmp_path / "queue.toml").write_text(stated)
    raw = shell.run(*words)
    assert raw.stderr == (
        "eventlog: row images of usr could not be decoded: their changes are written without a key; state a "
        "record layout that fits them in a tables file (--tables FILE)\neventlog: 1 change was converted\n"
    )
    (tmp_path / "queue.toml").write_text(f'{stated}[tables.usr.linter]\ncolumns = {{ idu = "integer" }}\n')
    done = shell.run(*words)
    assert (json.loads(done.stdout)["key"], "layout" in done.stderr) == ({"idu": 1}, False)


def test_the_help_names_how_to_reach_a_log_and_where_to_begin(shell: Shell) -> None:
    words = " ".join(shell.run("--help").stdout.split())
    assert "EVENTLOG_URL" in words
    assert "docs/start/quick-start.md" in words
    assert "[env: EVENTLOG_URL]" in " ".join(shell.run("explain", "--help").stdout.split())
