"""Changes applied to a lake through the public door, and what a reader of others sees there."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Self

import deltalake
import duckdb
import duckdb_extension_avro
import duckdb_extension_delta
import duckdb_extension_iceberg
import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles

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


class LakeFolder(ABC):
    """A lake in a folder, as its owner and other writers see it."""

    conflict: type[Exception]  # of two commits, as the library raises it

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *fault: object) -> None: ...

    @property
    @abstractmethod
    def address(self) -> str:
        """Return the address of the lake."""

    @property
    def lake_options(self) -> str:
        """Return the options that a writer needs."""
        return ""

    @abstractmethod
    def scan(self, table: str, version: int | None = None) -> str:
        """Return what DuckDB selects from to read a table."""

    @property
    @abstractmethod
    def names(self) -> set[str]:
        """Return the names of the tables."""

    @abstractmethod
    def last_commit(self, table: str) -> tuple[int, Mapping[str, Any]]:
        """Return the number of the last round of the source `changes`, and the facts of the last commit."""

    @abstractmethod
    def make(self, table: str, rows: pa.Table, part: str = "") -> None:
        """Make a table as others do, with a column by which it is partitioned."""

    @abstractmethod
    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row as others do."""

    @abstractmethod
    def touch(self, table: str, times: int) -> None:
        """Commit something that leaves the rows."""

    @abstractmethod
    def take_number(self, table: str, number: int) -> None:
        """Commit the same rows with a number of the source `changes`, as no `apply` of ours does."""

    @abstractmethod
    def compact(self, table: str) -> None:
        """Put the rows of a table into one file."""

    @abstractmethod
    def expire(self, table: str) -> None:
        """Take away former versions of a table."""

    @abstractmethod
    def load(self, table: str) -> int:
        """Return how many files or versions each commit must look at."""

    def tidy(self) -> None:
        """Compact all tables, and take away their former versions."""
        for name in self.names:
            self.compact(name)
            self.expire(name)


class DeltaFolder(LakeFolder):
    """A folder of tables of Delta Lake."""

    conflict = CommitFailedError

    def __exit__(self, *fault: object) -> None:
        """Do nothing: no file stays open."""

    @property
    def address(self) -> str:
        return f"delta:{self.folder}"

    def scan(self, table: str, version: int | None = None) -> str:
        at = "" if version is None else f", version={version}"
        return f"delta_scan('{self.folder / table}'{at})"

    @property
    def names(self) -> set[str]:
        return {path.parent.name for path in self.folder.glob("*/_delta_log")}

    def last_commit(self, table: str) -> tuple[int, Mapping[str, Any]]:
        (commit,) = self._table(table).history(1)
        return self._table(table).transaction_version("eventlog:changes") or 0, commit

    def make(self, table: str, rows: pa.Table, part: str = "") -> None:
        deltalake.write_deltalake(str(self.folder / table), rows, partition_by=[part] if part else None)

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        rows = pa.Table.from_pylist([dict(row)], schema=pa.schema(self._table(table).schema().to_arrow()))
        deltalake.write_deltalake(self._table(table), rows, mode="append")

    def touch(self, table: str, times: int) -> None:
        self._table(table).alter.set_table_properties(
            {"delta.logRetentionDuration": f"interval {times} days"}
        )

    def take_number(self, table: str, number: int) -> None:
        properties = deltalake.CommitProperties(
            app_transactions=[deltalake.Transaction("eventlog:changes", number)]
        )
        rows = self._table(table).to_pyarrow_table()
        deltalake.write_deltalake(self._table(table), rows, mode="overwrite", commit_properties=properties)

    def compact(self, table: str) -> None:
        self._table(table).optimize.compact()

    def expire(self, table: str) -> None:
        self._table(table).create_checkpoint()
        self._table(table).vacuum(0, dry_run=False, enforce_retention_duration=False)

    def load(self, table: str) -> int:
        return len(self._table(table).file_uris())

    def _table(self, name: str) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(str(self.folder / name))


class _Compaction(_OverwriteFiles):  # type: ignore[misc]
    """A commit as Spark makes it when it compacts a table, which this library does not."""

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        facts = super()._summary().additional_properties
        return Summary(Operation.REPLACE, **facts)


class IcebergFolder(LakeFolder):
    """A namespace of a catalogue in a file, with its tables in a folder."""

    conflict = CommitFailedException

    def __exit__(self, *fault: object) -> None:
        self._catalogue.close()

    @property
    def address(self) -> str:
        return "iceberg:here/hr"

    @property
    def lake_options(self) -> str:
        self.folder.mkdir(exist_ok=True)
        return ",".join(f"{name}={value}" for name, value in self._options.items())

    @property
    def _options(self) -> dict[str, str]:
        return {"uri": f"sqlite:///{self.folder}/catalogue.db", "warehouse": f"file://{self.folder}"}

    def scan(self, table: str, version: int | None = None) -> str:
        at = "" if version is None else f", snapshot_from_id={version}"
        return f"iceberg_scan('{self.table(table).metadata_location.removeprefix('file://')}'{at})"

    @property
    def names(self) -> set[str]:
        if not self.folder.exists():
            return set()
        try:
            return {name for *_, name in self._catalogue.list_tables("hr")}
        except NoSuchNamespaceError:
            return set()

    def last_commit(self, table: str) -> tuple[int, Mapping[str, Any]]:
        snapshot = self.table(table).current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        number = self.table(table).properties["eventlog:changes.round"]
        return int(number), snapshot.summary.additional_properties

    def make(self, table: str, rows: pa.Table, part: str = "") -> None:
        self._catalogue.create_namespace_if_not_exists("hr")
        new_table = self._catalogue.create_table(f"hr.{table}", rows.schema)
        if part:
            with new_table.update_spec() as update:
                update.add_identity(part)
        new_table.append(rows)

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        schema = self.table(table).schema().as_arrow()
        self.table(table).append(pa.Table.from_pylist([dict(row)], schema=schema))

    def touch(self, table: str, times: int) -> None:
        self.table(table).append(self.table(table).schema().as_arrow().empty_table())

    def take_number(self, table: str, number: int) -> None:
        facts = {"eventlog.application": "eventlog:changes", "eventlog.round": str(number)}
        self.table(table).append(self.table(table).schema().as_arrow().empty_table(), facts)

    def compact(self, table: str) -> None:
        its_table: Any = self.table(table)
        with its_table.transaction() as transaction:  # the files may stay as they are
            _Compaction(Operation.OVERWRITE, transaction, its_table.io).commit()

    def expire(self, table: str) -> None:
        current = self.table(table).current_snapshot()
        ids = [each.snapshot_id for each in self.table(table).snapshots() if each != current]
        if ids:
            self.table(table).maintenance.expire_snapshots().by_ids(ids).commit()

    def load(self, table: str) -> int:
        return len(self.table(table).snapshots())

    def table(self, name: str) -> Table:
        return self._catalogue.load_table(("hr", name))

    @cached_property
    def _catalogue(self) -> Any:
        self.folder.mkdir(exist_ok=True)
        return load_catalog("here", **self._options)


class RestFolder(IcebergFolder):
    """A namespace of a catalogue that a server has, with its tables in a folder."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url

    @property
    def _options(self) -> dict[str, str]:
        return {"type": "rest", "uri": self._url}


FORMATS: dict[str, Callable[[Path], LakeFolder]] = {"delta": DeltaFolder, "iceberg": IcebergFolder}


def lake_in(place: Path | LakeFolder) -> LakeFolder:
    """Return a lake; that of a folder alone is one of Delta."""
    return DeltaFolder(place) if isinstance(place, Path) else place


def apply_file(place: Path | LakeFolder, path: Path, tables: Tables, **options: Any) -> Applied:
    """Apply a file of changes to a lake."""
    return apply_job(place, Job("changes", "changes", (str(path),), tables=tables), **options)


def apply_job(place: Path | LakeFolder, job: Job, **options: Any) -> Applied:
    """Apply what a job reads to a lake."""
    lake = lake_in(place)
    return apply_place(lake.address, job, lake_options=lake.lake_options, **options)


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
    """Return DuckDB with its own readers of lakes, which were installed as packages."""
    connection = duckdb.connect()
    for package in (duckdb_extension_avro, duckdb_extension_delta, duckdb_extension_iceberg):
        (extension,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
        connection.execute(f"load '{extension}'")
    return connection


class Duck:
    """A reader that is not ours."""

    def __init__(self) -> None:
        self._connection = _duckdb()

    def rows(
        self, place: Path | LakeFolder, table: str, columns: str = "*", version: int | None = None
    ) -> list[Any]:
        """Return rows of a table, of its newest version or of another one."""
        return self.query(f"select {columns} from {lake_in(place).scan(table, version)}")

    def query(self, statement: str) -> list[Any]:
        """Return the rows of a statement."""
        rows: list[Any] = self._connection.execute(statement).fetchall()
        return rows


def queries_of_page(
    place: Path | LakeFolder, page: str, renamed: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """Return the queries that a page prints, for a lake, with other names."""
    text = (Path(__file__).parents[2] / "docs" / "convert" / f"{page}.md").read_text("utf-8")
    (sql,) = re.findall("```sql\n(.*?)```", text, re.DOTALL)
    for of_page, name in renamed:
        sql = sql.replace(of_page, name)
    lake, scan = lake_in(place), r"delta_scan\('build/lake/(\w+)'(?:, version = (\d+))?\)"

    def here(scanned: re.Match[str]) -> str:
        return lake.scan(scanned[1], int(scanned[2]) if scanned[2] else None)

    return [re.sub(scan, here, query) for query in sql.split(";") if query.strip()]


class Killed(BaseException):
    """The end of a process."""


@contextmanager
def at_each_commit(monkeypatch: pytest.MonkeyPatch, step: Callable[[bool], None]) -> Iterator[None]:
    """Call a function before and after each commit of rows."""
    merger = deltalake.table.TableMerger

    def around(work: Callable[..., Any], has_rows: Callable[..., bool]) -> Callable[..., Any]:
        def commit(*arguments: Any, **options: Any) -> Any:
            if not has_rows(*arguments):
                return work(*arguments, **options)
            step(False)
            result = work(*arguments, **options)
            step(True)
            return result

        return commit

    def adds_snapshot(transaction: Transaction) -> bool:
        return any(update.action == "add-snapshot" for update in transaction._updates)

    with monkeypatch.context() as patch:
        always = lambda *arguments: True  # noqa: E731
        patch.setattr(deltalake, "write_deltalake", around(deltalake.write_deltalake, always))
        patch.setattr(merger, "execute", around(merger.execute, always))
        patch.setattr(
            Transaction, "commit_transaction", around(Transaction.commit_transaction, adds_snapshot)
        )
        yield
