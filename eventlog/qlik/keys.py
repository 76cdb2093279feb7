"""Keys of messages in Avro: the schema of a KeyRecord names the key columns of a table."""

from __future__ import annotations

from dataclasses import replace

from eventlog.qlik import metadata
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.structure import Structure


def with_key(known: Metadata, schema: str) -> Metadata:
    """Return the metadata of a table, its key that of this schema of keys; unchanged if that names other
    columns.
    """
    names = metadata.names_of(schema)
    if not names or not set(names) <= set(known.structure.names):
        return known
    columns = tuple(
        replace(column, key_position=names.index(column.name) + 1 if column.name in names else 0)
        for column in known.structure.columns
    )
    return replace(known, structure=Structure(known.structure.schema, known.structure.table, columns))
