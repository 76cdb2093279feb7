"""JSON Lines: one value a line, read as objects or as rows with named cells; other JSON is read too."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal
from itertools import chain, islice
from typing import IO, Any

from eventlog.core.errors import Refused
from eventlog.core.formats import Cell, Object, Row
from eventlog.files.csv import LineSource, plain_cell, seems
from eventlog.files.limits import LIMITS, Limits

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # also one that is not closed
_BOM = b"\xef\xbb\xbf"
_PEEKED = 1000  # lines from which the columns are known
_SHOWN = 100  # characters of a name


def read(
    file: LineSource,
    name: str,
    limits: Limits = LIMITS,
    number_of: Callable[[str], Any] = float,
    first_line: int = 0,
    last_line: int | None = None,
) -> Iterator[Object | Refused]:
    """Yield the values: one a line, over several lines as pretty printers write them, or elements of an
    array.

    `number_of` reads a number with a point or an exponent. `first_line` is how many lines precede. Values
    that begin after `last_line` stay unread.
    """
    lines = _Lines(file, limits, decoder(number_of), first_line)
    while not lines.are_read_to(last_line) and (line := lines.next()):
        if not line.strip():
            continue
        number = lines.number
        if fault := lines.too_large(line):
            yield Refused(f"{name}:{number}", fault, line)
            continue
        try:
            value, raw = lines.value(line)
        except (ValueError, RecursionError) as wrong:
            hint = seems(line) if number == 1 else ""
            yield Refused(f"{name}:{number}", hint or why_none(wrong), line)
            continue
        if isinstance(value, list):
            yield from (Object(number, element, dump_line(element)) for element in value)
        else:
            yield Object(number, value, raw)


class StandsTwice(ValueError):
    """An error: two members of an object have one name, so that one value would be lost."""


def decoder(number_of: Callable[[str], Any] = float) -> json.JSONDecoder:
    """Return a reader of JSON texts; it raises StandsTwice if an object has two members of one name."""
    return json.JSONDecoder(parse_float=number_of, object_pairs_hook=_members)


def decoded(data: bytes) -> Any:
    """Return the value of a JSON text."""
    return _load(decoder(), data)


def _load(decoder: json.JSONDecoder, data: bytes) -> Any:
    """Return the value of bytes, in UTF-8; what looks like UTF-16 to Python may be lines cut in two."""
    return decoder.decode(data.removeprefix(_BOM).decode("utf-8", "surrogatepass"))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in members if times[name] > 1)
        raise StandsTwice(f"member {twice[:_SHOWN]!r} is twice in an object")
    return members


def why_none(fault: Exception) -> str:
    """Return why a text has no value."""
    return str(fault) if isinstance(fault, StandsTwice) else f"no JSON: {fault}"


class _Lines:
    """The lines of a file; those that were joined to a value that never ends are read again."""

    def __init__(self, file: LineSource, limits: Limits, decoder: json.JSONDecoder, number: int) -> None:
        self._file = file
        self._limits = limits
        self._decoder = decoder
        self._pushed_back: deque[bytes] = deque()
        self.number = number  # of the line that was read last

    def are_read_to(self, last: int | None) -> bool:
        """Return whether a line was read, and no line is to be read again."""
        return last is not None and self.number >= last and not self._pushed_back

    def next(self) -> bytes:
        line = (
            self._pushed_back.popleft() if self._pushed_back else self._file.readline(self._limits.max_record)
        )
        self.number += bool(line)
        return line

    def value(self, first: bytes) -> tuple[Any, bytes]:
        """Return the value that begins on a line, and its bytes; raise ValueError if there is none."""
        try:
            return _load(self._decoder, first), first
        except ValueError:
            following_lines = self._following_lines(first)
            if not following_lines:
                raise
        joined = b"".join((first, *following_lines))
        try:
            if over := self._over_marks(joined):
                raise ValueError(over)
            return _load(self._decoder, joined), joined
        except ValueError:
            self._pushed_back.extendleft(reversed(following_lines))
            self.number -= len(following_lines)
            raise

    def _following_lines(self, first: bytes) -> list[bytes]:
        """Return the following lines up to the closing bracket.

        Except in an array, a line that begins another value is not one of them. So a line that was cut costs
        itself, and each line is joined to at most two values.
        """
        following_lines: list[bytes] = []
        depth, size = _depth(first), len(first)
        while depth > 0 and size <= self._limits.max_record and first[:1] in _BEGINNING:
            line = self.next()
            if not line or line[:1] in _BEGINNING[first[:1]]:
                self._pushed_back.extendleft([line] if line else [])
                self.number -= bool(line)
                break
            following_lines.append(line)
            depth, size = depth + _depth(line), size + len(line)
        return following_lines

    def too_large(self, line: bytes) -> str:
        """Return what is over a limit in a line; skip the rest of a line that is too long."""
        max_bytes = self._limits.max_record
        if len(line) >= max_bytes and not line.endswith(b"\n"):
            while (piece := self._file.readline(max_bytes)) and not piece.endswith(b"\n"):
                pass
            return f"the line has over {max_bytes} bytes (the setting max-record)"
        return self._over_marks(line)

    def _over_marks(self, text: bytes) -> str:
        max_marks = self._limits.max_marks
        if len(text) > max_marks and len(_STRING.sub(b"", text)) > max_marks:
            return f"apart from its texts it has over {max_marks} characters (1/64 of the setting max-record)"
        return ""


def _exact(text: str) -> float | str:
    """Return the number of a text; the text itself, as in CSV, where a float would be another number."""
    number = float(text)
    plain = repr(number)
    return number if plain == text or Decimal(text, _ANY) == Decimal(plain) else text


_ANY = Context(traps=[])  # in which a number of an exponent beyond all bounds is none


# What cannot begin a line inside of a value, by how the value begins.
_BEGINNING = {b"{": (b"{", b"["), b"[": (b"[",)}


def _depth(line: bytes) -> int:
    """Return how many more brackets a line opens than it closes, outside of strings."""
    bare = _STRING.sub(b"", line)
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")


def read_rows(
    file: IO[bytes], name: str, limits: Limits = LIMITS
) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """Return the names that the first lines use, and the rows; a name that is missing in a line is null."""
    return named_rows(read(file, name, limits, _exact), name)


def rows_of_piece(
    file: LineSource, name: str, columns: tuple[str, ...], limits: Limits, first_line: int
) -> Iterator[Row | Refused]:
    """Yield the rows of a piece of a file with these columns; `first_line` is how many lines precede."""
    objects = read(file, name, limits, _exact, first_line)
    return (_row(record, columns, name) for record in objects)


def named_rows(
    objects: Iterator[Object | Refused], name: str
) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """Return the names that the first objects use, and the objects as rows; a missing name is null."""
    peeked = list(islice(objects, _PEEKED))
    columns = tuple(
        dict.fromkeys(
            member
            for o in peeked
            if isinstance(o, Object) and isinstance(o.value, dict)
            for member in o.value
        )
    )
    return columns, (_row(record, columns, name) for record in chain(peeked, objects))


def _row(record: Object | Refused, columns: tuple[str, ...], name: str) -> Row | Refused:
    if isinstance(record, Refused):
        return record
    if not isinstance(record.value, dict):
        return Refused(f"{name}:{record.where}", "a row must be a JSON object", record.raw)
    if unknown := record.value.keys() - columns:
        reason = f"member {min(map(str, unknown))!r} is in none of the first {_PEEKED} lines"
        return Refused(f"{name}:{record.where}", reason, record.raw)
    return Row(record.where, tuple(record.value.get(column) for column in columns), record.raw)


class JsonWriter:
    """A writer of JSON values, one a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, value: Any) -> None:
        self._file.write(dump_line(value))

    def close(self) -> None:
        """Do nothing, because nothing is held back."""


class JsonRowWriter:
    """A writer of rows as JSON objects, one a line."""

    def __init__(self, file: IO[bytes], columns: Sequence[str]) -> None:
        self._file = file
        self._columns = columns

    def write(self, cells: Sequence[Cell]) -> None:
        self._file.write(dump_line(dict(zip(self._columns, cells, strict=True))))

    def close(self) -> None:
        """Do nothing, because nothing is held back."""


def dump_line(value: Any) -> bytes:
    """Return the value on one line; lone surrogates, which UTF-8 cannot hold, are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain_cell)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=plain_cell).encode() + b"\n"
