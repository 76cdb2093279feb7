"""Where written bytes go: a file that appears when it is whole, one that grows, a device, standard output."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import sys
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import IO, Any, Final, cast

from eventlog.core.errors import Misuse
from eventlog.core.redaction import visible
from eventlog.files.durable import (
    NamedFile,
    WholeFile,
    ends_within_line,
    naming,
    need_folder,
    open_to_write,
    sync_names,
)
from eventlog.files.limits import LIMITS
from eventlog.files.messages import LENGTH

STANDARD_OUTPUT = "standard output"
_BUFFER = 1 << 16


def standard_output(safe: bool = False) -> IO[bytes]:
    """Return the output for data without a file; `flush` brings it out.

    Safe data may contain control sequences for a terminal.
    """
    out = sys.stdout
    out.flush()
    raw = getattr(out.buffer, "raw", out.buffer)  # without Python's own buffer it is the file itself
    return io.BufferedWriter((_ForPeople if out.isatty() and not safe else _Standard)(raw), _BUFFER)


class _Standard(io.RawIOBase):
    """The file of standard output, which may take a part of what is written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write some of the bytes, and return how many."""
        with naming(STANDARD_OUTPUT):
            return self._out.write(data)


class _ForPeople(_Standard):
    """The file of standard output on a terminal, with control characters visible."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__(out)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: Any) -> int:
        """Write all of the bytes, because what is shown has another length."""
        shown = memoryview(visible(self._decoder.decode(bytes(data))).encode())
        while shown:
            shown = shown[super().write(shown) :]
        return len(data)


_LONGEST = 240  # bytes of a file's name; file systems take 255, and an extension follows
_NOT_OURS = ("/dev/", "/proc/")  # /dev/stdout may be a file that the shell has opened
_MEMORY = "/dev/shm/"  # a folder for files of anyone  # noqa: S108


def is_file_name(name: str) -> bool:
    """Return whether a file of that name is in its folder, because names of tables come with the data."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return False
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name and size <= _LONGEST


def one_file(name: str | Path) -> tuple[object, ...] | None:
    """Return what all names of one file have in common; None for a device and other irregular files."""
    if str(name) == "-":
        return None
    try:
        status = os.stat(name)
    except OSError:
        return (os.path.realpath(name),)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


class OutputFile:
    """A file that is written: a regular file appears when it is complete, in a folder that exists.

    Writing to standard output, a device or a pipe cannot be undone. There only the exit code shows whether
    the output is whole.
    """

    def __init__(self, name: str) -> None:
        self._regular_file: WholeFile | None = None
        if name == "-":
            self._raw = standard_output()
        elif _is_device(name):
            self._raw = open_to_write(name, "w")
        else:
            target = Path(os.path.realpath(name))
            need_folder(target, name)
            self._regular_file = WholeFile(target)
            self._raw = self._regular_file.raw
        self.stream = _packed(name, self._raw)

    def flush(self) -> None:
        """Bring out what was written to standard output."""
        self.stream.flush()

    def complete(self) -> None:
        """Complete the file."""
        if self.stream is not self._raw:
            self.stream.close()
        if self._regular_file is None:
            self._raw.close()
        else:
            self._regular_file.complete()

    def discard(self) -> None:
        """Remove what is not complete."""
        if self._regular_file is not None:
            self._regular_file.discard()
        with suppress(OSError):
            self._raw.close()


def _is_device(name: str) -> bool:
    absolute = os.path.abspath(name)
    if absolute.startswith(_NOT_OURS) and not absolute.startswith(_MEMORY):
        return True
    return os.path.exists(name) and not os.path.isfile(name)


def _packed(name: str, raw: IO[bytes]) -> IO[bytes]:
    if not name.endswith(".gz"):
        return raw
    return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=raw, mtime=0))


_PIECE: Final = 1 << 20


class GrowingFile:
    """A file that is added to.

    What was not flushed is removed at the end, so that the file ends with a whole record even if the disk is
    full. A killed process may have left half a record: half a line gets a line of its own, and half a message
    is removed.
    """

    def __init__(self, name: str, container: str) -> None:
        if name.endswith(".gz"):
            raise Misuse(
                f"{name}: nothing is added to what is packed: name it without .gz, or a folder, -o DIR/"
            )
        self._name = name
        self._has_lasting_name = False
        self._raw = NamedFile(name, "a")
        self.stream: IO[bytes] = BufferedWriter(self._raw)
        self._flushed_size = self._size()
        if container == "messages":
            self._end_message()
        elif container != "csv":  # for CSV, `begin` does it
            self._end_line(b"\n")

    def begin(self, head: bytes) -> None:
        """Begin the file with a line of column names; a part of that line may exist."""
        with open(self._name, "rb") if self._is_regular() else open(os.devnull, "rb") as file:
            beginning = file.read(len(head))
            if len(beginning) < len(head) and head.startswith(beginning):
                self.stream.write(head[len(beginning) :])
            elif beginning != head:
                raise Misuse(f"{self._name} has other columns than the rows to add: name another file")
            else:
                file.seek(0)
                self._end_line(b'"\n' if _ends_within_quotes(file) else b"\n")

    def flush(self) -> None:
        """Bring what was written safely out."""
        self.stream.flush()
        with naming(self._name):
            os.fsync(self._raw.fileno())
        if not self._has_lasting_name and self._is_regular():
            sync_names(Path(self._name).parent)
            self._has_lasting_name = True
        self._flushed_size = self._size()

    def complete(self) -> None:
        """Bring what was written safely out."""
        self.flush()

    def discard(self) -> None:
        """Close the file, which is as far as `flush` brought it; of a pipe or a device nothing comes back."""
        try:
            if self._is_regular() and self._size() > self._flushed_size:
                os.ftruncate(self._raw.fileno(), self._flushed_size)
        finally:
            self._raw.close()

    def _end_line(self, end: bytes) -> None:
        if end != b"\n" or ends_within_line(self._raw.fileno(), self._name):
            self.stream.write(end)

    def _end_message(self) -> None:
        if not self._is_regular():
            return
        try:
            complete_size = _whole_messages(Path(self._name), self._flushed_size)
        except Misuse:
            self._raw.close()
            raise
        if complete_size < self._flushed_size:
            os.ftruncate(self._raw.fileno(), complete_size)
            self._flushed_size = complete_size

    def _size(self) -> int:
        return os.fstat(self._raw.fileno()).st_size

    def _is_regular(self) -> bool:
        return stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode)


def _ends_within_quotes(file: IO[bytes]) -> bool:
    quotes = 0
    while piece := file.read(_PIECE):
        quotes += piece.count(b'"')
    return quotes % 2 == 1


def _whole_messages(path: Path, size: int) -> int:
    """Return where the last whole message of a file of that size ends. Raise Misuse if it contains no
    messages.
    """
    with path.open("rb") as file:
        end = 0
        while len(head := file.read(LENGTH)) == LENGTH:
            length = int.from_bytes(head, "big")
            if end + LENGTH + length > size:
                if length > LIMITS.max_record:
                    raise Misuse(
                        f"{path} does not hold messages with a length before each: name another file"
                    )
                break
            end = file.seek(length, os.SEEK_CUR)
    return end
