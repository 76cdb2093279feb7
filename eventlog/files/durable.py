"""What stays when the machine stops: flushed files and folders, small files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """A small file in place of the one before, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Have a file, or what a folder lists, on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
