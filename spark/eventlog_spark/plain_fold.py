"""The plain way, which is the reference: rows of whole objects, one by one, some thousands at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from operator import itemgetter

import pyarrow as pa

from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import Refused
from eventlog.core.tables import Table
from eventlog.fold import Answer, CurrentRow, Fate, QueryKey, plan, whole_objects
from eventlog_spark.batches import bounded
from eventlog_spark.current_rows import asked
from eventlog_spark.log_rows import LogReading
from eventlog_spark.result_rows import FrameForm, FrameRow, text_of
from eventlog_spark.shuffle import CURRENT, UNREADABLE, ShuffledRow, answer_of, shuffled_rows, unpack_name


def entry_of(reading: LogReading, row: ShuffledRow) -> Entry:
    """Return the row as the fold takes it: its table and key as they were logged."""
    name, key = (row.table_name, row.table_key) if row.logged is None else unpack_name(row.logged)
    return Entry(
        row.record_id,
        reading.rules.status,
        row.kind,
        row.event_time or "",
        row.perpetrator,
        name,
        key or "",
        row.column_name,
        row.old_value,
        row.new_value,
    )


def size_of(row: ShuffledRow) -> int:
    """Return how many characters a row's values have."""
    return len(row.old_value or "") + len(row.new_value or "")


class FoldToRows:
    """A task that folds the rows of whole objects, with the current rows among them."""

    def __init__(self, reading: LogReading, form: FrameForm) -> None:
        self._reading = reading
        self._form = form

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        return self._form.schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(batches), self._form.schema)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        hashed = (
            pair
            for batch in batches
            for pair in zip(batch.column("h").to_pylist(), shuffled_rows([batch]), strict=True)
        )
        for chunk in whole_objects(hashed, itemgetter(0), lambda pair: size_of(pair[1])):
            yield from self._fold(row for _, row in chunk)

    def refused(self, rows: Iterable[ShuffledRow]) -> Iterator[pa.RecordBatch]:
        """Yield what is refused of these rows of whole objects."""
        return bounded((row for row in self._fold(rows) if row[-2] is not None), self._form.schema)

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
                entries[row.record_id] = entry_of(self._reading, row)

        def lookup(table: Table, key: QueryKey) -> Answer:
            return answer_of(answers.get(asked(table, key), ()))

        reading = self._reading
        planned = plan(
            entries.values(), reading.tables, reading.rules, now=reading.now, answerable=reading.answerable
        )
        for event in planned.events(lookup):
            for record in self._form.of_event(event):
                if isinstance(record, Refused):
                    yield self._form.refused(record.reason, text_of(record.raw), event.settles)
                else:
                    yield record
        for record_id, outcome in planned.outcomes.items():
            if outcome.fate is Fate.REFUSED:
                yield self._form.refused(outcome.reason, _line(entries[record_id]), (record_id,))


def _line(entry: Entry) -> str:
    return json.dumps(dict(zip(COLUMNS, entry, strict=True)), ensure_ascii=False)
