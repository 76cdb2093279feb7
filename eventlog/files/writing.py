"""Files that are written: an error of the system, such as a full disk, names the file."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Name the file in errors of the system that name none."""
    try:
        yield
    except OSError as fault:
        if fault.errno is not None and fault.filename is None:
            fault.filename = str(name)
        raise


def opened(path: str | Path | int, mode: str, name: str | Path | None = None) -> io.BufferedWriter:
    """Open a file for bytes; its errors name it, or the given name."""
    return io.BufferedWriter(NamedFile(path, mode, name))


def added(path: str | Path) -> io.BufferedWriter:
    """Open a file of lines that is added to; half a line of a killed process gets a line of its own."""
    file = opened(path, "a")
    if ends_within_line(file.fileno(), path):
        file.write(b"\n")
    return file


def ends_within_line(descriptor: int, path: str | Path) -> bool:
    """Return whether an open regular file ends with half a line."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return False
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


class NamedFile(io.FileIO):
    """The same without a buffer."""

    def __init__(self, path: str | Path | int, mode: str, name: str | Path | None = None) -> None:
        self._shown_name = str(path) if name is None else name
        try:
            super().__init__(path, mode)
        except OSError as fault:
            fault.filename = str(self._shown_name)
            raise

    def write(self, data: Any) -> int:
        """Write some of the bytes, and return how many."""
        with naming(self._shown_name):
            return super().write(data)
