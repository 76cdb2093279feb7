"""Files that are written: errors name them, and what must stay when the machine stops is on disk."""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.state_versions import NewerState


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Name the file in errors of the system that name none."""
    try:
        yield
    except OSError as fault:
        if fault.errno is not None and fault.filename is None:
            fault.filename = str(name)
        raise


def open_to_write(path: str | Path | int, mode: str, name: str | Path | None = None) -> io.BufferedWriter:
    """Open a file for bytes; its errors name it, or the given name.

    A new file that is added to has its name on disk, because a state may pass over what is in it.
    """
    is_new = mode == "a" and not isinstance(path, int) and not os.path.exists(path)
    file: io.BufferedWriter = io.BufferedWriter(NamedFile(path, mode, name))
    with ExitStack() as stack:
        stack.callback(file.close)
        if is_new:
            sync_names(Path(str(path)).parent)
        stack.pop_all()
    return file


def open_to_append(path: str | Path) -> io.BufferedWriter:
    """Open a file of lines that is added to; half a line of a killed process gets a line of its own."""
    file = open_to_write(path, "a")
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
    """An unbuffered file whose errors name it, or the given name."""

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


class Overtaken(EventlogError):
    """{0}: another run writes this file too; let one run write it at a time"""


class WholeFile:
    """A regular file that appears when it is complete, with the mode of the file that it replaces.

    Until then it is `.NAME.part`, which readers of folders pass over. The next file of that name removes the
    one of a killed process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._part.unlink(missing_ok=True)  # it may be a link that someone prepared
        self.raw = open_to_write(self._part, "x", path)
        with suppress(FileNotFoundError):
            os.fchmod(self.raw.fileno(), stat.S_IMODE(path.stat().st_mode))

    def complete(self) -> None:
        """Bring the file to disk, and give it its name; raise Overtaken if another run removed it."""
        self.raw.flush()
        with naming(self._path):
            os.fsync(self.raw.fileno())
        if not self._has_part():
            raise Overtaken(self._path)
        self._part.replace(self._path)
        self.raw.close()
        sync_names(self._path.parent)

    def discard(self) -> None:
        """Remove what is not complete."""
        if not self.raw.closed and self._has_part():
            self._part.unlink()
        with suppress(OSError):
            self.raw.close()

    def _has_part(self) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(self._part.lstat(), os.fstat(self.raw.fileno()))
        return False


def write_whole(path: Path, text: str) -> None:
    """Replace a small file, whole or not at all."""
    file = WholeFile(path)
    try:
        file.raw.write(text.encode())
        file.complete()
    finally:
        file.discard()


def write_all(file: int, data: bytes) -> None:
    """Write all of the data; a disk that is nearly full takes a part, and raises an error for the rest."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync(path: Path) -> None:
    """Bring a file, or the entries of a folder, to disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# a folder that we may not read, and file systems whose folders are not brought to disk by themselves
_NOT_SYNCED: Final = (errno.EACCES, errno.EINVAL, errno.ENOTSUP)


def sync_names(folder: Path) -> None:
    """Bring the entries of a folder to disk, where its rights and its file system allow that."""
    try:
        sync(folder)
    except OSError as fault:
        if fault.errno not in _NOT_SYNCED:
            raise


def need_folder(path: Path, name: str) -> None:
    """Raise Misuse if the folder of a file that is written does not exist."""
    if not path.parent.is_dir():
        raise Misuse(f"{name}: there is no folder {path.parent}")


class Extent(NamedTuple):
    """The first byte of a block in a file, and how many bytes it has."""

    start: int
    length: int


class NamelessFile:
    """A file of blocks without a name; a fault of the disk names the folder of temporary files."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile(buffering=0) as temporary:
            self._file = NamedFile(os.dup(temporary.fileno()), "r+", tempfile.gettempdir())
        self._end = 0
        self.close = weakref.finalize(self, self._file.close)

    def append(self, data: bytes | memoryview) -> Extent:
        """Write a block after all others, and return its place."""
        unwritten = memoryview(data).cast("B")
        place = Extent(self._end, len(unwritten))
        while unwritten:
            written = self._file.write(unwritten)
            self._end += written
            unwritten = unwritten[written:]
        return place

    def read(self, place: Extent) -> bytes:
        """Return the bytes of a block, or of a part of one."""
        return os.pread(self._file.fileno(), place.length, place.start)

    def mapped(self) -> mmap.mmap:
        """Return all blocks as memory that the system keeps in the file, which may be closed then."""
        return mmap.mmap(self._file.fileno(), self._end)


T = TypeVar("T")
# the errors of loading a file that somebody else wrote
_NO_STATE: Final = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError),
    EventlogError,
)


def read_state(path: Path, load: Callable[[Any], T], none: T) -> T:
    """Return what `load` makes of the file; `none` if there is no file."""
    need_memory(path)
    try:
        return load(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return none
    except NewerState:
        raise
    except _NO_STATE as fault:
        message = f"{path} is not a state file: name another, or remove it to start from the beginning"
        raise Misuse(message) from fault


def need_memory(path: Path) -> None:
    """Raise Misuse if nothing can be kept between runs: in a folder, a device, a pipe."""
    if path.exists() and not path.is_file():
        raise Misuse(f"{path} is no regular file: nothing can be remembered there")
    need_folder(path, str(path))


def write_state(path: Path, state: Any) -> None:
    """Keep the state on disk, in place of the one before."""
    write_whole(path, json.dumps(state))
