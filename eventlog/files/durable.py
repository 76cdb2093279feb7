"""What stays when the machine stops: flushed files and folders, small files that are whole or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from eventlog.files.writing import naming


def write_whole(path: Path, text: str) -> None:
    """Replace a small file, whole or not at all. The new one gets a name that no one can prepare."""
    part = path.with_name(f".eventlog-{secrets.token_hex(8)}.part")
    try:
        with naming(path), part.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


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
