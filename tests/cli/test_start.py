"""A small conversion of files starts fast, because it imports no package that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.cli import COMMANDS
from tests.kit.commands import environment
from tests.kit.databases import Database

pytestmark = pytest.mark.quick

COMMAND = """
import json, sys
from eventlog.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""
SLOW = {
    *("alembic", "asyncio", "confluent_kafka", "fastavro", "http", "importlib.metadata", "numpy"),
    *("pandas", "psycopg", "pyarrow", "rich", "sqlalchemy", "ssl"),
    *("eventlog.gbase.stream", "eventlog.linter.changes", "eventlog.sources.capture", "eventlog.sql"),
}
# What publishes, or counts, and takes longer to load than a table takes to print.
PUBLISHING = {
    *("numpy", "pyarrow", "sqlalchemy.orm", "urllib3", "eventlog.publisher.daemon"),
    *("eventlog.publisher.cycle", "eventlog.publisher.session"),
}
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
    tmp_path: Path, source: str, text: str, target: str, needs: set[str]
) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / source).write_text(text)
    words = ["convert", "--tables", "tables.toml", source, target]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (tmp_path / target).stat().st_size
    imported = set(json.loads(done.stdout))
    assert imported & ((SLOW | {"lxml"}) - needs) == set()


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["explain", "--tables", "tables.toml", "in.csv"]]
)
def test_a_pipe_needs_no_package_that_draws(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "in.csv").write_text(LOG)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert "rich" not in json.loads(done.stdout.splitlines()[-1])


def imported_by(*words: str, **variables: str) -> set[str]:
    """Return the modules that a command imports; each succeeds."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


# Our own modules, a tenth more than there were when it was counted.
MOST_MODULES = {"--version": 36, "--help": 35, "status": 135, "errors": 146, "explain": 125}


@pytest.mark.parametrize("name", MOST_MODULES)
def test_what_is_asked_at_a_prompt_imports_few_modules(name: str, tmp_path: Path, postgres: Database) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "in.csv").write_text(LOG)
    files = ("--tables", str(tmp_path / "tables.toml"), str(tmp_path / "in.csv"))
    url = postgres.url.render_as_string(hide_password=False)
    if name in ("status", "errors"):
        imported_by("install", EVENTLOG_URL=url)
    imported = imported_by(name, *files if name == "explain" else (), EVENTLOG_URL=url)
    assert len([module for module in imported if module.startswith("eventlog")]) <= MOST_MODULES[name]
    assert imported & PUBLISHING == set()


def test_the_list_of_commands_imports_none_of_them() -> None:
    """Import only what the version does, because the list is a table of names and summaries."""
    assert imported_by("--help") - imported_by("--version") <= {"difflib", "textwrap", "click._textwrap"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "bench"])
def test_a_help_imports_no_publisher(name: str) -> None:
    assert imported_by(name, "--help") & (PUBLISHING | {"psycopg"}) == set()


@pytest.mark.parametrize("name", ["status", "errors", "skip", "pause", "explain", "history", "run"])
def test_a_help_of_settings_alone_imports_no_database(name: str) -> None:
    assert "sqlalchemy" not in imported_by(name, "--help")


@pytest.mark.parametrize("words", [["status"], ["errors"], ["history"]])
def test_a_table_of_a_log_imports_no_publisher(words: list[str], postgres: Database) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    imported_by("install", EVENTLOG_URL=url)
    assert imported_by(*words, EVENTLOG_URL=url) & PUBLISHING == set()


def test_a_publisher_without_a_port_imports_no_part_of_a_page() -> None:
    doors = "eventlog.cli.run, eventlog.publisher.daemon, eventlog.web.monitor.board"
    code = f"import {doors}, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) & {"anyio", "h11", "jinja2", "starlette", "uvicorn"} == set()
