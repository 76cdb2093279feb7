"""Changes of any format to rows of tables, which remember themselves what was applied."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from eventlog.core.errors import Misuse
from eventlog.files.inputs import Advance
from eventlog.jobs.filters import publishing
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.sql.connect import connect
from eventlog.targets.tables.apply_progress import read_state
from eventlog.targets.tables.apply_settings import ApplySettings, SourceSchema
from eventlog.targets.tables.database import Database
from eventlog.targets.tables.outcomes import Tally
from eventlog.targets.tables.writer import TableWriter
from eventlog.transfer.given import complete_options
from eventlog.transfer.loop import ONE_ROUND, RunLength, transfer
from eventlog.transfer.opening import open_from_state, open_once, reader_from_state
from eventlog.transfer.places import Opening


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
    has_states = reader_from_state(job) is not None
    if run_length.follow and not has_states:
        raise Misuse(f"--follow: {job.source_format} there has no positions to continue from")
    described, job = _described(job)
    name = _name(job, apply_settings)
    tables = Database(
        connect(url), name, job.tables, apply_settings, report.refuse, described, report.flush, report.inform
    )
    with closing(tables):
        if not has_states:
            return _apply_once(job, tables, apply_settings, report, clock, advance)
        state = read_state(name, tables.state)
        rows = TableWriter(tables, name, job.source_format, apply_settings, report.refuse, has_states=True)
        shown: Advance = (lambda size: None) if run_length.follow else advance  # what is followed has no end
        complete_job = replace(job, options=complete_options(job, clock))
        source = open_from_state(Opening(complete_job, state, report, advance=shown))
        assert source is not None
        with closing(source):
            transfer(
                source,
                rows,
                publishing(job, job.tables, report),
                report,
                run_length,
                interval=job.poll_interval,
                copy=job.place,
            )
        return rows.tally


def _name(job: Job, apply_settings: ApplySettings) -> str:
    return apply_settings.source or job.source_format


def _described(job: Job) -> tuple[SourceSchema, Job]:
    """Return an empty schema and a copy of the job.

    The job's source fills the schema with what it knows of its tables, and hands out whole transactions.
    """
    described = SourceSchema()
    options = {
        "whole_transactions": True,
        "ended": not job.place,
        "on_structure": described.add_description,
    }
    return described, replace(job, options={**job.options, **options})


def _apply_once(
    job: Job, tables: Database, apply_settings: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a source that is read from its beginning, without those that were applied."""
    if job.place:
        raise Misuse(f"--{job.place} is no place for {job.source_format}")
    rows = TableWriter(tables, _name(job, apply_settings), job.source_format, apply_settings, report.refuse)
    with load_current(job) as current:
        source = open_once(
            job, complete_options(job, clock), current, report, advance, whole_transactions=True
        )
        with closing(source):
            transfer(source, rows, publishing(job, job.tables, report), report)
    return rows.tally
