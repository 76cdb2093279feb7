"""The output folder: it appears whole, once, or not at all.

Tasks write under names of their own in `_temporary`; the files of those attempts whose summaries reached
the driver are moved to their places, then the manifest appears, then `_SUCCESS`. What a killed job left
is told by its marker, and only that is ever removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlog.core.errors import EventlogError, Misuse
from eventlog_spark.output.parts import Written

SUCCESS, MANIFEST, MARKER, TEMPORARY, REFUSED = (
    "_SUCCESS",
    "_manifest.json",
    "_job.json",
    "_temporary",
    "_refused",
)
_OURS = (SUCCESS, MANIFEST, REFUSED, TEMPORARY)


class OtherJob(Misuse):
    """{0} holds the output of another job ({1}): name another folder, or remove it"""


class Occupied(Misuse):
    """{0} is not empty, and what stands there is not of a backlog: name another folder"""


class Running(EventlogError):
    """another job is writing to {0}"""


def job_id(facts: Mapping[str, Any]) -> str:
    """The name of a job: the same for the same inputs and settings."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


class Folder:
    """The output folder of one job."""

    def __init__(self, path: Path, job: str) -> None:
        self.path = path
        self.job = job
        self.temporary = path / TEMPORARY

    def manifest(self) -> dict[str, Any] | None:
        """What this job delivered before, None if it has not."""
        self._check()
        if not (self.path / SUCCESS).exists():
            return None
        told: dict[str, Any] = json.loads((self.path / MANIFEST).read_text("utf-8"))
        for part in told["parts"]:
            file = self.path / part["name"]
            if not file.is_file() or file.stat().st_size != part["bytes"]:
                raise EventlogError(f"{file} is not as the manifest says: remove the folder and run again")
        return told

    def claim(self) -> None:
        """Say whose the folder is, before anything stands in it."""
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
            self.temporary.mkdir()
            yield
            shutil.rmtree(self.temporary)

    def commit(self, parts: Iterable[Written], manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Everything in its place, and the manifest that says so."""
        listed = [self._place(part) for part in sorted(parts, key=lambda part: part.name)]
        whole = {**manifest, "job": self.job, "parts": listed}
        sync(self.path)
        write_whole(self.path / MANIFEST, json.dumps(whole, indent=1) + "\n")
        write_whole(self.path / SUCCESS, "")
        return whole

    def _place(self, part: Written) -> dict[str, Any]:
        sync(self.temporary / part.file)
        (self.temporary / part.file).replace(self.path / part.name)
        return {"name": part.name, "records": part.records, "bytes": part.size, "sha256": part.sha256}

    def _check(self) -> None:
        """Whether the folder is free, or this job's own."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise Misuse(f"{self.path} is a file; a backlog writes a folder")
        marker = self.path / MARKER
        if not marker.exists():
            if any(self.path.iterdir()):
                raise Occupied(self.path)
            return
        text = marker.read_text("utf-8")
        if text.strip() and (other := json.loads(text)["job"]) != self.job:
            raise OtherJob(self.path, other)

    def _clear(self) -> None:
        for path in self.path.iterdir():
            if path.is_dir() and path.name in _OURS:
                shutil.rmtree(path)
            elif path.name in _OURS or path.name.startswith("part-"):
                path.unlink()


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


def write_whole(path: Path, text: str) -> None:
    """A small file, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """A file or folder on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
