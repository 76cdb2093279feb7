"""Files of one command: what an option writes may be nothing that is read, or that another option writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from eventlog.core.errors import Misuse


def need_apart(written: Mapping[str, str | Path | None], read: Iterable[str | Path | None] = ()) -> None:
    """Misuse where a file that an option writes would be lost, or would be lost to another."""
    readers = {place: "reads it" for name in read if name and (place := _place(name)) and Path(name).exists()}
    for option, name in written.items():
        place = _place(name) if name else None
        if place is None:
            continue
        if place in readers:
            raise Misuse(f"{option} {name}: the command {readers[place]} too; name another file")
        readers[place] = f"writes it as {option}"


def _place(name: str | Path) -> tuple[object, ...] | None:
    """What all names of one file have in common; None for what is no regular file, such as a device."""
    if str(name) == "-":
        return None
    try:
        found = os.stat(name)
    except OSError:
        return (os.path.realpath(name),)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
