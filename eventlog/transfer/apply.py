"""Changes of any format to rows of tables in a database or a lake, which remember what was applied."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace

from eventlog.core.errors import Misuse
from eventlog.files.current_files import load_current
from eventlog.files.inputs import Advance
from eventlog.sql.common.time_fractions import WHOLE_SECONDS
from eventlog.sql.connect import connect
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import SourceRequest, refuse_place
from eventlog.transfer.job import Job
from eventlog.transfer.loop import ONE_ROUND, RunLength, transfer
from eventlog.transfer.opening import open_source
from eventlog.transfer.report import Report, before_writing
from eventlog.transfer.targets.lake.lake_settings import LakeSettings
from eventlog.transfer.targets.tables.apply_progress import BY_FORMAT
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceSchema
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.outcomes import Tally
from eventlog.transfer.targets.tables.writer import SECONDS, GroupTarget, TableWriter

OpenTarget = Callable[[ExitStack, str, SourceSchema], GroupTarget]  # of a source's name and descriptions


class OnlyMarks(Misuse):
    """--to-lake takes no {0}, because its changes have no order, only marks of single events. Changes with \
positions or a count are taken: change tables, messages, captures, and a folder of the files sink"""


def apply_to_database(
    job: Job,
    url: str,
    apply_settings: ApplySettings,
    report: Report,
    clock: str,
    advance: Advance,
    run_length: RunLength = ONE_ROUND,
) -> Tally:
    """Apply the changes of a job to the tables of a database, as long as the run goes on."""

    def open_target(stack: ExitStack, name: str, schema: SourceSchema) -> GroupTarget:
        database = Database(
            connect(url),
            name,
            job.tables,
            apply_settings,
            report.refuse,
            schema,
            report.sync_rejects,
            report.inform,
        )
        stack.callback(database.close)
        return database

    return _apply(job, open_target, apply_settings, report, clock, advance, run_length)


def apply_to_lake(
    job: Job,
    address: str,
    lake_settings: LakeSettings,
    apply_settings: ApplySettings,
    report: Report,
    clock: str,
    advance: Advance,
    run_length: RunLength = ONE_ROUND,
) -> Tally:
    """Apply the changes of a job to the tables of a lake in rounds, as long as the run goes on."""
    if job.source_format in BY_FORMAT and not job.source.place:
        raise OnlyMarks(job.source_format)
    from eventlog.transfer.targets.lake.lake_writer import Lake
    from eventlog.transfer.targets.lake.lakes import lake_at

    def open_target(stack: ExitStack, name: str, schema: SourceSchema) -> GroupTarget:
        return Lake(
            place,
            name,
            job.tables,
            apply_settings,
            lake_settings,
            schema,
            report.refuse,
            report.sync_rejects,
            report.inform,
        )

    with lake_at(address, lake_settings.store_options, "--to-lake") as place:
        return _apply(
            job,
            open_target,
            apply_settings,
            report,
            clock,
            advance,
            run_length,
            round_time=lake_settings.round_time,
        )


def _apply(
    job: Job,
    open_target: OpenTarget,
    apply_settings: ApplySettings,
    report: Report,
    clock: str,
    advance: Advance,
    run_length: RunLength,
    *,
    round_time: float | None = None,
) -> Tally:
    """Apply changes in groups of a second, or in rounds of a lake, which keeps no marks of events."""
    whole_seconds = job.source_format == "xds" and job.source.of_format.time_syntax == WHOLE_SECONDS
    schema = SourceSchema(whole_seconds=whole_seconds)
    # the source describes its tables in the schema, and hands out whole transactions
    options = {"whole_transactions": True, "on_structure": schema.add_description}
    options["ended"] = not job.source.place
    source = replace(job, options={**job.options, **options}, clock=clock).source
    has_states = source.has_positions
    if run_length.follow and not has_states:
        raise Misuse(f"--follow: files of {job.source_format} have no positions to continue from")
    if job.target.place:
        refuse_place(job.target.place, job.source_format)
    name = apply_settings.source or job.source_format
    has_marks = round_time is None
    with ExitStack() as stack:
        writer = TableWriter(
            open_target(stack, name, schema),
            name,
            job.source_format,
            apply_settings,
            report.refuse,
            has_states=has_states,
            has_marks=has_marks,
            seconds=round_time or SECONDS,
        )
        shown: Advance = (lambda size: None) if run_length.follow else advance  # such a source has no end
        current = stack.enter_context(load_current(job.tables, job.current, source.limits))
        request = SourceRequest(
            source,
            writer.source_state,
            report,
            current,
            once=not has_states,
            whole_transactions=True,
            advance=shown,
            repeats=has_marks,
        )
        changes = stack.enter_context(closing(open_source(request)))
        transfer(
            changes,
            writer,
            before_writing(source.format, job.tables, report),
            report,
            run_length,
            interval=round_time or source.settings(StreamSettings).follow_interval,
            copy=source.place,
            is_paced=round_time is not None,
        )
    return writer.tally
