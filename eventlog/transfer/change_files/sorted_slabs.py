"""Rows of all sources by the places that the plain sequencer gives them, on disk beyond what memory holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.files.durable import Extent, NamelessFile
from eventlog.fold.by_column.vectors import Flags, Ints, bytes_of, flags
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.sequenced import SequencePlace
from eventlog.transfer.change_files.file_rows import FileRows, joined

MEMORY: Final = 32 << 20  # bytes of rows
_BLOCK: Final = 1 << 20  # of those that come back from disk together
_BLOCKS: Final = 128 << 20  # of the blocks of runs that are merged, one of each
_ALONE = sequence.LENGTH  # the byte that is 1 in the key of a row without a change_seq
_NUMBER, _WHERE = ">u4", ">u8"
KEY: Final = f"S{sequence.LENGTH + 1 + 4 + 8}"

Keys = npt.NDArray[np.bytes_]
_Block = list[tuple[int, Extent]]  # rows of each source


class Slab(NamedTuple):
    """The next rows of one source; in the key of each is its place, and that of its group.

    The key of a row with a change_seq has that and the number of its table. The key of any other has the
    greatest change_seq before it, a mark, the number of its source and its own.
    """

    source: int
    rows: FileRows
    keys: Keys

    @property
    def size(self) -> int:
        """Return the bytes of the cells."""
        return sum(column.nbytes for column in self.rows.columns)

    def slice(self, begin: int, end: int) -> Slab:
        """Return a range of the rows."""
        return Slab(self.source, self.rows.slice(begin, end), self.keys[begin:end])

    def sorted(self) -> Slab:
        """Return the rows by their keys."""
        order = order_of(self.keys)
        return self if order is None else Slab(self.source, self.rows.take(order), self.keys[order])


class SlabSorter:
    """A sorter of rows, which moves sorted runs to disk beyond so many bytes."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._slabs: list[Slab] = []
        self._size = 0
        self._file: NamelessFile | None = None
        self._schemas: dict[int, pa.Schema] = {}  # by the source
        self._runs: list[list[_Block]] = []

    def close(self) -> None:
        """Drop all rows and the file."""
        self._slabs, self._runs = [], []
        if self._file is not None:
            self._file.close()

    def add(self, slab: Slab) -> None:
        """Take rows; those of a source come in its order."""
        self._slabs.append(slab)
        self._size += slab.size
        if self._size > self._memory:
            self._spill()

    def in_order(self) -> Iterator[list[Slab]]:
        """Yield all rows in parts, each before the next one; a group is in one part."""
        if not self._runs:
            if self._slabs:
                yield self._slabs
            return
        if self._slabs:
            self._spill()
        together = self._merged_together()
        while len(self._runs) > together:
            groups = [self._runs[at : at + together] for at in range(0, len(self._runs), together)]
            self._runs = [[*chain.from_iterable(map(self._blocks_of, self._merged(runs)))] for runs in groups]
        yield from self._merged(self._runs)

    def _merged_together(self) -> int:
        """Return how many runs are merged at the same time, so that memory holds a block of each."""
        blocks = chain.from_iterable(self._runs)
        return max(2, _BLOCKS // max(sum(place.length for _, place in block) for block in blocks))

    def _merged(self, runs_on_disk: Sequence[list[_Block]]) -> Iterator[list[Slab]]:
        """Yield the rows of runs as `in_order` does."""
        runs = [_Run(map(self._read, blocks)) for blocks in runs_on_disk]
        while runs:
            bound = min((run.last for run in runs if not run.is_read), default=None)
            part = [slab for run in runs for slab in run.take_before(bound)]
            if part:
                yield sorted(part, key=lambda slab: slab.source)
            for run in runs:
                if not run.is_read and run.last == bound:
                    run.read()
            runs = [run for run in runs if run.slabs]

    def _spill(self) -> None:
        """Move the rows in memory to a run on disk."""
        slabs, self._slabs, self._size = self._slabs, [], 0
        self._runs.append([*self._blocks_of(slabs)])

    def _blocks_of(self, rows: list[Slab]) -> Iterator[_Block]:
        """Write rows in their order, and forget them; yield the blocks that have them."""
        self._file = self._file or NamelessFile()
        size = sum(slab.size for slab in rows)
        sources = sorted({slab.source for slab in rows})
        slabs = [_join([slab for slab in rows if slab.source == at]).sorted() for at in sources]
        rows.clear()
        keys = np.sort(np.concatenate([slab.keys for slab in slabs]))
        count = max(1, len(keys) * _BLOCK // max(1, size))
        edges = [[0, *np.searchsorted(slab.keys, keys[count::count]), len(slab.keys)] for slab in slabs]
        for number in range(len(edges[0]) - 1):
            parts = [slab.slice(at[number], at[number + 1]) for slab, at in zip(slabs, edges, strict=True)]
            if block := [(part.source, self._write(part)) for part in parts if len(part.keys)]:
                yield block

    def _write(self, slab: Slab) -> Extent:
        assert self._file is not None
        keys = pa.Array.from_buffers(
            pa.binary(slab.keys.itemsize), len(slab.keys), [None, pa.py_buffer(slab.keys.tobytes())]
        )
        arrays = [*slab.rows.columns, pa.array(slab.rows.where), keys, slab.rows.records]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(map(str, range(len(arrays)))))
        self._schemas[slab.source] = batch.schema
        return self._file.append(batch.serialize())

    def _read(self, block: list[tuple[int, Extent]]) -> list[Slab]:
        return [self._read_slab(source, place) for source, place in block]

    def _read_slab(self, source: int, place: Extent) -> Slab:
        assert self._file is not None
        batch = pa.ipc.read_record_batch(pa.py_buffer(self._file.read(place)), self._schemas[source])
        *columns, where, keys, records = batch.columns
        rows = FileRows(columns, where.to_numpy(), records)
        return Slab(source, rows, np.frombuffer(keys.buffers()[1], KEY, len(where)))


class _Run:
    """The unread blocks of a sorted run, and what was read of it."""

    def __init__(self, blocks: Iterator[list[Slab]]) -> None:
        self._blocks = blocks
        self.slabs: list[Slab] = []
        self.is_read = False  # to its end
        self.read()

    def read(self) -> None:
        """Read the next block."""
        block = next(self._blocks, None)
        self.is_read = block is None
        self.slabs += block or []

    @property
    def last(self) -> bytes:
        """Return the key of the last row that was read."""
        return max(bytes(slab.keys[-1]) for slab in self.slabs)

    def take_before(self, bound: bytes | None) -> Iterator[Slab]:
        """Yield the rows before a key, and forget them; without one all rows."""
        slabs, self.slabs = self.slabs, []
        for slab in slabs:
            end = len(slab.keys) if bound is None else int(np.searchsorted(slab.keys, np.bytes_(bound)))
            if end:
                yield slab.slice(0, end)
            if end < len(slab.keys):
                self.slabs.append(slab.slice(end, len(slab.keys)))


def _join(slabs: Sequence[Slab]) -> Slab:
    rows = joined([slab.rows for slab in slabs])
    return Slab(slabs[0].source, rows, np.concatenate([slab.keys for slab in slabs]))


def order_of(keys: Keys) -> Ints | None:
    """Return the rows by their keys, and those of one key as they come; None if they are in this order."""
    return None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")


def keys_of(
    sequences: pa.Array, where: Ints, table: int | Ints, source: int, greatest: str
) -> tuple[Keys, str]:
    """Return the keys of rows of a source, and the greatest change_seq with those before."""
    keys = np.zeros((len(sequences), int(KEY[1:])), np.uint8)
    valid = flags(sequences.is_valid())
    keys[valid, :_ALONE] = bytes_of(sequences.drop_null()).reshape(-1, sequence.LENGTH)
    keys[:, _ALONE + 1 : _ALONE + 5] = _octets(np.where(valid, table, source), _NUMBER)
    if valid.all():
        return keys.view(KEY).ravel(), max(greatest, pc.max(sequences).as_py() or "")
    loaded = np.flatnonzero(~valid)
    keys[loaded, _ALONE] = 1
    keys[loaded, _ALONE + 5 :] = _octets(where[loaded], _WHERE)
    before, greatest = _greatest_before(sequences, valid, greatest)
    for place, text in zip(loaded.tolist(), before, strict=True):
        keys[place, : len(text)] = np.frombuffer(text, np.uint8)
    return keys.view(KEY).ravel(), greatest


def key_of(place: SequencePlace) -> bytes:
    """Return the key of a record by its place."""
    seq, is_alone, table, _, number = place
    key = seq.encode().ljust(_ALONE, b"\0") + bytes([is_alone]) + table.to_bytes(4)
    return key + (number if is_alone else 0).to_bytes(8)


def _octets(numbers: Ints, form: str) -> npt.NDArray[np.uint8]:
    octets: npt.NDArray[np.uint8] = numbers.astype(form).view(np.uint8).reshape(len(numbers), -1)
    return octets


def _greatest_before(sequences: pa.Array, valid: Flags, greatest: str) -> tuple[list[bytes], str]:
    """Return the greatest change_seq before each row without one, and that of all rows."""
    before = []
    for text in sequences.to_pylist() if valid.any() else [None] * len(valid):
        if text is None:
            before.append(greatest.encode())
        else:
            greatest = max(greatest, text)
    return before, greatest
