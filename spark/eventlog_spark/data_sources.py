"""Data sources of Spark: `spark.read.format("eventlog")`, and one for each format whose files one task reads.

Options are the settings of `convert`. Files lie in a store, or under one path for driver and workers.
`spark.readStream.format("eventlog")` follows a live log; its options are the settings of the publisher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog import library
from eventlog.convert.conversion import (
    Job,
    Report,
    all_given,
    allowed,
    format_named,
    in_order,
    load_current,
    read_changes,
)
from eventlog.core import settings
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format
from eventlog.core.tables import Tables
from eventlog.files.inputs import open_sources
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.log import LogSettings
from eventlog.places.places import connected
from eventlog_spark.cluster.stores import Stores, s3_settings
from eventlog_spark.io.batches import bounded
from eventlog_spark.io.entries import read_file
from eventlog_spark.io.frame_rows import Changes, FrameRow, batches_of_changes, rows_of_changes, text_of
from eventlog_spark.io.pieces import InputPiece
from eventlog_spark.io.storage import File, expand
from eventlog_spark.sequence.captures import Captures, between
from eventlog_spark.stream.pickup_folder import EVENTS

_TYPES = {"record_id": pa.int64(), "event_type": pa.int32()}
LOG = pa.schema(
    [(name, _TYPES.get(name, pa.string())) for name in COLUMNS]
    + [(name, pa.string()) for name in ("position", "refused", "record")]
)
_OWN = ("path", "as", "tables", "typed")  # options that are no settings


def register(spark: Any) -> None:
    """Make the data sources known to a session, and what it knows of stores to them: that travels in pickled
    code, for options would show."""
    said = s3_settings(spark)
    for source in (LogSource, QlikTableSource, QlikMessageSource, GbaseSource, LinterSource):
        spark.dataSource.register(type(source.__name__, (source,), {"said_of_stores": said}))


_MOST = 10_000  # tasks
_SORTED = "a data source cannot sort; eventlog_spark.changes(…, partitions=N) reads in many tasks"
_ONE_TASK = {
    "qlik-table": _SORTED,
    "qlik-message": _SORTED,
    "gbase": "several captures are merged by their commits, in one task; load each for itself",
    "linter": "a queue is read by one task",
}


@dataclass(frozen=True)
class _Options:
    """What was said of an input."""

    given: Mapping[str, str]
    form: Format
    said_of_stores: Mapping[str, str] = field(repr=False)

    @cached_property
    def tables(self) -> Tables:
        return library.tables(self.given["tables"]) if self.given.get("tables") else Tables()

    @property
    def changes(self) -> Changes:
        return Changes.of(self.tables, self.given.get("typed"))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings of the format, under the names of the command line."""
        declaring = (Rules, LogSettings) if self.form.folded else (self.form.settings,)
        own = _OWN if self.form.folded else (*_OWN, "partitions")
        told = {name.replace("-", "_"): text for name, text in self.given.items() if name not in own}
        return library.read_given(told, Limits, *declaring)

    @cached_property
    def stores(self) -> Stores:
        """The store of the files, if they stand in one."""
        return Stores.told([self._path], self.said_of_stores.get)

    @cached_property
    def files(self) -> list[File]:
        return expand([self._path], self.form.shape, self.given.get("as"), self.stores)

    @cached_property
    def partitions(self) -> int:
        """In how many tasks a capture is to be read, where that was said."""
        told = self.given.get("partitions", "1")
        if not (told.isascii() and told.isdigit() and 0 < int(told) <= _MOST):
            raise Misuse(f"partitions is {told!r}: it is a number from 1 to {_MOST}")
        if int(told) > 1 and (self.form.name != "gbase" or len(self.files) > 1):
            raise Misuse(f"partitions: {_ONE_TASK.get(self.form.name, 'each file is one')}")
        return int(told)

    @property
    def _path(self) -> str:
        if not self.given.get("path"):
            raise Misuse(f'name the files: spark.read.format("{self.form.name}").load("…")')
        return self.given["path"]


class _Source(DataSource):
    """A data source that knows what a session said of stores."""

    said_of_stores: ClassVar[Mapping[str, str]] = {}
    form: ClassVar[str]

    @property
    def _said(self) -> _Options:
        return _Options(dict(self.options), format_named(self.form), self.said_of_stores)


class LogSource(_Source):
    """The rows of a log in files, as `convert` reads them; a file is a partition. As a stream, the documents
    of a log in a database."""

    form = "log"

    @classmethod
    def name(cls) -> str:
        return "eventlog"

    def schema(self) -> Any:
        return from_arrow_schema(LOG if "path" in self.options else EVENTS)

    def reader(self, schema: Any) -> DataSourceReader:
        said = self._said
        given = said.settings
        return _LogReader(said.files, library.clock_of(given), settings.build(Limits, given), said.stores)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        try:
            from eventlog_spark.stream.log_reader import LogStreamReader
        except ImportError as fault:
            raise Misuse(f"a stream over a live log needs PySpark 4.2 or later: {fault}") from fault
        return LogStreamReader(dict(self.options), self.said_of_stores)


class _LogReader(DataSourceReader):
    def __init__(self, files: Sequence[File], clock: str, limits: Limits, stores: Stores) -> None:
        self._files = files
        self._clock = clock
        self._limits = limits
        self._stores = stores

    def partitions(self) -> Sequence[InputPiece]:
        return [InputPiece(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(partition.value), LOG)

    def _rows(self, file: File) -> Iterator[FrameRow]:
        for found in read_file(file, self._clock, self._limits, self._stores):
            if isinstance(found, Refused):
                yield (*[None] * len(COLUMNS), found.where, found.reason, text_of(found.raw))
            else:
                entry, position, _ = found
                yield (*entry, position, None, None)


class _ChangesSource(_Source):
    """The changes of files that are one sequence, read by one task; or of one capture, by `partitions`."""

    @classmethod
    def name(cls) -> str:
        return cls.form

    def schema(self) -> Any:
        return from_arrow_schema(self._said.changes.schema)

    def reader(self, schema: Any) -> DataSourceReader:
        said = self._said
        return _ChangesReader(said) if said.partitions == 1 else _StretchesReader(said)


class QlikTableSource(_ChangesSource):
    form = "qlik-table"


class QlikMessageSource(_ChangesSource):
    form = "qlik-message"


class GbaseSource(_ChangesSource):
    form = "gbase"


class LinterSource(_ChangesSource):
    form = "linter"


class _ChangesReader(DataSourceReader):
    def __init__(self, options: _Options) -> None:
        given = {"now": library.clock_of(options.settings)} | options.settings
        form = options.form
        self._changes = options.changes
        self._stores = options.stores
        names = tuple(in_order([file.name for file in options.files], form))
        container = options.given.get("as")
        self._job = Job(form.name, "changes", names, container=container, tables=options.tables, given=given)

    def partitions(self) -> Sequence[InputPiece]:
        return [InputPiece(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(), self._changes.schema)

    def _rows(self) -> Iterator[FrameRow]:
        job, heard = self._job, list[Refused]()
        form = format_named(job.source_format)
        report = Report(heard.append)
        given = all_given(job, form, job.given["now"])
        opener = self._stores.opener(job.inputs[0])
        opened = report.good(
            open_sources(
                job.inputs, form.shape, job.container, limits=job.limits, beside=form.companion, opened=opener
            )
        )
        with load_current(job) as none:
            changes = read_changes(job, form, opened, none, report, given)
            yield from rows_of_changes(self._changes, changes, heard)


class _StretchesReader(DataSourceReader):
    """A capture in stretches, which are found when the query is planned."""

    def __init__(self, options: _Options) -> None:
        self._changes = options.changes
        self._file = options.files[0]
        self._partitions = options.partitions
        given = options.settings | connected(options.settings)
        self._captures = Captures(options.tables, given, options.stores)

    def partitions(self) -> Sequence[InputPiece]:
        captures, file = self._captures, self._file
        apart = max(file.size // self._partitions, 1)
        cuts = captures.cuts(file, apart) if captures.worth_cutting([file], apart) else []
        return [InputPiece(numbered) for numbered in enumerate(between(file, cuts))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        piece, stretch = partition.value
        return batches_of_changes(
            self._changes,
            lambda good: good(allowed(good(self._captures.read(stretch)), self._captures.tables)),
            piece << 33,
        )
