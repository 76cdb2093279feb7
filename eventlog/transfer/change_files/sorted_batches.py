"""Rows of change tables as batches of one schema, which somebody else sorts, and what sorted ones become.

The cells of a row are in the column of its layout, which sources with columns of the same types share. A
record whose cells no column holds is an item.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches.lines import MakeForm
from eventlog.change_batches.values import matches
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.portions import portions
from eventlog.files.inputs import stem_of
from eventlog.files.parquet import plain_types
from eventlog.fold.by_column.vectors import Flags, Ints, flags
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog.transfer.change_files.by_sequence import SequencedFiles
from eventlog.transfer.change_files.file_rows import FileRows, RowChunk, by_column
from eventlog.transfer.change_files.odd_lines import Interleaved
from eventlog.transfer.change_files.sorted_slabs import Slab
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, one_by_one
from eventlog.transfer.report import Report
from eventlog.transfer.ways import is_certain

IN_SEQUENCE, REFUSED = 0, 1  # kinds of records
AS_ITEMS: Final = -1  # in place of a layout
AT_ONCE: Final = 16_384  # rows that become lines together
_BYTES: Final = 16 << 20  # of a batch
_MOST_BYTES: Final = 256 << 20  # of a range that memory holds
_PLACE: Final = ("seq", "without_sequence", "table", "number")
_EACH: Final = 256  # rows at least; the first of them shows where ranges may begin
_MOST_TIMES: Final = 1 << 20  # that are looked at, if a row has
_ROW_BYTES: Final = 64
_NO_TIMES: Final = np.empty(0, f"S{sequence.TIME}")
_ROWS: Final = 4096  # that become columns together
SEQUENCE: Final = rf"\A(?:{sequence.PATTERN})\z"
PLACES: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("seq", pa.string()),  # empty without one
        ("without_sequence", pa.bool_()),
        ("table", pa.int32()),
        ("source", pa.int32()),
        ("number", pa.int64()),
        ("record", pa.binary()),
        ("item", pa.binary()),
    ]
)
_EXACT: Final = {  # types whose values each sorter keeps
    str(kind): kind
    for kind in (
        *(pa.string(), pa.binary(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us")),
    )
}

T = TypeVar("T")
Types = tuple[pa.DataType, ...]
Batches = Iterator[pa.RecordBatch]


class TableHeading(NamedTuple):
    """The columns of a file, and their types if columns of Arrow hold its rows."""

    columns: tuple[str, ...]
    types: Types | None


def text_heading(container: str, columns: tuple[str, ...]) -> TableHeading:
    """Return the heading of a text file; values of JSON have any type."""
    return TableHeading(columns, (pa.string(),) * len(columns) if container == "csv" else None)


def heading_of(
    opened: AbstractContextManager[IO[bytes]], name: str, container: str, columns: tuple[str, ...]
) -> TableHeading:
    """Return the heading of a file with these columns."""
    if container != "parquet":
        return text_heading(container, columns)
    with opened as file:
        types = [*plain_types(file, name).values()]
    is_exact = types and _EXACT.keys() >= {*types}
    return TableHeading(columns, tuple(_EXACT[kind] for kind in types) if is_exact else None)


class TableSources:
    """The files of change tables, and the layouts of their rows."""

    def __init__(self, sequencer: RowSequencer) -> None:
        self._sequencer = sequencer
        self._types: list[Types] = []  # of the layouts
        self.layouts: list[int] = []  # of the sources

    def add(self, name: str, heading: TableHeading | Refused) -> SourceNumbers | Refused:
        """Add a file to the sequencer; return its numbers, or why it is no change table."""
        if isinstance(heading, Refused):
            return heading
        columns, types = heading
        part = self._sequencer.add_source(Source[Row](name, stem_of(name), columns, ()))
        if isinstance(part, Refused):
            return part
        if types is not None and types not in self._types:
            self._types.append(types)
        source = len(self.layouts)
        self.layouts.append(AS_ITEMS if types is None else self._types.index(types))
        table, seq_at = self._sequencer.table_of(source), part.heading.headers.get("change_seq")
        return SourceNumbers(source, table, self.layouts[source], seq_at)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all rows."""
        structs = (pa.struct([(f"c{at}", kind) for at, kind in enumerate(types)]) for types in self._types)
        return pa.schema([*PLACES, *((f"t{layout}", struct) for layout, struct in enumerate(structs))])


def filled(cells: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return columns as a batch of this schema; those that are missing are null."""
    columns = [cells.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def cut(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield batches in parts of 16 MiB, if their rows are alike."""
    for batch in batches:
        rows = max(1, batch.num_rows * _BYTES // max(batch.nbytes, 1))
        yield from (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))


class SourceNumbers(NamedTuple):
    """The numbers of a source and of its table, its layout, and the place of its change_seq."""

    source: int
    table: int
    layout: int
    seq_at: int | None

    def batches(self, slab: RowBatch | Sequence[Row], schema: pa.Schema) -> Batches:
        """Yield rows of the source as they are, with their places."""
        if self.layout == AS_ITEMS:
            for rows in portions(one_by_one(slab), _ROWS, _size, _BYTES):
                yield self._items(rows, schema)
        else:
            struct = schema.field(f"t{self.layout}").type
            yield from cut(self._columns(rows, schema, struct) for rows in _file_rows(slab, struct))

    def _columns(self, rows: FileRows, schema: pa.Schema, struct: pa.StructType) -> pa.RecordBatch:
        cells = self._places(len(rows.where)) | {"number": pa.array(rows.where), "record": rows.records}
        if self.seq_at is not None and pa.types.is_string(rows.columns[self.seq_at].type):
            texts = rows.columns[self.seq_at]
            cells |= _sequences(pc.if_else(pa.array(matches(texts, SEQUENCE)), texts, ""))
        cells[f"t{self.layout}"] = pa.StructArray.from_arrays(rows.columns, fields=[*struct])
        return filled(cells, len(rows.where), schema)

    def _items(self, rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
        cells = self._places(len(rows)) | {"number": pa.array([row.where for row in rows])}
        cells |= _sequences(pa.array([self._seq(row.cells) for row in rows]))
        return filled(cells | {"item": pa.array(map(pickle.dumps, rows), pa.binary())}, len(rows), schema)

    def _places(self, count: int) -> dict[str, pa.Array]:
        numbers = {"kind": IN_SEQUENCE, "table": self.table, "source": self.source}
        places = {name: pa.array(np.full(count, at), PLACES.field(name).type) for name, at in numbers.items()}
        return places | _sequences(pa.array([""] * count))

    def _seq(self, cells: Sequence[Any]) -> str:
        cell = cells[self.seq_at] if self.seq_at is not None and self.seq_at < len(cells) else None
        return cell if isinstance(cell, str) and sequence.legal(cell) else ""


def refusal(refused: Refused, schema: pa.Schema) -> pa.RecordBatch:
    """Return what was refused as a row, which comes before all that are in the sequence."""
    row = {"kind": REFUSED, "seq": "", "without_sequence": True, "table": 0, "source": 0, "number": 0}
    return pa.RecordBatch.from_pylist([row | {"item": pickle.dumps(refused)}], schema)


def _sequences(seqs: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of change_seqs; an empty one is none."""
    return {"seq": seqs, "without_sequence": pc.equal(seqs, "")}


def _file_rows(slab: RowBatch | Sequence[Row], types: Iterable[pa.Field]) -> Iterator[FileRows]:
    if isinstance(slab, RowBatch):
        records = pa.nulls(len(slab.where), pa.binary()) if slab.records is None else slab.records()
        yield FileRows([*slab.columns.values()], slab.where, records)
        return
    for rows in portions(slab, _ROWS, _size, _BYTES):
        yield by_column(rows, [field.type for field in types])


def _size(row: Row) -> int:
    return sum(len(cell) for cell in row.cells if isinstance(cell, str | bytes))


# --- ranges of the sequence

Times = npt.NDArray[np.bytes_]  # the times in change_seqs, to a hundredth of a second


def step_of(size: int) -> int:
    """Return of how many rows one is looked at, where all have so many bytes."""
    return max(_EACH, size // _ROW_BYTES // _MOST_TIMES)


def some_times(batches: Iterable[pa.RecordBatch], step: int = _EACH) -> Times:
    """Return the times of every so many rows."""
    return np.concatenate([_NO_TIMES, *(_times(batch)[::step] for batch in batches)])


def bounds_of(times: Sequence[Times], ranges: int, size: int) -> Times | None:
    """Return the times at which ranges of rows with so many bytes begin; None if memory cannot hold a range.

    No range begins in the middle of a hundredth of a second, so that none cuts a change_seq.
    """
    ordered = np.sort(np.concatenate([_NO_TIMES, *times]))
    if not len(ordered):
        return ordered
    bounds: Times = np.unique(ordered[np.arange(1, ranges) * len(ordered) // ranges])
    largest = np.bincount(ranges_of(bounds, ordered)).max() / len(ordered)
    return bounds if largest * size < _MOST_BYTES else None


def ranges_of(bounds: Times, times: Times) -> Ints:
    """Return the number of the range of each time."""
    return np.searchsorted(bounds, times, "right")


def ranges_of_rows(bounds: Times, batch: pa.RecordBatch) -> Ints:
    """Return the number of the range of each row."""
    return ranges_of(bounds, _times(batch))


def _times(batch: pa.RecordBatch) -> Times:
    times = pc.utf8_slice_codeunits(batch.column("seq"), 0, sequence.TIME)
    of_rows: Times = times.to_numpy(zero_copy_only=False).astype(_NO_TIMES.dtype)
    return of_rows


# --- sorted ones


class WithoutSequence(EventlogError):
    """{0} has rows without a change_seq: one task reads it"""


def whole_groups(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield sorted rows again: the last group of a batch is carried over to those of the next batch."""
    carried: list[pa.RecordBatch] = []
    for batch in batches:
        last = _last_group(batch)
        if last or (carried and _group(carried[0], 0) != _group(batch, 0)):
            yield pa.concat_batches([*carried, batch.slice(0, last)])
            carried = []
        carried.append(batch.slice(last))
    if carried:
        yield pa.concat_batches(carried)


def group_starts(rows: pa.RecordBatch) -> Ints:
    """Return where groups of sorted rows start."""
    differ = changes_at([rows.column("seq"), rows.column("table")])
    return np.flatnonzero(differ | flags(rows.column("without_sequence")))


def changes_at(columns: Iterable[pa.Array]) -> Flags:
    """Return which rows differ from those before them in some column; nulls are alike."""
    differ = [~flags(pc.equal(each[1:], each[:-1])) & ~_are_null(each) for each in columns]
    all_but_first: Flags = np.logical_or.reduce(differ)
    return np.append(True, all_but_first)


def _are_null(column: pa.Array) -> Flags:
    """Return which elements are null, as those before them are."""
    nulls = flags(column.is_null())
    both: Flags = nulls[1:] & nulls[:-1]
    return both


def _last_group(batch: pa.RecordBatch) -> int:
    """Return the first row of the last group."""
    row: int = batch.num_rows - 1
    group = _group(batch, row)
    while row and _group(batch, row - 1) == group:
        row -= 1
    return row


def _group(batch: pa.RecordBatch, row: int) -> tuple[Any, ...]:
    """Return the place of a row in the sequence, which it shares with those of its group."""
    seq, is_alone, table, number = (batch.column(name)[row].as_py() for name in _PLACE)
    return seq, table, number if is_alone else None


class RangeLines(Interleaved[pa.RecordBatch]):
    """A writer of rows that were made by column, and between them of odd changes."""

    def __init__(self, schema: pa.Schema, write: Callable[[Iterable[Change | Refused]], Batches]) -> None:
        self._schema = schema
        self._write = write

    def pass_on(self, texts: pa.Array) -> pa.RecordBatch:
        """Return lines, or rows of their columns, as a batch."""
        if pa.types.is_struct(texts.type):
            cells = dict(zip((field.name for field in texts.type), texts.flatten(), strict=True))
        else:
            cells = {"document": pc.ascii_rtrim(texts, "\n")}
        return filled(cells, len(texts), self._schema)

    def write(self, changes: Iterable[Change | Refused]) -> Batches:
        """Yield the rows of changes."""
        return self._write(changes)


@dataclass(frozen=True)
class SortedRows:
    """Reads sorted rows of all change tables."""

    sequencer: RowSequencer
    layouts: Sequence[int]  # of the sources
    in_files: bool  # whose rows without a change_seq cannot be sorted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SequencedRow | Refused]:
        """Yield the rows one by one."""
        for batch in batches:
            rows = {at: rows.one_by_one(np.arange(len(rows.where))) for at, rows in self._by_source(batch)}
            places = (batch.column(name).to_pylist() for name in ("seq", "source", "item"))
            for seq, source, item in zip(*places, strict=True):
                record = next(rows[source]) if item is None else _unpack(item)
                for row in [record] if isinstance(record, Refused) else self.sequencer.rows(source, [record]):
                    if self.in_files and not isinstance(row, Refused) and row.place[:2] != (seq, False):
                        raise WithoutSequence(self.sequencer.part_of(source).source.name)
                    yield row

    def are_certain(self, schema: pa.Schema) -> bool:
        """Return whether all rows can be read by column."""
        if AS_ITEMS in self.layouts:
            return False
        structs = (schema.field(f"t{layout}").type for layout in self.layouts)
        types = ([str(_small(pa.array([], field.type)).type) for field in struct] for struct in structs)
        return all(is_certain(self.sequencer.part_of(at), each) for at, each in enumerate(types))

    def lines(
        self,
        batches: Iterable[pa.RecordBatch],
        make_form: MakeForm,
        writer: Interleaved[T],
        refused: list[Refused],
    ) -> Iterator[T]:
        """Yield the lines of certain rows, which come in whole groups; the writer writes what is refused."""
        files = SequencedFiles(self.sequencer, make_form, Report(refused.append), AT_ONCE, 0)
        for batch in batches:
            refused += map(_unpack, batch.column("item").drop_null().to_pylist())
            if slabs := [*self._slabs(batch, files)]:
                yield from files.lines_of(slabs, writer)
            if refused:
                yield from writer.write(())

    def _slabs(self, batch: pa.RecordBatch, files: SequencedFiles) -> Iterator[Slab]:
        """Yield the rows of each source with their keys."""
        for source, rows in self._by_source(batch):
            slab, _ = files.slab(source, RowChunk(rows, {}))
            if slab is None:
                continue
            part = self.sequencer.part_of(source)
            seqs = slab.rows.columns[part.heading.headers["change_seq"]].fill_null("")
            if self.in_files and flags(pc.equal(seqs, "")).any():
                raise WithoutSequence(part.source.name)
            yield slab

    def _by_source(self, batch: pa.RecordBatch) -> Iterator[tuple[int, FileRows]]:
        has_cells, sources = flags(batch.column("item").is_null()), batch.column("source").to_numpy()
        for source in np.unique(sources[has_cells]).tolist():
            is_here = has_cells & (sources == source)
            rows = batch if is_here.all() else batch.filter(pa.array(is_here))
            cells = map(_small, rows.column(f"t{self.layouts[source]}").flatten())
            yield source, FileRows([*cells], rows.column("number").to_numpy(), _small(rows.column("record")))


def _unpack(item: bytes) -> Any:
    return pickle.loads(item)  # noqa: S301 - of our own tasks


def _small(column: pa.Array) -> pa.Array:
    """Return a column whose texts are none of the large ones that a sorter may send."""
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        return column.cast(pa.string() if pa.types.is_large_string(column.type) else pa.binary())
    return column
