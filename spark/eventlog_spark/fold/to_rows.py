"""Sorted rows folded to the rows of a DataFrame; what is refused is told among them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from operator import itemgetter

import pyarrow as pa

from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import Refused
from eventlog.core.tables import Table
from eventlog.fold import Answer, CurrentRow, Fate, QueryKey, whole_objects
from eventlog_spark.fold.plain import FoldContext, ShuffledRow, entry_of, folded, log_rows, size_of
from eventlog_spark.input.batches import bounded
from eventlog_spark.input.current import asked
from eventlog_spark.input.kinds import CURRENT, UNREADABLE
from eventlog_spark.output.frame_rows import FrameForm, FrameRow, text_of


class FoldToRows:
    """Folds the rows of whole objects, and the current rows that they ask for stand among them."""

    def __init__(self, known: FoldContext, form: FrameForm) -> None:
        self._known = known
        self._form = form

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._told(batches), self._form.schema)

    def _told(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        hashed = (
            pair
            for batch in batches
            for pair in zip(batch.column("h").to_pylist(), log_rows([batch]), strict=True)
        )
        for chunk in whole_objects(hashed, itemgetter(0), lambda pair: size_of(pair[1])):
            yield from self._fold(row for _, row in chunk)

    def _fold(self, rows: Iterable[ShuffledRow]) -> Iterator[FrameRow]:
        answers: dict[str, list[CurrentRow]] = {}
        entries: dict[int, Entry] = {}
        for row in rows:
            if row.kind == CURRENT:
                answers.setdefault(row.table_key, []).append(row.current)
            elif row.kind == UNREADABLE:
                ids = (row.record_id,) if row.record_id else ()
                yield self._form.refused(row.old_value or "", row.new_value, ids)
            else:
                entries[row.record_id] = entry_of(self._known, row)

        def lookup(table: Table, key: QueryKey) -> Answer:
            return answers.get(asked(table, key), ())

        events, outcomes = folded(self._known, entries.values(), lookup)
        for event in events:
            for told in self._form.of_event(event):
                if isinstance(told, Refused):
                    yield self._form.refused(told.reason, text_of(told.raw), event.settles)
                else:
                    yield told
        for record_id, outcome in outcomes.items():
            if outcome.fate is Fate.REFUSED:
                yield self._form.refused(outcome.reason, _line(entries[record_id]), (record_id,))


def _line(entry: Entry) -> str:
    return json.dumps(dict(zip(COLUMNS, entry, strict=True)), ensure_ascii=False)
