"""Names on the command line become sources, their containers taken off."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from eventlog.core.errors import BadFile, InvalidDocument, Misuse, Refused
from eventlog.core.formats import Shape, Source
from eventlog.files import csv, jsonlines, messages, parquet
from eventlog.files.document_folder import in_order
from eventlog.files.limits import LIMITS, Limits

T = TypeVar("T")
Advance = Callable[[int], None]  # called with the bytes read
Opened = Callable[[str], IO[bytes] | io.RawIOBase]  # a file that is read, by its name

ROW_CONTAINERS = {
    "csv": csv.read,
    "jsonl": jsonlines.read_rows,
    "parquet": lambda file, name, limits: parquet.read(file, name),
}
_CHUNK = 1 << 20  # bytes
BY_COLUMN = ("csv", "parquet")  # the containers of rows that can be read by column
CONTAINERS: dict[Shape, tuple[str, ...]] = {
    Shape.ROWS: tuple(ROW_CONTAINERS),
    Shape.OBJECTS: ("jsonl", "messages"),
    Shape.BYTES: ("blob",),
}


_ALIASES = {(Shape.OBJECTS, "avro"): "messages"}  # extensions that people give to a container
_READ_ALIASES = {
    (Shape.OBJECTS, "json"): "jsonl",  # lines, or an array
    (Shape.ROWS, "json"): "jsonl",
    (Shape.ROWS, "tsv"): "csv",
}


def container_of(name: str, shape: Shape, container: str | None = None, flag: str = "--as") -> str:
    """Return the container of a file: as given, else by its extension; standard input and output have a
    default.
    """
    legal = CONTAINERS[shape]
    if container is not None:
        if container not in legal:
            raise Misuse(f"{flag} {container}: {shape.value} are kept in {' or '.join(legal)}")
        return container
    extension = Path(name.removesuffix(".gz")).suffix.removeprefix(".").lower()
    if name == "-" or shape is Shape.BYTES:
        return legal[0]
    aliases = _ALIASES | _READ_ALIASES if flag == "--as" else _ALIASES
    extension = aliases.get((shape, extension), extension)
    if extension in legal:
        return extension
    if Path(name).is_dir():
        raise Misuse(f"{name} is a folder: name {'its files' if flag == '--as' else 'a file in it'}")
    raise Misuse(f"{name}: what does it hold? Name it with {flag}: {', '.join(legal)}")


def stem_of(name: str) -> str:
    """Return a file's name without its folder and extensions."""
    return "" if name == "-" else Path(name).name.removesuffix(".gz").rpartition(".")[0] or Path(name).name


class Input(NamedTuple):
    """A file that is read, and its container."""

    name: str
    container: str


def inputs_of(names: Sequence[str], shape: Shape, container: str | None = None) -> tuple[Input, ...]:
    """Return the files of these names with their containers; documents of the files sink in their order."""
    return tuple(Input(name, container_of(name, shape, container)) for name in in_order(names))


def open_sources(
    names: Sequence[str],
    shape: Shape,
    container: str | None,
    advance: Advance = lambda size: None,
    limits: Limits = LIMITS,
) -> Iterator[Source[Any] | Refused]:
    """Return the sources of files of these names."""
    return open_inputs(inputs_of(names, shape, container), shape, advance, limits)


def open_inputs(
    inputs: Sequence[Input],
    shape: Shape,
    advance: Advance = lambda size: None,
    limits: Limits = LIMITS,
    opened: Opened | None = None,
) -> Iterator[Source[Any] | Refused]:
    """Yield the sources, opened one after the other; Refused for a file that cannot be read at all.

    `opened` opens files in other places.
    """
    if opened is None:
        check_inputs([name for name, _ in inputs])
    for name, container in inputs:
        with open_input(name, advance, opened) as file:
            try:
                yield source_in(file, name, shape, container, limits)
            except (InvalidDocument, OSError, EOFError, zlib.error) as fault:
                yield BadFile(name, str(fault).removeprefix(f"{name}: "))


def readable(sources: Iterable[Source[Any] | Refused], refused: list[Refused]) -> Iterator[Source[Any]]:
    """Yield the sources, and add those that cannot be read to a list."""
    for source in sources:
        if isinstance(source, Refused):
            refused.append(source)
        else:
            yield source


def check_inputs(names: Sequence[str]) -> None:
    """Raise Misuse if one of the names is not a file."""
    for name in names:
        if name != "-" and not Path(name).exists():
            raise Misuse(f"{name}: no such file")
        if Path(name).is_dir():
            raise Misuse(f"{name} is a folder: name its files")


def source_in(
    file: IO[bytes], name: str, shape: Shape, container: str, limits: Limits = LIMITS
) -> Source[Any]:
    """Return the source in an open file."""
    columns: tuple[str, ...] = ()
    records: Iterable[Any]
    if shape is Shape.ROWS:
        columns, records = ROW_CONTAINERS[container](file, name, limits)
    elif shape is Shape.BYTES:
        records = _chunks(file)
    else:
        records = (messages if container == "messages" else jsonlines).read(file, name, limits)
    return Source(name, stem_of(name), columns, _guarded(records, name))


@contextmanager
def open_input(
    name: str, advance: Advance = lambda size: None, opened: Opened | None = None
) -> Iterator[IO[bytes]]:
    """The bytes of a file or of standard input, unpacked."""
    if name == "-":
        yield sys.stdin.buffer
        return
    with Path(name).open("rb", buffering=0) if opened is None else opened(name) as raw:
        counted = io.BufferedReader(_Counted(raw, advance), 1 << 20)
        if name.endswith(".gz"):
            with gzip.open(counted) as file:
                yield io.BufferedReader(file, 1 << 20)
        else:
            yield counted


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes as they come, in chunks of no particular size."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    while chunk := read(_CHUNK):
        yield chunk


def _guarded(records: Iterable[Any], name: str) -> Iterator[Any]:
    """Yield the records, and a report where a file breaks off."""
    try:
        yield from records
    except (OSError, EOFError, zlib.error) as fault:
        yield BadFile(name, f"the rest of the file cannot be read: {fault}")


class Passes:
    """A count of passes over what was read; each later one is as many bytes as the reading."""

    def __init__(self, advance: Advance = lambda size: None) -> None:
        self._advance = advance
        self._bytes = 0

    def read(self, size: int) -> None:
        """Report bytes that were read."""
        self._bytes += size
        self._advance(size)

    def over(self, items: Iterable[T], count: int, size: Callable[[T], int]) -> Iterator[T]:
        """Yield the items of a later pass, and report each by its size of so many."""
        done = reported = 0
        for item in items:
            yield item
            done += size(item)
            share = self._bytes * done // max(count, 1)
            self._advance(share - reported)
            reported = share


UNREPORTED = Passes()


class _Counted(io.RawIOBase):
    """A file that reports how far it was read."""

    def __init__(self, file: IO[bytes] | io.RawIOBase, advance: Advance) -> None:
        self._file = file
        self._advance = advance
        # The file's own method: BufferedReader calls it first, and would swallow a signal during ours.
        self.tell = file.tell  # type: ignore[method-assign]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer)) or b""
        size = len(data)
        buffer[:size] = data
        self._advance(size)
        return size
