"""Data sources of Spark: `spark.read.format("eventlog")`, and one for each format whose files one task reads.

Options are the settings of `convert`. Files lie in a store, or under one path for driver and workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog import library
from eventlog.core import settings
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format
from eventlog.core.tables import Tables
from eventlog.files.inputs import open_sources
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.formats import format_named
from eventlog.jobs.filters import allowed
from eventlog.jobs.job import Job, in_order, load_current
from eventlog.jobs.report import Report
from eventlog.log import LogSettings
from eventlog.transfer.given import all_given, connected
from eventlog.transfer.once import leaving_changes
from eventlog_spark.cluster.stores import Stores, s3_settings
from eventlog_spark.io.batches import bounded
from eventlog_spark.io.entries import read_file
from eventlog_spark.io.frame_rows import Changes, FrameRow, batches_of_changes, rows_of_changes, text_of
from eventlog_spark.io.pieces import PieceReader
from eventlog_spark.io.storage import File, expand
from eventlog_spark.sequence.captures import Captures, CaptureStretch, between

_TYPES = {"record_id": pa.int64(), "event_type": pa.int32()}
LOG = pa.schema(
    [(name, _TYPES.get(name, pa.string())) for name in COLUMNS]
    + [(name, pa.string()) for name in ("position", "refused", "record")]
)
_OWN = ("path", "as", "tables", "typed")  # options that are no settings


def register(spark: Any) -> None:
    """Register the data sources with a session. Its settings of stores travel in pickled code: options
    would show."""
    for source in (LogSource, QlikTableSource, QlikMessageSource, GbaseSource, LinterSource):
        spark.dataSource.register(type(source.__name__, (source,), {"store_settings": s3_settings(spark)}))


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
    """The options of an input."""

    given: Mapping[str, str]
    form: Format
    store_settings: Mapping[str, str] = field(repr=False)

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
        options = {name.replace("-", "_"): text for name, text in self.given.items() if name not in own}
        return library.read_given(options, Limits, *declaring)

    @cached_property
    def stores(self) -> Stores:
        """The store of the files, if they are in one."""
        return Stores.configured([self._path], self.store_settings.get)

    @cached_property
    def files(self) -> list[File]:
        return expand([self._path], self.form.shape, self.given.get("as"), self.stores)

    @cached_property
    def partitions(self) -> int:
        """Return the number of tasks that read a capture; 1 if none is given."""
        number = self.given.get("partitions", "1")
        if not (number.isascii() and number.isdigit() and 0 < int(number) <= _MOST):
            raise Misuse(f"partitions is {number!r}: it is a number from 1 to {_MOST}")
        if int(number) > 1 and (self.form.name != "gbase" or len(self.files) > 1):
            raise Misuse(f"partitions: {_ONE_TASK.get(self.form.name, 'each file is one')}")
        return int(number)

    @property
    def _path(self) -> str:
        if not self.given.get("path"):
            raise Misuse(f'name the files: spark.read.format("{self.form.name}").load("…")')
        return self.given["path"]


class _Source(DataSource):
    """A data source that has the settings of a session for stores."""

    store_settings: ClassVar[Mapping[str, str]] = {}
    form: ClassVar[str]

    @property
    def _options(self) -> _Options:
        return _Options(dict(self.options), format_named(self.form), self.store_settings)


class LogSource(_Source):
    """The rows of a log in files, as `convert` reads them; a file is a partition."""

    form = "log"

    @classmethod
    def name(cls) -> str:
        return "eventlog"

    def schema(self) -> Any:
        return from_arrow_schema(LOG)

    def reader(self, schema: Any) -> DataSourceReader:
        options = self._options
        given = options.settings
        clock, limits = library.clock_of(given), settings.build(Limits, given)
        return PieceReader(options.files, _ReadLog(clock, limits, options.stores))


@dataclass(frozen=True)
class _ReadLog:
    """Reads the rows of a file of a log."""

    clock: str
    limits: Limits
    stores: Stores

    def __call__(self, file: File) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(file), LOG)

    def _rows(self, file: File) -> Iterator[FrameRow]:
        for record in read_file(file, self.clock, self.limits, self.stores):
            if isinstance(record, Refused):
                yield (*[None] * len(COLUMNS), record.where, record.reason, text_of(record.raw))
            else:
                entry, position, _ = record
                yield (*entry, position, None, None)


class _ChangesSource(_Source):
    """The changes of files that are one sequence, read by one task; or of one capture, by `partitions`."""

    @classmethod
    def name(cls) -> str:
        return cls.form

    def schema(self) -> Any:
        return from_arrow_schema(self._options.changes.schema)

    def reader(self, schema: Any) -> DataSourceReader:
        options = self._options
        if options.partitions == 1:
            return PieceReader([0], _ReadFiles(options))
        read = _ReadStretch(options)
        return PieceReader(read.stretches(options.files[0], options.partitions), read)


class QlikTableSource(_ChangesSource):
    form = "qlik-table"


class QlikMessageSource(_ChangesSource):
    form = "qlik-message"


class GbaseSource(_ChangesSource):
    form = "gbase"


class LinterSource(_ChangesSource):
    form = "linter"


class _ReadFiles:
    """Reads the changes of all files in one task."""

    def __init__(self, options: _Options) -> None:
        given = {"now": library.clock_of(options.settings)} | options.settings
        form = options.form
        self._changes = options.changes
        self._stores = options.stores
        names = tuple(in_order([file.name for file in options.files], form))
        container = options.given.get("as")
        self._job = Job(form.name, "changes", names, container=container, tables=options.tables, given=given)

    def __call__(self, piece: int) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(), self._changes.schema)

    def _rows(self) -> Iterator[FrameRow]:
        job, refused = self._job, list[Refused]()
        form = format_named(job.source_format)
        report = Report(refused.append)
        given = all_given(job, job.given["now"])
        opener = self._stores.opener(job.inputs[0])
        opened = report.good(
            open_sources(job.inputs, form.shape, job.container, limits=job.limits, opened=opener)
        )
        with load_current(job) as none:
            changes = leaving_changes(job, form, opened, none, report, given)
            yield from rows_of_changes(self._changes, changes, refused)


class _ReadStretch:
    """Reads the changes of a stretch of a capture."""

    def __init__(self, options: _Options) -> None:
        self._changes = options.changes
        given = options.settings | connected(options.settings)
        self._captures = Captures(options.tables, given, options.stores)

    def stretches(self, file: File, partitions: int) -> list[tuple[int, CaptureStretch]]:
        """Find the stretches of a file, about so many; they are numbered."""
        apart = max(file.size // partitions, 1)
        cuts = self._captures.cuts(file, apart) if self._captures.worth_cutting([file], apart) else []
        return list(enumerate(between(file, cuts)))

    def __call__(self, numbered: tuple[int, CaptureStretch]) -> Iterator[pa.RecordBatch]:
        number, stretch = numbered
        captures = self._captures
        return batches_of_changes(
            self._changes,
            lambda good: good(allowed(good(captures.read(stretch)), captures.tables)),
            number << 33,
        )
