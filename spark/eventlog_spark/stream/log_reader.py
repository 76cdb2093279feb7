"""The stream reader of a live log: what Spark asks, and from what settings it is answered."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from eventlog.cli.log_options import ALL, READING
from eventlog.core.errors import Misuse
from eventlog.core.settings import declared
from eventlog.publisher.config import Config, read_config
from eventlog_spark.cluster.stores import is_remote, plain, root_of, store_said
from eventlog_spark.io.folder_files import Files, LocalFiles, StoreFiles
from eventlog_spark.io.pieces import InputPiece
from eventlog_spark.stream.pickup_folder import StreamFolder
from eventlog_spark.stream.pickups import Following, Offset

FROZEN, CONFIG = "frozen", "config"
_NOT_HERE = ("batch_size", "pretty", "validate", "status")


def config_of(options: Mapping[str, str]) -> Config:
    """Return the settings: those of the publisher as options, else from the environment and a file, as for
    `run`.
    """
    known = {field.name for _, group in READING for field in declared(group)}.difference(_NOT_HERE)
    given = {name.replace("-", "_"): text for name, text in options.items() if name not in (FROZEN, CONFIG)}
    strange = sorted(name.replace("_", "-") for name in given.keys() - known)
    if strange:
        raise Misuse(f"a stream over a live log has no option {', '.join(strange)}")
    file = options.get(CONFIG)
    config = read_config((group for _, group in ALL), given, os.environ, None if file is None else Path(file))
    if config.given.get("publication_mode") == "compare":
        raise Misuse("publication-mode = compare: a stream reads a log that triggers fill; use eventlog run")
    return config


def files_of(options: Mapping[str, str], said: Mapping[str, str]) -> Files:
    """Return the folder of the stream."""
    name = options.get(FROZEN)
    if not name:
        raise Misuse(f'option("{FROZEN}", …) names the folder of a stream, where its pick-ups are frozen')
    if not is_remote(name):
        path = Path(plain(name)).absolute()
        path.mkdir(parents=True, exist_ok=True)
        return LocalFiles(str(path))
    return StoreFiles(store_said(root_of(name), said.get), name.rstrip("/"))


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of a log for Spark.

    It is made in several processes; only the one that is asked for offsets leads.
    """

    def __init__(self, options: Mapping[str, str], said: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._said = dict(said)
        config_of(self._options)
        if not self._options.get(FROZEN):
            files_of(self._options, said)

    def __getstate__(self) -> dict[str, Any]:
        """Return nothing, because tasks read only their partition, and need no password of the log."""
        return {}

    @cached_property
    def _following(self) -> Following:
        return Following(config_of(self._options), self._folder)

    @cached_property
    def _folder(self) -> StreamFolder:
        return StreamFolder(files_of(self._options, self._said))

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return where a new stream begins."""
        return self._following.begin()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take nothing that comes from now on."""
        self._following.end_with_what_is_there()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the next pick-up; what is up to `start` is out. `query-limit` bounds it, whatever the
        trigger.
        """
        return self._following.latest(start)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPiece]:
        """Return the frozen events between two offsets: one partition, for they are in an order."""
        frozen = self._following.frozen(start, end)
        return [] if frozen is None else [InputPiece(self._folder.part(frozen.file, frozen.sha256))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return partition.value.read()  # type: ignore[no-any-return]

    def commit(self, end: Offset) -> None:
        """Finish the rows of what is out."""
        self._following.done(end)

    def stop(self) -> None:
        """Let somebody else lead."""
        if "_following" in self.__dict__:
            self._following.close()
