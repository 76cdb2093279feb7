"""As many jobs as rows: put in, picked up, finished. Ours are rows of a log that become documents."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import URL, Engine

from bench.peers import workload
from bench.peers.capture import published
from bench.peers.installing import PACKAGES, Skipped, python
from eventlog.sql.log.store import Store
from eventlog.sql.names import log_named
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.schema import migrate

CHUNK = 1_000  # jobs of one statement
PATIENCE = 600


class Took(NamedTuple):
    """A duration in seconds."""

    putting: float
    finishing: float


def by_hand(engine: Engine, count: int) -> Took:
    """Return the floor: a table, and `for update skip locked`, chunk by chunk."""
    made = "create table jobs (id bigint generated always as identity primary key, status text, payload text)"
    _run(engine, made)
    begun = time.perf_counter()
    for start in range(0, count, CHUNK):
        numbers = f"generate_series({start}, {min(start + CHUNK, count) - 1})"
        _run(engine, f"insert into jobs (status, payload) select 'N', 'a job' from {numbers}")
    put = time.perf_counter()
    _run(engine, "create index on jobs (id) where status = 'N'")
    some = f"select id from jobs where status = 'N' order by id limit {CHUNK} for update skip locked"
    while _run(engine, f"update jobs set status = 'S' where id in ({some}) returning payload"):
        pass
    return Took(put - begun, time.perf_counter() - put)


def eventlog(engine: Engine, count: int) -> Took:
    """Insert rows of type 3, one an object."""
    log = log_named(POSTGRESQL, "peer_log")
    migrate.install(engine, log)
    store = Store(engine, log)
    workload.prepare(engine, 0)
    leader = store.lead("bench")
    assert leader is not None
    with leader, tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        for start in range(0, count, CHUNK):
            numbers = f"generate_series({start}, {min(start + CHUNK, count) - 1})"
            _run(
                engine,
                "insert into peer_log (event_type, table_name, table_key, column_name, new_value)"
                f" select 3, '{workload.TABLE}', 'id=' || n, 'fname', 'a job' from {numbers} n",
            )
        return Took(time.perf_counter() - begun, published(store, leader.epoch, Path(folder)))


def of_program(name: str) -> Callable[[Engine, int], Took]:
    """Return a peer's own program, in its own Python."""
    python(name)
    return lambda engine, count: Took(*map(float, _run_program(name, engine.url, str(count)).split()[-2:]))


def moments_of(name: str, url: URL, rate: float, seconds: float) -> list[tuple[float, float | None]]:
    """Return when each job of a peer was put in at a rate, and when it was done, if it was."""
    said = _run_program(name, url, str(rate), str(seconds), patience=PATIENCE + seconds)
    return [(put, done) for put, done in json.loads(said)]


def _run_program(name: str, url: URL, *words: str, patience: float = PATIENCE) -> str:
    """Return the output of a peer's own program, in its own Python."""
    done = subprocess.run(
        [python(name), Path(__file__).with_name(f"{name}_jobs.py"), *words],
        input=_address(url) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=patience,
    )
    if done.returncode:
        raise Skipped((done.stderr.strip().splitlines() or ["it said nothing"])[-1][:200])
    return done.stdout


def _address(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def _run(engine: Engine, statement: str) -> int:
    with engine.begin() as connection:
        found = connection.execute(text(statement))
        return len(found.all()) if found.returns_rows else 0


WAYS: dict[str, tuple[Callable[[], Callable[[Engine, int], Took]], str]] = {
    "PostgreSQL, by hand": (lambda: by_hand, "nothing but `for update skip locked`"),
    "eventlog": (
        lambda: eventlog,
        "makes documents in one process, in the order of each object; runs no code of yours",
    ),
    PACKAGES["pgqueuer"][0]: (
        lambda: of_program("pgqueuer"),
        "runs a function for each job; no order, no documents",
    ),
    PACKAGES["procrastinate"][0]: (
        lambda: of_program("procrastinate"),
        "runs a function for each job, taken one by one, with priorities, retries and locks; no documents",
    ),
}
