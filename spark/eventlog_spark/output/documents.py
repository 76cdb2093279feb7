"""XDS documents as rows of Parquet, beside what tells them apart: record ids, object, event-id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.formats import Sheet, SheetColumn, SheetRow

SHEET = Sheet(
    "documents",
    tuple(
        SheetColumn(name, "text")
        for name in ("record_ids", "schema_name", "table_name", "table_key", "event_id", "document")
    ),
)


def rows(changes: Iterable[Change], write: Callable[[Change], Iterator[Any]]) -> Iterator[Any]:
    """A row for each document of each change; the record ids stand as text, with commas."""
    for change in changes:
        ids = change.fact("record_ids")
        listed = ",".join(map(str, ids)) if isinstance(ids, tuple) else None
        named = (change.fact("table_key"), change.fact("event_id"))
        for record in write(change):
            if isinstance(record, bytes):
                text = record.decode().removesuffix("\n")
                yield SheetRow(SHEET, (listed, change.schema, change.table, *named, text))
            else:
                yield record
