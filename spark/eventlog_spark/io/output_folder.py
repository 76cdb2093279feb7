"""The output folder of a job: it appears whole, once, or not at all.

On this machine, tasks write under names of their own in `_temporary`. The files of attempts whose summaries
reached the driver are moved to their places. Then the manifest appears, then `_SUCCESS`. The leftovers of a
killed job have its marker, and only they are ever removed.

In a store nothing can be moved or locked. Every run writes under `run=<id>/`, and each attempt of its tasks
under names of its own. The driver writes the manifest in one piece, if there is none, and `_SUCCESS` last.
Files of another run of the same job are in no manifest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from eventlog.core.errors import EventlogError, Misuse
from eventlog.files.durable import sync, write_whole
from eventlog_spark.cluster.stores import ObjectStore, Stores, create_new, is_remote, plain
from eventlog_spark.io import manifest
from eventlog_spark.io.folder_files import Files, LocalFiles, StoreFiles
from eventlog_spark.io.manifest import MANIFEST, MARKER, SUCCESS
from eventlog_spark.io.part_files import PartFile

TEMPORARY, REFUSED = "_temporary", "_refused"
_OURS = (SUCCESS, MANIFEST, REFUSED, TEMPORARY)


class OtherJob(Misuse):
    """{0} holds the output of another job ({1}): name another folder, or remove it"""


class Occupied(Misuse):
    """{0} is not empty, and its content is not of a backlog: name another folder"""


class Running(EventlogError):
    """another job is writing to {0}"""


class Delivered(EventlogError):
    """another run of this job delivered to {0} while this one worked; its content is whole"""


def job_id(facts: Mapping[str, Any]) -> str:
    """Return the name of a job: the same for the same inputs and settings."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


class OutputFolder(Protocol):
    """The output folder of one job."""

    job: str

    @property
    def files(self) -> Files:
        """Return its files."""

    @property
    def attempts(self) -> Files:
        """Return where tasks write."""

    def manifest(self) -> dict[str, Any] | None:
        """Return what this job delivered before; None if it has not."""

    def claim(self) -> None:
        """Mark the folder as the job's before it contains anything."""

    def writing(self) -> Any:
        """Return the folder while this process writes to it."""

    def commit(
        self, parts: Sequence[PartFile], refused: Sequence[PartFile], facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Put everything in its place, and write the manifest."""

    def refused(self) -> Iterator[str]:
        """Yield the refused records, a line each."""


class LocalFolder:
    """The output folder of one job, on this machine."""

    def __init__(self, path: Path, job: str) -> None:
        self.path = path
        self.job = job
        self.files: Files = LocalFiles(str(path))
        self._temporary = path / TEMPORARY
        self.attempts: Files = LocalFiles(str(self._temporary))

    def manifest(self) -> dict[str, Any] | None:
        """Return what this job delivered before; None if it has not."""
        self._check()
        if not (self.path / SUCCESS).exists():
            return None
        sizes = {path.name: path.stat().st_size for path in self.path.iterdir() if path.is_file()}
        return manifest.delivered(str(self.path), self.files.text, sizes)

    def claim(self) -> None:
        """Mark the folder as the job's before it contains anything."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / MARKER, json.dumps({"job": self.job}) + "\n")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The folder, cleared of what an interrupted run left, for this process alone."""
        self.path.mkdir(parents=True, exist_ok=True)
        with _locked(self.path):
            self._check()
            self.claim()
            self._clear()
            self._temporary.mkdir()
            yield
            shutil.rmtree(self._temporary)

    def commit(
        self, parts: Sequence[PartFile], refused: Sequence[PartFile], facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Put everything in its place, and write the manifest."""
        listed = [self._place(part) for part in sorted(parts, key=lambda part: part.name)]
        if refused:
            (self.path / REFUSED).mkdir()
            for number, file in enumerate(refused):
                self._move(file, self.path / REFUSED / f"refused-{number:05d}.jsonl")
            sync(self.path / REFUSED)
        whole = {**facts, "job": self.job, "parts": listed}
        sync(self.path)
        write_whole(self.path / MANIFEST, json.dumps(whole, indent=1) + "\n")
        write_whole(self.path / SUCCESS, "")
        return whole

    def refused(self) -> Iterator[str]:
        """Yield the refused records, a line each."""
        for path in sorted((self.path / REFUSED).glob("*.jsonl")):
            with path.open(encoding="utf-8") as lines:
                yield from lines

    def _place(self, part: PartFile) -> dict[str, Any]:
        self._move(part, self.path / part.name)
        return listed_as(part.name, part)

    def _move(self, written: PartFile, place: Path) -> None:
        sync(self._temporary / written.file)
        (self._temporary / written.file).replace(place)

    def _check(self) -> None:
        """Check that the folder is free, or this job's own."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise Misuse(f"{self.path} is a file; a backlog writes a folder")
        marker = self.path / MARKER
        if not marker.exists():
            if any(self.path.iterdir()):
                raise Occupied(self.path)
            return
        text = marker.read_text("utf-8", "replace")
        if text.strip() and (other := job_of(text)) != self.job:
            raise OtherJob(self.path, other)

    def _clear(self) -> None:
        for path in self.path.iterdir():
            if path.is_dir() and path.name in _OURS:
                shutil.rmtree(path)
            elif path.name in _OURS or path.name.startswith("part-"):
                path.unlink()


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
        """Return what this job delivered before; None if it has not."""
        sizes = self._check()
        finished = manifest.delivered(self._path, self.files.text, sizes)
        if finished is None and MANIFEST in sizes:  # a driver ended between the two
            text = self.files.text(MANIFEST) or ""
            finished = self._finish(manifest.read(self._path, text, "", sizes), text)
        return finished

    def claim(self) -> None:
        """Mark the folder as the job's before it contains anything."""
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
        """Return the manifest, which puts everything in its place."""
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
        """Yield the refused records, a line each."""
        facts = json.loads(self.files.text(MANIFEST) or "{}")
        for file in facts.get("refused", ()):
            with self.files.open(file["name"]) as lines:
                yield from (line.decode() for line in lines)

    def _listed(self, file: PartFile) -> dict[str, Any]:
        return listed_as(f"{self._run}/{file.file}", file)

    def _finish(self, whole: dict[str, Any], text: str) -> dict[str, Any]:
        """Mark the job as done, and remove what the manifest does not name."""
        self.files.put(SUCCESS, manifest.seal(text))
        named = {self.files.name(file["name"]) for file in [*whole["parts"], *whole["refused"]]}
        found = (name for name, _ in self._store.below(self._path))
        self._store.drop(n for n in found if n not in named and n.startswith(self.files.name("run=")))
        return whole

    def _check(self) -> dict[str, int]:
        """Return the files in the folder with their sizes, if it is free, or this job's own."""
        if self._path != self._store.root and self._store.look(self._path).is_file:
            raise Misuse(f"{self._path} is a file; a backlog writes a folder")
        found = {name[len(self._path) + 1 :]: file.size for name, file in self._store.below(self._path)}
        marker = self.files.text(MARKER) if MARKER in found else None
        if marker is None and found:
            raise Occupied(self._path)
        if marker is not None and (other := job_of(marker)) != self.job:
            raise OtherJob(self._path, other)
        return found


def job_of(marker: str) -> str:
    """Return the name of the job in a marker."""
    try:
        return str(json.loads(marker)["job"])
    except (ValueError, TypeError, KeyError):
        return "whose name was cut off or changed"


def listed_as(name: str, file: PartFile) -> dict[str, Any]:
    """Return the entry of a file in the manifest."""
    return {"name": name, "records": file.records, "bytes": file.size, "sha256": file.sha256}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder for this process alone, as long as it lives."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as fault:
        raise Running(folder) from fault
    finally:
        os.close(handle)


def folder_of(spark: Any, output: str, job: str) -> OutputFolder:
    """Return the output folder of that name."""
    if not is_remote(output):
        return LocalFolder(Path(plain(output)).resolve(), job)
    (store,) = Stores.reached(spark, [output]).known
    return StoreFolder(spark, store, output, job)
