"""The metadata messages that were read: by their ids, and the newest of each table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

from eventlog.qlik.metadata import Metadata

_MAX_METADATA = 10_000
TableName = tuple[str | None, str]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class MetadataIndex:
    """A finder of the metadata of messages: by an id, else the newest of a table."""

    def __init__(self, published: Iterable[Metadata] = ()) -> None:
        self.by_id: dict[str, Metadata] = {}  # in the order in which they were read last
        self._newest: dict[TableName, Metadata] = {}
        for table_metadata in published:
            self.add(table_metadata)

    def add(self, table_metadata: Metadata) -> bool:
        """Add metadata as the newest of their table; return whether that changes an answer."""
        table, schema_id = _table_of(table_metadata), table_metadata.schema_id
        answers = self.by_id.get(schema_id), self._newest.get(table)
        put_newest(self.by_id, schema_id, table_metadata)
        put_newest(self._newest, table, table_metadata)
        return answers != (table_metadata, table_metadata)

    def set_newest(self, published: Iterable[Metadata]) -> bool:
        """Take these metadata as all that messages without an id may mean; return whether that is new."""
        newest = {_table_of(table_metadata): table_metadata for table_metadata in published}
        is_new, self._newest = newest != self._newest, newest
        return is_new

    def by_ids(self, ids: Iterable[str], table: TableName) -> Metadata | None:
        """Return the first metadata that the ids name and that are of the table; an empty name is any."""
        named = (self.by_id.get(schema_id) for schema_id in ids)
        return next((m for m in named if m is not None and _is_of(m, table)), None)

    def newest(self, table: TableName, columns: Iterable[str]) -> Metadata | None:
        """Return the newest metadata of a table; None if they lack one of the columns."""
        table_metadata = self._newest.get(table) or self._newest_by_name(table)
        if table_metadata is None or not table_metadata.structure.index.keys() >= set(columns):
            return None
        return table_metadata

    def _newest_by_name(self, table: TableName) -> Metadata | None:
        """Return the newest metadata of the only table whose schema may be the same."""
        matches = [m for m in self._newest.values() if m.structure.table and _is_of(m, table)]
        return matches[0] if len(matches) == 1 else None


def _table_of(table_metadata: Metadata) -> TableName:
    return table_metadata.structure.schema, table_metadata.structure.table


def _is_of(table_metadata: Metadata, table: TableName) -> bool:
    """Return whether metadata may be of a table; what has no name, or no schema, may be of any."""
    pairs = zip(_table_of(table_metadata), table, strict=True)
    return all(not first or not second or first == second for first, second in pairs)


def put_newest(metadata_by_key: dict[K, V], key: K, table_metadata: V) -> None:
    """Put metadata at the end; drop the first if there are too many."""
    metadata_by_key.pop(key, None)
    if len(metadata_by_key) >= _MAX_METADATA:
        metadata_by_key.pop(next(iter(metadata_by_key)))
    metadata_by_key[key] = table_metadata
