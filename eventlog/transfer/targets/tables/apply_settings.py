"""The choices about how changes become tables, and the description of tables by their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventlog.core.delete_limit import max_deletes_setting
from eventlog.core.settings import setting
from eventlog.formats.qlik.structure import Structure
from eventlog.formats.qlik.types import Spec

SourceTable = tuple[str | None, str]  # a table of the source, with its schema


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """The settings of tables that take changes."""

    schema_changes: str = setting(
        "apply",
        "create tables and columns that are missing, refuse the changes that need them, or leave them out",
        choices=("apply", "refuse", "ignore"),
    )
    missing_rows: str = setting(
        "refuse",
        "an update that lacks columns and whose row is missing",
        choices=("refuse", "insert", "ignore"),
    )
    reload: str = setting(
        "refuse", "a full load of a table that already had changes", choices=("refuse", "replace")
    )
    schemas: str = setting(
        "one",
        "where tables are: all in one schema, the connection's own, or each in the schema of its source",
        choices=("one", "source"),
    )
    group: int = setting(
        10_000, "changes that share a transaction of the target", metavar="CHANGES", within=(1, 1_000_000)
    )
    max_deletes: str = max_deletes_setting()
    source: str = setting("", "the name under which the target remembers this source  [default: the format]")
    # the columns of keys that no source describes, by table; "" is for all tables
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def key_of(self, source_table: SourceTable) -> Sequence[str]:
        """Return the key that was chosen for a table; empty if there is none."""
        schema, name = source_table
        keys = dict(self.keys)
        return next((keys[key_name] for key_name in (f"{schema}.{name}", name, "") if key_name in keys), ())


def read_key(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the table, "" for all tables, and the columns of `TABLE=COLUMN,...`."""
    table, _, columns = text.rpartition("=")
    return table.strip(), tuple(name.strip() for name in columns.split(",") if name.strip())


_MAX_TABLES = 10_000  # tables that are remembered


class SourceSchema:
    """The columns and keys that a source described, by table; the last description counts."""

    def __init__(self, *, whole_seconds: bool = False) -> None:
        self.whole_seconds = whole_seconds  # whether times lack the fractions that the source may have had
        self._columns: dict[SourceTable, dict[str, Spec]] = {}
        self._keys: dict[SourceTable, tuple[str, ...]] = {}

    def add_description(self, structure: Structure) -> None:
        """Note the description of a table by its source."""
        source_table = structure.schema, structure.table
        if len(self._columns) >= _MAX_TABLES and source_table not in self._columns:
            oldest = next(iter(self._columns))
            del self._columns[oldest]
            self._keys.pop(oldest, None)
        specs = {column.name: column.spec for column in structure.columns if column.spec is not None}
        self._columns[source_table] = self._columns.get(source_table, {}) | specs
        if structure.key:
            self._keys[source_table] = tuple(structure.columns[place].name for place in structure.key)

    def columns(self, source_table: SourceTable) -> dict[str, Spec]:
        """Return the columns of a table that have a described type."""
        return self._columns.get(source_table, {})

    def key(self, source_table: SourceTable) -> Sequence[str]:
        """Return the key of a table; empty if no source described it."""
        return self._keys.get(source_table, ())
