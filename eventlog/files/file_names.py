"""Names of files on a command line that also reads stores: of this machine, or of a store."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from eventlog.core.errors import Misuse

_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)(?://([^/]*))?/?(.*)", re.DOTALL)
_VOLUMES = "/Volumes/"  # of Databricks, whose Spark finds them under this name
_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
    "hdfs": "hdfs",
}


def is_remote(name: str) -> bool:
    """Return whether a name is of a store, and not of a file of this machine."""
    if name.startswith(_VOLUMES) and "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return True
    parts = _NAMED.fullmatch(name)
    return parts is not None and parts[1].lower() != "file"


def plain(name: str) -> str:
    """Return the name of a file without its scheme."""
    parts = _NAMED.fullmatch(name)
    if parts is None:
        return name
    if parts[2] not in (None, "", "localhost"):
        raise Misuse(f"{name}: a file of this machine has three slashes: file:///{parts[3]}")
    return "/" + parts[3]


def check_no_key(name: str) -> None:
    """Raise Misuse if a key is in a name, because names are shown."""
    parts = _NAMED.match(name)
    if parts is None or parts[2] is None:
        return
    user, at, _ = parts[2].rpartition("@")
    if (at and (":" in user or parts[1].lower().startswith("s3"))) or (
        parts[1].lower() == "s3a" and ":" in parts[2]
    ):
        raise Misuse("a name of a store holds no key: give it to Hadoop's configuration, for names are shown")


def in_store(name: str) -> tuple[str, str]:
    """Return the store of a file, as Arrow names it, and its path; no store if Arrow has no client for it."""
    parts = _NAMED.fullmatch(name)
    scheme = _SCHEMES.get(parts[1].lower()) if parts else None
    return (f"{scheme}://{parts[2]}/", parts[3]) if parts and scheme and parts[2] else ("", name)


def files_on_disk(name: str) -> list[str]:
    """Return the files of a name that is of this machine; raise Misuse if there is none."""
    if name == "-":
        raise Misuse("a backlog reads files, not standard input: its tasks read them more than once")
    files = _on_disk(plain(name))
    demand_files(name, files)
    return files


def demand_files(name: str, files: Sequence[object]) -> None:
    """Raise Misuse if a name has no files."""
    if not files:
        raise Misuse(f"{name}: no such file, and no files in or under it")


def _on_disk(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        below = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
        return [str(path / file) for file in below if not any(part[0] in "_." for part in file.parts)]
    named = [name] if path.is_file() else sorted(glob.glob(name, recursive=True))
    return [file for file in named if Path(file).is_file()]
