"""The folder of what was frozen of a live log: a rerun after a crash reads the same once more."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core.entry import COLUMNS
from eventlog_spark.output.commit import sync, write_whole

FROZEN = "_frozen"
_COMPLETE, _EPOCH = "complete.json", "epoch"

LOG = pa.schema(
    [(name, pa.int64() if name in ("record_id", "event_type") else pa.string()) for name in COLUMNS]
)


class Frozen:
    """The folder; what stands in it counts once it is complete."""

    def __init__(self, output: Path) -> None:
        self.path = output / FROZEN

    def serves(self, epoch: int) -> bool:
        """Whether it is complete, and nobody has led the log between us and who noted it last."""
        noted = self.path / _EPOCH
        return (self.path / _COMPLETE).exists() and noted.exists() and int(noted.read_text()) == epoch - 1

    def note(self, epoch: int) -> None:
        """We lead the log: what is frozen is still as it was."""
        write_whole(self.path / _EPOCH, str(epoch))

    @property
    def logs(self) -> list[str]:
        return self._files("logs")

    @property
    def current(self) -> list[str]:
        return self._files("current")

    @property
    def remembered(self) -> str:
        """What a publisher remembered as about to go out."""
        return str(self.path / "remembered.json")

    @property
    def first(self) -> str:
        """The changes of it, which stand before all others."""
        return str(self.path / "remembered.jsonl")

    def begin(self) -> None:
        """Drop what an interrupted freeze left."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)

    def finish(self, files: Mapping[str, list[str]]) -> None:
        """What is named here is all that counts."""
        for name in (name for names in files.values() for name in names):
            sync(self.path / name)
        write_whole(self.path / _COMPLETE, json.dumps(files))

    def ids(self) -> Iterator[int]:
        """The record_ids of all rows."""
        for name in self.logs:
            for batch in pq.ParquetFile(name).iter_batches(columns=["record_id"]):
                yield from batch.column(0).to_pylist()

    def _files(self, kind: str) -> list[str]:
        told: dict[str, Any] = json.loads((self.path / _COMPLETE).read_text("utf-8"))
        return [str(self.path / name) for name in told[kind]]


def write_parquet(folder: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> tuple[str, int]:
    """The name of a new file, no other attempt's, and how many rows it got."""
    name, count = f"{uuid.uuid4().hex}.parquet", 0
    with pq.ParquetWriter(Path(folder) / name, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return name, count
