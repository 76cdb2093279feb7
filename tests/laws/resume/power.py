"""A disk whose power fails: what was not brought to it is lost, wholly or in part.

A file loses its end from the last sync on. A folder loses its last changes of names since its own last sync:
some, all or none, because each folder is brought to disk by itself. A sync that fails loses the end of its
file: a later sync succeeds, and brings none of it to disk unless it was cut off and written again.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import tempfile
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from eventlog.files.durable import NamedFile

_LINK, _RENAME, _TRUNCATE = os.link, os.rename, os.truncate  # others count these calls
Place = tuple[int, int]  # the device and the number of a file or a folder


class Disk:
    """The changes of files and folders that are not yet on disk; several threads may make them.

    The sync of a file with the number `bad_sync`, from 0 on, fails.
    """

    def __init__(self, seed: int, bad_sync: int | None = None) -> None:
        self.lock = threading.RLock()
        self.syncs = 0  # of files
        self._bad_sync = bad_sync
        self._dice = random.Random(seed)
        self._files: dict[Place, tuple[int, int]] = {}  # an own descriptor and the size that is on disk
        self._broken: set[Place] = set()  # files whose sync failed
        self._names: dict[Place, list[Callable[[], None]]] = defaultdict(list)  # undo changes of a folder
        self._stash = Path(tempfile.mkdtemp(prefix="stash-"))
        weakref.finalize(self, shutil.rmtree, self._stash, ignore_errors=True)

    def before_write(self, descriptor: int) -> None:
        """Note the size of a file, unless an earlier write did."""
        status = os.fstat(descriptor)
        place = status.st_dev, status.st_ino
        if stat.S_ISREG(status.st_mode) and place not in self._files:
            # not a duplicate, which would keep the lock of a file that is closed
            own_descriptor = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
            self._files[place] = own_descriptor, status.st_size

    def sync(self, descriptor: int) -> None:
        """Note that a file or the names of a folder are on disk; raise OSError if this is the bad sync."""
        status = os.fstat(descriptor)
        place = status.st_dev, status.st_ino
        self._names.pop(place, None)
        if place not in self._files:
            return
        self.syncs += 1
        if self.syncs - 1 == self._bad_sync:
            self._broken.add(place)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if place not in self._broken:
            self._files[place] = self._files[place][0], status.st_size

    def after_cut(self, descriptor: int) -> None:
        """Note that a file was cut off; what is written from now on may be on disk after a sync."""
        status = os.fstat(descriptor)
        place = status.st_dev, status.st_ino
        if place in self._files and status.st_size <= self._files[place][1]:
            self._broken.discard(place)

    def note(self, path: Any, undo: Callable[[], None]) -> None:
        """Note a change of names in the folder of a path."""
        status = os.stat(Path(os.fspath(path)).parent)
        self._names[status.st_dev, status.st_ino].append(undo)

    def fresh_name(self) -> Path:
        """Return a path outside of everything."""
        return self._stash / str(self._dice.getrandbits(60))

    def stash(self, path: Any) -> Path | None:
        """Return another name of a file, under which it stays; None if there is no file."""
        copy = self.fresh_name()
        with suppress(OSError):
            _LINK(path, copy, follow_symlinks=False)
            return copy
        return None

    def fail(self) -> None:
        """Discard what is not on disk."""
        with self.lock:
            self._fail()

    def _fail(self) -> None:
        for changes in self._names.values():
            lasting_count = self._dice.randint(0, len(changes))
            for undo in reversed(changes[lasting_count:]):
                with suppress(OSError):
                    undo()
        for descriptor, size in self._files.values():
            with suppress(OSError):  # a descriptor that only reads
                now = os.fstat(descriptor).st_size
                _TRUNCATE(f"/proc/self/fd/{descriptor}", self._dice.randint(min(size, now), now))


@contextmanager
def unsynced(disk: Disk) -> Iterator[None]:
    """Note in the disk what happens to files inside the block."""
    write, fsync, link, unlink, mkdir = os.write, os.fsync, os.link, os.unlink, os.mkdir
    truncate = os.ftruncate
    written, opened = NamedFile.write, NamedFile.__init__

    def write_noted(file: int, data: Any) -> int:
        disk.before_write(file)
        return write(file, data)

    def write_named(file: NamedFile, data: Any) -> int:
        disk.before_write(file.fileno())
        return written(file, data)

    def open_named(file: NamedFile, path: Any, mode: str, name: Any = None) -> None:
        is_new = not isinstance(path, int) and not os.path.exists(path)
        opened(file, path, mode, name)
        if is_new:
            disk.note(path, lambda: unlink(path))

    def sync_noted(file: int) -> None:
        fsync(file)
        disk.sync(file)

    def truncate_noted(file: int, size: int) -> None:
        truncate(file, size)
        disk.after_cut(file)

    def link_noted(source: Any, target: Any, **named: Any) -> None:
        link(source, target, **named)
        disk.note(target, lambda: unlink(target))

    def unlink_noted(path: Any, **named: Any) -> None:
        stash = None if named.get("dir_fd") else disk.stash(path)
        unlink(path, **named)
        if stash is not None:
            disk.note(path, lambda: link(stash, path))

    def replacing(replace: Any) -> Any:
        def replaced(source: Any, target: Any, **named: Any) -> None:
            stash = disk.stash(target)
            replace(source, target, **named)

            def undo() -> None:
                _RENAME(target, source)
                if stash is not None:
                    _LINK(stash, target)

            disk.note(target, undo)

        return replaced

    def mkdir_noted(path: Any, *args: Any, **named: Any) -> None:
        mkdir(path, *args, **named)
        disk.note(path, lambda: _RENAME(path, disk.fresh_name()))

    def locked(function: Any) -> Any:
        @wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            with disk.lock:
                return function(*args, **named)

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "mkdir", locked(mkdir_noted))
        patch.setattr(os, "write", locked(write_noted))
        patch.setattr(os, "fsync", locked(sync_noted))
        patch.setattr(os, "ftruncate", locked(truncate_noted))
        patch.setattr(os, "link", locked(link_noted))
        patch.setattr(os, "unlink", locked(unlink_noted))
        patch.setattr(os, "replace", locked(replacing(os.replace)))
        patch.setattr(os, "rename", locked(replacing(os.rename)))
        patch.setattr(NamedFile, "write", locked(write_named))
        patch.setattr(NamedFile, "__init__", locked(open_named))
        yield
