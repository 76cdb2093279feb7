"""Where written bytes go: a file that appears when it is whole, one that grows, a device, standard output."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import secrets
import shutil
import stat
import sys
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from eventlog.core.errors import Misuse
from eventlog.core.redaction import visible
from eventlog.files.durable import (
    NamedFile,
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
    """The same on a terminal, with control characters visible."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__(out)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: Any) -> int:
        """Write all of the bytes, because what is shown has another length."""
        shown = memoryview(visible(self._decoder.decode(bytes(data))).encode())
        while shown:
            shown = shown[super().write(shown) :]
        return len(data)


_OPENED: Final = Path("/proc/self/fd")
_LONGEST = 240  # bytes of a file's name; file systems take 255, and an extension follows
_NOT_OURS = ("/dev/", "/proc/")  # /dev/stdout may be a file that the shell has opened
_MEMORY = "/dev/shm/"  # a folder for files of anyone  # noqa: S108


class WritableFile(Protocol):
    """A file that is written."""

    stream: IO[bytes]

    def complete(self) -> None:
        """Complete the file."""

    def discard(self) -> None:
        """Remove what is not whole."""


def place_at(name: str) -> WritableFile:
    """Return the place of that name; raise Misuse if its folder is not there."""
    target = Path(os.path.realpath(name))
    absolute = os.path.abspath(name)
    in_place = absolute.startswith(_NOT_OURS) and not absolute.startswith(_MEMORY)
    if in_place or (target.exists() and not target.is_file()):
        return _AsItComes(name)
    need_folder(target, name)
    return _WhenWhole(target)


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


class _AsItComes:
    """A device or a pipe: writing cannot be undone, so the exit code shows whether the output is whole."""

    def __init__(self, name: str) -> None:
        self._raw: IO[bytes] = open_to_write(name, "w")
        self.stream = _packed(name, self._raw)

    def complete(self) -> None:
        self.stream.close()
        self._raw.close()

    def discard(self) -> None:
        with suppress(OSError):
            self._raw.close()


class _WhenWhole:
    """A regular file, with the mode of the file that it replaces.

    It is written without a name, so that nothing of it remains when the process is killed. If the system has
    no such files, it is written under a name next to its place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # by chance: containers share folders, and number their processes alike
        self._part = path.with_name(f".eventlog-{secrets.token_hex(8)}.part")
        unnamed = _unnamed(path)
        self._has_name = unnamed is None
        self._raw: IO[bytes] = unnamed or open_to_write(self._part, "x", path)
        with suppress(FileNotFoundError):
            os.fchmod(self._raw.fileno(), stat.S_IMODE(path.stat().st_mode))
        self.stream = _packed(path.name, self._raw)

    def complete(self) -> None:
        if self.stream is not self._raw:
            self.stream.close()
        self._raw.flush()
        with naming(self._path):
            os.fsync(self._raw.fileno())
        if not self._has_name:
            self._give_name()
        self._raw.close()
        self._part.replace(self._path)
        sync_names(self._path.parent)

    def discard(self) -> None:
        self._part.unlink(missing_ok=True)
        with suppress(OSError):
            self._raw.close()

    def _give_name(self) -> None:
        file = self._raw.fileno()
        try:  # with src_dir_fd, which an absolute name does not need, Python follows the link of /proc
            os.link(_OPENED / str(file), self._part, src_dir_fd=file, follow_symlinks=True)
        except OSError:  # some security profiles forbid links
            with naming(self._path), (_OPENED / str(file)).open("rb") as complete_file:
                self._copy(complete_file)

    def _copy(self, complete_file: IO[bytes]) -> None:
        with open_to_write(self._part, "x", self._path) as named:
            os.fchmod(named.fileno(), stat.S_IMODE(os.fstat(complete_file.fileno()).st_mode))
            shutil.copyfileobj(complete_file, named)
            named.flush()
            os.fsync(named.fileno())


def _unnamed(path: Path) -> BufferedWriter | None:
    """Return a file without a name on the file system of a path; None where there are none (NFS, macOS)."""
    if not hasattr(os, "O_TMPFILE") or not _OPENED.is_dir():
        return None
    try:
        return open_to_write(os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666), "w", path)
    except OSError:  # a fault of the folder is reported when the file gets its name
        return None


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

    def close(self) -> None:
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
