"""A file that run after run adds to. It begins once; half a record of a killed run does not spoil others."""

from __future__ import annotations

import os
import stat
from io import BufferedWriter
from pathlib import Path
from typing import IO, Final

from eventlog.core.errors import Misuse
from eventlog.files.limits import LIMITS
from eventlog.files.messages import LENGTH
from eventlog.files.writing import NamedFile, ends_within_line, naming

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
        self._raw = NamedFile(name, "a")
        self.stream: IO[bytes] = BufferedWriter(self._raw)
        self._flushed_size = self._size()
        if container == "messages":
            self._end_message()
        elif container != "csv":  # which begins with a line of its own
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
