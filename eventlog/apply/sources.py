"""The changes of a job, as `convert` would read them, for a target."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from eventlog.apply.database import Database
from eventlog.apply.run import Run
from eventlog.apply.settings import ApplySettings
from eventlog.apply.tally import Tally
from eventlog.apply.target import Target
from eventlog.convert.conversion import Job, Report, changes_of
from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.files.inputs import Advance
from eventlog.sql.connect import connect


def apply_to_database(
    job: Job, url: str, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a job to the tables of a database."""
    target = Database(connect(url), _name(job, chosen), job.tables, chosen, report.refuse)
    return _apply(job, target, chosen, report, clock, advance)


def apply_to_delta(
    job: Job, folder: Path, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a job to the Delta tables of a folder."""
    with extra("delta", "--to-delta"):
        from eventlog.apply.delta import Delta

    if job.source_format in ("log", "xds"):
        raise Misuse("log and xds go into a database (--to-url): Delta tables keep no set of events")
    target = Delta(folder, _name(job, chosen), job.tables, chosen, report.refuse)
    return _apply(job, target, chosen, report, clock, advance)


def _name(job: Job, chosen: ApplySettings) -> str:
    return chosen.source or job.source_format


def _apply(
    job: Job, target: Target, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    with closing(target):
        run = Run(target, _name(job, chosen), job.source_format, chosen, report.refuse)
        with changes_of(job, report, clock, advance) as changes:
            return run.apply(changes)
