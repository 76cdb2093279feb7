"""A live log: its lock held, its rows frozen, delivered and finished, so that the publisher goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from eventlog.entry import Status
from eventlog.errors import EventlogError
from eventlog.sql.leader import Leader
from eventlog.sql.store import Store
from eventlog.sql.work import Failure
from eventlog_spark.commit import REFUSED, Folder, job_id
from eventlog_spark.freeze import Frozen, freeze, known_tables
from eventlog_spark.job import Backlog, Result, Stage, facts, run_job

FROZEN = "_frozen"
_CHUNK = 10_000  # rows finished in one transaction


class Led(EventlogError):
    """a publisher is at work on this log: stop or pause it, the backlog needs its lock"""


class Underway(EventlogError):
    """the publisher remembers a batch that may be out already: let it settle that (eventlog run --once)"""


@dataclass(frozen=True)
class Live:
    """A log in a database, and whether its rows are finished when they are out."""

    store: Store
    address: str  # without a password
    finish: bool = False
    delete: bool = False


def run_live(spark: Any, backlog: Backlog, live: Live, stage: Stage) -> Result:
    """The output folder of a live log."""
    store = live.store
    leader = store.lead(f"backlog {os.getpid()}")
    if leader is None:
        raise Led
    with leader:
        if store.remembered():
            raise Underway
        job = backlog.job if len(backlog.job.tables) else replace(backlog.job, tables=known_tables(store))
        wanted = replace(backlog, job=job)
        output = Path(job.output).resolve()
        name = job_id(facts(wanted, [], []) | {"live": live.address, "log": store.log.names()["log"]})
        folder = Folder(output, name)
        frozen = Frozen(output / FROZEN)
        if folder.manifest() is None and not frozen.complete:
            stage("freeze")
            folder.claim()
            freeze(spark, store, job.tables, wanted.rules, frozen)
        leader.ping()
        frozen_job = replace(
            job, inputs=tuple(frozen.logs), current=tuple(frozen.current), container="parquet"
        )
        result = run_job(spark, replace(wanted, job=frozen_job), stage, name)
        if live.finish:
            leader.ping()
            stage("finish")
            result.finished = finish(live, leader, frozen, output)
        return result


def finish(live: Live, leader: Leader, frozen: Frozen, output: Path) -> int:
    """Give the rows that the output covers their letters, by ids; how many were still new."""
    refused = dict(refusals(output / REFUSED))
    finished = 0
    for ids in _batched(frozen.ids(), _CHUNK):
        failed = [Failure(n, None, refused[n]) for n in ids if n in refused]
        letters = {
            Status.SUCCESS: [n for n in ids if n not in refused],
            Status.ERROR: [failure.record_id for failure in failed],
        }
        with live.store.work(leader.epoch) as work:
            finished += work.finish(letters, delete=live.delete)
            work.fail(failed)
    return finished


def refusals(folder: Path) -> Iterator[tuple[int, str]]:
    """The rows that were refused, and why; all rows of an event that could not be written."""
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        with path.open(encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                for record_id in line.get("record_ids", ()):
                    yield record_id, line["reason"]


def _batched(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    remaining = iter(ids)
    while chunk := list(islice(remaining, size)):
        yield chunk
