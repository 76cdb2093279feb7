"""Any format to any format: a source, a target, and a report for everything that was left out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from eventlog.core.formats import Shape
from eventlog.files.inputs import BY_COLUMN, Advance, check_inputs
from eventlog.files.outputs import Output
from eventlog.fold import Rules
from eventlog.gbase.address import is_live
from eventlog.log_files.current_files import load_current
from eventlog.transfer.job import Job
from eventlog.transfer.loop import ONE_ROUND, RunLength, transfer
from eventlog.transfer.opening import open_source
from eventlog.transfer.places import Opening
from eventlog.transfer.report import Report, before_writing
from eventlog.transfer.targets import check_target, load_state, open_target
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
    job = replace(job, clock=clock)
    if _is_read_by_column(job):
        _write_log(job, report, advance)
        return
    reads_on = run_length.follow or job.state is not None or is_live(job.url)  # it is written part after part
    saved_state = load_state(job.state, job.source_format) if reads_on else None
    position = None if saved_state is None else saved_state.position
    opening = Opening(job, position, report, run_length.follow, once=saved_state is None, advance=advance)
    check_target(job, saved_state is not None)
    with ExitStack() as stack:
        current = stack.enter_context(load_current(job.tables, job.current, job.limits))
        source = open_source(opening, current)
        stack.callback(source.close)
        target = stack.enter_context(open_target(job, source, saved_state, report))
        transfer(
            source,
            target,
            before_writing(job, source.tables or job.tables, report, current),
            report,
            run_length,
            interval=job.poll_interval,
            copy=job.place if job.state is not None else "",
        )


# --- a log, by column


def _is_read_by_column(job: Job) -> bool:
    """Return whether a log becomes documents, and its files can be read by column."""
    if not job.source.folded or job.target_format != "xds":
        return False
    if job.cases or job.place or job.options.get("handle_future_events") or "-" in job.inputs:
        return False
    if any(map(job.limits.csv_layout, job.inputs)):
        return False
    containers = {container for _, container in job.files}
    return containers <= {*BY_COLUMN} and not (containers == {"csv"} and _are_small(job.inputs))


def _are_small(names: Sequence[str]) -> bool:
    """Return whether files have few bytes together; what is no file, such as a pipe, may have many."""
    paths = list(map(Path, names))
    return all(path.is_file() for path in paths) and sum(path.stat().st_size for path in paths) <= _FEW


def _write_log(job: Job, report: Report, advance: Advance) -> None:
    """Write the documents of a log, read by column."""
    from eventlog.log_files.by_column import BulkPickup  # Arrow takes a while to load

    check_inputs(job.inputs)
    rules, writing, clock = job.settings(Rules), job.settings(XdsSettings), job.settings.complete["now"]
    with load_current(job.tables, job.current, job.limits) as current:
        pickup = BulkPickup(job.tables, rules, writing, current, clock, report.refuse, job.limits)
        with Output(job.output, Shape.BYTES, job.output_container) as output:
            for record in report.accepted(pickup.documents(job.files, advance)):
                output.write(record)
        report.changes = pickup.written
