"""Any format to any format: a source, a target, and a report for everything that was left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.files.current_files import load_current
from eventlog.files.inputs import BY_COLUMN, Advance, check_inputs
from eventlog.files.outputs import Output
from eventlog.fold import Rules
from eventlog.formats.gbase.address import is_live
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import Endpoint, SourceRequest
from eventlog.transfer.job import Job
from eventlog.transfer.job_output import load_state, open_target
from eventlog.transfer.loop import ONE_ROUND, RunLength, transfer
from eventlog.transfer.opening import open_source
from eventlog.transfer.report import Report, before_writing
from eventlog.xds.xds_settings import XdsSettings

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
    source, target = job.source, job.target
    if _is_read_by_column(source, target):
        _write_log(source, target, job.current, report, advance)
        return
    reads_on = run_length.follow or job.state is not None or is_live(job.url)  # it is written part after part
    _check_target(job, target, reads_on)
    saved_state = load_state(job.state, job.source_format)
    with ExitStack() as stack:
        current = stack.enter_context(load_current(job.tables, job.current, source.limits))
        request = SourceRequest(
            source, saved_state.position, report, current, run_length.follow, not reads_on, advance=advance
        )
        changes = stack.enter_context(closing(open_source(request)))
        tables = changes.tables or job.tables
        transfer(
            changes,
            stack.enter_context(
                open_target(target, tables, report, job.state, saved_state, in_parts=reads_on)
            ),
            before_writing(
                source.format, tables, report, target.format, current if job.expand_truncate else None
            ),
            report,
            run_length,
            interval=source.settings(StreamSettings).follow_interval,
            copy=source.place if job.state is not None else "",
        )


def _check_target(job: Job, target: Endpoint, has_state: bool) -> None:
    """Raise Misuse if a job cannot write where it is to write."""
    if job.cases is not None:
        if job.target_format != "xds" or job.output != "-" or has_state:
            raise Misuse("--cases is for --to xds, and goes with none of -o, --state and --follow")
        if job.cases.exists() and any(job.cases.iterdir()):
            raise Misuse(f"{job.cases} is not empty: name a new folder for the cases")
    if target.place and target.connector.parts is None:
        if target.connector.write is None:
            raise Misuse(f"--{target.place} is no place for {job.source_format} or {job.target_format}")
        if has_state:
            raise Misuse("--state: write to files or to --kafka, not to --url")


# --- a log, by column


def _is_read_by_column(source: Endpoint, target: Endpoint) -> bool:
    """Return whether a log becomes documents, and its files can be read by column."""
    if not source.format.folded or target.format.name != "xds" or target.place:
        return False
    if source.settings.options.get("handle_future_events") or "-" in source.names:
        return False
    if any(map(source.limits.csv_layout, source.names)):
        return False
    containers = {container for _, container in source.files}
    return containers <= {*BY_COLUMN} and not (containers == {"csv"} and _are_small(source.names))


def _are_small(names: Sequence[str]) -> bool:
    """Return whether files have few bytes together; what is no file, such as a pipe, may have many."""
    paths = list(map(Path, names))
    return all(path.is_file() for path in paths) and sum(path.stat().st_size for path in paths) <= _FEW


def _write_log(
    source: Endpoint,
    target: Endpoint,
    current_files: Iterable[tuple[str, str]],
    report: Report,
    advance: Advance,
) -> None:
    """Write the documents of a log, read by column."""
    from eventlog.transfer.log_files.by_column import BulkPickup  # Arrow takes a while to load

    check_inputs(source.names)
    settings, tables, limits = source.settings, source.tables, source.limits
    rules, writing, clock = settings(Rules), settings(XdsSettings), settings.complete["now"]
    with load_current(tables, current_files, limits) as current:
        pickup = BulkPickup(tables, rules, writing, current, clock, report.refuse, limits)
        with Output(target.only_name(), Shape.BYTES, target.container) as output:
            for record in report.accepted(pickup.documents(source.files, advance)):
                output.write(record)
        report.add_changes(pickup.written)
