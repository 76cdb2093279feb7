"""The .sql files: found in the folders of a dialect, filled with names, split into statements.

A file holds one statement or several, each ended by a line with nothing but a slash. What stands
in braces is filled in; every other brace is text. Values are never filled in: they are bound.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources

from eventlog.sql.dialect.dialects import Dialect

_HOLE = re.compile(r"\{([a-z_]+)\}")
_END = re.compile(r"^/$", re.MULTILINE)


def statement(dialect: Dialect, name: str, **names: str) -> str:
    """The one statement of a file."""
    (only,) = statements(dialect, name, names)
    return only


def statements(dialect: Dialect, name: str, names: Mapping[str, str]) -> Iterator[str]:
    """The statements of a file, each without its end."""
    for text in _read(dialect.folders, name):
        yield fill(text, names)


def fill(text: str, names: Mapping[str, str]) -> str:
    """The text with its holes filled."""
    return _HOLE.sub(lambda hole: names[hole[1]], text)


@functools.cache
def _read(folders: tuple[str, ...], name: str) -> tuple[str, ...]:
    root = resources.files("eventlog.sql.statements")
    found = (root.joinpath(folder, f"{name}.sql") for folder in folders)
    file = next((path for path in found if path.is_file()), None)
    if file is None:
        raise LookupError(f"no {name}.sql in {', '.join(folders)}")
    parts = (part.strip("\n") for part in _END.split(file.read_text(encoding="utf-8")))
    return tuple(part for part in parts if part)
