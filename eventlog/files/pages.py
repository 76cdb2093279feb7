"""How large the pages of a Parquet file are, by their own headers, before Arrow makes room for them.

A footer may claim anything, and a page of a kilobyte may hold a gigabyte of one letter. The headers are
what a reader goes by when it allocates. Apache Parquet, parquet.thrift: PageHeader, in Thrift's compact
protocol.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import IO, Any, NamedTuple

from eventlog.core.errors import InvalidDocument
from eventlog.files.limits import Limits

ROWS = 8192  # of a batch
_HEADER = 1 << 10  # bytes that are read for a header; some have long statistics
_MAX_HEADER = 1 << 20
_DICTIONARY_PAGE = 2
_DELTA_BYTE_ARRAY = 7  # each value may repeat the one before it
_DATA, _DATA_V2 = 5, 8  # fields of a page's header
_ENCODING = {_DATA: 2, _DATA_V2: 4}  # fields of these

Struct = dict[int, Any]


class Page(NamedTuple):
    size: int  # unpacked
    values: int
    repeats: bool  # a few bytes may be a long value
    is_dictionary: bool


class Budget:
    """The rest of a file's limits; Arrow writes a thousand values to a page, however long they are."""

    def __init__(self, named: Container[str], limits: Limits) -> None:
        """`named` columns stay numbers of their dictionary."""
        self._named = named
        self._limits = limits
        self._unpacked = 0

    def rows_of_batch(self, file: IO[bytes], metadata: Any, schema: Any, group: int) -> int:
        """Return how many rows of a row group can be read at once."""
        share = 0.0  # of a row, at most
        for at in range(metadata.num_columns):
            column = metadata.row_group(group).column(at)
            where = f"row group {group + 1}, column {column.path_in_schema}"
            pages = list(_pages(file, column, where))
            self._spend(pages, where)
            share += self._share(column, pages)
            if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                share += schema.column(at).length
        return max(1, min(ROWS, int(self._limits.max_batch / share) if share else ROWS))

    def _spend(self, pages: Sequence[Page], where: str) -> None:
        largest = max((page.size for page in pages), default=0)
        most, unpacked = self._limits.max_page, self._limits.max_unpacked
        if largest > most:
            raise InvalidDocument(
                f"{where}: a page of {largest} bytes, the limit is {most} (the setting max-page)"
            )
        self._unpacked += sum(page.size for page in pages)
        if self._unpacked > unpacked:
            raise InvalidDocument(
                f"{where}: the file unpacks to over {unpacked} bytes (the setting max-unpacked)"
            )

    def _share(self, column: Any, pages: Sequence[Page]) -> float:
        """Return the bytes of a row that a column may take."""
        largest = max((page.size for page in pages), default=0)
        data = [page for page in pages if not page.is_dictionary]
        fewest = min((page.values for page in data[:-1] or data), default=1)
        repeats = any(page.repeats or page.is_dictionary for page in pages)
        if repeats and column.physical_type == "BYTE_ARRAY" and column.path_in_schema not in self._named:
            return largest
        return largest / max(1, fewest)


def _pages(file: IO[bytes], column: Any, where: str) -> Iterator[Page]:
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    at = min((offset for offset in offsets if offset), default=0)
    end = at + column.total_compressed_size
    while at < end:
        header, size = _header(file, at, where)
        packed, unpacked = header.get(3, -1), header.get(2, -1)
        if packed < 0 or unpacked < 0:
            raise InvalidDocument(f"{where}: the page at byte {at} has no size")
        kind = _DATA_V2 if _DATA_V2 in header else _DATA
        data = header.get(kind, {})
        repeats = data.get(_ENCODING[kind]) == _DELTA_BYTE_ARRAY
        yield Page(unpacked, data.get(1, 0), repeats, header.get(1) == _DICTIONARY_PAGE)
        at += size + packed


def _header(file: IO[bytes], at: int, where: str) -> tuple[Struct, int]:
    """Return the header of the page at a byte, and how long it is."""
    length = _HEADER
    while length <= _MAX_HEADER:
        file.seek(at)
        read = _Compact(file.read(length))
        try:
            return read.struct(), read.at
        except IndexError:
            length *= 8
        except (KeyError, RecursionError):
            break
    raise InvalidDocument(f"{where}: at byte {at} no page begins")


class _Compact:
    """A value after the other, in Thrift's compact protocol; IndexError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> Struct:
        fields: Struct = {}
        number = 0
        if depth > 8:
            raise KeyError(depth)
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind == 12:
            return self.struct(depth + 1)
        raise KeyError(kind)  # a page header contains no lists and maps

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise KeyError(shift)
        return number | byte << shift

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self._data):
            raise IndexError(size)
