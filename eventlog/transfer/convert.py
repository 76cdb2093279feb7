"""Any format to any format: a source, a target, and a report for everything that was left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.files.inputs import BY_COLUMN, Advance, check_inputs, container_of
from eventlog.files.outputs import Output
from eventlog.files.statefile import read_state, write_state
from eventlog.fold import Rules
from eventlog.gbase.address import is_live
from eventlog.jobs.filters import before_writing
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.sequence.delivery import Delivery
from eventlog.sources.source import ChangeSource
from eventlog.targets.kafka_parts import TopicParts
from eventlog.targets.records import AtPlace, InParts, OneOutput, TransferState, open_parts, state_of
from eventlog.transfer.given import complete_options
from eventlog.transfer.loop import ONE_ROUND, ChangeTarget, RunLength, transfer
from eventlog.transfer.opening import is_at_source, open_from_state, open_once
from eventlog.transfer.places import Opening, place_of
from eventlog.xds.settings import XdsSettings

_FEW = 64 << 10  # bytes of CSV files whose rows are converted before Arrow is loaded


def convert(
    job: Job,
    report: Report,
    clock: str,
    advance: Advance = lambda size: None,
    run_length: RunLength = ONE_ROUND,
) -> None:
    """Read a source and write a target, as long as the run goes on.

    Without a state the output appears only when it is complete.
    """
    options = complete_options(job, clock)
    if inputs := _log_by_column(job, options):
        _write_log(job, inputs, options, report, advance)
        return
    with ExitStack() as stack:
        current = stack.enter_context(load_current(job))
        source: ChangeSource
        target: ChangeTarget
        if reads_on(job, run_length.follow):
            source, target = _open_with_state(replace(job, options=options), run_length.follow, report, stack)
        else:
            source = open_once(job, options, current, report, advance)
            stack.callback(source.close)
            target = _whole_target(replace(job, options=options), report)
        prepare = before_writing(job, source.tables or job.tables, report, current)
        transfer(
            source,
            target,
            prepare,
            report,
            run_length,
            interval=job.poll_interval,
            copy=job.place if job.state is not None else "",
        )


def reads_on(job: Job, follow: bool) -> bool:
    """Return whether a job reads its source from a state, and writes it part after part."""
    return follow or job.state is not None or is_live(job.url)


def _open_with_state(
    job: Job, follow: bool, report: Report, stack: ExitStack
) -> tuple[ChangeSource, ChangeTarget]:
    """Return the source of a job, read on from its state, and the parts to which it goes."""
    saved_state = TransferState(job.source_format)
    if job.state is not None:
        saved_state = read_state(job.state, state_of(job.source_format), saved_state)
    if job.place == "kafka" and place_of(job.source_format, "kafka").read is None:
        if place_of(job.target_format, "kafka").write is None:
            raise Misuse(f"--kafka is no place for {job.source_format} or {job.target_format}")
        source = _source(job, saved_state, follow, report, stack)
        return source, InParts(TopicParts(job, saved_state, report), saved_state, report)
    if place_of(job.target_format, job.place).write and not is_at_source(job):
        raise Misuse(f"--state: write to files or to --kafka, not to --{job.place}")
    source = _source(job, saved_state, follow, report, stack)
    job = replace(job, tables=source.tables or job.tables)
    parts = stack.enter_context(open_parts(job, saved_state, report))
    if job.state is not None and saved_state.part != parts.last:
        saved_state = saved_state._replace(part=parts.last)
        write_state(job.state, saved_state._asdict())
    return source, InParts(parts, saved_state, report)


def _source(
    job: Job, saved_state: TransferState, follow: bool, report: Report, stack: ExitStack
) -> ChangeSource:
    source = open_from_state(Opening(job, saved_state.position, report, follow))
    if source is None:
        raise Misuse(f"--follow and --state: {job.source_format} there has no positions to continue from")
    stack.callback(source.close)
    return source


def _whole_target(job: Job, report: Report) -> ChangeTarget:
    """Return the place that the job names, unless the source is there; else files."""
    at_source = is_at_source(job)
    write = None if at_source else place_of(job.target_format, job.place).write
    if write is not None:
        return AtPlace(write, job, report)
    if job.place and not at_source:
        raise Misuse(f"--{job.place} is no place for {job.source_format} or {job.target_format}")
    return OneOutput(job, report)


def write_changes(job: Job, changes: Iterable[Change], report: Report, options: Mapping[str, Any]) -> None:
    """Write changes to the output of a job."""
    OneOutput(replace(job, options=options), report).write(iter([Delivery(changes)]))


# --- a log, by column


def _log_by_column(job: Job, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the files of a log and their containers, if they become documents and can be read by column."""
    if not job.source.folded or job.target_format != "xds":
        return []
    if job.place or options.get("handle_future_events") or "-" in job.inputs:
        return []
    if any(map(job.limits.csv_layout, job.inputs)):
        return []
    inputs = [(name, container_of(name, Shape.ROWS, job.container)) for name in job.inputs]
    if all(container == "csv" for _, container in inputs) and _are_small(job.inputs):
        return []
    return inputs if all(container in BY_COLUMN for _, container in inputs) else []


def _are_small(names: Sequence[str]) -> bool:
    """Return whether files have few bytes together; what is no file, such as a pipe, may have many."""
    paths = list(map(Path, names))
    return all(path.is_file() for path in paths) and sum(path.stat().st_size for path in paths) <= _FEW


def _write_log(
    job: Job, inputs: Sequence[tuple[str, str]], options: Mapping[str, Any], report: Report, advance: Advance
) -> None:
    """Write the documents of a log, read by column."""
    from eventlog.log_files.by_column import BulkPickup  # Arrow takes a while to load

    check_inputs(job.inputs)
    rules, writing = settings.build(Rules, options), settings.build(XdsSettings, options)
    with load_current(job) as current:
        pickup = BulkPickup(job.tables, rules, writing, current, options["now"], report.refuse, job.limits)
        with Output(job.output, Shape.BYTES, job.output_container) as output:
            for record in report.good(pickup.documents(inputs, advance)):
                output.write(record)
