"""Keys of messages in Avro: a KeyRecord of the primary key's columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eventlog.core.change import Change
from eventlog.qlik import avro, metadata
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.row_plans import RowPlan, avro_type, dumping_avro
from eventlog.qlik.structure import DataColumn, Structure

_NAME = "KeyRecord"
_MAX_KNOWN = 10_000


def key_schema(columns: tuple[DataColumn, ...], logical: bool) -> avro.Schema:
    """Return the schema of the keys of a table; a key column is never null, so none is optional."""
    fields = [{"name": column.name, "type": avro_type(column, logical)} for column in columns]
    return {"type": "record", "name": _NAME, "fields": fields}


# the number: of the schema in a registry
_Known = tuple[tuple[DataColumn, ...], avro.Schema, RowPlan, int | None]


class KeyWriter:
    """Writes the keys of data messages: as a plain record or, with a registry, in Confluent's wire format."""

    def __init__(self, logical: bool, register: Callable[[str, str], int] | None) -> None:
        self._logical = logical
        self._register = register
        self._known: dict[Structure, _Known] = {}
        self._last: tuple[Structure, _Known] | None = None  # most messages are of the table before

    def write(self, change: Change, structure: Structure) -> bytes | None:
        """Return the key of a change; None where the change, or its table, has none."""
        values = dict(change.key)
        if not values:
            return None
        if self._last is None or self._last[0] is not structure:
            self._last = structure, self._known.get(structure) or self._learn(structure)
        columns, schema, dump, number = self._last[1]
        if not columns or values.keys() != {column.name for column in columns}:
            return None
        row = dump([values[column.name] for column in columns])
        record = avro.encode(schema, dict(zip((column.name for column in columns), row, strict=True)))
        return record if number is None else avro.frame(number, record)

    def _learn(self, structure: Structure) -> _Known:
        columns = tuple(structure.columns[place] for place in structure.key)
        text = avro.dump_schema(key_schema(columns, self._logical))
        number = self._register(str(structure), text) if self._register is not None and columns else None
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        known = columns, avro.foreign(text), dumping_avro(columns, self._logical), number
        self._known[structure] = known
        return known


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
