"""What folders and columns of Delta tables can be called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.files.output_files import is_file_name
from eventlog.sql.common.capacity import Capacity, IllegalName
from eventlog.targets.tables.blocks import blocks_of
from eventlog.targets.tables.definitions import wanted
from eventlog.targets.tables.errors import refuse

CAPACITY = Capacity(title="a Delta table", name=200, columns=10_000, digits=38, twins=False)


def folder_of(folder: Path, change: Change) -> Path:
    """Return the folder of a change's table; IllegalName for a name that would lead elsewhere."""
    parts = [part for part in (change.schema, change.table) if part is not None]
    for part in parts:
        CAPACITY.check_name(part)
        if not is_file_name(part) or part.startswith("_"):
            raise IllegalName(part, "a folder of Delta tables", "it is no name of a file, or begins with _")
    return folder.joinpath(*parts)


def nameable(changes: Sequence[Change]) -> tuple[Sequence[Change], list[Refused]]:
    """Return the changes whose columns a table can have, and the others as refused ones."""
    refused: dict[int, Refused] = {}
    for block in blocks_of(changes):
        try:
            for name in wanted(block):
                CAPACITY.check_column(name)
        except EventlogError as fault:
            refused |= {n: refuse(c, fault) for n, c in zip(block.numbers, block.changes, strict=True)}
    if not refused:
        return changes, []
    return [c for n, c in enumerate(changes) if n not in refused], [refused[n] for n in sorted(refused)]
