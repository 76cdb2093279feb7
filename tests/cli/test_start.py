"""A small conversion of files starts fast, because it imports no package that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_publisher_without_a_port_imports_no_part_of_a_page() -> None:
    code = "import eventlog.cli.run, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) & {"anyio", "h11", "jinja2", "starlette", "uvicorn"} == set()
