"""Files that are written: where the system says no (a full disk), it is said which file it was."""

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
    """Inside, a fault of the system that names no file names this one; others are no words of the system."""
    try:
        yield
    except OSError as fault:
        if fault.errno is not None and fault.filename is None:
            fault.filename = str(name)
        raise


def opened(path: str | Path | int, mode: str, name: str | Path | None = None) -> io.BufferedWriter:
    """A file for bytes, whose faults name it, or what stands for it."""
    return io.BufferedWriter(NamedFile(path, mode, name))


def added(path: str | Path) -> io.BufferedWriter:
    """A file of lines that is added to. Half a line, which a process that was killed may have left, stands
    alone."""
    file = opened(path, "a")
    if ends_within_line(file.fileno(), path):
        file.write(b"\n")
    return file


def ends_within_line(opened_at: int, path: str | Path) -> bool:
    """Whether a regular file, which is open there, ends with half a line."""
    found = os.fstat(opened_at)
    if not stat.S_ISREG(found.st_mode) or not found.st_size:
        return False
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


class NamedFile(io.FileIO):
    """The same without a buffer."""

    def __init__(self, path: str | Path | int, mode: str, name: str | Path | None = None) -> None:
        self._told = str(path) if name is None else name
        try:
            super().__init__(path, mode)
        except OSError as fault:
            fault.filename = str(self._told)
            raise

    def write(self, data: Any) -> int:
        """Write some of the bytes, and return how many."""
        with naming(self._told):
            return super().write(data)
