"""What `apply` made of what the receiver took: the rows of a second database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import text

from eventlog.sql.connect import connect
from tests.kit.databases import Database
from tests.world.rig import COLUMNS, Row


def make_table(database: Database) -> None:
    """Make the second database's table."""
    columns = ", ".join(f"{column} varchar(40)" for column in COLUMNS)
    with connect(database.url).begin() as connection:
        connection.execute(text(f"create table usr (idu integer primary key, {columns})"))


def rows_of(database: Database) -> dict[str, Row]:
    """Return the rows of the second database's table."""
    with connect(database.url).connect() as connection:
        records = connection.execute(text(f"select idu, {', '.join(COLUMNS)} from usr")).all()
    return _rows(records)


def _rows(records: Iterable[Iterable[Any]]) -> dict[str, Row]:
    """Return rows by their keys, without nulls."""
    rows = ((str(idu), zip(COLUMNS, values, strict=True)) for idu, *values in records)
    return {key: {name: value for name, value in pairs if value is not None} for key, pairs in rows}
