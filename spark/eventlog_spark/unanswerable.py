"""Query-backs of tables without current rows: each is refused, whatever other rows its object has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from eventlog.core.entry import COLUMNS, Entry
from eventlog.fold import plan
from eventlog.fold.by_column.vectors import Flags, Ints, encode_texts, flags, match_keys, number_distinct
from eventlog_spark.log_rows import LogReading
from eventlog_spark.shuffle import plain_form, shuffled_rows

_json = json.JSONEncoder(ensure_ascii=False).encode
_KINDS: Final = 16  # more than there are


class Unanswerable:
    """A finder of query-backs that are refused for certain; the plain fold gives each reason once."""

    def __init__(self, reading: LogReading) -> None:
        self._reading = reading
        tables = (table for table in reading.tables if table.key and table not in reading.answerable)
        self._forms = {reading.tables.name_of(table): plain_form(table) for table in tables}
        self._reasons: dict[tuple[str | None, str | None, int], str] = {}

    def find(self, batch: pa.RecordBatch) -> Flags:
        """Return which rows of a batch are such query-backs."""
        is_sure = np.zeros(batch.num_rows, np.bool_)
        asking = np.flatnonzero(batch.column("kind").to_numpy() > 4)
        if self._forms and len(asking):
            names, keys, logged = (
                batch.column(name).take(pa.array(asking)) for name in ("table_name", "table_key", "logged")
            )
            numbers, tables = encode_texts(names)
            forms = [self._forms.get(table or "") for table in tables]
            is_sure[asking] = match_keys(keys, numbers, forms) & ~flags(logged.is_valid())
        return is_sure

    def reasons(self, rows: pa.RecordBatch) -> pa.Array:
        """Return why each of these rows is refused."""
        table_of, tables = encode_texts(rows.column("table_name"))
        column_of, columns = encode_texts(rows.column("column_name"))
        kinds: Ints = rows.column("kind").to_numpy().astype(np.int64)
        codes, first = number_distinct(
            (table_of.astype(np.int64) * len(columns) + column_of) * _KINDS + kinds
        )
        reasons = []
        for at in first.tolist():
            case = tables[table_of[at]], columns[column_of[at]], int(kinds[at])
            if case not in self._reasons:
                (row,) = shuffled_rows([rows.slice(at, 1)])
                self._reasons[case] = self._reason(row.entry(self._reading.rules.status))
            reasons.append(self._reasons[case])
        return pa.array(reasons, pa.string()).take(pa.array(codes))

    def _reason(self, entry: Entry) -> str:
        reading = self._reading
        planned = plan([entry], reading.tables, reading.rules, answerable=reading.answerable)
        return planned.outcomes[entry.record_id].reason

    def records(self, rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """Return the columns of these rows as refused records."""
        ids = rows.column("record_id")
        at = pa.array(np.arange(len(ids) + 1), pa.int32())
        status = self._reading.rules.status
        return {
            "first_record_id": ids,
            "last_record_id": ids,
            "record_ids": pa.ListArray.from_arrays(at, ids),
            "refused": self.reasons(rows),
            "record": pa.array([line_of(row.entry(status)) for row in shuffled_rows([rows])], pa.string()),
        }


def line_of(entry: Entry) -> str:
    """Return a refused row as the text that is written with its reason."""
    return _json(dict(zip(COLUMNS, entry, strict=True)))
