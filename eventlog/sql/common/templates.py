"""The named statements, found in the folders of a dialect and filled with names.

A .sql file contains statements with names: a line `-- name --`, a line with the purpose of the statement,
then its text up to the next name. If one name runs several statements, a line with a slash ends each; `@name`
includes the statements of another name. A name in braces is filled in, and every other brace is text. Values
are never filled in: they are bound.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import chain

from eventlog.sql.common.dialect import Dialect

_HOLE = re.compile(r"\{([a-z_]+)\}")
_INCLUDE = "@"
_DDL = re.compile(r"(?:--.*\n)*(?:create|alter|drop) ")
_END = re.compile(r"^/$", re.MULTILINE)
_NAME = re.compile(r"^-- (\w+) --\n(?:-- (\S.*)\n)?", re.MULTILINE)


def statement(dialect: Dialect, name: str, **names: str) -> str:
    """Return the one statement of a name."""
    (only,) = statements(dialect, name, names)
    return only


def statements(dialect: Dialect, name: str, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements of a name, each without its end; those of the dialect's first folder that has
    some.
    """
    for text in _texts_of(dialect.folders, name):
        if text.startswith(_INCLUDE):
            yield from statements(dialect, text.removeprefix(_INCLUDE), names)
        else:
            yield from (fill(ddl, names) for ddl in _own_ddl(dialect, text))


def _own_ddl(dialect: Dialect, text: str) -> Iterable[str]:
    """Return a statement of the schema in the words of the dialect, and any other as it is."""
    if _DDL.match(text) is None:
        return (text,)
    return dialect.schema.ddl(_HOLE.sub(lambda hole: dialect.schema.words.get(hole[1], hole[0]), text))


def fill(text: str, names: Mapping[str, str]) -> str:
    """Return the text with its holes filled."""
    return _HOLE.sub(lambda hole: names[hole[1]], text)


@functools.cache
def read(folder: str) -> dict[str, tuple[str, ...]]:
    """Return the statements of all files of a folder, by their names."""
    files = resources.files("eventlog.sql").joinpath(folder).iterdir()
    texts: dict[str, tuple[str, ...]] = {}
    for name, purpose, body in chain.from_iterable(map(_named, files)):
        if name in texts or not purpose:
            raise LookupError(f"{folder}: {name} {'is there twice' if name in texts else 'has no purpose'}")
        texts[name] = tuple(part for part in (part.strip("\n") for part in _END.split(body)) if part)
    return texts


def _named(file: Traversable) -> Iterator[tuple[str, str | None, str]]:
    """Yield the names, purposes and texts of a file; none of another kind."""
    if file.name.endswith(".sql"):
        before, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        if before.strip():
            raise LookupError(f"{file.name}: {before.strip().splitlines()[0]!r} is under no name")
        yield from zip(parts[::3], parts[1::3], parts[2::3], strict=True)


def _texts_of(folders: Iterable[str], name: str) -> tuple[str, ...]:
    texts = next((named[name] for named in map(read, folders) if name in named), None)
    if texts is None:
        raise LookupError(f"no statement {name} in {', '.join(folders)}")
    return texts
