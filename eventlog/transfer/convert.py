"""Any format to any format: a source, a target, and a report for everything that was left out."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.files.current_files import load_current
from eventlog.files.inputs import Advance, check_inputs
from eventlog.files.outputs import Output
from eventlog.fold import Rules
from eventlog.formats.gbase.address import is_live
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import Endpoint, SourceRequest, refuse_place
from eventlog.transfer.job import Job
from eventlog.transfer.job_output import load_state, open_target
from eventlog.transfer.loop import ONE_ROUND, RunLength, transfer
from eventlog.transfer.opening import open_source
from eventlog.transfer.ordered import arrival_of
from eventlog.transfer.report import Report, before_writing
from eventlog.transfer.ways import Way, way_of
from eventlog.xds.xds_settings import XdsSettings


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
    reads_on = run_length.follow or job.state is not None or is_live(job.url)  # it is written part after part
    way = way_of(job, reads_on=reads_on)
    if way is not Way.BY_ROW:
        write = _write_log if way is Way.LOG else _write_changes
        write(job, report, advance)
        return
    stream = source.settings(StreamSettings)
    arrival = arrival_of(source.format, source.of_format, stream, once=not (reads_on or source.place))
    target = replace(job, options={**job.options, "arrival": arrival}).target
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
            interval=stream.follow_interval,
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
            refuse_place(target.place, job.source_format, job.target_format)
        if has_state:
            raise Misuse("--state: write to files or to --kafka, not to --url")


# --- by column


def _write_log(job: Job, report: Report, advance: Advance) -> None:
    """Write the documents of a log, read by column."""
    from eventlog.transfer.log_files.by_column import BulkPickup  # Arrow takes a while to load

    source, target = job.source, job.target
    check_inputs(source.names)
    settings, tables, limits = source.settings, source.tables, source.limits
    rules, writing, clock = settings(Rules), settings(XdsSettings), settings.complete["now"]
    with load_current(tables, job.current, limits) as current:
        pickup = BulkPickup(tables, rules, writing, current, clock, report.refuse, limits)
        with Output(target.only_name(), Shape.BYTES, target.container) as output:
            for record in report.accepted(pickup.documents(source.files, advance)):
                output.write(record)
        report.add_changes(pickup.written)


def _write_changes(job: Job, report: Report, advance: Advance) -> None:
    """Write the changes of change tables or messages, read by column."""
    from eventlog.transfer.change_files.writing import ChangeFiles

    prepare = before_writing(job.source.format, job.tables, report, job.target.format)
    ChangeFiles(job.source, job.target, prepare, report).write(advance)
