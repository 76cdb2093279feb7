"""The folder of what was frozen of a live log: a rerun after a crash reads the same once more."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core.entry import COLUMNS
from eventlog_spark.io.folder_files import Files

FROZEN = "_frozen"
COMPLETE = "complete.json"
_EPOCH = "epoch"
_REMEMBERED, _FIRST = "remembered.json", "remembered.jsonl"

LOG = pa.schema(
    [(name, pa.int64() if name in ("record_id", "event_type") else pa.string()) for name in COLUMNS]
)


class FrozenFolder:
    """The folder of frozen rows in the output's folder; its content counts once it is complete."""

    def __init__(self, output: Files) -> None:
        self.files = output.below(FROZEN)

    def exists(self) -> bool:
        """Return whether it still exists, and is complete."""
        return self.files.text(COMPLETE) is not None

    def serves(self, epoch: int) -> bool:
        """Return whether it is complete, and no one has led the log since it was noted last."""
        noted = self.files.text(_EPOCH)
        return self.exists() and noted is not None and int(noted) == epoch - 1

    def note(self, epoch: int) -> None:
        """Note that we lead the log, and the frozen rows are as they were."""
        self.files.put(_EPOCH, str(epoch))

    @property
    def logs(self) -> list[str]:
        return self._files("logs")

    @property
    def current(self) -> list[str]:
        return self._files("current")

    @property
    def remembered(self) -> str:
        """Return the batches that a publisher remembered as about to leave."""
        return self.files.text(_REMEMBERED) or ""

    @property
    def first(self) -> str:
        """Return the file of their changes, which precede all others."""
        return self.files.name(_FIRST)

    def begin(self) -> None:
        """Drop what an interrupted freeze left."""
        self.files.clear()

    def remember(self, settlement: str, lines: str) -> None:
        """Keep what a publisher remembered: how it is settled, and the changes of it."""
        self.files.put(_REMEMBERED, settlement)
        self.files.put(_FIRST, lines)

    def finish(self, files: Mapping[str, list[str]]) -> None:
        """Complete the folder: only the files that are named here count."""
        for name in (name for names in files.values() for name in names):
            self.files.sync(name)
        self.files.put(COMPLETE, json.dumps(files))

    def ids(self) -> Iterator[int]:
        """Yield the record_ids of all rows."""
        for name in self._names_of("logs"):
            with self.files.open(name) as file:
                for batch in pq.ParquetFile(file).iter_batches(columns=["record_id"]):
                    yield from batch.column(0).to_pylist()

    def _files(self, kind: str) -> list[str]:
        return [self.files.name(name) for name in self._names_of(kind)]

    def _names_of(self, kind: str) -> list[str]:
        listed: dict[str, Any] = json.loads(self.files.text(COMPLETE) or "")
        names: list[str] = listed[kind]
        return names


def write_parquet(folder: Files, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> tuple[str, int]:
    """Return the name of a new file, no other attempt's, and how many rows it got."""
    name, count = f"{uuid.uuid4().hex}.parquet", 0
    with folder.create(name) as file, pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return name, count
