"""An input that grows, and the lake that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventlog.core import tablesfile
from eventlog.core.change import Change, Op
from eventlog.core.tables import Tables
from tests.kit.lake import Applied, Duck, LakeFolder, apply_file, write_changes
from tests.transfer.targets.model import changed

COLUMNS = 'idu = "integer", fname = "varchar(64)", lname = "varchar(64)", n = "integer"'
TABLES = tablesfile.read(f'[tables.usr]\nschema = "indirect"\nkey = ["idu"]\ncolumns = {{ {COLUMNS} }}\n')
JACK = changed(Op.INSERT, 1, fname="Jack", lname="Frost", n=1)
JANE = changed(Op.INSERT, 2, fname="Jane", lname="Doe", n=2)


class GrowingInput:
    """A file of changes, which is applied as far as it has grown."""

    def __init__(self, lake: LakeFolder, folder: Path) -> None:
        self.lake = lake
        self._path = folder / "changes.jsonl"
        self._changes: list[Change] = []
        self._duck = Duck()

    def apply(self, *changes: Change, tables: Tables = TABLES, **options: Any) -> Applied:
        """Apply the file, to which these changes are added."""
        self._changes += changes
        write_changes(self._path, self._changes)
        return apply_file(self.lake, self._path, tables, **options)

    def exchange(self, *changes: Change) -> None:
        """Put other changes in place of all."""
        self._changes = list(changes)

    def rows(self, table: str = "usr", columns: str = "*", version: int | None = None) -> list[Any]:
        """Return the rows of a table, as DuckDB reads them."""
        return sorted(self._duck.rows(self.lake, table, columns, version), key=repr)

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns."""
        return [name for name, *_ in self.query(f"describe from {self.lake.scan(table)}")]

    def query(self, statement: str) -> list[Any]:
        """Return the rows of a statement, as DuckDB reads them."""
        return self._duck.query(statement)

    def rounds(self, columns: str, state: str = "done") -> list[Any]:
        """Return columns of the table of rounds."""
        rounds = self.lake.scan("eventlog_rounds")
        query = f"select {columns} from {rounds} where state = '{state}' order by entry, table_name"
        return self.query(query)

    def versions(self) -> list[int]:
        """Return the versions of usr, one for each round that is done."""
        return [version for name, version in self.rounds("table_name, version") if name == "usr"]
