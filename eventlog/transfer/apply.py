"""Changes of any format to rows of tables, which remember themselves what was applied."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from eventlog.core.errors import Misuse
from eventlog.files.inputs import Advance
from eventlog.jobs.filters import leaving
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.sql.connect import connect
from eventlog.targets.tables.database import Database
from eventlog.targets.tables.progress import read_state
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.source_schema import SourceSchema
from eventlog.targets.tables.table_writer import TableWriter
from eventlog.targets.tables.tally import Tally
from eventlog.transfer.given import all_given
from eventlog.transfer.loop import ONE_ROUND, Going, transfer
from eventlog.transfer.opening import open_from_state, open_once, reader_from_state
from eventlog.transfer.places import Opening


def apply_to_database(
    job: Job,
    url: str,
    chosen: ApplySettings,
    report: Report,
    clock: str,
    advance: Advance,
    going: Going = ONE_ROUND,
) -> Tally:
    """Apply the changes of a job to the tables of a database, as long as the run goes on."""
    has_states = reader_from_state(job) is not None
    if going.follow and not has_states:
        raise Misuse(f"--follow: {job.source_format} there has no positions to continue from")
    described, job = _described(job)
    name = _name(job, chosen)
    tables = Database(
        connect(url), name, job.tables, chosen, report.refuse, described, report.flush, report.inform
    )
    with closing(tables):
        if not has_states:
            return _apply_once(job, tables, chosen, report, clock, advance)
        state = read_state(name, tables.state)
        rows = TableWriter(tables, name, job.source_format, chosen, report.refuse, has_states=True)
        shown: Advance = (lambda size: None) if going.follow else advance  # what is followed has no end
        full = replace(job, given=all_given(job, clock))
        source = open_from_state(Opening(full, state, report, advance=shown))
        assert source is not None
        with closing(source):
            transfer(
                source,
                rows,
                leaving(job, job.tables, report),
                report,
                going,
                interval=job.poll_interval,
                copy=job.place,
            )
        return rows.tally


def _name(job: Job, chosen: ApplySettings) -> str:
    return chosen.source or job.source_format


def _described(job: Job) -> tuple[SourceSchema, Job]:
    """Return an empty schema and a copy of the job.

    The job's source fills the schema with what it knows of its tables, and hands out whole transactions.
    """
    described = SourceSchema()
    given = {"whole_transactions": True, "ended": not job.place, "heard": described.add_description}
    return described, replace(job, given={**job.given, **given})


def _apply_once(
    job: Job, tables: Database, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a source that is read from its beginning, without those that were applied."""
    if job.place:
        raise Misuse(f"--{job.place} is no place for {job.source_format}")
    rows = TableWriter(tables, _name(job, chosen), job.source_format, chosen, report.refuse)
    with load_current(job) as current:
        source = open_once(job, all_given(job, clock), current, report, advance, together=True)
        with closing(source):
            transfer(source, rows, leaving(job, job.tables, report), report)
    return rows.tally
