"""The changes of a job, as `convert` would read them, for a target."""

from __future__ import annotations

from contextlib import closing

from eventlog.apply.database import Database
from eventlog.apply.run import Run
from eventlog.apply.settings import ApplySettings
from eventlog.apply.tally import Tally
from eventlog.convert.conversion import Job, Report, changes_of
from eventlog.files.inputs import Advance
from eventlog.sql.connect import connect


def apply_to_database(
    job: Job, url: str, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a job to the tables of a database."""
    source = chosen.source or job.source_format
    with closing(Database(connect(url), source, job.tables, chosen, report.refuse)) as target:
        run = Run(target, source, job.source_format, chosen, report.refuse)
        with changes_of(job, report, clock, advance) as changes:
            return run.apply(changes)
