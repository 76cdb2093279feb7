"""The events of a source that were applied to a folder of Delta tables.

The names of the events of a commit are in a file next to the table's own files. The file counts once a commit
names it as one of its transaction identifiers, which outlive the entries of the table's log.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.files.durable import sync
from eventlog.files.keyed_store import KeyedStore

FOLDER = "_eventlog_applied"  # the underscore keeps vacuum and readers away
_WIDTH = 16
_SIZE = 200  # bytes that a mark takes in memory, about
_PART = ""  # of the store: all marks


class Marks:
    """The events that were applied."""

    def __init__(self) -> None:
        self._digests: KeyedStore[None] = KeyedStore()

    def close(self) -> None:
        """Drop all marks."""
        self._digests.close()

    def read(self, table: Path, source: str, committed: Callable[[str], bool]) -> int:
        """Read the marks in the files of a table that `committed` accepts. Return the number of files."""
        found = 0
        for file in sorted(_folder(table, source).glob("*.parquet")):
            if committed(file.stem):
                found += 1
                for batch in pq.ParquetFile(file).iter_batches(columns=["mark"]):
                    self._add(batch.column(0).to_pylist())
        return found

    def known(self, marks: Iterable[str]) -> set[str]:
        """Return those of some marks under which something was applied."""
        return {mark for mark in marks if self._digests.get(_PART, _digest(mark))}

    def add(self, marks: Iterable[str]) -> None:
        """Note that what was applied under these marks is committed."""
        self._add(map(_digest, marks))

    def _add(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            self._digests.add(_PART, None, _SIZE, digest)


def write(table: Path, source: str, marks: Sequence[str]) -> str:
    """Keep marks in a new file of a table; its name, by which a commit makes it count."""
    folder = _folder(table, source)
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    with (folder / f"{name}.parquet").open("xb") as file:
        pq.write_table(pa.table({"mark": pa.array(map(_digest, marks), pa.binary(_WIDTH))}), file)
        file.flush()
        os.fsync(file.fileno())
    for changed in (folder, folder.parent, table):
        sync(changed)
    return name


def _folder(table: Path, source: str) -> Path:
    """Return the files of a source, whatever it is called."""
    return table / FOLDER / hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _digest(mark: str) -> bytes:
    return hashlib.blake2b(mark.encode("utf-8", "surrogatepass"), digest_size=_WIDTH).digest()
