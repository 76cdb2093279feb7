"""A terminal gets tables, colours and progress; a pipe gets lines. No data is obeyed, and none is cut."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from rich.cells import cell_len

from eventlog.cli.outcome_listing import STYLES
from eventlog.fold import Fate
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.support import HEADER, USR
from tests.kit.terminal import AT_ONCE, Terminal, on_a_terminal

pytestmark = pytest.mark.quick

WORDS = ("explain", "--tables", "usr.toml", "log.csv")
WIDE = "用户" * 20
ROWS = (
    "1,1,usr,idu=1,fname,,Jack\n2,9,usr,idu=2,,,\n3,4,usr,idu=\x1b[31m3,,,\n"
    f"4,4,usr,[red]idu=4[/red] :smile:,,,\n5,4,usr,idu={WIDE},,,\n"
)
STYLE = re.compile(rb"\x1b\[[0-9;]*m")
CONVERT = ("convert", "--tables", "usr.toml", "log.csv")


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"usr.toml": USR, "log.csv": HEADER + ROWS})


@pytest.fixture
def folder(shell: Shell) -> Path:
    return shell.folder


def plain(written: bytes) -> str:
    """Return what a terminal shows, without colours."""
    return STYLE.sub(b"", written).decode().replace("\r\n", "\n")


def columns_of(table: str, headings: tuple[str, ...]) -> list[str]:
    """Return the text of each column of a table without its spaces; the first line holds the headings."""
    first, *lines = table.splitlines()
    starts = [first.index(heading) for heading in headings]
    texts = [""] * len(headings)
    for line in lines:
        column, at = 0, 0
        for character in line:
            while column + 1 < len(starts) and at >= starts[column + 1]:
                column += 1
            texts[column] += character
            at += cell_len(character)
    return ["".join(text.split()) for text in texts]


def test_outcomes_are_coloured_and_no_value_is_obeyed(folder: Path) -> None:
    written = on_a_terminal(folder, *WORDS)
    assert b"\x1b[32msent" in written
    assert b"in eventlog:1" in written
    assert b"\x1b[31m3" not in written
    assert "idu=⟨U+001B⟩[31m3" in plain(written)
    assert b"\x1b" not in STYLE.sub(b"", written)


def test_nothing_in_a_value_is_markup(folder: Path) -> None:
    assert "[red]idu=4[/red]" in plain(on_a_terminal(folder, *WORDS, COLUMNS="200"))
    written = plain(on_a_terminal(folder, "explain", "[bold]none[/bold]:smile:.csv"))
    assert written.startswith("eventlog: [bold]none[/bold]:smile:.csv: ")


def test_an_error_is_red_and_its_cause_is_not(folder: Path) -> None:
    written = on_a_terminal(folder, "explain", "--none")
    assert written.startswith(b"\x1b[1;31meventlog: \x1b[0mNo such option")
    assert b"\r\n  see: eventlog explain --help\r\n" in written


def test_an_error_is_shown_when_no_file_can_be_opened(folder: Path) -> None:
    code = f"import resource\n{AT_ONCE}".replace(
        "main()", "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\nmain()"
    )
    terminal = Terminal(folder, "explain", "log.csv", code=code)
    terminal.read_until(None)
    assert terminal.close() == 1
    assert plain(terminal.written).endswith(": Too many open files\n")


def test_with_no_color_a_table_has_no_colour(folder: Path) -> None:
    written = on_a_terminal(folder, *WORDS, NO_COLOR="1")
    assert b"\x1b" not in written
    assert written.startswith(b"row  type  object")


def test_a_dumb_terminal_gets_the_lines_of_a_pipe(folder: Path, shell: Shell) -> None:
    piped = shell.run(*WORDS)
    lines = plain(on_a_terminal(folder, *WORDS, TERM="dumb")).splitlines(keepends=True)
    assert "".join(lines) == piped.stdout + piped.stderr
    assert "\x1b" not in piped.stdout + piped.stderr
    assert "  sent in eventlog:1\n" in piped.stdout


@pytest.mark.parametrize("columns", [80, 40])
def test_a_table_is_as_wide_as_the_terminal_and_nothing_is_cut(folder: Path, columns: int) -> None:
    headings = ("row", "type", "object", "outcome")
    wide, narrow = (
        plain(on_a_terminal(folder, *WORDS, NO_COLOR="1", COLUMNS=str(width))) for width in (250, columns)
    )
    assert WIDE in wide
    assert max(map(cell_len, narrow.splitlines())) <= columns
    assert not re.search(" $", narrow, re.MULTILINE)
    wide_table, narrow_table = (text.partition("log.csv:3: ")[0] for text in (wide, narrow))
    assert columns_of(narrow_table, headings) == columns_of(wide_table, headings)
    assert narrow.split("log.csv:3: ")[1].split() == wide.split("log.csv:3: ")[1].split()


def test_a_terminal_without_room_for_a_table_gets_lines(folder: Path, shell: Shell) -> None:
    narrow = plain(on_a_terminal(folder, *WORDS, COLUMNS="39"))
    assert narrow.startswith(shell.run(*WORDS).stdout)


def test_many_rows_have_their_headings_again(folder: Path) -> None:
    (folder / "log.csv").write_text(HEADER + "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 402)))
    written = plain(on_a_terminal(folder, *WORDS))
    assert written.count("row  type  object") == 3
    assert [line.split()[0] for line in written.splitlines() if "usr idu=" in line] == [
        str(n) for n in range(1, 402)
    ]


def test_json_is_the_same_on_a_terminal(folder: Path, shell: Shell) -> None:
    assert plain(on_a_terminal(folder, *WORDS, "--json")).startswith(shell.run(*WORDS, "--json").stdout)


def test_every_outcome_has_a_style() -> None:
    assert STYLES.keys() == set(Fate)


# --- progress


def test_progress_is_apart_from_the_output_and_goes_away(folder: Path, shell: Shell) -> None:
    with (folder / "out.xml").open("wb") as output:
        terminal = Terminal(folder, *CONVERT, "--to", "xds", stdout=output)
    terminal.read_until(None)
    assert terminal.close() == 1
    assert (folder / "out.xml").read_text() == shell.run(*CONVERT, "--to", "xds").stdout
    assert re.search(r"working .* \d+%", plain(terminal.written))
    last = plain(terminal.written).rpartition("\x1b[2K")[2]
    assert "working" not in last
    assert last.endswith("eventlog: 3 bad records were left out\n")
    assert re.search(r"^(.*\x1b\[2K)?log\.csv:3: event_type is 9", plain(terminal.written), re.MULTILINE)


def test_output_on_the_same_terminal_is_not_mixed_with_progress(folder: Path) -> None:
    assert b"working" not in on_a_terminal(folder, *CONVERT, "--to", "xds")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_progress_that_is_ended_leaves_a_terminal_with_its_cursor(
    folder: Path, number: signal.Signals
) -> None:
    os.mkfifo(folder / "endless.csv")
    terminal = Terminal(folder, *CONVERT, "endless.csv", "-o", "out.xml")
    with (folder / "endless.csv").open("wb"):  # it has no end yet
        terminal.read_until(b"%")
        terminal.process.send_signal(number)
        terminal.read_until(None)
    assert terminal.close() == (-9 if number == signal.SIGKILL else 128 + number)
    assert b"\x1b[?25l" not in terminal.written
    if number != signal.SIGKILL:
        last = plain(terminal.written).rpartition("\x1b[2K")[2]
        assert last.endswith(f"eventlog: stopped by {number.name}\n")


def test_a_terminal_that_is_gone_stops_no_conversion(folder: Path) -> None:
    (folder / "log.csv").write_text(f"{HEADER}1,1,usr,idu=1,fname,,Jack\n")
    os.mkfifo(folder / "more.csv")
    code = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{AT_ONCE}"
    terminal = Terminal(folder, *CONVERT, "more.csv", "-o", "out.xml", code=code)
    with (folder / "more.csv").open("w") as more:
        terminal.read_until(b"%")
        terminal.hang_up()
        more.write(f"{HEADER}6,4,usr,idu=6,,,\n")
    assert terminal.close() == 0
    assert "idu=6" in (folder / "out.xml").read_text()


@pytest.mark.parametrize("width", ["80", "40"])
def test_progress_fits_the_terminal(folder: Path, width: str) -> None:
    written = on_a_terminal(folder, *CONVERT, "-o", "out.xml", COLUMNS=width)
    drawn = re.findall("working[^\r\n\x1b]*", plain(written))
    assert drawn
    assert max(map(cell_len, drawn)) <= int(width)
    assert all(re.search(r"\d+% [-\d]+:\S+$", line.rstrip()) for line in drawn)


# --- the demo

DEMO = """
from eventlog.cli.demo import output
output.rows(("row", "status", "key"), [(1, "E", "[red]idu=1[/red]"), (2, "S", "\\x1b[31m" + "key " * 30)])
output.command("eventlog run" + " --setting value" * 12)
"""


def test_the_demo_divides_cells_and_commands_and_shows_them_as_they_are(folder: Path) -> None:
    written = {}
    for name, variables in (("plain", {"NO_COLOR": "1"}), ("coloured", {})):
        terminal = Terminal(folder, code=DEMO, variables={"COLUMNS": "80", **variables})
        terminal.read_until(None)
        assert terminal.close() == 0
        written[name] = terminal.written.decode().replace("\r\n", "\n")
    assert "\x1b" not in written["plain"]
    assert "\x1b[1;31mE" in written["coloured"]
    assert "[red]idu=1[/red]" in written["plain"]
    assert "⟨U+001B⟩[31mkey" in written["plain"]
    assert written["plain"].count("key ") + written["plain"].count("key\n") == 31  # with the heading
    assert max(map(len, written["plain"].splitlines())) <= 80
    command = written["plain"].split("  eventlog run")[1].replace("\\\n", "")  # as a shell does
    assert "\n" not in command.strip()
    assert shlex.split(command) == ["--setting", "value"] * 12


# --- a database


@pytest.mark.long
def test_the_state_of_a_log_on_a_terminal(postgres: Database, tmp_path: Path) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    on_a_terminal(tmp_path, "install", EVENTLOG_URL=url)
    engine = postgres.engine()
    run_statements(
        engine,
        "insert into eventlog (event_type, table_name, table_key, status) values"
        " (6, '[red]gone[/red]', E'id=\x1b[31m1', 'E'), (6, 'usr', 'id=1', 'S'), (6, 'usr', 'id=2', 'S')",
        'create table "[red]t[/red]" (id integer primary key)',
        'insert into "[red]t[/red]" select generate_series(1, 3)',
    )
    engine.dispose()
    errors = on_a_terminal(tmp_path, "errors", EVENTLOG_URL=url)
    assert b"\x1b[31mE" in errors
    assert "[red]gone[/red] id=⟨U+001B⟩[31m1" in plain(errors)
    assert b"\x1b[31mE error" in on_a_terminal(tmp_path, "status", EVENTLOG_URL=url)
    assert json.loads(on_a_terminal(tmp_path, "status", "--json", EVENTLOG_URL=url))["pending"] == 0
    findings = plain(on_a_terminal(tmp_path, "check", EVENTLOG_URL=url))
    assert re.search(r"^eventlog +no table is tracked", findings, re.MULTILINE)
    purged = plain(on_a_terminal(tmp_path, "purge", "--older-than", "0h", "--chunk", "1", EVENTLOG_URL=url))
    assert "1 row deleted" in purged
    assert "deleted" not in purged.rpartition("\x1b[2K")[0].splitlines()[-1]
    assert purged.endswith(" deleted\n")
    on_a_terminal(tmp_path, "track", "[red]t[/red]", EVENTLOG_URL=url)
    resynced = plain(on_a_terminal(tmp_path, "resync", "[red]t[/red]", "--chunk", "1", EVENTLOG_URL=url))
    assert "[red]t[/red]: 1 row logged" in resynced
    assert "[red]t[/red]: 3 rows logged\n" in resynced
