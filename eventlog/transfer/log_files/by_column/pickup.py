"""Files of log rows as one pick-up of any size, in columns: the documents of their events."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.entry import COLUMNS
from eventlog.core.errors import BadFile, EventlogError, Refused
from eventlog.core.formats import Row, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.arrow_stores import SortedBatches
from eventlog.files.current_files import CurrentFiles
from eventlog.files.inputs import Advance, Input, Passes, open_input, open_inputs, stem_of
from eventlog.files.limits import LIMITS, Limits
from eventlog.fold import CurrentRow, Rules
from eventlog.fold.by_column import CurrentAnswer, CurrentColumns, Engine, Needs, Rows
from eventlog.fold.by_column.admit import Repeats
from eventlog.fold.by_column.vectors import Ints
from eventlog.fold.event_table import document_sizes
from eventlog.fold.understand import why_unknown
from eventlog.formats.neutral import refuse
from eventlog.transfer.log_files.by_column import row_batches
from eventlog.transfer.log_files.by_column.checked_rows import TAKES_NO_PART, Checker
from eventlog.transfer.log_files.by_column.object_spool import RowSpool
from eventlog.transfer.log_files.letters import ReservedLetters
from eventlog.xds.documents import HEAD, TAIL, finish
from eventlog.xds.skeleton import Skeletons
from eventlog.xds.xds_settings import XdsSettings

_AT_ONCE = 1 << 20  # record_ids in memory


class RecordIds:
    """The record_ids of a log, on disk; those that ascend all the way repeat nothing."""

    def __init__(self) -> None:
        self._runs = SortedBatches(pa.schema([("record_id", pa.int64())]))
        self._last = 0
        self._ascend = True

    def close(self) -> None:
        """Drop all record_ids and the file."""
        self._runs.close()

    def add(self, ids: Ints) -> None:
        """Take the record_ids of some rows."""
        if not len(ids):
            return
        ascend = bool((ids[1:] > ids[:-1]).all())
        self._ascend = self._ascend and ascend and bool(ids[0] > self._last)
        self._last = int(ids[-1])
        self._runs.add(pa.record_batch([ids if ascend else np.sort(ids)], names=["record_id"]))

    def repeats(self) -> Repeats:
        """Return the record_ids that several rows have."""
        open_ids = np.empty(0, np.int64)
        parts = []
        for rows in () if self._ascend else self._runs.in_order(_AT_ONCE):
            ids = np.concatenate([open_ids, rows.column(0).to_numpy()])
            end = int(np.searchsorted(ids, ids[-1]))  # the last record_id may come again
            parts.append(Repeats.among(ids[:end]))
            open_ids = ids[end:]
        return Repeats.joined([*parts, Repeats.among(open_ids)])


class Refusals:
    """The places of refused rows in these files, and the reasons."""

    def __init__(self, inputs: Sequence[Input], limits: Limits) -> None:
        self._inputs = inputs
        self._limits = limits
        self._reasons: dict[str, int] = {}  # most rows are refused for one of a few
        self._refused_rows: list[list[tuple[Ints, Ints]]] = [[] for _ in inputs]

    def add(self, source: int, rows: Iterable[tuple[int, str]]) -> None:
        """Remember rows of one file, and why they were refused."""
        refused = list(rows)
        if not refused:
            return
        where, reasons = zip(*refused, strict=True)
        codes = [self._reasons.setdefault(reason, len(self._reasons)) for reason in reasons]
        self._refused_rows[source].append((np.array(where, np.int64), np.array(codes, np.int64)))

    def records(self) -> Iterator[Refused]:
        """Yield each with the record as it came, file by file."""
        reasons = list(self._reasons)
        for file, file_rows in zip(self._inputs, self._refused_rows, strict=True):
            if file_rows:
                where, codes = (np.concatenate(parts) for parts in zip(*file_rows, strict=True))
                order = np.argsort(where)
                reasons_by_place = zip(where[order].tolist(), codes[order].tolist(), strict=True)
                yield from _records(
                    file, self._limits, ((at, reasons[code]) for at, code in reasons_by_place)
                )


def _records(file: Input, limits: Limits, reasons_by_place: Iterator[tuple[int, str]]) -> Iterator[Refused]:
    """Yield the rows at these places, which ascend."""
    place, reason = next(reasons_by_place)
    for source in open_inputs([file], Shape.ROWS, limits=limits):
        if isinstance(source, Refused):
            continue
        for row in source.records:
            if not isinstance(row, Refused) and row.where == place:
                yield source.refuse(row, reason)
                place, reason = next(reasons_by_place, (-1, ""))


_MEMORY = 16 << 20  # bytes of rows
_EVENTS = pa.schema([("place", pa.int64()), ("object", pa.int64()), ("text", pa.large_string())])


class BulkPickup:
    """One pick-up; `refused` gets each row that was left out."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        settings: XdsSettings,
        current: CurrentFiles,
        clock: str,
        refused: Callable[[Refused], None],
        limits: Limits = LIMITS,
        memory: int = _MEMORY,
    ) -> None:
        self._tables = tables
        self._rules = rules
        self._settings = settings
        self._current = current
        self._clock = clock
        self._refused = refused
        self._limits = limits
        self._memory = memory
        self._reserved = ReservedLetters(rules)
        self._objects = 0  # of all events
        self.written = 0  # events that were written
        self._engine = Engine(tables, rules, Skeletons(tables, settings), answerable=current.tables)

    def documents(self, inputs: Sequence[Input], advance: Advance) -> Iterator[bytes | Refused]:
        """Yield the documents of all rows of these files; each file has a named container.

        The bytes of the files are reported three times: rows are read, folded and written.
        """
        with ExitStack() as stack:
            written_events = stack.enter_context(closing(SortedBatches(_EVENTS)))
            ids = stack.enter_context(closing(RecordIds()))
            spool = stack.enter_context(closing(RowSpool(self._tables, self._memory)))
            refusals = Refusals(inputs, self._limits)
            passes, count = Passes(advance), 0
            for number, file in enumerate(inputs):
                for rows in self._rows(number, file, passes.read, refusals):
                    ids.add(rows.column("record_id").to_numpy())
                    spool.add(rows)
                    count += rows.num_rows
            repeats = ids.repeats()
            for rows in passes.over(spool.batches(), count, len):
                yield from self._fold(_once(rows, repeats, refusals), written_events, refusals)
            for column in sorted(self._engine.unknown):
                self._refused(Refused(column[0], why_unknown(column), fault=False))
            for warning in self._reserved.warnings():
                self._refused(warning)
            for refused in refusals.records():
                self._refused(refused)
            yield from self._packed(passes.over(written_events.in_order(), self.written, len))

    def _rows(self, number: int, of: Input, advance: Advance, refusals: Refusals) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file that can be understood; the others are refused."""
        name, container = of
        with open_input(name, advance) as file:
            try:
                columns, slabs = row_batches.read(file, name, container, self._limits)
                checker = Checker(number, columns, name, self._clock, self._rules, self._reserved)
                source = Source[Row](name, stem_of(name), columns, ())
                for slab in slabs:
                    if isinstance(slab, Refused):
                        self._refused(slab)
                        continue
                    rows, odd = checker.read(slab)
                    refusals.add(number, ((where, reason) for where, reason, row in odd if row is None))
                    for _, reason, row in odd:
                        if row is not None:
                            self._refused(source.refuse(row, reason))
                    yield rows
            except EventlogError as fault:
                self._refused(BadFile(name, str(fault).removeprefix(f"{name}: ")))
            except (OSError, EOFError, zlib.error) as fault:
                self._refused(BadFile(name, f"the rest of the file cannot be read: {fault}"))

    def _fold(
        self, rows: pa.RecordBatch, written_events: SortedBatches, refusals: Refusals
    ) -> Iterator[Refused]:
        """Fold whole objects; yield the events that cannot be written."""
        rows = rows.filter(pc.not_equal(rows.column("event_type"), TAKES_NO_PART))
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        ids, kinds = (columns[name].to_numpy() for name in ("record_id", "event_type"))
        log = Rows(ids, kinds, *(columns[name] for name in COLUMNS[5:]))
        (result,) = self._engine.fold(log, self._read_back)
        objects = result.events.objects
        numbers = objects + self._objects  # an object of one batch is none of another
        self._objects += 1 + int(objects.max(initial=-1))
        written = [ids[result.places], numbers, result.texts.cast(pa.large_string())]
        written_events.add(pa.record_batch(written, schema=_EVENTS))
        self.written += len(objects)
        _add_refusals(rows, *result.refused, refusals)
        for each in result.unwritten:
            assert each.fault is not None
            yield refuse(each.event.change, each.fault)

    def _read_back(self, needs: Needs) -> CurrentAnswer:
        keys = needs.keys
        groups: list[CurrentColumns] = []
        first = 0
        for table, texts in zip(keys.tables, keys.keys, strict=True):
            numbers: list[int] = []
            rows: list[CurrentRow] = []
            for number, need in enumerate(keys.needs(np.arange(first, first + len(texts))), first):
                answer = self._current.lookup(*need)
                assert not isinstance(answer, EventlogError)
                numbers += [number] * len(answer)
                rows += answer
            cells: Sequence[Sequence[str | None]] = list(zip(*rows, strict=True)) or [()] * len(table.data)
            columns = [pa.array(column, pa.string()) for column in cells]
            groups.append(CurrentColumns(np.array(numbers, np.int64), columns))
            first += len(texts)
        return CurrentAnswer(groups, lookup=self._current.lookup)

    def _packed(self, events: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        """Yield the documents of events in order; the last of each step waits for what may join it."""
        batch_size = self._settings.batch_size
        texts, objects = pa.array([], pa.large_string()), np.empty(0, np.int64)
        for event_batch in chain(events, [None]):
            if event_batch is not None:
                texts = pa.concat_arrays([texts, event_batch.column("text")])
                objects = np.concatenate([objects, event_batch.column("object").to_numpy()])
            sizes = document_sizes(objects, batch_size)
            ready = sizes if event_batch is None or batch_size == 1 else sizes[:-1]
            yield from self._finished(texts, ready)
            count = int(ready.sum())
            texts, objects = texts[count:], objects[count:]

    def _finished(self, texts: pa.Array, sizes: Ints) -> Iterator[bytes]:
        """Yield the documents of the first events, of so many events each."""
        if not len(sizes):
            return
        head, tail = HEAD.encode(), f"{TAIL}\n".encode()
        edges = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][np.cumsum([0, *sizes])].tolist()
        data = memoryview(texts.buffers()[2])
        documents = b"".join([b"".join((head, data[begin:end], tail)) for begin, end in pairwise(edges)])
        if self._settings.pretty:
            yield from (finish(line, self._settings) for line in documents.decode().splitlines())
        else:
            yield documents


def _once(rows: pa.RecordBatch, repeats: Repeats, refusals: Refusals) -> pa.RecordBatch:
    """Return the rows with a record_id of their own; the others are refused."""
    ids = rows.column("record_id").to_numpy()
    is_repeated = repeats.find(ids)
    if not is_repeated.any():
        return rows
    places = np.flatnonzero(is_repeated)
    _add_refusals(rows, places, repeats.reasons(ids[places]), refusals)
    return rows.filter(pa.array(~is_repeated))


def _add_refusals(rows: pa.RecordBatch, at: Ints, reasons: Sequence[str], refusals: Refusals) -> None:
    """Remember why these rows were refused."""
    sources, where = (rows.column(name).to_numpy()[at] for name in ("source", "where"))
    for source in np.unique(sources).tolist():
        numbers = np.flatnonzero(sources == source).tolist()
        refusals.add(source, ((int(where[number]), reasons[number]) for number in numbers))
