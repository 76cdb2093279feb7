"""Delimited rows whose layout is described by the file next to them: delimiters, quotes, nulls, a heading.

A row ends with its line, unless a quote is open there. A malformed row costs its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Cell, Layout, Row
from eventlog.core.plurals import quantity
from eventlog.files import csv
from eventlog.files.csv import Lines
from eventlog.files.limits import LIMITS, Limits

_BOM = b"\xef\xbb\xbf"
Cells = tuple[Cell, ...]


def read(
    file: IO[bytes], name: str, layout: Layout, limits: Limits = LIMITS
) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """Return the columns, as a heading or else the layout names them, and the rows."""
    records = _records(Lines(file, limits.max_record), name, layout)
    first = next(records, None)
    columns = None if first is None else _heading(first, layout)
    if columns is None:
        columns, records = layout.columns, chain(() if first is None else (first,), records)
    return columns, _rows(records, name, len(columns))


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


def _heading(first: Row | Refused, layout: Layout) -> tuple[str, ...] | None:
    """Return the columns that a first row names, if it is made of nothing but their names."""
    if isinstance(first, Refused):
        return None
    names = {column.lower(): column for column in layout.columns}
    found = [names.get(str(cell).lower()) for cell in first.cells]
    columns = tuple(column for column in found if column is not None)
    return columns if len(set(columns)) == len(found) else None


def _rows(records: Iterable[Row | Refused], name: str, width: int) -> Iterator[Row | Refused]:
    """Yield the records that have as many cells as there are columns."""
    for record in records:
        if isinstance(record, Refused) or len(record.cells) == width:
            yield record
        elif record.raw is not None and record.raw.strip():
            reason = f"has {quantity(len(record.cells), 'cell')}, there are {width} columns"
            yield Refused(f"{name}:{record.where}", reason, record.raw)


def _records(lines: Lines, name: str, layout: Layout) -> Iterator[Row | Refused]:
    split, quotes = _splitter(layout), _quotes(layout)
    while line := lines.next():
        number = lines.number
        if number == 1:
            line = line.removeprefix(_BOM)
        if lines.is_cut(line):
            lines.pass_rest()
            yield Refused(f"{name}:{number}", f"the line has over {lines.longest} bytes (max-record)", line)
            continue
        record = bytearray(line)
        open_quotes = quotes(line) % 2
        while open_quotes and len(record) <= lines.longest and (more := lines.next()):
            record += more
            open_quotes = (open_quotes + quotes(more)) % 2
        try:
            yield Row(number, split(bytes(record)), bytes(record))
        except InvalidDocument as fault:
            yield Refused(f"{name}:{number}", str(fault), bytes(record))


def _quotes(layout: Layout) -> Callable[[bytes], int]:
    """Return how many quotes of a record are no text."""
    quote, escape = layout.quote.encode(), layout.escape.encode()
    if not quote:
        return lambda record: 0
    if not escape or escape == quote:
        return lambda record: record.count(quote)
    marks = re.compile(re.escape(escape) + b"[\\s\\S]|" + re.escape(quote))
    return lambda record: sum(mark == quote for mark in marks.findall(record))


def _splitter(layout: Layout) -> Callable[[bytes], Cells]:
    """Return a function that divides a record into cells."""
    delimiter, quote, escape = map(re.escape, (layout.delimiter, layout.quote, layout.escape))
    own = escape if layout.escape and layout.escape != layout.quote else ""
    taken = rf"{own}[\s\S]|" if own else ""
    plain = rf"((?:{taken}(?!{delimiter})[^{quote}])*)" if quote else rf"((?:{taken}(?!{delimiter})[\s\S])*)"
    body = rf"((?:{taken}{quote}{quote}|[^{quote}{own}])*)" if quote else ""
    field = re.compile(
        rf"(?:{quote}{body}{quote}|{plain})({delimiter}|\Z)" if quote else rf"{plain}({delimiter}|\Z)"
    )
    escaped = re.compile(rf"{own}([\s\S])") if own else None
    doubled = layout.quote * 2

    def cell(match: re.Match[str]) -> Cell:
        quoted = match[1] if quote else None
        text = match[2 if quote else 1] if quoted is None else quoted
        if quoted is None and text == layout.null:
            return None
        if quoted is not None and not own:
            return str(text).replace(doubled, layout.quote)
        return escaped.sub(r"\1", text) if escaped is not None else text

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
            if not match[match.lastindex or 1]:
                return tuple(cells)

    return split
