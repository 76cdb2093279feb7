"""A small conversion of files starts fast, because it imports no package that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from sqlalchemy.engine import make_url

from eventlog.cli import COMMANDS
from eventlog.cli.explain import explain
from eventlog.embedded import Server
from eventlog.sql.connect import connect
from eventlog.transfer.ordered import SEQUENCERS
from tests.kit.commands import environment
from tests.kit.databases import EMBEDDED, installed
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

# It has imported what every command does, and forks for each; a child writes the modules that it has.
PARENT = """
import json, os, sys
from eventlog.cli import main
for line in iter(sys.stdin.readline, ""):
    words, folder, variables = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(folder)
    os.environ.update(variables)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open("printed", os.O_WRONLY | os.O_CREAT), 1)
    sys.argv = ["eventlog", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    with open("modules", "w") as file:
        json.dump(sorted(sys.modules), file)
    sys.stdout.flush()
    os._exit(code)
"""
SLOW = {
    *("alembic", "asyncio", "confluent_kafka", "fastavro", "http", "importlib.metadata", "numpy"),
    *("pandas", "psycopg", "pyarrow", "rich", "sqlalchemy", "ssl"),
    *(
        "eventlog.formats.gbase.stream",
        "eventlog.formats.linter.changes",
        "eventlog.transfer.sources.capture",
        "eventlog.sql",
    ),
}
# What publishes, or counts, and takes longer to load than a table takes to print.
PUBLISHING = {
    *("numpy", "pyarrow", "sqlalchemy.orm", "eventlog.clients.http_client", "eventlog.publisher.daemon"),
    *("eventlog.publisher.cycle", "eventlog.publisher.session"),
    *("eventlog.sql.postgresql.triggers", "eventlog.sql.oracle.triggers", "eventlog.sql.mysql.triggers"),
}
Imported = Callable[..., set[str]]
TABLES = '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(64)" }\n'
LOG = """record_id,event_type,table_name,table_key,column_name,old_value,new_value
1,2,usr,idu=1,fname,Jack,John
"""
CHANGE = json.dumps(
    {
        "op": "insert",
        "table": "usr",
        "key": {"idu": 1},
        "position": "1",
        "fields": [{"column": "idu", "after": 1}, {"column": "fname", "after": "John"}],
    }
)


@pytest.fixture(scope="module")
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process that forks for each command."""
    command = [sys.executable, "-c", PARENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(), text=True, stdin=pipe, stdout=pipe) as process:
        yield process


@pytest.fixture(scope="module")
def address(embedded: Server) -> Iterator[str]:
    """A database with a log."""
    url = make_url(embedded.url)
    with installed(EMBEDDED, url) as name:
        yield url.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def imported_by(parent: subprocess.Popen[str], tmp_path: Path) -> Imported:
    """Return the modules that a command imports; each succeeds."""

    def call(*words: str, **variables: str) -> set[str]:
        assert parent.stdin is not None
        assert parent.stdout is not None
        print(json.dumps([words, str(tmp_path), variables]), file=parent.stdin, flush=True)
        assert parent.stdout.readline() == "0\n", (tmp_path / "printed").read_text()
        return set(json.loads((tmp_path / "modules").read_text()))

    return call


@pytest.mark.parametrize(
    ("source", "text", "target", "needs"),
    [
        ("in.csv", LOG, "out.xml", {"lxml"}),
        ("in.jsonl", CHANGE, "out.xml", {"lxml"}),
        ("in.jsonl", CHANGE, "usr__ct.csv", set()),
        ("in.csv", LOG, "out.jsonl", set()),
    ],
)
def test_a_small_conversion_imports_few_packages(
    imported_by: Imported, tmp_path: Path, source: str, text: str, target: str, needs: set[str]
) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / source).write_text(text)
    imported = imported_by("convert", "--tables", "tables.toml", source, target)
    assert (tmp_path / target).stat().st_size
    assert imported & ((SLOW | {"lxml"}) - needs) == set()


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["explain", "--tables", "tables.toml", "in.csv"]]
)
def test_a_pipe_needs_no_package_that_draws(imported_by: Imported, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "in.csv").write_text(LOG)
    assert "rich" not in imported_by(*words)


# Our own modules, a tenth more than there were when it was counted.
MOST_MODULES = {"--version": 36, "--help": 35, "status": 127, "errors": 138, "explain": 129}


@pytest.mark.parametrize("name", MOST_MODULES)
def test_what_is_asked_at_a_prompt_imports_few_modules(
    imported_by: Imported, name: str, tmp_path: Path, address: str
) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "in.csv").write_text(LOG)
    files = ("--tables", str(tmp_path / "tables.toml"), str(tmp_path / "in.csv"))
    imported = imported_by(name, *files if name == "explain" else (), EVENTLOG_URL=address)
    assert len([module for module in imported if module.startswith("eventlog")]) <= MOST_MODULES[name]
    assert imported & (PUBLISHING | {"lxml"}) == set()


def test_the_list_of_commands_imports_none_of_them(imported_by: Imported) -> None:
    """Import only what the version does, because the list is a table of names and summaries."""
    assert imported_by("--help") - imported_by("--version") <= {"difflib", "textwrap", "click._textwrap"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "bench"])
@pytest.mark.family
def test_a_help_imports_no_publisher(imported_by: Imported, name: str) -> None:
    assert imported_by(name, "--help") & (PUBLISHING | {"psycopg"}) == set()


@pytest.mark.parametrize("name", ["status", "errors", "skip", "pause", "explain", "history", "run"])
def test_a_help_of_settings_alone_imports_no_database(imported_by: Imported, name: str) -> None:
    assert "sqlalchemy" not in imported_by(name, "--help")


@pytest.mark.parametrize("words", [["status"], ["errors"], ["history"]])
def test_a_table_of_a_log_imports_no_publisher(imported_by: Imported, words: list[str], address: str) -> None:
    assert imported_by(*words, EVENTLOG_URL=address) & PUBLISHING == set()


def test_explain_of_a_log_imports_nothing_that_reads_files(imported_by: Imported, address: str) -> None:
    imported = imported_by("explain", "--all", EVENTLOG_URL=address)
    publisher = {"eventlog.publisher.cycle", "eventlog.publisher.session"}
    converter = {"pyarrow", "eventlog.transfer.format_registry", "eventlog.cli.convert"}
    assert imported & (publisher | converter) == set()


def test_explain_of_a_handled_row_folds_nothing(imported_by: Imported, address: str) -> None:
    engine = connect(address)
    row = "insert into eventlog (status, event_type, table_name, table_key) values ('S', 6, 'usr', 'idu=1')"
    run_statements(engine, row)
    engine.dispose()
    assert "numpy" not in imported_by("explain", "1", EVENTLOG_URL=address)


def test_explain_takes_every_format_with_a_sequence() -> None:
    (choice,) = [param.type for param in explain.params if param.name == "source_format"]
    assert isinstance(choice, click.Choice)
    assert choice.choices == ("log", *SEQUENCERS)


def test_a_publisher_without_a_port_imports_no_part_of_a_page() -> None:
    doors = "eventlog.cli.run, eventlog.publisher.daemon, eventlog.web.monitor.page_data"
    code = f"import {doors}, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) & {"anyio", "h11", "jinja2", "starlette", "uvicorn"} == set()
