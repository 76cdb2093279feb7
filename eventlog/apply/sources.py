"""The changes of a job, as `convert` would read them, for a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from eventlog.apply.database import Database
from eventlog.apply.progress import read_state
from eventlog.apply.run import Run
from eventlog.apply.settings import ApplySettings
from eventlog.apply.source_schema import SourceSchema
from eventlog.apply.tally import Tally
from eventlog.apply.target import Target
from eventlog.convert.conversion import Job, Report, allowed, changes_of
from eventlog.convert.deliveries import feed_of
from eventlog.convert.streaming import poll_interval
from eventlog.core.errors import Misuse, Refused
from eventlog.core.extras import extra
from eventlog.core.tables import Tables
from eventlog.files.inputs import Advance
from eventlog.sql.connect import connect
from eventlog.streams.delivery import Delivery, by_transaction


class Going(Protocol):
    """Whether a run goes on."""

    @property
    def stop(self) -> bool: ...  # it is to end

    def sleep(self, seconds: float, /) -> bool: ...  # until then, or until it is to end


def apply_to_database(
    job: Job,
    url: str,
    chosen: ApplySettings,
    report: Report,
    clock: str,
    advance: Advance,
    going: Going | None = None,
) -> Tally:
    """Apply the changes of a job to the tables of a database; while `going`, what comes later too."""
    has_states = _has_states(job, clock)
    if going is not None and not has_states:
        raise Misuse(f"--follow: {job.source_format} there has no positions to go on from")
    name = _name(job, chosen)
    described, job = _described(job)
    target = Database(
        connect(url), name, job.tables, chosen, report.refuse, described, report.flush, report.inform
    )
    with closing(target):
        if not has_states:
            return _apply_again(job, target, chosen, report, clock, advance)
        shown: Advance = advance if going is None else lambda size: None  # what is followed has no end
        feed = feed_of(
            job, read_state(name, target.state), clock, advance=lambda size: _advance(run, size, shown)
        )
        assert feed is not None
        with closing(feed):
            stop = bool if going is None else lambda: going.stop
            run = Run(target, name, job.source_format, chosen, report.refuse, feed.kept, stop)
            while True:
                tally = run.apply(leaving(feed.round(going is not None), job.tables))
                if going is None or going.stop or going.sleep(poll_interval(job)):
                    return tally


def apply_to_delta(
    job: Job, folder: Path, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a job to the Delta tables of a folder."""
    with extra("delta", "--to-delta"):
        from eventlog.apply.delta import Delta

    described, job = _described(job)
    name = _name(job, chosen)
    target = Delta(folder, name, job.tables, chosen, report.refuse, described, report.flush, report.inform)
    with closing(target):
        return _apply_again(job, target, chosen, report, clock, advance)


def _name(job: Job, chosen: ApplySettings) -> str:
    return chosen.source or job.source_format


def _described(job: Job) -> tuple[SourceSchema, Job]:
    """What the source of a job will tell of its tables, and the job so that it does; what it hands out are
    whole transactions."""
    described = SourceSchema()
    given = {"whole_transactions": True, "ended": not job.place, "heard": described.add_description}
    return described, replace(job, given={**job.given, **given})


def _apply_again(
    job: Job, target: Target, chosen: ApplySettings, report: Report, clock: str, advance: Advance
) -> Tally:
    """Apply the changes of a source that is read from its beginning, without those that were applied."""
    run = Run(target, _name(job, chosen), job.source_format, chosen, report.refuse)
    with changes_of(job, report, clock, lambda size: _advance(run, size, advance)) as changes:
        return run.apply(by_transaction(changes))


def _advance(run: Run, size: int, advance: Advance) -> None:
    """Pass on how far an input was read; where nothing comes out of a pipe, the run applies what it has."""
    advance(size)
    if not size:
        run.rest()


def _has_states(job: Job, clock: str) -> bool:
    """Whether the source of a job can be read on from a state; misuse if its order is to be the input's."""
    feed = feed_of(job, None, clock)
    if feed is not None:
        feed.close()
    return feed is not None


def leaving(deliveries: Iterable[Delivery | Refused], tables: Tables) -> Iterator[Delivery | Refused]:
    """The deliveries without the columns that their tables' lists do not let leave."""
    for delivery in deliveries:
        if isinstance(delivery, Refused):
            yield delivery
            continue
        told = list(allowed(delivery.changes, tables))
        yield from (one for one in told if isinstance(one, Refused))
        changes = [one for one in told if not isinstance(one, Refused)]
        of = delivery
        yield Delivery(changes, partial(_state, of), of.late, of.incomplete, of.reload, of.overtaken)


def _state(delivery: Delivery) -> str | None:
    return delivery.state
