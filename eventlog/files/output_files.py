"""Where a written file goes: a regular file appears when it is whole, others are written as it comes."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import stat
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import IO, Final, Protocol, cast

from eventlog.core.errors import Misuse
from eventlog.files.writing import naming, opened

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


def need_folder(path: Path, name: str) -> None:
    """Raise Misuse if the folder of a file that is written does not exist."""
    if not path.parent.is_dir():
        raise Misuse(f"{name}: there is no folder {path.parent}")


class _AsItComes:
    """A device or a pipe: writing cannot be undone, so the exit code shows whether the output is whole."""

    def __init__(self, name: str) -> None:
        self._raw: IO[bytes] = opened(name, "w")
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
        self._raw: IO[bytes] = unnamed or opened(self._part, "x", path)
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
        with opened(self._part, "x", self._path) as named:
            os.fchmod(named.fileno(), stat.S_IMODE(os.fstat(complete_file.fileno()).st_mode))
            shutil.copyfileobj(complete_file, named)
            named.flush()
            os.fsync(named.fileno())


def _unnamed(path: Path) -> BufferedWriter | None:
    """Return a file without a name on the file system of a path; None where there are none (NFS, macOS)."""
    if not hasattr(os, "O_TMPFILE") or not _OPENED.is_dir():
        return None
    try:
        return opened(os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666), "w", path)
    except OSError:  # a fault of the folder is met again where the file gets a name
        return None


def _packed(name: str, raw: IO[bytes]) -> IO[bytes]:
    if not name.endswith(".gz"):
        return raw
    return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
