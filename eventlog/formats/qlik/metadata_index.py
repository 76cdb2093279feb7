"""The metadata messages that were read: by their ids, and the newest of each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eventlog.formats.qlik.envelope import InvalidMessage
from eventlog.formats.qlik.metadata import Metadata
from eventlog.transactions.topic_progress import MAX_NOTES, remember

TableName = tuple[str | None, str]


class Description(NamedTuple):
    """The metadata that describe the columns of a message, if any do."""

    metadata: Metadata | None = None
    lack: str = ""  # why the ordinals of the message are others than those of any metadata that were read


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
        remember(self.by_id, schema_id, table_metadata, MAX_NOTES)
        remember(self._newest, table, table_metadata, MAX_NOTES)
        return answers != (table_metadata, table_metadata)

    def set_newest(self, published: Iterable[Metadata]) -> bool:
        """Take these metadata as all that messages without an id may mean; return whether that is new."""
        newest = {_table_of(table_metadata): table_metadata for table_metadata in published}
        is_new, self._newest = newest != self._newest, newest
        return is_new

    def named(self, ids: Mapping[str, str]) -> Metadata | None:
        """Return the metadata that the ids of a message name, by their headers.

        Raise InvalidMessage if they name different ones.
        """
        named = [self.by_id[schema_id] for schema_id in ids.values() if schema_id in self.by_id]
        if any(metadata.structure != named[0].structure for metadata in named[1:]):
            raise InvalidMessage(f"{_shown(ids)} name different metadata messages")
        return named[0] if named else None

    def describe(self, ids: Mapping[str, str], table: TableName, columns: Iterable[str]) -> Description:
        """Return what describes the columns of a message of a table; an empty name is any table."""
        table_metadata = self.named(ids)
        words = f"{_shown(ids)} {'names' if len(ids) == 1 else 'name'}"
        if table_metadata is None and ids:
            return Description(None, f"{words} no metadata message that was read")
        if table_metadata is None:
            table_metadata = self._newest.get(table) or self._newest_by_name(table)
            if table_metadata is None:
                return Description()
            words = f"the newest metadata of {table_metadata.structure} lack"
        elif not _is_of(table_metadata, table):
            name = ".".join(filter(None, table))
            return Description(None, f"{words} the metadata of {table_metadata.structure}, not of {name}")
        else:
            words = f"{words} metadata without"
        index = table_metadata.structure.index
        missing = next((name for name in columns if name not in index), None)
        return Description(table_metadata, "" if missing is None else f"{words} column {missing}")

    def _newest_by_name(self, table: TableName) -> Metadata | None:
        """Return the newest metadata of the only table whose schema may be the same."""
        matches = [m for m in self._newest.values() if m.structure.table and _is_of(m, table)]
        return matches[0] if len(matches) == 1 else None


def _shown(ids: Mapping[str, str]) -> str:
    return " and ".join(f"{header} {schema_id[:40]}" for header, schema_id in ids.items())


def _table_of(table_metadata: Metadata) -> TableName:
    return table_metadata.structure.schema, table_metadata.structure.table


def _is_of(table_metadata: Metadata, table: TableName) -> bool:
    """Return whether metadata may be of a table; what has no name, or no schema, may be of any."""
    pairs = zip(_table_of(table_metadata), table, strict=True)
    return all(not first or not second or first == second for first, second in pairs)
