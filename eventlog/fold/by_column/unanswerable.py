"""Query-backs of tables without current rows: each is refused, whatever other rows its object has."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import numpy as np
import pyarrow as pa

from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules, plan
from eventlog.fold.by_column.batch import Rows
from eventlog.fold.by_column.key_patterns import current_form
from eventlog.fold.by_column.vectors import Flags, encode_texts, match_keys, number_distinct

_KINDS: Final = 16  # more than there are


class Unanswerable:
    """A finder of query-backs that are refused for certain; the plain fold gives each reason once."""

    def __init__(self, tables: Tables, rules: Rules, answerable: Container[Table]) -> None:
        self._tables = tables
        self._rules = rules
        self._answerable = answerable
        tables_without_rows = (table for table in tables if table.key and table not in answerable)
        self._forms = {tables.name_of(table): current_form(table) for table in tables_without_rows}
        self._reasons: dict[tuple[str | None, str | None, int], str] = {}

    def find(self, rows: Rows) -> Flags:
        """Return which rows are such query-backs."""
        is_sure = np.zeros(len(rows), np.bool_)
        asking = np.flatnonzero(rows.kinds > 4)
        if self._forms and len(asking):
            names, keys = (texts.take(pa.array(asking)) for texts in (rows.tables, rows.keys))
            numbers, tables = encode_texts(names)
            forms = [self._forms.get(table or "") for table in tables]
            is_sure[asking] = match_keys(keys, numbers, forms)
        return is_sure

    def reasons(self, rows: Rows) -> pa.Array:
        """Return why each of these rows is refused."""
        table_of, tables = encode_texts(rows.tables)
        column_of, columns = encode_texts(rows.columns)
        names = table_of.astype(np.int64) * len(columns) + column_of
        codes, first = number_distinct(names * _KINDS + rows.kinds)
        reasons = []
        for at in first.tolist():
            case = tables[table_of[at]], columns[column_of[at]], int(rows.kinds[at])
            if case not in self._reasons:
                self._reasons[case] = self._reason(rows.take(np.array([at])))
            reasons.append(self._reasons[case])
        return pa.array(reasons, pa.string()).take(pa.array(codes))

    def _reason(self, row: Rows) -> str:
        (entry,) = row.entries(self._rules.status)
        planned = plan([entry], self._tables, self._rules, answerable=self._answerable)
        return planned.outcomes[entry.record_id].reason
