"""The documents of a log as rows of a DataFrame, folded by column; the plain fold decides what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import CurrentColumns, Engine, Events, Rows, one_by_one
from eventlog.columnar.learn import OPS
from eventlog.columnar.vectors import Flags, Ints, codes, flags, numbers, spread
from eventlog.core.tables import Table
from eventlog.fold import Answer, CurrentRow, Fate, QueryKey
from eventlog.log_files.by_column.object_spool import MAX_SHARE_BYTES, ObjectTooLarge
from eventlog.xds.documents import HEAD, TAIL
from eventlog_spark.batches import narrowed
from eventlog_spark.current_rows import asked
from eventlog_spark.log_rows import LogReading
from eventlog_spark.plain_fold import FoldToRows
from eventlog_spark.result_rows import Documents, document_columns
from eventlog_spark.shuffle import (
    CURRENT,
    UNREADABLE,
    answer_of,
    shuffled_rows,
    unpack_all_cells,
    unpack_name,
)

BRIEF = ["document", "op", "refused"]


class FoldToDocuments:
    """A task that folds sorted rows of whole objects, with the current rows among them."""

    def __init__(self, reading: LogReading, form: Documents, *, brief: bool = False) -> None:
        self._reading = reading
        self._form = form
        self._brief = brief  # only texts, operations and reasons are wanted

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        whole = self._form.schema
        return pa.schema([whole.field(name) for name in BRIEF]) if self._brief else whole

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fold = _Fold(self._reading, self._form, self.schema)
        for rows in whole_groups(map(narrowed, batches)):
            yield from fold.documents(rows)


def whole_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield sorted rows in batches that no group of one hash crosses."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        hashes = batch.column("h").to_numpy()
        if pending and hashes[0] != pending[-1].column("h")[-1].as_py():
            yield pa.concat_batches(pending)
            pending = []
        before = np.flatnonzero(hashes != hashes[-1])
        begin = int(before[-1]) + 1 if len(before) else 0
        if begin:
            yield pa.concat_batches([*pending, batch.slice(0, begin)])
            pending = []
        pending.append(batch.slice(begin))
        size = sum(part.nbytes for part in pending)
        if size > MAX_SHARE_BYTES:
            raise ObjectTooLarge(sum(part.num_rows for part in pending), size)
    if pending:
        yield pa.concat_batches(pending)


class _Fold:
    """The fold of one batch after another; what it has learnt of one, it keeps for the next."""

    def __init__(self, reading: LogReading, form: Documents, schema: pa.Schema) -> None:
        self._schema = schema
        self._brief = schema != form.schema
        self._tables = reading.tables
        self._plain = FoldToRows(reading, form)
        self._engine = Engine(
            reading.tables,
            reading.rules,
            form.settings,
            answerable=reading.answerable,
            read_back=one_by_one(self._read_back),
            ask=lambda needs: self._lookup,
            around=(HEAD, TAIL),
        )

    def documents(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the documents of these rows, and the rows that are refused."""
        kinds = batch.column("kind").to_numpy()
        self._batch = batch
        self._log = batch.filter(pa.array(kinds > CURRENT))
        self._current = batch.filter(pa.array(kinds == CURRENT))
        vars(self).pop("_answers", None)
        refused = kinds == UNREADABLE
        if self._log.num_rows:
            events = self._engine.events(log_rows(self._log))
            yield self._rows(events)
            refused |= self._troubled(events, kinds)
        if refused.any():
            rows = shuffled_rows([batch.filter(pa.array(refused))])
            yield from (bad.select(self._schema.names) for bad in self._plain.refused(rows))

    def _rows(self, events: Events) -> pa.RecordBatch:
        """Return the rows of events."""
        if self._brief:
            made = {"document": events.texts, "op": _ops(events)}
            none = pa.nulls(len(events.texts))
            columns = [made.get(field.name, none).cast(field.type) for field in self._schema]
            return pa.record_batch(columns, schema=self._schema)
        places = pa.array(events.places)
        tables, _ = named(self._log.column("name"))
        sizes = events.sizes
        ids = events.settled_by(slice(None))
        ends = np.cumsum(sizes)
        numbers_of_rows = self._log.column("record_id").to_numpy()[events.places]
        return pa.record_batch(
            [
                events.texts,
                events.event_ids(),
                tables.take(places).cast(pa.string()),
                self._log.column("table_key").take(places),
                _ops(events),
                pa.array(ids[ends - sizes]),
                pa.array(ids[ends - 1]),
                pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), pa.array(ids)),
                *document_columns(numbers_of_rows, events.parts),
            ],
            schema=self._schema,
        )

    def _troubled(self, events: Events, kinds: Ints) -> Flags:
        """Return the rows of each hash that has a refused row, current rows included."""
        ids = [record_id for record_id, outcome in events.reasons.items() if outcome.fate is Fate.REFUSED]
        ids += [record_id for one in events.unwritten for record_id in one.event.settles]
        if not ids:
            return np.zeros(len(kinds), np.bool_)
        hashes = self._batch.column("h").to_numpy()
        is_log = kinds > CURRENT
        wanted = hashes[is_log & np.isin(numbers_of(self._batch), ids)]
        found: Flags = (is_log | (kinds == CURRENT)) & np.isin(hashes, wanted)
        return found

    def _read_back(self, table: Table, keys: pa.Array) -> CurrentColumns:
        """Return the current rows of these objects; each key is that of a log row that needs its current
        row.
        """
        rows = log_rows(self._log)
        asking = np.flatnonzero((rows.kinds > 4) & flags(self._log.column("meets").is_valid()))
        own = rows.keys.take(pa.array(asking))
        names, _ = named(self._log.column("name").take(pa.array(asking)))
        of_table = flags(pc.equal(names, self._tables.name_of(table)))
        asking, own = asking[of_table], own.filter(pa.array(of_table))
        first = pc.index_in(keys, value_set=own).to_numpy(zero_copy_only=False).astype(np.int64)
        meets = self._log.column("meets").take(pa.array(asking[first]))
        both = numbers(pa.concat_arrays([meets, self._current.column("meets")]))
        wanted, current = both[: len(keys)], both[len(keys) :]
        order = np.argsort(current, kind="stable")
        begin, end = (np.searchsorted(current[order], wanted, side) for side in ("left", "right"))
        objects, place = spread(end - begin)
        return row_cells(table, objects, self._current.take(pa.array(order[begin[objects] + place])))

    def _lookup(self, table: Table, key: QueryKey) -> Answer:
        """Return the current rows of one object, for the plain fold."""
        return answer_of(self._answers.get(asked(table, key), ()))

    @cached_property
    def _answers(self) -> dict[str, list[CurrentRow]]:
        answers: dict[str, list[CurrentRow]] = {}
        for row in shuffled_rows([self._current]):
            answers.setdefault(row.table_key, []).append(row.current)
        return answers


def row_cells(table: Table, objects: Ints, rows: pa.RecordBatch) -> CurrentColumns:
    """Return the cells of these current rows by column; objects whose rows have other columns than the table
    are uncertain.
    """
    order = np.argsort(objects, kind="stable")
    found, counts = unpack_all_cells(rows.column("old_value"), rows.column("new_value"))
    begins = np.cumsum(counts) - counts
    right = order[counts[order] == len(table.data)]
    columns = [found.take(pa.array(begins[right] + at)) for at in range(len(table.data))]
    return CurrentColumns(objects[right], columns, np.unique(objects[counts != len(table.data)]))


def log_rows(batch: pa.RecordBatch) -> Rows:
    """Return the log rows of a batch that has no others, each under the names by which it was logged."""
    column = batch.column
    ids, kinds = (column(name).to_numpy().astype(np.int64) for name in ("record_id", "kind"))
    tables, columns = named(column("name"))
    keys = column("table_key")
    logged = column("logged").to_pylist() if "logged" in batch.schema.names else []
    if any(logged):
        own = [name and unpack_name(name) for name in logged]
        tables, keys = (
            pc.coalesce(pa.array([name and name[at] for name in own], pa.string()), side.cast(pa.string()))
            for at, side in enumerate((tables, keys))
        )
    return Rows(ids, kinds, tables, keys, columns, column("old_value"), column("new_value"))


def _ops(events: Events) -> pa.Array:
    """Return the operation of each event."""
    numbered = pa.array(events.ops())
    return pa.DictionaryArray.from_arrays(numbered, pa.array([str(op) for op in OPS])).cast(pa.string())


def numbers_of(batch: pa.RecordBatch) -> Ints:
    """Return the record_ids of rows, 0 of a row without one."""
    found: Ints = batch.column("record_id").fill_null(0).to_numpy()
    return found


def named(names: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the tables and the columns of packed names."""
    numbers, packed = codes(names)
    tables, columns = zip(*map(unpack_name, packed), strict=True) if packed else ((), ())
    return _each(numbers, tables), _each(numbers, columns)


def _each(numbers: Ints, texts: Sequence[str | None]) -> pa.Array:
    """Return the text of each number."""
    numbered = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    to = np.array([numbered[text] for text in texts], np.int64)
    return pa.DictionaryArray.from_arrays(pa.array(to[numbers]), pa.array(list(numbered), pa.string()))
