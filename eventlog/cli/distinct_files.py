"""Files of one command: what an option writes may be nothing that is read, or that another option writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from eventlog.core.errors import Misuse
from eventlog.files.output_files import one_file


def require_distinct_files(
    written: Mapping[str, str | Path | None], read: Iterable[str | Path | None] = ()
) -> None:
    """Raise Misuse if one option's file would overwrite another file of the command."""
    readers = {
        place: "reads it" for name in read if name and (place := one_file(name)) and Path(name).exists()
    }
    for option, name in written.items():
        place = one_file(name) if name else None
        if place is None:
            continue
        if place in readers:
            raise Misuse(f"{option} {name}: the command {readers[place]} too; name another file")
        readers[place] = f"writes it as {option}"
