"""The files of a folder: one of this machine, or one of a store."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from eventlog.files.durable import sync, write_whole
from eventlog_spark.cluster.stores import ObjectStore
from eventlog_spark.io.storage import uri

_BUFFER = 1 << 20


class Files(Protocol):
    """The files of a folder; names are relative to it."""

    def name(self, name: str) -> str:
        """Return the whole name of a file."""

    def below(self, name: str) -> Files:
        """Return a folder in it."""

    def create(self, name: str) -> IO[bytes]:
        """Return a new file, to write."""

    def open(self, name: str) -> IO[bytes]:
        """Return a file, to read."""

    def text(self, name: str) -> str | None:
        """Return a small file; None where there is none."""

    def put(self, name: str, text: str) -> None:
        """A small file, whole or not at all."""

    def sync(self, name: str) -> None:
        """A file outlives the machine."""

    def clear(self) -> None:
        """The folder is there, and empty."""


@dataclass(frozen=True)
class LocalFiles:
    """A folder that every machine has under this path."""

    path: str

    def name(self, name: str) -> str:
        return f"{self.path}/{name}"

    def below(self, name: str) -> LocalFiles:
        return LocalFiles(self.name(name))

    def create(self, name: str) -> IO[bytes]:
        path = Path(self.name(name))
        path.parent.mkdir(exist_ok=True)
        return path.open("xb", buffering=_BUFFER)

    def open(self, name: str) -> IO[bytes]:
        return open(self.name(name), "rb")

    def text(self, name: str) -> str | None:
        path = Path(self.name(name))
        return path.read_text("utf-8") if path.is_file() else None

    def put(self, name: str, text: str) -> None:
        write_whole(Path(self.name(name)), text)

    def sync(self, name: str) -> None:
        sync(Path(self.name(name)))

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        Path(self.path).mkdir(parents=True)


@dataclass(frozen=True)
class StoreFiles:
    """A folder of a store, where a file is there when it is closed and outlives every machine."""

    store: ObjectStore
    path: str

    def name(self, name: str) -> str:
        return f"{self.path}/{name}"

    def below(self, name: str) -> StoreFiles:
        return StoreFiles(self.store, self.name(name))

    def create(self, name: str) -> IO[bytes]:
        return self.store.create(self.name(name))

    def open(self, name: str) -> IO[bytes]:
        return self.store.open(self.name(name))

    def text(self, name: str) -> str | None:
        return self.store.text(self.name(name))

    def put(self, name: str, text: str) -> None:
        self.store.put(self.name(name), text)

    def sync(self, name: str) -> None:
        """Do nothing, because a store keeps the file as it is."""

    def clear(self) -> None:
        self.store.drop(name for name, _ in self.store.below(self.path))


def spark_names(files: Files, names: list[str]) -> list[str]:
    """Return the files as Spark reads names."""
    return [uri(files.name(name)) for name in names]
