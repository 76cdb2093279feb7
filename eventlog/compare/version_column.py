"""Comparison by a version column: an object is looked at if that value is another one.

Its digest is that of the version alone; a row without a version has the digest of all values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from eventlog.compare.digest import FORMAT, Texts, digest
from eventlog.compare.rows import gathered, in_batches
from eventlog.core import tablekey
from eventlog.core.errors import InvalidTables
from eventlog.core.tables import Column, Table


def version_of(table: Table, name: str | None) -> Column | None:
    """Return the version column of a table; None if none is named. Raise InvalidTables if it is none."""
    if name is None:
        return None
    column = table.column(name)
    if column is None or column not in table.data or column.multivalued:
        raise InvalidTables(
            f"{name} cannot be the version of {table}: it is not one of its published columns"
        )
    return None if any(one.multivalued for one in table.data) else column


def with_only_column(table: Table, column: Column) -> Table:
    """Return the table with only one column outside its key."""
    columns = {one.name: replace(one, leaves=one is column) for one in table.columns.values()}
    return replace(table, columns=columns)


def digest_by(table: Table, texts: Texts, version: Column | None, form: int = FORMAT) -> str:
    """Return the digest of an object: of its version, where it has one, else of all its values."""
    if version is not None:
        text = texts[table.data.index(version)]
        if text is not None:
            return digest((version,), (text,), form).hex()
    return digest(table.data, texts, form).hex()


def texts_of(table: Table, key: str, found: Iterable[Sequence[str | None]]) -> tuple[str | None, ...] | None:
    """Return the one row that the rows of a key make, many values as lists; None where there is none."""
    rows = [tuple(row) for row in found]
    if not rows:
        return None
    values = tuple(text for _, text in tablekey.read(key))
    (batch,) = in_batches(table, ((str(table), values, row) for row in rows))
    _, _, *cells = (column[0].as_py() for column in gathered(table, batch).columns)
    return tuple(cells)
