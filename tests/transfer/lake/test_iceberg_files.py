"""What a commit does to the files and manifests of a table of Iceberg."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventlog.transfer.targets.lake import iceberg_table
from eventlog.transfer.targets.lake.iceberg_table import IcebergPlace, IcebergSnapshot
from eventlog.transfer.targets.lake.lake_place import LakeCommit, RowChanges
from tests.kit.lake import IcebergFolder

pytestmark = pytest.mark.quick

FORM = pa.schema([("id", pa.int64()), ("name", pa.string())])


class FilesOfUsr:
    """The table usr of a lake, its commits and its files."""

    def __init__(self, lake: IcebergFolder, place: IcebergPlace) -> None:
        self._lake = lake
        self._place = place
        self._place.create("usr", FORM, {})
        self._number = 0

    def snapshot(self) -> IcebergSnapshot:
        """Return the newest version."""
        opened = self._place.open("usr")
        assert opened is not None
        return opened

    def append(self, *rows: tuple[int, str]) -> None:
        """Add rows as a file."""
        arrays = [
            pa.array(column, of) for column, of in zip(zip(*rows, strict=True), FORM.types, strict=True)
        ]
        self.snapshot().append(pa.table(arrays, schema=FORM), self._commit())

    def write(self, *rows: tuple[int, str]) -> None:
        """Merge rows."""
        ids, names = zip(*rows, strict=True)
        columns: dict[str, Any] = {"w": ["w"] * len(rows), "c0": ids, "c1": names, "s1": [True] * len(rows)}
        changes = RowChanges(pa.table(columns), {0: "id"}, {1: "name"}, False)
        self.snapshot().merge(changes, self._commit())

    def _commit(self) -> LakeCommit:
        self._number += 1
        return LakeCommit("law", self._number, "", "")

    def rows(self) -> list[tuple[int, str]]:
        """Return the rows."""
        rows = self.snapshot().rows(FORM.names)
        return sorted(zip(*(rows[name].to_pylist() for name in FORM.names), strict=True))

    @property
    def _table(self) -> Any:
        return self._lake.table("usr")

    def files(self) -> set[str]:
        """Return the files that have the rows."""
        return {task.file.file_path for task in self._table.scan().plan_files()}

    def snapshots(self) -> int:
        """Return the number of snapshots."""
        return len(self._table.snapshots())

    def manifests(self) -> int:
        """Return the number of manifests that a reader lists."""
        return len(self._table.current_snapshot().manifests(self._table.io))


@pytest.fixture
def usr(tmp_path: Path) -> Iterator[FilesOfUsr]:
    with IcebergFolder(tmp_path / "lake") as lake:
        options = dict(pair.split("=", 1) for pair in lake.lake_options.split(","))
        with IcebergPlace("here/hr", options) as place:
            yield FilesOfUsr(lake, place)


def test_a_commit_is_one_snapshot_and_files_without_its_rows_stay(usr: FilesOfUsr) -> None:
    usr.append((1, "a"), (3, "c"))
    (first_file,) = usr.files()
    usr.append((10, "j"), (12, "l"))
    usr.write((11, "k"), (12, "m"))
    usr.write((2, "b"))  # between rows of the first file, which has no such row
    assert usr.rows() == [*zip((1, 2, 3, 10, 11, 12), "abcjkm", strict=True)]
    assert first_file in usr.files()
    assert usr.snapshots() == 4


def test_rows_of_large_files_are_written_in_parts(usr: FilesOfUsr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_table, "_HELD_BYTES", 0)
    usr.append((1, "a"), (2, "b"))
    usr.append((3, "c"), (4, "d"))
    usr.write((1, "x"), (3, "y"))
    assert usr.rows() == [(1, "x"), (2, "b"), (3, "y"), (4, "d")]
    assert len(usr.files()) == 3


def test_manifests_without_files_do_not_pile_up(usr: FilesOfUsr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_table, "_MOST_SPENT", 2)
    for number in range(6):
        usr.write((1, f"a{number}"))
    assert usr.rows() == [(1, "a5")]
    assert usr.manifests() <= 4


def test_of_many_keys_the_rows_of_the_least_and_the_greatest_are_met(usr: FilesOfUsr) -> None:
    for number in (0, 300):
        usr.append((number, "former"))
    usr.write(*((number, "new") for number in range(301)))
    assert usr.rows() == [(number, "new") for number in range(301)]


def test_rows_of_many_keys_are_those_of_few(usr: FilesOfUsr) -> None:
    usr.append(*((number, "") for number in range(0, 1_000, 2)))
    keys = pa.array(range(100, 1_000, 3), pa.int64())  # more than the library skips files by
    assert usr.snapshot().rows(["id"], {"id": keys})["id"].to_pylist() == list(range(100, 1_000, 6))
    few_keys = usr.snapshot().rows(["name"], {"id": pa.array([2, 3], pa.int64())})
    assert few_keys.to_pylist() == [{"name": ""}]
