"""Every flag of every command has an effect, or is refused: a new flag without a case fails here.

The cases of `convert` and `explain` are here: the same words run with and without the flag, and the results
must differ. Flags that need more (a database, Kafka, Spark) are shown by the named tests, which must contain
the flag or its setting.
"""

from __future__ import annotations

import gzip
import re
import shlex
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from sqlalchemy.engine import make_url

from eventlog.cli import COMMANDS, cli
from eventlog.embedded import Server
from tests.kit.commands import Done, Shell
from tests.kit.databases import EMBEDDED, Database, temporary_database
from tests.kit.statements import run_statements
from tests.kit.support import USR

pytestmark = pytest.mark.quick

TESTS = Path(__file__).parents[1]
TABLES = USR.replace('photo = "blob"', 'photo = "blob", born = "date"')
LOG = """\
record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value
1,N,1,2025-03-23 10:57:19,,usr,idu=1,fname,,Jack
2,N,5,2025-03-23 10:57:20,me,usr,idu=2,,,
3,N,2,2025-03-23 10:57:21,,usr,IDU=1,fname,Jack,John
4,W,4,2025-03-23 10:57:22,,usr,idu=3,,,
5,N,4,2999-01-01 00:00:00,,usr,idu=4,,,
6,N,4,2025-03-23 10:57:23,,gone,idu=5,,,
7,N,2,2025-03-23 10:57:24,,usr,idu=6,lname,Poe,Doe
8,N,2,2025-03-23 10:57:24,,usr,idu=6,fname,,Jim
9,N,2,2025-03-23 10:57:25,,usr,idu=7,born,,2025-03-23
10,N,3,2025-03-23 10:57:26,,usr,idu=7,size,,XL
"""
SOUND = "".join(line for line in LOG.splitlines(keepends=True) if line[:2] in ("re", "1,", "3,", "7,"))
NUMBERED = """\
[tables.usr]
key = ["idu"]
number = 1
columns = { idu = "integer", fname = "char(8)" }
"""
PADDED = (
    '{"op":"insert","schema":null,"table":"usr","key":{"idu":1},"fields":'
    '[{"column":"idu","after":1},{"column":"fname","after":"Jack    "}],"position":"1"}\n'
)
FILES: dict[str, str | bytes] = {
    "t.toml": TABLES,
    "log.csv": LOG,
    "sound.csv": SOUND,
    "strange": SOUND,
    "usr.csv": "idu,fname,lname,photo,born\n2,Jane,Doe,,2025-03-23\n",
    "truncate.jsonl": '{"op":"truncate","schema":"indirect","table":"usr"}\n',
    "packed.csv.gz": gzip.compress(LOG.encode()),
    "g.toml": NUMBERED,
    "padded.jsonl": PADDED,
    "some.xml": "<nds/>",
}
NOW = "--now 2025-03-23T10:57:19"
# How each file that a case reads is made.
COMMAND_OF_FILE = {
    "usr__ct.csv": f"convert --to qlik-table --tables t.toml {NOW} -o usr__ct.csv sound.csv",
    "other.csv": f"convert --to qlik-table --tables t.toml {NOW} --header-prefix h_ -o other.csv sound.csv",
    "stream.bin": "convert --to gbase --tables g.toml -o stream.bin padded.jsonl",
    "log.parquet": "convert --to log --tables t.toml -o log.parquet sound.csv",
}

XDS = "convert --to xds --tables t.toml --current usr=usr.csv log.csv"
EXPLAIN = "explain --tables t.toml --current usr=usr.csv log.csv"
CT = f"convert --to qlik-table --tables t.toml {NOW} -o ct/ sound.csv"
FROM_CT = "convert --to changes --tables t.toml usr__ct.csv"
MESSAGES = f"convert --to qlik-message --tables t.toml {NOW} sound.csv"
SECOND = "20250323105721000000000000000000002"

OF_ROWS = {
    "--log-name": (XDS, "--log-name other"),
    "--insert-query-back": (XDS, "--insert-query-back add"),
    "--max-changes": (XDS, "--max-changes 1"),
    "--unknown-tables": (XDS, "--unknown-tables string"),
    "--unknown-columns": (XDS, "--unknown-columns refuse"),
    "--association": (XDS, "--association canonical"),
    "--status": (XDS, "--status W"),
    "--driver-user": (XDS, "--driver-user me"),
    "--allow-loopback": (f"{XDS} --driver-user me", "--allow-loopback"),
    "--handle-future-events": (f"{XDS} {NOW}", "--handle-future-events"),
    "--now": (f"{XDS} --handle-future-events", "--now 2025-03-23T10:57:19"),
    "--max-value": (XDS, "--max-value 3"),
    "--max-record": (XDS, "--max-record 60"),
    "--current": ("convert --to xds --tables t.toml log.csv", "--current usr=usr.csv"),
    "--tables": ("convert --to xds sound.csv", "--tables t.toml"),
    "--as": ("convert --from log --to changes --tables t.toml strange", "--as csv"),
}
# Without effect there, but taken: who tries a publisher's settings, or names a log, gives all of them.
TAKEN_ALONG = {
    "install": {"--log-time"},
    "uninstall": {"--log-time"},
    "compare": {"--trim-char"},  # of the gbase that is read
    "check": {
        *("--slot-origin", "--files-per-batch", "--http-timeout", "--http-cert", "--http-signing-file"),
        *("--command-timeout", "--monitor-tokens-file"),
    },
    "deliver": {"--files-per-batch", "--csv-delimiter", "--csv-quote", "--csv-null"},
    "explain": {"--insert-query-back", "--max-changes", "--association"},
}
CASES = {
    "convert": OF_ROWS
    | {
        "--from": ("convert --to changes --tables t.toml usr__ct.csv", "--from log"),
        "--to": ("convert --tables t.toml sound.csv -o out.csv", "--to changes --output-as jsonl"),
        "--output": (XDS, "--output out.xml"),
        "--output-as": ("convert --to log --tables t.toml sound.csv", "--output-as jsonl"),
        "--refused": (XDS, "--refused bad"),
        "--strict": (XDS, "--strict"),
        "--expand-truncate": (
            "convert --to xds --tables t.toml --current usr=usr.csv truncate.jsonl",
            "--expand-truncate",
        ),
        "--follow": ("convert --from xds --to changes some.xml", "--follow"),
        "--state": ("convert --from xds --to changes some.xml", "--state position"),
        "--url": (FROM_CT, "--url postgresql://127.0.0.1:1/none"),
        "--batch-size": (XDS, "--batch-size 5"),
        "--time-syntax": (XDS, "--time-syntax 3"),
        "--pretty": (XDS, "--pretty"),
        "--header-prefix": (
            "convert --from qlik-table --to changes --table usr other.csv",
            "--header-prefix h_",
        ),
        "--header-columns": (CT, "--header-columns change_seq,change_oper,change_mask"),
        "--table": ("convert --from qlik-table --to changes --header-prefix h_ other.csv", "--table usr"),
        "--mask-order": (FROM_CT, "--mask-order big"),
        "--header-time-format": (FROM_CT, "--header-time-format epoch"),
        "--until": (FROM_CT, f"--until {SECOND}"),
        "--before-images": (CT, "--no-before-images"),
        "--replicate-server": (MESSAGES, "--replicate-server one"),
        "--task": (MESSAGES, "--task one"),
        "--last-sequence": (CT, f"--last-sequence {SECOND}"),
        "--encoding": (MESSAGES, "--encoding avro"),
        "--framing": (f"{MESSAGES} --encoding avro", "--framing none"),
        "--logical-types": (f"{MESSAGES} --encoding avro", "--logical-types"),
        "--table-names": (MESSAGES, "--table-names full"),
        "--metadata": (MESSAGES, "--no-metadata"),
        "--external-schema-id": (MESSAGES, "--external-schema-id"),
        "--trim-char": ("convert --from gbase --to changes --tables g.toml stream.bin", "--no-trim-char"),
    },
    "explain": {
        flag: (base.replace(XDS, EXPLAIN), option)
        for flag, (base, option) in OF_ROWS.items()
        if flag not in TAKEN_ALONG["explain"]
    }
    | {
        "--as": ("explain --tables t.toml strange", "--as csv"),
        "--tables": ("explain sound.csv", "--tables t.toml"),
        "--current": ("explain --tables t.toml log.csv", "--current usr=usr.csv"),
        "--table": (EXPLAIN, "--table gone"),
        "--key": (EXPLAIN, "--key idu=1"),
        "--json": (EXPLAIN, "--json"),
        "--order": ("explain --from qlik-table usr__ct.csv", "--order as-is"),
        "--all": (EXPLAIN, "--all"),
        "--url": (EXPLAIN, "--url postgresql://127.0.0.1:1/none"),
        "--config": (EXPLAIN, "--config none.toml"),
        "--log-table": (EXPLAIN, "--log-table other"),
    },
}
# They change a duration, or memory, which no answer shows; or a setting of Spark; or
# it is shown under another name by the sink of `run`.
UNSEEN = {"--rate", "--conf", "deliver --kafka-topic"}
# On a database whose log holds an insert of two rows: the output with the flag, and only with it.
MOCK = "--kafka-brokers mock --kafka-options test.mock.num.brokers=1"
LIVE = {
    "install": {"--attach": ("install", "--attach", "--attach goes with --sql")},
    "uninstall": {
        "--attach": ("uninstall", "--attach", "--attach goes with --sql"),
        "--log-table": ("uninstall", "--log-table other", "other is not installed"),
    },
    "check": {"--ways-round": ("check", "--ways-round", "no trigger")},
    "preview": {
        "--max-value": ("preview", "--max-value 3", "a value of 4 bytes is over the limit of 3"),
    },
    "run": {
        "--max-value": ("preview", "--max-value 3", "a value of 4 bytes is over the limit of 3"),
        "--monitor-port": ("run --once", "--monitor-port PORT", "status page at http://127.0.0.1:"),
        "--monitor-host": ("run --once --monitor-port PORT", "--monitor-host localhost", "http://localhost:"),
        "--kafka-topic": (f"run --once --sink kafka {MOCK}", "--kafka-topic other", "to kafka other"),
    },
    "receive": {"--host": ("receive --port 99999", "--host 192.0.2.1 --port PORT", "received at 192.0.2.1")},
}
FORMATS = "formats/*/*.py transfer/*.py core/*.py xds/*.py"
# Which tests show the others, by command.
SHOWN = {
    "demo": "cli/demo/test_demo.py",
    "install": "compare/*.py cli/test_cli_install.py sql/*.py slot/*.py",
    "uninstall": "sql/test_install.py cli/test_cli_install.py",
    "track": "sql/*.py cli/test_cli_install.py publisher/*.py",
    "untrack": "sql/*.py cli/test_cli_install.py publisher/*.py",
    "resync": "sql/*.py cli/test_cli_install.py publisher/*.py compare/*.py",
    "check": "sql/*.py cli/test_cli_install.py publisher/*.py compare/*.py",
    "compare": "compare/*.py transfer/*.py core/*.py formats/*/*.py xds/*.py",
    "run": "publisher/*.py sinks/*.py compare/*.py web/*.py web/receiver/*.py sql/*.py slot/*.py"
    " cli/test_no_traceback.py",
    "pause": "publisher/*.py sql/*.py",
    "resume": "publisher/*.py sql/*.py",
    "preview": "compare/*.py publisher/*.py sql/*.py core/*.py xds/*.py",
    "status": "publisher/*.py sql/*.py",
    "errors": "publisher/*.py sql/*.py",
    "redrive": "publisher/*.py sql/*.py",
    "retry": "publisher/*.py",
    "skip": "publisher/*.py sql/*.py",
    "purge": "publisher/*.py sql/*.py",
    "deliver": "publisher/*.py sinks/*.py transfer/test_limits.py cli/test_hints.py cli/test_no_traceback.py",
    "receive": "web/receiver/*.py",
    "convert": f"transactions/*.py {FORMATS}",
    "audit": "audit/*.py publisher/*.py transfer/*.py core/*.py cli/*.py",
    "explain": "publisher/*.py transfer/*.py core/*.py",
    "history": "publisher/*.py",
    "backlog": f"spark/*.py {FORMATS} publisher/*.py",
    "apply": f"transfer/targets/*.py transfer/lake/*.py transactions/*.py {FORMATS} publisher/*.py",
    "rounds": "transfer/lake/*.py",
    "capture": f"{FORMATS} publisher/*.py",
    "import-config": "netiq/test_import_config.py",
    "bench": "cli/test_cli.py",
}
WRITTEN = """
insert into eventlog (event_type, table_name, table_key, column_name, new_value, perpetrator)
values (1, 'usr', 'idu=1', 'fname', 'Jack', 'hr'), (1, 'usr', 'idu=1', 'lname', 'Frost', 'hr')
"""
VERBOSE = "--verbose"  # shown by tests of the command line, for the door of all commands


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    new_shell = Shell(tmp_path_factory.mktemp("flags")).with_files(FILES)
    for name, words in COMMAND_OF_FILE.items():
        new_shell.run(*words.split())
        assert (new_shell.folder / name).exists(), words
    yield new_shell
    new_shell.close()


@cache
def outcome(shell: Shell, words: str) -> tuple[Done, dict[str, bytes]]:
    """Return the output of a command, and the files that it leaves, which are removed.

    A command without a flag is the same for many flags, and runs once.
    """
    before = {path for path in shell.folder.rglob("*") if path.is_file()}
    done = shell.run(*shlex.split(words))
    after = {path for path in shell.folder.rglob("*") if path.is_file()} - before
    files = {path.relative_to(shell.folder).as_posix(): path.read_bytes() for path in after}
    for path in after:
        path.unlink()
    return done, files


@pytest.mark.parametrize(
    ("words", "more"),
    [
        pytest.param(*case, id=f"{name} {flag}")
        for name, cases in CASES.items()
        for flag, case in cases.items()
    ],
)
@pytest.mark.family
def test_a_flag_has_an_effect_or_is_refused(words: str, more: str, shell: Shell) -> None:
    assert outcome(shell, words) != outcome(shell, f"{words} {more}")


@pytest.fixture(scope="module")
def log_template(embedded: Server, shell: Shell) -> Iterator[str]:
    """A database with a tracked table and an insert of two rows in its log."""
    with temporary_database(EMBEDDED, make_url(embedded.url)) as database:
        assert shell.run("install", EVENTLOG_URL=database.address).code == 0
        engine = database.engine()
        run_statements(
            engine,
            "create table usr (idu integer primary key, fname text, lname text)",
            "insert into usr values (1, 'Jack', 'Frost')",
            WRITTEN,
        )
        engine.dispose()
        assert shell.run("track", "usr", EVENTLOG_URL=database.address).code == 0
        yield str(database.url.database)


@pytest.fixture
def log(embedded: Server, log_template: str) -> Iterator[Database]:
    """A copy of that database."""
    with temporary_database(EMBEDDED, make_url(embedded.url), template=log_template) as database:
        yield database


@pytest.mark.parametrize(
    ("words", "more", "reported"),
    [
        pytest.param(*case, id=f"{name} {flag}")
        for name, cases in LIVE.items()
        for flag, case in cases.items()
    ],
)
@pytest.mark.family
def test_a_flag_has_an_effect_on_a_log(
    words: str, more: str, reported: str, shell: Shell, log: Database
) -> None:
    variables = {"EVENTLOG_URL": log.address, "EVENTLOG_SYNC_TABLES": "usr"}
    plain, flagged = (
        shell.run(*line.replace("PORT", str(free_port())).split(), **variables)
        for line in (words, f"{words} {more}")
    )
    assert reported in flagged.stdout + flagged.stderr
    assert reported not in plain.stdout + plain.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def flags(name: str) -> Iterator[tuple[str, str]]:
    """Yield the flags of a command, each with the name of its parameter."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield max(parameter.opts, key=len), str(parameter.name)


class Shown(NamedTuple):
    """The text of some tests, and its words."""

    text: str
    words: frozenset[str]

    def has(self, flag: str, setting: str) -> bool:
        """Return whether a flag is there, its setting, or a line of a file of settings."""
        line = f"{flag[2:]} = "
        return (
            setting in self.words
            or re.search(rf"{flag}\b", self.text) is not None
            or (line in self.text and re.search(rf"\b{line}", self.text) is not None)
        )


@cache
def shown_by(patterns: str) -> Shown:
    paths = [path for pattern in patterns.split() for path in sorted(TESTS.glob(pattern))]
    assert paths, patterns
    text = "\n".join(path.read_text("utf-8") for path in paths)
    return Shown(text, frozenset(re.findall(r"\w+", text)))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.family
def test_every_flag_has_its_case(name: str) -> None:
    known = {*CASES.get(name, ()), *LIVE.get(name, ()), *TAKEN_ALONG.get(name, ()), VERBOSE}
    shown = shown_by(SHOWN[name])
    missing = [
        flag
        for flag, setting in flags(name)
        if flag not in known and not {flag, f"{name} {flag}"} & UNSEEN and not shown.has(flag, setting)
    ]
    assert missing == []


def test_check_takes_every_setting_that_run_takes() -> None:
    assert {flag for flag, _ in {*flags("run")} - {*flags("check")}} == {"--once", "--log-format"}


def test_no_case_is_of_a_flag_that_is_gone() -> None:
    for name in COMMANDS:
        cases = {*CASES.get(name, ()), *LIVE.get(name, ()), *TAKEN_ALONG.get(name, ())}
        assert cases <= {flag for flag, _ in flags(name)}
