"""Changes applied to a lake through the public door, and what a reader of others sees there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import duckdb
import duckdb_extension_delta
import pytest

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.formats.neutral import dumps
from eventlog.transfer.apply import apply_to_lake
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.targets.lake.lake_settings import LakeSettings
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.outcomes import Tally

CLOCK = "2025-01-02 00:00:00.000000"


class Applied(NamedTuple):
    """The outcome of changes."""

    tally: Tally
    reasons: list[str]  # of what was refused
    words: list[str]  # that were reported


def write_changes(path: Path, changes: Iterable[Change]) -> None:
    """Write a file of the `changes` format."""
    path.write_text("".join(f"{json.dumps(json.loads(dumps(change)))}\n" for change in changes))


def apply_file(folder: Path, path: Path, tables: Tables, **options: Any) -> Applied:
    """Apply a file of changes to the lake in a folder."""
    return apply_job(folder, Job("changes", "changes", (str(path),), tables=tables), **options)


def apply_job(folder: Path, job: Job, **options: Any) -> Applied:
    """Apply what a job reads to the lake in a folder."""
    return apply_place(f"delta:{folder}", job, **options)


def apply_place(address: str, job: Job, **options: Any) -> Applied:
    """Apply what a job reads to the lake at an address."""
    refused: list[Refused] = []
    words: list[str] = []
    report = Report(refused.append, BytesIO(), False, words.append)
    tally = apply_to_lake(
        job,
        address,
        settings.build(LakeSettings, options),
        ApplySettings(**{name: options[name] for name in options if name in ApplySettings.__slots__}),
        report,
        CLOCK,
        lambda size: None,
    )
    return Applied(tally, [refusal.reason for refusal in refused], words)


@cache
def _duckdb() -> Any:
    """Return DuckDB with its own reader of Delta, which was installed as a package."""
    connection = duckdb.connect()
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"load '{extension}'")
    return connection


class Duck:
    """A reader that is not ours."""

    def __init__(self) -> None:
        self._connection = _duckdb()

    def rows(self, folder: Path, table: str, columns: str = "*", version: int | None = None) -> list[Any]:
        """Return rows of a table, of its newest version or of another one."""
        at = "" if version is None else f", version={version}"
        return self.query(f"select {columns} from delta_scan('{folder / table}'{at})")

    def query(self, statement: str) -> list[Any]:
        """Return the rows of a statement."""
        rows: list[Any] = self._connection.execute(statement).fetchall()
        return rows


def queries_of_page(folder: Path, page: str) -> list[str]:
    """Return the queries that a page prints, for the lake in a folder."""
    text = (Path(__file__).parents[2] / "docs" / "convert" / f"{page}.md").read_text("utf-8")
    (sql,) = re.findall("```sql\n(.*?)```", text, re.DOTALL)
    return [query for query in sql.replace("build/lake", str(folder)).split(";") if query.strip()]


class Killed(BaseException):
    """The end of a process."""


@contextmanager
def at_each_commit(monkeypatch: pytest.MonkeyPatch, step: Callable[[bool], None]) -> Iterator[None]:
    """Call a function before and after each commit of rows."""
    merger = deltalake.table.TableMerger

    def around(work: Callable[..., Any]) -> Callable[..., Any]:
        def commit(*arguments: Any, **options: Any) -> Any:
            step(False)
            result = work(*arguments, **options)
            step(True)
            return result

        return commit

    with monkeypatch.context() as patch:
        patch.setattr(deltalake, "write_deltalake", around(deltalake.write_deltalake))
        patch.setattr(merger, "execute", around(merger.execute))
        yield
