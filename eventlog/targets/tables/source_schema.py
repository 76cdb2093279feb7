"""The tables as their source describes them besides changes: by metadata messages and catalogues."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.qlik.structure import Structure
from eventlog.qlik.types import Spec

Named = tuple[str | None, str]

_MAX_TABLES = 10_000  # tables that are remembered


class SourceSchema:
    """The columns and keys that a source described, by table; the last description counts."""

    def __init__(self) -> None:
        self._columns: dict[Named, dict[str, Spec]] = {}
        self._keys: dict[Named, tuple[str, ...]] = {}

    def add_description(self, structure: Structure) -> None:
        """Note the description of a table by its source."""
        named = structure.schema, structure.table
        if len(self._columns) >= _MAX_TABLES and named not in self._columns:
            oldest = next(iter(self._columns))
            del self._columns[oldest]
            self._keys.pop(oldest, None)
        specs = {column.name: column.spec for column in structure.columns if column.spec is not None}
        self._columns[named] = self._columns.get(named, {}) | specs
        if structure.key:
            self._keys[named] = tuple(structure.columns[place].name for place in structure.key)

    def columns(self, named: Named) -> dict[str, Spec]:
        """Return the columns of a table that have a described type."""
        return self._columns.get(named, {})

    def key(self, named: Named) -> Sequence[str]:
        """Return the key of a table; empty if no source described it."""
        return self._keys.get(named, ())
