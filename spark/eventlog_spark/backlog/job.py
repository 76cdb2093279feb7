"""One backlog: read, shuffle, fold, write, commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eventlog import __version__
from eventlog.core import settings
from eventlog.core.entry import read_event_time
from eventlog.core.errors import InvalidTables, Misuse
from eventlog.core.formats import Format, Shape
from eventlog.files.inputs import CONTAINERS
from eventlog.fold import Fate, Rules
from eventlog.formats import format_named
from eventlog.jobs.job import Job
from eventlog.transfer.given import all_given
from eventlog_spark.backlog import change_sources
from eventlog_spark.backlog.pipeline import Pipeline
from eventlog_spark.cluster.stores import Stores, is_remote
from eventlog_spark.io.current_files import CurrentFile, CurrentSource, GivenRows
from eventlog_spark.io.folder_files import Files
from eventlog_spark.io.output_folder import OutputFolder, folder_of, job_id
from eventlog_spark.io.part_files import DOCUMENTS, PartLayout
from eventlog_spark.io.storage import File, absolute, expand, partitions
from eventlog_spark.io.task import Summary, Task, total


@dataclass(frozen=True)
class Backlog:
    """A backlog: a conversion, and how Spark does it."""

    job: Job
    clock: str
    order: str = "object"
    per_file: int = 0
    partitions: int = 0  # 0: as the size of the input asks for
    strict: bool = False  # stop at the first bad record

    @property
    def source_shape(self) -> Shape:
        return format_named(self.job.source_format).shape

    @property
    def rules(self) -> Rules:
        return settings.build(Rules, self.job.given)

    @property
    def now(self) -> str | None:
        """The clock that makes rows wait, if one was given."""
        now = self.job.given.get("now")
        return None if now is None else read_event_time(now)

    @property
    def given(self) -> dict[str, Any]:
        """The settings of source and target."""
        return all_given(self.job, self.clock)


@dataclass
class Result:
    """The result of a job, now or from an earlier run."""

    manifest: Mapping[str, Any]
    folder: OutputFolder
    summary: Summary = field(default_factory=Summary)
    before: bool = False
    finished: int | None = None  # rows of a live log that got their letters


Stage = Callable[[str], None]


def run_job(
    spark: Any,
    backlog: Backlog,
    stage: Stage = lambda name: None,
    name: str | None = None,
    answers: CurrentSource | None = None,
    first: str | None = None,
) -> Result:
    """Return the output folder of a backlog; nothing is done if it exists already.

    A live log brings its own current rows, and perhaps changes that precede all others.
    """
    backlog = _as_workers_name_it(spark, backlog)
    job = backlog.job
    named = [*job.inputs, *(file for _, file in job.current), *([] if first is None else [first])]
    stores = Stores.reached(spark, named)
    inputs = expand(job.inputs, backlog.source_shape, job.container, stores)
    current = _current_files(job, stores)
    folder = folder_of(spark, job.output, name or job_id(facts(backlog, inputs, current)))
    if (manifest := folder.manifest()) is not None:
        return Result(manifest, folder, before=True)
    with folder.writing():
        answers = answers or GivenRows(current, job.limits, stores)
        task = make_task(backlog, folder, answers, stores)
        if format_named(backlog.job.source_format).folded:
            before = _write_first(task, first)
            task = replace(task, first_part=len(before))
            count = backlog.partitions or partitions(inputs, spark.sparkContext.defaultParallelism)
            in_order = backlog.order == "log"
            pipeline = Pipeline(spark, task, backlog.clock, answers, in_order, count, stage)
            summary = pipeline.run(inputs, before)
        else:
            stage("convert")
            summary = _convert(spark, backlog, task)
        stage("commit")
        done = folder.commit(summary.files, summary.explained, _manifest(backlog, inputs, summary))
    return Result(done, folder, summary)


def _as_workers_name_it(spark: Any, backlog: Backlog) -> Backlog:
    """Return the same with absolute names of files: the workers of a cluster start in folders of
    their own.
    """
    if spark.sparkContext.master.partition("[")[0] == "local":
        return backlog
    job = backlog.job
    inputs = tuple(map(absolute, job.inputs))
    current = tuple((table, absolute(name)) for table, name in job.current)
    return replace(backlog, job=replace(job, inputs=inputs, current=current))


def _convert(spark: Any, backlog: Backlog, task: Task) -> Summary:
    """Return every change as its own event."""
    job = backlog.job
    if job.expand_truncate and any(is_remote(file) for _, file in job.current):
        raise Misuse("--expand-truncate: every machine must reach its --current files")
    summaries = change_sources.run(
        spark,
        job.source_format,
        [expand([name], backlog.source_shape, job.container, task.stores) for name in job.inputs],
        task,
        job if job.expand_truncate else None,
        backlog.order == "sequence",
    )
    return total(summaries)


def make_task(backlog: Backlog, folder: OutputFolder, answers: CurrentSource, stores: Stores) -> Task:
    """Return what the tasks of this job know."""
    target = format_named(backlog.job.target_format)
    layout = _layout(backlog, target, folder.attempts)
    return Task(
        backlog.job.tables,
        backlog.rules,
        backlog.now,
        answers.tables,
        answers.forms(backlog.job.tables),
        target.name,
        backlog.given,
        layout,
        strict=backlog.strict,
        stores=stores,
    )


def _write_first(task: Task, name: str | None) -> list[Summary]:
    """Write a part of the changes that precede all others; nothing if there are none."""
    files = [] if name is None else expand([name], Shape.OBJECTS, None, task.stores)
    if not files or not files[0].size:
        return []
    return [change_sources.ChangeSources("changes", [files], task).convert(0)]


def _layout(backlog: Backlog, target: Format, folder: Files) -> PartLayout:
    container = backlog.job.output_container or CONTAINERS[target.shape][0]
    if target.name == "xds" and container == "parquet":
        return PartLayout(folder, Shape.ROWS, container, DOCUMENTS, backlog.per_file)
    if container not in CONTAINERS[target.shape]:
        legal = " or ".join(CONTAINERS[target.shape])
        raise Misuse(f"--output-as {container}: {target.name} is written as {legal}")
    return PartLayout(folder, target.shape, container, target.sheet, backlog.per_file)


def _current_files(job: Job, stores: Stores) -> list[CurrentFile]:
    files = []
    for name, given in job.current:
        table = job.tables.get(name)
        if not table.key:
            raise InvalidTables(f"table {table} has no key: its current rows cannot be found by one")
        files += [CurrentFile(table, file) for file in expand([given], Shape.ROWS, None, stores)]
    return files


def facts(backlog: Backlog, inputs: Sequence[File], current: Sequence[CurrentFile]) -> dict[str, Any]:
    """Return everything that decides the output."""
    job = backlog.job
    given = {name: value for name, value in sorted(job.given.items()) if value is not None}
    return {
        "version": __version__,
        "from": job.source_format,
        "to": job.target_format,
        "container": job.output_container,
        "order": backlog.order,
        "per_file": backlog.per_file,
        "settings": given,
        "tables": [repr(table) for table in job.tables],
        "inputs": inputs,
        "current": [(str(piece.table), piece.file) for piece in current],
        "expand_truncate": job.expand_truncate,
    }


def _manifest(backlog: Backlog, inputs: Sequence[File], summary: Summary) -> dict[str, Any]:
    fates = {fate: count for fate, count in sorted(summary.fates.items()) if fate != Fate.REFUSED}
    return {
        "version": __version__,
        "from": backlog.job.source_format,
        "to": backlog.job.target_format,
        "order": backlog.order,
        "inputs": [file._asdict() for file in inputs],
        "counts": {"rows": summary.rows, **fates, "refused": summary.refused_rows},
        "events": dict(sorted(summary.events.items())),
    }
