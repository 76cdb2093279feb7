"""Names on the command line become files: folders and globs are resolved."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.files.inputs import container_of
from eventlog_spark.cluster.stores import ObjectStore, Stores, is_remote, plain
from eventlog_spark.io import manifest

_PART = 128 << 20  # bytes of input that make one partition
_FEWEST = 4
NO_STORES = Stores()


class File(NamedTuple):
    """An input: its name in messages, its content, and facts that show that it has not changed."""

    name: str
    container: str
    size: int
    changed: int


class _Found(NamedTuple):
    name: str
    size: int
    changed: int


def expand(
    names: Iterable[str], shape: Shape, container: str | None, stores: Stores = NO_STORES
) -> list[File]:
    """Return the files of names, folders and globs.

    Hidden files and those that begin with _ are left out. Of a folder that a backlog wrote, only the files in
    its manifest are used.
    """
    found = [file for name in names for file in _found(plain(name), stores)]
    for name, *_ in found:
        if name.lower().removesuffix(".gz").endswith(".tsv"):
            raise Misuse(f"{name}: Spark reads CSV with commas; eventlog convert reads .tsv")
    files = [File(name, container_of(name, shape, container), *facts) for name, *facts in found]
    seen: set[str] = set()
    for file in files:
        if file.name in seen:
            raise Misuse(f"{file.name} is named twice")
        seen.add(file.name)
    return files


def partitions(files: Iterable[File], fewest: int) -> int:
    """Return how many partitions these files are worth, at least so many."""
    size = sum(file.size * (8 if file.name.endswith((".gz", ".parquet")) else 1) for file in files)
    return int(max(_FEWEST, fewest, -(-size // _PART)))


def absolute(name: str) -> str:
    """Return the name as every folder understands it; - is no file."""
    return name if name == "-" or is_remote(name) else os.path.abspath(plain(name))


def uri(name: str) -> str:
    """Return the file as Spark reads names: as it is written, without patterns."""
    return _PATTERN.sub(r"\\\g<0>", name if is_remote(name) else f"file://{Path(name).resolve()}")


_PATTERN = re.compile(r"[\[\]{}*?\\]")


def _found(name: str, stores: Stores) -> list[_Found]:
    if name == "-":
        raise Misuse("a backlog reads files, not standard input: its tasks read them more than once")
    store = stores.of(name)
    found = _local(name) if store is None else _remote(store, name)
    if not found:
        raise Misuse(f"{name}: no such file, and no files in or under it")
    return found


def _local(name: str) -> list[_Found]:
    path = Path(name)
    if path.is_dir():
        files = {str(file.relative_to(path)): file for file in path.rglob("*") if file.is_file()}
        facts = {inner: (str(file), file.stat()) for inner, file in files.items()}
        found = {
            inner: _Found(file, file_facts.st_size, file_facts.st_mtime_ns)
            for inner, (file, file_facts) in facts.items()
        }

        def text(inner: str) -> str | None:
            return files[inner].read_text("utf-8") if inner in files else None

        return _of_folder(name, found, text)
    named = [name] if path.is_file() else sorted(glob.glob(name, recursive=True))
    file_facts = [(file, Path(file).stat()) for file in named if Path(file).is_file()]
    return [_Found(file, facts.st_size, facts.st_mtime_ns) for file, facts in file_facts]


def _remote(store: ObjectStore, name: str) -> list[_Found]:
    name = name.rstrip("/")
    if name != store.root:
        facts = store.look(name)
        if facts.is_file:
            return [_Found(name, facts.size, facts.mtime_ns or 0)]
    files = [_Found(file, facts.size, facts.mtime_ns or 0) for file, facts in store.below(name)]
    if files:
        inner = {file.name[len(name) + 1 :]: file for file in files}
        return _of_folder(name, inner, lambda one: store.text(f"{name}/{one}") if one in inner else None)
    sure = name[: m.start()] if (m := _PATTERN.search(name)) else name
    folder = sure.rpartition("/")[0]
    if m is None or len(folder) < len(store.root):
        return []
    among = ((file, facts) for file, facts in store.below(folder))
    wanted = name[len(folder) + 1 :].split("/")
    return [
        _Found(file, facts.size, facts.mtime_ns or 0)
        for file, facts in among
        if _fits(file[len(folder) + 1 :].split("/"), wanted)
    ]


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path fits a glob pattern: ** is any number of folders that are not hidden."""
    reached = {0}
    for part in path:
        after = set()
        for at in _over(reached, pattern):
            if at < len(pattern) and pattern[at] == "**":
                after |= {at} if not part.startswith(".") else set()
            elif at < len(pattern) and fnmatchcase(part, pattern[at]):
                after |= {at + 1} if not part.startswith(".") or pattern[at].startswith(".") else set()
        reached = after
    return len(pattern) in _over(reached, pattern)


def _over(reached: Iterable[int], pattern: Sequence[str]) -> set[int]:
    """Return the same, and what is reached where ** is no folder at all."""
    found = set()
    for at in reached:
        found.add(at)
        while at < len(pattern) and pattern[at] == "**":
            at += 1
            found.add(at)
    return found


def _of_folder(name: str, found: Mapping[str, _Found], text: manifest.Text) -> list[_Found]:
    """Return the files of a folder that are inputs."""
    named = manifest.inputs(name, text, {inner: file.size for inner, file in found.items()})
    if named is not None:
        return [found[inner] for inner in named]
    return [found[inner] for inner in sorted(found) if _visible(inner)]


def _visible(inner: str) -> bool:
    return not any(part.startswith(("_", ".")) for part in inner.split("/"))
