"""A live log: its lock held, its rows frozen, delivered and finished, so that the publisher goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError
from eventlog.core.identity import object_of
from eventlog.publisher.config import Config
from eventlog.publisher.open_log import read_readable, read_tables, with_sections
from eventlog.publisher.settings import PublisherSettings
from eventlog.sql.log.leader import Leader, backlog_name
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import Failure, Work
from eventlog_spark.backlog.freezing import LiveLog, freeze
from eventlog_spark.backlog.frozen import FrozenFolder
from eventlog_spark.backlog.job import Backlog, Result, Stage, facts, run_job
from eventlog_spark.backlog.live_current import FrozenRows
from eventlog_spark.backlog.unfinished import Settlement
from eventlog_spark.io.output_folder import folder_of, job_id

_CHUNK = 10_000  # rows finished in one transaction


class PublisherLeads(EventlogError):
    """a publisher is at work on this log: stop it until the backlog is done, which needs its lock"""


@dataclass(frozen=True)
class Live:
    """A log in a database, and whether its rows are finished when they are out."""

    store: Store
    config: Config
    finish: bool = False


def run_live(spark: Any, backlog: Backlog, live: Live, stage: Stage) -> Result:
    """Return the output folder of a live log."""
    leader = live.store.lead(backlog_name(os.getpid()))
    if leader is None:
        raise PublisherLeads
    with leader:
        source = _source(backlog, live, leader.epoch)
        wanted = replace(backlog, job=replace(backlog.job, tables=source.tables))
        folder = folder_of(spark, backlog.job.output, _name(wanted, live.store))
        frozen = FrozenFolder(folder.files)
        manifest = folder.manifest()
        if manifest is not None and not frozen.exists():  # somebody has cleared it away
            _read_nothing_ahead(live, leader)
            return Result(manifest, folder, before=True, finished=0 if live.finish else None)
        if manifest is None and not frozen.serves(leader.epoch):
            stage("freeze")
            folder.claim()
            freeze(spark, source, frozen)
        frozen.note(leader.epoch)
        leader.is_paused()
        result = _deliver(spark, wanted, source, frozen, stage, folder.job)
        if live.finish:
            leader.is_paused()
            stage("finish")
            result.finished = finish(live, leader, frozen, result.folder.refused())
            _read_nothing_ahead(live, leader)
        return result


def _read_nothing_ahead(live: Live, leader: Leader) -> None:
    """Put on record that we have read no rows but finished ones, so that `redrive` waits for us no longer."""
    with live.store.work(leader.epoch) as work:
        work.name_leader(backlog_name(os.getpid(), finished=True))


def _source(backlog: Backlog, live: Live, epoch: int) -> LiveLog:
    """Return the log with the tables of a tables file, else those that the publisher publishes."""
    store, tables = live.store, backlog.job.tables
    if len(tables):
        tables = with_sections(store.engine, store.log, tables, live.config)
    else:
        tables = read_tables(store.engine, store.log, live.config)
    with store.work(epoch) as work:
        work.rename(partial(object_of, tables))
    readable = read_readable(store.engine, store.log, tables)
    return LiveLog(store, live.config, tables, readable, backlog.rules)


def _name(backlog: Backlog, store: Store) -> str:
    where = {"live": store.engine.url.render_as_string(), "log": store.log.names()["log"]}
    return job_id(facts(backlog, [], []) | where)


def _deliver(
    spark: Any, backlog: Backlog, source: LiveLog, frozen: FrozenFolder, stage: Stage, name: str
) -> Result:
    job = replace(backlog.job, inputs=tuple(frozen.logs), container="parquet")
    answers = FrozenRows(frozenset(source.readable), frozen.current)
    return run_job(spark, replace(backlog, job=job), stage, name, answers, frozen.first)


def finish(live: Live, leader: Leader, frozen: FrozenFolder, left_out: Iterable[str]) -> int:
    """Give the rows that the output covers their letters, by ids; how many were still new."""
    refused = dict(refusals(left_out))
    finished = _settle(live, leader, Settlement.read(frozen.remembered), refused)
    for ids in _batched(frozen.ids(), _CHUNK):
        with live.store.work(leader.epoch) as work:
            _letter(work, live, {Letter.SUCCESS: ids}, refused)
            work.note_highest(max(ids))
        finished += work.finished
    return finished


def _settle(live: Live, leader: Leader, settlement: Settlement, refused: Mapping[int, str]) -> int:
    """Finish what a publisher remembered, unless one has gone on since: then that is its own again."""
    contents = [batch.content for batch in settlement.batches]
    found = [batch for batch in live.store.remembered() if batch.content in contents]
    if not found or len(found) < len(contents):
        return 0
    with live.store.work(leader.epoch) as work:
        work.fail(settlement.failures)
        _letter(work, live, settlement.letters, refused)
        work.release_all(((name, key), event_id) for name, key, event_id in settlement.objects)
        for batch in found:
            work.settle(batch.number)
    return work.finished


def _letter(
    work: Work, live: Live, letters: Mapping[Letter, Sequence[int]], refused: Mapping[int, str]
) -> None:
    """Give rows their letters; refused ones get E and the reason."""
    good = {letter: [n for n in ids if n not in refused] for letter, ids in letters.items()}
    failed = [n for ids in letters.values() for n in ids if n in refused]
    good[Letter.ERROR] = [*good.get(Letter.ERROR, ()), *failed]
    work.fail(Failure(n, None, refused[n]) for n in failed)
    work.finish(good, delete=live.config.build(PublisherSettings).delete_from_log)


def refusals(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows that were refused, and why; all rows of an event that could not be written."""
    for line in map(json.loads, lines):
        for record_id in line.get("record_ids", ()):
            yield record_id, line["reason"]


def _batched(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    remaining = iter(ids)
    while chunk := list(islice(remaining, size)):
        yield chunk
