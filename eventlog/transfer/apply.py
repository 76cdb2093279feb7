"""Changes of any format to rows of tables, which remember themselves what was applied."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace

from eventlog.core.errors import Misuse
from eventlog.files.current_files import load_current
from eventlog.files.inputs import Advance
from eventlog.sql.common.time_fractions import WHOLE_SECONDS
from eventlog.sql.connect import connect
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import SourceRequest
from eventlog.transfer.job import Job
from eventlog.transfer.loop import ONE_ROUND, RunLength, transfer
from eventlog.transfer.opening import open_source
from eventlog.transfer.report import Report, before_writing
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceSchema
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.outcomes import Tally
from eventlog.transfer.targets.tables.writer import TableWriter


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
    whole_seconds = job.source_format == "xds" and job.source.of_format.time_syntax == WHOLE_SECONDS
    schema = SourceSchema(whole_seconds=whole_seconds)
    # the source describes its tables in the schema, and hands out whole transactions
    options = {"whole_transactions": True, "on_structure": schema.add_description}
    options["ended"] = not job.source.place
    source = replace(job, options={**job.options, **options}, clock=clock).source
    has_states = source.has_positions
    if run_length.follow and not has_states:
        raise Misuse(f"--follow: {job.source_format} there has no positions to continue from")
    if job.target.place:
        raise Misuse(f"--{job.target.place} is no place for {job.source_format}")
    name = apply_settings.source or job.source_format
    with ExitStack() as stack:
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
        writer = TableWriter(
            database, name, job.source_format, apply_settings, report.refuse, has_states=has_states
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
        )
        changes = stack.enter_context(closing(open_source(request)))
        transfer(
            changes,
            writer,
            before_writing(source.format, job.tables, report),
            report,
            run_length,
            interval=source.settings(StreamSettings).follow_interval,
            copy=source.place,
        )
    return writer.tally
