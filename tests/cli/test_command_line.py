"""The command line as people guess it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.util import find_spec

import click
import pytest

from eventlog.cli import COMMANDS, HEADINGS, cli
from eventlog.cli.examples import EXAMPLES
from eventlog.cli.exits import SYNONYMS
from tests.kit.commands import Shell, environment
from tests.kit.support import HEADER, USR
from tests.project.generated import context_of

pytestmark = pytest.mark.quick

LOG = HEADER + "1,4,usr,idu=1,,,\n"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"usr.toml": USR, "in.csv": LOG})


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ("convrt", "Did you mean 'convert'?"),
        ("pauze", "pause"),
        ("convert --form log", "'--from'"),
        ("run --batch-siez 3", "--batch-size"),
        ("status --to-url postgresql://h/db", "Did you mean '--url'?"),
        ("status --database postgresql://h/db", "Did you mean '--url'?"),
        ("apply --database postgresql://h/db in.csv", "Did you mean '--to-url' or '--url'?"),
        ("compare a b --rows-of usr", "Did you mean '--table'?"),
        ("deliver --memory m in.xml", "Did you mean '--state'?"),
        ("convert --poll-interval 1", "Did you mean '--follow-interval'?"),
        ("convert --polling-interval 1", "Did you mean '--follow-interval'?"),
        ("run --follow-interval 1", "Did you mean '--polling-interval'?"),
        ("run --kafka topic", "Did you mean '--kafka-topic'?"),
        ("pause --reason upgrade", "Did you mean '--because'?"),
        ("convert --format xds in.csv", "Did you mean '--from' or '--to'?"),
    ],
)
def test_what_is_nearly_right_is_met_with_what_was_meant(words: str, reported: str, shell: Shell) -> None:
    done = shell.run(*words.split())
    assert (done.code, reported in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("names", SYNONYMS)
def test_a_right_name_is_one_of_a_command(names: tuple[str, ...]) -> None:
    commands = [context_of(name).command for name in COMMANDS]
    assert {*names} & {flag for command in commands for option in command.params for flag in option.opts}


@pytest.mark.parametrize(
    "words",
    [
        "in.csv out.xml",
        "in.csv -o out.xml",
        "--from log in.csv out.xml",
        "in.csv --to xds -o out.xml",
        "in.csv out.xml --as csv",
    ],
)
def test_names_tell_formats(words: str, shell: Shell) -> None:
    done = shell.run("convert", "--tables", "usr.toml", *words.split())
    assert (done.code, done.stderr) == (0, "eventlog: 1 change was converted\n")
    assert (shell.folder / "out.xml").read_text().startswith("<nds")


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def as_windows_writes(text: str) -> bytes:
    return BYTE_ORDER_MARK + text.replace("\n", "\r\n").encode()


def test_files_of_windows_are_read_under_its_names(shell: Shell) -> None:
    (shell.folder / "C:\\logs").mkdir()
    for name, text in (
        ("C:\\logs\\log.csv", LOG),
        ("C:\\logs\\usr.toml", USR),
    ):
        (shell.folder / name).write_bytes(as_windows_writes(text))
    words = ("--tables", "C:\\logs\\usr.toml", "C:\\logs\\log.csv")
    explained = shell.run("explain", *words)
    assert (explained.code, explained.stdout.split()[-1]) == (0, "eventlog:1")
    done = shell.run("convert", *words, "C:\\logs\\out.xml")
    assert (done.code, done.stderr) == (0, "eventlog: 1 change was converted\n")
    assert b"\r" not in (shell.folder / "C:\\logs\\out.xml").read_bytes()


def test_what_powershell_redirects_is_refused_with_its_encoding(shell: Shell) -> None:
    (shell.folder / "in.csv").write_bytes(LOG.encode("utf-16"))
    done = shell.run("explain", "--tables", "usr.toml", "in.csv")
    assert (done.code, done.stderr.splitlines()[0]) == (
        2,
        "in.csv: this is UTF-16, or no text at all: write it as UTF-8",
    )


def test_windows_itself_is_refused_with_its_page() -> None:
    code = "import runpy, sys; sys.platform = 'win32'; runpy.run_module('eventlog', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (
        2,
        "eventlog: the command runs on Unix; on Windows use WSL 2 (docs/run/windows.md)\n",
    )


def test_the_last_of_several_names_never_overwrites(shell: Shell) -> None:
    (shell.folder / "out.xml").write_text("mine")
    done = shell.run("convert", "--tables", "usr.toml", "in.csv", "out.xml")
    assert (done.code, done.stderr) == (
        2,
        "eventlog: out.xml exists already: replace it with -o out.xml, or read it with --to FORMAT\n",
    )
    assert (shell.folder / "out.xml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            "convert in.csv",
            "the format of the output cannot be seen from its name: give --to, one of log, xds,",
        ),
        ("convert --to xds", "the format of standard input cannot be seen from its name: give --from"),
        ("convert --to xds usr.toml", "the format of usr.toml cannot be seen from its name: give --from"),
        ("convert --to log in.csv usr__ct.csv", "several formats: in.csv (log), usr__ct.csv (qlik-table)"),
        ("convert --to xds in.csv --header-prefix x", "--header-prefix is a setting of qlik-table"),
        ("convert --to xds in.csv --kafka topic", "--kafka is a setting of topics of Kafka"),
        (
            "convert --from debezium --to changes x.jsonl --kafka topic",
            "--kafka is a setting of topics of Kafka",
        ),
        (
            "convert --from qlik-message --to changes x.jsonl --kafka topic",
            "--kafka reads topics: name no INPUTS with it",
        ),
        ("convert --from xds --to changes x.xml --driver-user me", "--driver-user is a setting of the log"),
        ("run --pretty", "No such option '--pretty'"),
    ],
)
def test_what_cannot_be_guessed_or_has_no_effect_is_misuse(words: str, reported: str, shell: Shell) -> None:
    done = shell.run(*words.split())
    assert (done.code, reported in done.stderr) == (2, True), done.stderr


def test_a_setting_of_another_format_in_the_environment_is_no_fault(shell: Shell) -> None:
    done = shell.run("convert", "--to", "xds", "--tables", "usr.toml", "in.csv", EVENTLOG_HEADER_PREFIX="x")
    assert done.code == 0


def test_one_complaint_about_many_records_is_made_with_their_number(shell: Shell) -> None:
    rows = [f"{n},9,usr,idu={n},,,\n" for n in range(1, 20_001)] + ["x,4,usr,idu=1,,,\n"]
    done = shell.run("convert", "--from", "log", "--to", "xds", stdin=HEADER + "".join(rows))
    assert done.code == 1
    assert done.stderr.splitlines() == [
        "-:2: event_type is 9, not 1 to 8",
        "-:3: event_type is 9, not 1 to 8",
        "-:4: event_type is 9, not 1 to 8",
        "-:20002: record_id is 'x', not an integer",
        "and 19997 more, the last at -:20001: event_type is 9, not 1 to 8",
        "eventlog: 0 changes were converted",
        "eventlog: 20001 bad records were left out",
    ]


def test_the_shell_completes_commands(shell: Shell) -> None:
    done = shell.run(_EVENTLOG_COMPLETE="bash_complete", COMP_WORDS="eventlog con", COMP_CWORD="1")
    assert done.stdout == "plain,convert\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help or isinstance(parameter.type, click.Choice), f"{name} {parameter.opts}"


def test_every_command_has_examples() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_names_options_that_there_are(line: str) -> None:
    program, name, *words = shlex.split(line.partition(" > ")[0])
    assert program == "eventlog"
    context = context_of(name)
    given, rest, _ = context.command.make_parser(context).parse_args(words)
    assert given or rest or not words


def test_each_command_is_listed_under_one_heading() -> None:
    assert sorted(name for names in HEADINGS.values() for name in names) == sorted(COMMANDS)


def test_help_ends_with_examples(shell: Shell) -> None:
    done = shell.run("track", "--help")
    assert done.stdout.rstrip().endswith("eventlog track hr.employee --update 2 --child hr.phone.number")


def test_a_command_begins_without_what_only_some_of_its_work_needs() -> None:
    """Load no Arrow with pandas and no Alembic, which take three times as long as all the rest."""
    known = (
        f"import sys; from importlib import import_module; list(map(import_module, {[*COMMANDS.values()]}))"
    )
    asked = f"{known}; print({{'numpy', 'pandas', 'pyarrow', 'alembic', 'pyspark'}} & sys.modules.keys())"
    reported = subprocess.run(
        [sys.executable, "-c", asked], env=environment(), capture_output=True, check=True
    )
    assert reported.stdout == b"set()\n"


def write_large_log(shell: Shell) -> None:
    """Write a log that is large enough to be read by column."""
    header = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"
    rows = (f"{n},2,usr,idu={n},fname,,x\n" for n in range(1, 5_001))
    (shell.folder / "in.csv").write_text(header + "".join(rows))


def test_arrow_does_not_load_pandas_where_spark_is_not_asked_for(shell: Shell) -> None:
    """Load no pandas with the first array, only to ask whether the array is one of its own."""
    assert find_spec("pandas") is not None
    write_large_log(shell)
    converted = "sys.argv[1:] = ['convert', '--tables', 'usr.toml', 'in.csv', 'out.xml']"
    asked = (
        f"import atexit, sys; {converted}; from eventlog.cli import main; "
        "atexit.register(lambda: print({'pandas', 'pyarrow'} & sys.modules.keys())); main()"
    )
    reported = subprocess.run(
        [sys.executable, "-c", asked], env=environment(), cwd=shell.folder, capture_output=True, check=True
    )
    assert reported.stdout == b"{'pyarrow'}\n"


def test_a_small_change_table_loads_no_arrow(shell: Shell) -> None:
    header = "header__change_seq,header__change_oper,header__change_mask,idu,fname\n"
    rows = (f"20240318104726{n:021},I,18,{n},{'x' * 80}\n" for n in range(1_000))
    (shell.folder / "usr__ct.csv").write_text(header + "".join(rows))
    words = "['convert', '--tables', 'usr.toml', '--from', 'qlik-table', 'usr__ct.csv', 'out.xml']"
    asked = (
        f"import atexit, sys; sys.argv[1:] = {words}; from eventlog.cli import main; "
        "atexit.register(lambda: print({'numpy', 'pyarrow'} & sys.modules.keys())); main()"
    )
    reported = subprocess.run(
        [sys.executable, "-c", asked], env=environment(), cwd=shell.folder, capture_output=True, check=True
    )
    assert reported.stdout == b"set()\n"


def test_arrow_gives_memory_back(shell: Shell) -> None:
    """Return memory after the largest batch, which Arrow's own allocator would keep."""
    write_large_log(shell)
    asked = (
        "import atexit, sys; sys.argv[1:] = ['convert', '--tables', 'usr.toml', 'in.csv', 'out.xml']; "
        "from eventlog.cli import main; "
        "atexit.register(lambda: print(sys.modules['pyarrow'].default_memory_pool().backend_name)); main()"
    )
    reported = subprocess.run(
        [sys.executable, "-c", asked], env=environment(), cwd=shell.folder, capture_output=True, check=True
    )
    assert reported.stdout == b"system\n"
