"""The output folder in a store, where nothing can be moved or locked: what its manifest names is in it.

Every run writes under `run=<id>/`, and each attempt of its tasks under names of its own. The driver hears of
the files of those attempts that count, puts the manifest that names them in one piece, if there is none yet,
and `_SUCCESS` last. What another run of the same job left, or still writes, is in no manifest.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlog.core.errors import EventlogError, Misuse
from eventlog_spark.cluster.stores import ObjectStore, Stores, create_new, is_remote, plain
from eventlog_spark.io import manifest
from eventlog_spark.io.folder_files import Files, StoreFiles
from eventlog_spark.io.manifest import MANIFEST, MARKER, SUCCESS
from eventlog_spark.io.output_folder import LocalFolder, Occupied, OtherJob, OutputFolder, job_of, listed_as
from eventlog_spark.io.part_files import PartFile


class Delivered(EventlogError):
    """another run of this job delivered to {0} while this one worked: what stands there is whole"""


def folder_of(spark: Any, output: str, job: str) -> OutputFolder:
    """The output folder of that name."""
    if not is_remote(output):
        return LocalFolder(Path(plain(output)).resolve(), job)
    (store,) = Stores.reached(spark, [output]).known
    return StoreFolder(spark, store, output, job)


class StoreFolder:
    """The output folder of one job, in a store."""

    def __init__(self, spark: Any, store: ObjectStore, path: str, job: str) -> None:
        self._spark = spark
        self._store = store
        self._path = path.rstrip("/")
        self._run = f"run={uuid.uuid4().hex}"
        self.job = job
        self.files: Files = StoreFiles(store, self._path)
        self.attempts: Files = self.files.below(self._run)

    def manifest(self) -> dict[str, Any] | None:
        """What this job delivered before, None if it has not."""
        sizes = self._check()
        told = manifest.delivered(self._path, self.files.text, sizes)
        if told is None and MANIFEST in sizes:  # a driver ended between the two
            text = self.files.text(MANIFEST) or ""
            told = self._finish(manifest.read(self._path, text, "", sizes), text)
        return told

    def claim(self) -> None:
        """Say whose the folder is, before anything stands in it."""
        if not create_new(self._spark, self.files.name(MARKER), json.dumps({"job": self.job}) + "\n"):
            self._check()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The folder, which is this job's; each run of it has a place of its own."""
        self.claim()
        yield

    def commit(
        self, parts: Sequence[PartFile], refused: Sequence[PartFile], facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The manifest, which puts everything in its place."""
        listed = [self._listed(part) for part in sorted(parts, key=lambda part: part.name)]
        left_out = [self._listed(file) for file in refused]
        whole = {**facts, "job": self.job, "parts": listed, "refused": left_out}
        text = json.dumps(whole, indent=1) + "\n"
        ours = create_new(self._spark, self.files.name(MANIFEST), text)
        if not ours and self.files.text(MANIFEST) != text:  # else it was ours, and put twice
            self.attempts.clear()
            raise Delivered(self._path)
        return self._finish(whole, text)

    def refused(self) -> Iterator[str]:
        """The refused records, a line each."""
        told = json.loads(self.files.text(MANIFEST) or "{}")
        for file in told.get("refused", ()):
            with self.files.open(file["name"]) as lines:
                yield from (line.decode() for line in lines)

    def _listed(self, file: PartFile) -> dict[str, Any]:
        return listed_as(f"{self._run}/{file.file}", file)

    def _finish(self, whole: dict[str, Any], text: str) -> dict[str, Any]:
        """Say that it is done, and drop what the manifest does not name."""
        self.files.put(SUCCESS, manifest.seal(text))
        named = {self.files.name(file["name"]) for file in [*whole["parts"], *whole["refused"]]}
        found = (name for name, _ in self._store.below(self._path))
        self._store.drop(n for n in found if n not in named and n.startswith(self.files.name("run=")))
        return whole

    def _check(self) -> dict[str, int]:
        """The files that stand there, with their sizes; if the folder is free, or this job's own."""
        if self._path != self._store.root and self._store.look(self._path).is_file:
            raise Misuse(f"{self._path} is a file; a backlog writes a folder")
        found = {name[len(self._path) + 1 :]: file.size for name, file in self._store.below(self._path)}
        marker = self.files.text(MARKER) if MARKER in found else None
        if marker is None and found:
            raise Occupied(self._path)
        if marker is not None and (other := job_of(marker)) != self.job:
            raise OtherJob(self._path, other)
        return found
