"""Delimited rows whose layout the settings state: delimiters, quotes, nulls.

A row ends with its line, unless a quote is open there. A malformed row costs its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Cell, Layout, Row
from eventlog.core.plurals import quantity
from eventlog.files import csv
from eventlog.files.csv import Lines
from eventlog.files.limits import LIMITS, Limits

_BOM = b"\xef\xbb\xbf"
Cells = tuple[Cell, ...]


def read_csv(
    file: IO[bytes], name: str, limits: Limits = LIMITS
) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """Return the columns of the header line and the rows of CSV, laid out as the limits state."""
    layout = limits.csv_layout(name)
    if layout is None:
        return csv.read(file, name, limits)
    records = _records(Lines(file, limits.max_record), name, layout)
    first = next(records, None)
    if first is None:
        raise InvalidDocument(f"{name}: empty, expected a header line")
    if isinstance(first, Refused):
        raise InvalidDocument(f"{name}: the header line: {first.reason}")
    if None in first.cells or "" in first.cells or len(set(first.cells)) < len(first.cells):
        raise InvalidDocument(f"{name}: the header line has an empty or repeated name")
    columns = tuple(map(str, first.cells))
    return columns, _rows(records, name, len(columns))


def _rows(records: Iterable[Row | Refused], name: str, width: int) -> Iterator[Row | Refused]:
    """Yield the records that have as many cells as there are columns."""
    for record in records:
        if isinstance(record, Refused) or len(record.cells) == width:
            yield record
        elif record.raw is not None and record.raw.strip():
            reason = f"has {quantity(len(record.cells), 'cell')}, there are {width} columns"
            yield Refused(f"{name}:{record.where}", reason, record.raw)


def _records(lines: Lines, name: str, layout: Layout) -> Iterator[Row | Refused]:
    split, quote = _splitter(layout), layout.quote.encode()
    while line := lines.next():
        number = lines.number
        if number == 1:
            line = line.removeprefix(_BOM)
        if lines.is_cut(line):
            lines.skip_line()
            yield Refused(f"{name}:{number}", f"the line has over {lines.longest} bytes (max-record)", line)
            continue
        record = bytearray(line)
        open_quotes = line.count(quote) % 2
        while open_quotes and len(record) <= lines.longest and (next_line := lines.next()):
            record += next_line
            open_quotes = (open_quotes + next_line.count(quote)) % 2
        try:
            yield Row(number, split(bytes(record)), bytes(record))
        except InvalidDocument as fault:
            yield Refused(f"{name}:{number}", str(fault), bytes(record))


def _splitter(layout: Layout) -> Callable[[bytes], Cells]:
    """Return a function that divides a record into cells."""
    delimiter, quote = map(re.escape, (layout.delimiter, layout.quote))
    plain = rf"((?:(?!{delimiter})[^{quote}])*)"
    body = rf"((?:{quote}{quote}|[^{quote}])*)"
    field = re.compile(rf"(?:{quote}{body}{quote}|{plain})({delimiter}|\Z)")

    def cell(match: re.Match[str]) -> Cell:
        if match[1] is not None:
            return match[1].replace(layout.quote * 2, layout.quote)
        return None if match[2] == layout.null else match[2]

    def split(record: bytes) -> Cells:
        try:
            text = record.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as fault:
            raise InvalidDocument(
                f"byte {fault.start + 1} is 0x{record[fault.start]:02X}, not UTF-8"
            ) from fault
        cells: list[Cell] = []
        at = 0
        while True:
            match = field.match(text, at)
            if match is None:
                raise InvalidDocument(f"character {at + 1}: a quote may only open or close a field")
            cells.append(cell(match))
            at = match.end()
            if not match[3]:
                return tuple(cells)

    return split
