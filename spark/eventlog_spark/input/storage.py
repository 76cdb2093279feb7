"""Names on the command line become files: folders and globs are told apart into what stands in them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.files.inputs import container_of

_PART = 128 << 20  # bytes of input that make one partition
_FEWEST = 4


class File(NamedTuple):
    """One input: its name as messages give it, what it holds, and what tells that it has not changed."""

    name: str
    container: str
    size: int
    changed: int


def expand(names: Iterable[str], shape: Shape, container: str | None) -> list[File]:
    """The files of names, folders and globs; hidden ones and those that begin with _ are left out."""
    files = [_file(path, shape, container) for name in names for path in _paths(name)]
    if repeated := {file.name for file in files if sum(other.name == file.name for other in files) > 1}:
        raise Misuse(f"{min(repeated)} is named twice")
    return files


def partitions(files: Iterable[File], fewest: int) -> int:
    """How many partitions these files are worth, at least so many."""
    size = sum(file.size * (8 if file.name.endswith((".gz", ".parquet")) else 1) for file in files)
    return int(max(_FEWEST, fewest, -(-size // _PART)))


def absolute(name: str) -> str:
    """The name as every folder understands it; - is no file."""
    return name if name == "-" else os.path.abspath(name)


def uri(name: str) -> str:
    """The file as Spark reads names: as it is written, without patterns."""
    return "file://" + _PATTERN.sub(r"\\\g<0>", str(Path(name).resolve()))


_PATTERN = re.compile(r"[\[\]{}*?\\]")


def _paths(name: str) -> list[str]:
    if name == "-":
        raise Misuse("a backlog reads files, not standard input: its tasks read them more than once")
    if Path(name).is_dir():
        found = sorted(str(path) for path in Path(name).rglob("*") if path.is_file() and _visible(path, name))
    elif Path(name).is_file():
        return [name]
    else:
        found = sorted(path for path in glob.glob(name, recursive=True) if Path(path).is_file())
    if not found:
        raise Misuse(f"{name}: no such file, and no files in or under it")
    return found


def _visible(path: Path, folder: str) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)


def _file(name: str, shape: Shape, container: str | None) -> File:
    facts = Path(name).stat()
    return File(name, container_of(name, shape, container), facts.st_size, facts.st_mtime_ns)
