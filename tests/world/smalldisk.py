"""A disk of a few pages that can be filled, in a mount namespace of its own, without root rights."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAGE = 4096
_MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && echo mounted && read _'
_BALLAST = "ballast"
_PIECE = 64  # pages
_ROOT = os.getuid() == 0  # who is root stays so, and may still do all: servers have folders of other users
_NAMESPACES = ("--mount",) if _ROOT else ("--mount", "--user")
_ROOT_THERE = () if _ROOT else ("--map-root-user",)
_AS_WE_ARE = () if _ROOT else ("--preserve-credentials",)


class NoSmallDisk(Exception):
    """An error: no disk can be mounted here."""


class SmallDisk:
    """A file system that only processes with `within` before their words see at `path`; all others see it at
    `outside`."""

    def __init__(self, path: Path, holder: int) -> None:
        self.path = path
        self.outside = Path(f"/proc/{holder}/root{path}")
        self.within = ("nsenter", f"--target={holder}", *_NAMESPACES, *_AS_WE_ARE, "--")

    @property
    def room(self) -> int:
        """The free pages."""
        reported = os.statvfs(self.outside)
        return reported.f_bavail * reported.f_frsize // PAGE

    def fill(self, free_pages: int = 0) -> None:
        """Leave so many pages free, or as many as there are."""
        with (self.outside / _BALLAST).open("ab", buffering=0) as file, suppress(OSError):
            while (pages := self.room - free_pages) > 0:  # others may write meanwhile
                file.write(bytes(min(pages, _PIECE) * PAGE))

    def make_room(self) -> None:
        """Take away what `fill` wrote."""
        (self.outside / _BALLAST).unlink(missing_ok=True)

    def clear(self) -> None:
        """Take away everything."""
        for path in self.outside.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def small_disk(path: Path, pages: int) -> Iterator[SmallDisk]:
    """A disk of that size at a folder, gone with all it holds at the end of the block; else NoSmallDisk."""
    path.mkdir()
    holder = subprocess.Popen(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            _MOUNT,
            "sh",
            str(pages * PAGE),
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert holder.stdout is not None
    try:
        answer = holder.stdout.readline().strip()
        if answer != "mounted":
            raise NoSmallDisk(answer)
        yield SmallDisk(path, holder.pid)
    finally:
        holder.communicate("\n")
