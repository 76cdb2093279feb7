"""What `apply` made of what the receiver took: the rows of a second database, and of a table of Delta."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from sqlalchemy import text

from eventlog.sql.connect import connect
from tests.databases import Database
from tests.proofs.replica import COLUMNS, Row
from tests.smalldisk import SmallDisk


def rows_of(database: Database) -> dict[str, Row]:
    """Return the rows of the second database's table."""
    with connect(database.url).connect() as connection:
        found = connection.execute(text(f"select idu, {', '.join(COLUMNS)} from usr")).all()
    return _rows(found)


def rows_in(disk: SmallDisk, folder: Path) -> dict[str, Row]:
    """Return the rows of the Delta table.

    It is copied first, because paths through the disk's links lead elsewhere.
    """
    shutil.copytree(disk.outside / "lake", folder / "lake")
    (log,) = (folder / "lake").rglob("_delta_log")
    found = DeltaTable(log.parent).to_pyarrow_table(columns=["idu", *COLUMNS]).to_pylist()
    return _rows([row.values() for row in found])


def _rows(found: Iterable[Iterable[Any]]) -> dict[str, Row]:
    """Return rows by their keys, without nulls."""
    rows = ((str(idu), zip(COLUMNS, values, strict=True)) for idu, *values in found)
    return {key: {name: value for name, value in pairs if value is not None} for key, pairs in rows}
