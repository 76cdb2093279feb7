"""CSV that keeps null apart from the empty string and survives a bad byte.

A null is an unquoted empty field, an empty string is `""`; quotes double; inside quotes every byte
counts. Python's own reader reads both alike, Arrow's gives up the file for one bad byte, Spark's
replaces it in silence. A record that is malformed costs the line on which it begins:
reading goes on with the next.

Settings may state other delimiters, quotes and nulls.
"""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Protocol

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Cell, Layout, Row
from eventlog.files.limits import LIMITS, Limits

_KINDS = {
    rb"\x1f\x8b": "packed with gzip: its name must end with .gz",
    rb"\x28\xb5\x2f\xfd": "packed with Zstandard: unpack it first",
    rb"BZh[1-9]1AY&SY": "packed with bzip2: unpack it first",
    rb"\xfd7zXZ\0": "packed with xz: unpack it first",
    rb"PK\x03\x04": "a ZIP file, as workbooks (.xlsx) are too: export it as text",
    rb"PAR1\x15": "Parquet: name it .parquet",
    rb"Obj\x01": "an Avro file",
    rb"\xff\xfe|\xfe\xff|.?\0": "UTF-16, or no text at all: write it as UTF-8",
}
_BEGINNINGS = {re.compile(beginning, re.DOTALL): kind for beginning, kind in _KINDS.items()}


def seems(beginning: bytes) -> str:
    """Return what a file with this beginning is, and what to do; empty if it may be text in UTF-8."""
    kinds = (kind for pattern, kind in _BEGINNINGS.items() if pattern.match(beginning))
    return next((f"this is {kind}" for kind in kinds), "")


Cells = tuple[str | None, ...]
Split = Callable[[bytes], Cells]  # a record into its cells

_QUOTED = re.compile(r'[",\r\n]')
_BOM = b"\xef\xbb\xbf"
NEVER_CLOSED = "a quote is never closed"  # of a record that no line completes


class LineSource(Protocol):
    """A source of lines."""

    def readline(self, limit: int, /) -> bytes: ...


def read(
    file: IO[bytes], name: str, limits: Limits = LIMITS
) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """Return the columns of the header line and the rows of CSV, laid out as the limits state."""
    layout = limits.csv_layout(name) or Layout()
    split = _splitter(layout)
    lines = Lines(file, limits.max_record, quote=layout.quote)
    columns = header(lines, name, split)
    return columns, rows(lines, name, len(columns), split)


def _text_of(record: bytes) -> str:
    """Return the text of a record without the end of its line."""
    try:
        return record.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as fault:
        raise InvalidDocument(f"byte {fault.start + 1} is 0x{record[fault.start]:02X}, not UTF-8") from fault


def _splitter(layout: Layout) -> Split:
    """Return a function that divides a record into cells."""
    delimiter, quote = map(re.escape, (layout.delimiter, layout.quote))
    body = rf"([^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+)"
    field = re.compile(rf"(?:{quote}{body}{quote}|([^{quote}{delimiter}]*+))({delimiter}|\Z)")
    null = layout.null

    def split(record: bytes) -> Cells:
        text = _text_of(record)
        if layout.quote not in text:
            return tuple([None if cell == null else cell for cell in text.split(layout.delimiter)])
        cells: list[str | None] = []
        at = 0
        while True:
            match = field.match(text, at)
            if match is None:
                raise InvalidDocument(
                    f"character {at + 1}: a quote may only open or close a field, or be doubled"
                )
            quoted, plain, end = match.groups()
            if quoted is None:
                cells.append(None if plain == null else plain)
            else:
                cells.append(quoted.replace(layout.quote * 2, layout.quote))
            if not end:
                return tuple(cells)
            at = match.end()

    return split


_split_usual = _splitter(Layout())


def header(lines: Lines, name: str, split: Split = _split_usual) -> tuple[str, ...]:
    """Return the names on the first line."""
    first = lines.next()
    if not first:
        raise InvalidDocument(f"{name}: empty, expected a header line")
    if reason := seems(first):
        raise InvalidDocument(f"{name}: {reason}")
    if lines.is_cut(first):
        raise InvalidDocument(f"{name}: the header line {lines.too_long}")
    try:
        columns = split(lines.complete(first.removeprefix(_BOM)) or first)
    except InvalidDocument as fault:
        raise InvalidDocument(f"{name}: the header line: {fault}") from fault
    if len(columns) == 1 and (delimiter := _other_delimiter(str(columns[0]))):
        count = str(columns[0]).count(delimiter)
        raise InvalidDocument(
            f"{name}: the header line is one name with {count} of {delimiter!r}: name the delimiter with"
            f" --csv-delimiter {delimiter!r}"
        )
    if not all(columns) or len(set(columns)) < len(columns):
        raise InvalidDocument(f"{name}: the header line has an empty or repeated name")
    return tuple(map(str, columns))


def _other_delimiter(header: str) -> str | None:
    """Return a character that seems to be between the names of a header line."""
    delimiter = max(";\t|", key=header.count)
    return delimiter if header.count(delimiter) > 1 else None


def rows(lines: Lines, name: str, width: int, split: Split = _split_usual) -> Iterator[Row | Refused]:
    """Yield the rows of lines after a header of that width."""
    while line := lines.next():
        number = lines.number
        if lines.is_cut(line):
            lines.skip_line()
            yield Refused(f"{name}:{number}", f"the line {lines.too_long}", line)
            continue
        if lines.quote not in line:
            record = line
        elif (joined := lines.complete(line)) is not None:
            record = joined
        else:
            yield Refused(f"{name}:{number}", NEVER_CLOSED, line)
            continue
        try:
            cells = split(record)
        except InvalidDocument as fault:
            lines.resume_after_first()
            yield Refused(f"{name}:{number}", str(fault), line)
            continue
        if len(cells) == width:
            yield Row(number, cells, record)
        elif record.strip():
            yield Refused(f"{name}:{number}", f"has {len(cells)} cells, the header {width}", record)


class Lines:
    """The lines of a file; some lines can be read again."""

    def __init__(self, file: LineSource, longest: int, number: int = 0, quote: str = '"') -> None:
        """A quote that is open for longer than so many bytes is taken as never closed."""
        self.longest = longest
        self.quote = quote.encode()
        self._file = file
        self._reread = io.BytesIO()
        self._joined = bytearray()
        self._mark: tuple[io.BytesIO, int] = (self._reread, 0)  # where the joined lines begin
        self._count = 0  # of the joined lines
        self.number = number  # of the line that was read last

    @property
    def reads_again(self) -> bool:
        """Return whether some lines are read again before the file goes on."""
        return self._reread.tell() < self._reread.getbuffer().nbytes

    def next(self) -> bytes:
        """Return the next line with its end; empty after the last."""
        line = self._read()
        self._joined, self._count = bytearray(), 0
        self.number += bool(line)
        return line

    @property
    def too_long(self) -> str:
        """Return the message for a line that is cut."""
        return f"has over {self.longest} bytes (the setting max-record)"

    def is_cut(self, line: bytes) -> bool:
        """Return whether a line is only the beginning of one."""
        return len(line) >= self.longest and not line.endswith(b"\n")

    def skip_line(self) -> None:
        """Skip the rest of a line that was read in part."""
        while (line := self._read()) and not line.endswith(b"\n"):
            pass

    def complete(self, first: bytes) -> bytes | None:
        """Return the record that begins on a line: to where its quotes are even. None if they never are."""
        self._mark = self._reread, self._reread.tell()
        quotes = first.count(self.quote)
        while quotes % 2:
            line = self._read()
            self._joined += line
            if not line or len(first) + len(self._joined) > self.longest:
                self._push_back()
                return None
            self._count += 1
            quotes += line.count(self.quote)
        self.number += self._count
        return first + self._joined if self._joined else first

    def resume_after_first(self) -> None:
        """Read again what was joined to the last record's first line."""
        if self._joined:  # else what waits to be read again stays
            self.number -= self._count
            self._push_back()

    def _read(self) -> bytes:
        return self._reread.readline(self.longest) or self._file.readline(self.longest)

    def _push_back(self) -> None:
        reread, place = self._mark
        if self._reread.tell() - place == len(self._joined):
            reread.seek(place)
        else:  # some came from the file, and nothing else is to be read again
            self._reread = io.BytesIO(self._joined)
        self._joined, self._count = bytearray(), 0


class CsvWriter:
    """A writer of rows as CSV, after a line with the names of the columns."""

    def __init__(
        self, file: IO[bytes], columns: Sequence[str], begin: Callable[[bytes], object] | None = None
    ) -> None:
        self._file = file
        (begin or file.write)(_line(columns))

    def write(self, cells: Iterable[Cell]) -> None:
        self._file.write(_line(cells))

    def close(self) -> None:
        """Do nothing, because nothing is held back."""


def _line(cells: Iterable[Cell]) -> bytes:
    return (",".join([_cell(cell) for cell in cells]) + "\n").encode()


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    text = cell if isinstance(cell, str) else plain_cell(cell)
    if not text or _QUOTED.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def plain_cell(cell: Cell) -> str:
    """Return a cell that is no text, as text files hold it: binary as hex."""
    if isinstance(cell, bytes):
        return cell.hex().upper()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, dt.datetime):
        return cell.isoformat(" ")
    return str(cell)
