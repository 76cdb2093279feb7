"""What a queue in a database fears: an old snapshot that keeps its dead rows.

    eventlog bench pressure [--minutes 10 | --seconds N] [--only SITUATION] [--mode MODE] [--rate 2000]
        [--of FOLDER]

Each run has an embedded PostgreSQL of its own, which writes to its disk before it answers (fsync is on).
A publisher is a process, and two writers insert rows at the offered rate. Up to 400 rows a second come each
in a transaction of its own, more rows in 200 transactions a second.
A line has the waits (p50/p99) in the first, a middle and the last sixth of the run. A row that did not
come out counts from its commit to the end. Autovacuum looks around ten times in a run, at least once a
minute. `clean` is the reference of `open`, where a reader holds its snapshot for the whole run.
`--of` names a checkout of another version.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from bench.latency import HERE, Version, prepare, start_publisher
from eventlog.embedded import embedded_postgres
from eventlog.sql.connect import connect

WRITERS = 2
SPAN = 1_000_000_000  # numbers of a writer
TRANSACTIONS = 200  # a second, of all writers,
ALONE = 400  # unless the rows are so few; then each has its own
PATIENCE = 60.0
SIZES = (
    "select relname, n_dead_tup, pg_total_relation_size(relid) from pg_stat_user_tables"
    " where relname <> 'usr'"
)


class Flow(NamedTuple):
    """The rows of a run."""

    offered: float  # a second
    published: float  # a second
    waits: Sequence[float]  # milliseconds, in the order of the commits

    def sixths(self) -> list[tuple[float, float]]:
        """Return the median and the 99th percentile of the first, a middle and the last sixth."""
        length = len(self.waits) // 6
        cuts = [statistics.quantiles(self.waits[at * length : (at + 1) * length], n=100) for at in (0, 3, 5)]
        return [(cut[49], cut[98]) for cut in cuts]


class TableSizes(NamedTuple):
    """The tables at the end of a run."""

    dead: int  # rows
    size: int  # bytes

    def __str__(self) -> str:
        return f"{self.dead:>9,} dead rows {self.size / 2**20:>6.1f} MiB"


class Pressed(NamedTuple):
    """The measurements of a run."""

    situation: str
    way: str
    flow: Flow
    log: TableSizes
    companions: TableSizes

    def __str__(self) -> str:
        waits = "  ".join(f"{p50:7.1f}/{p99:7.1f}" for p50, p99 in self.flow.sixths())
        return (
            f"{self.situation:<9} {self.way:<14} offered {self.flow.offered:>7,.0f}   "
            f"published {self.flow.published:>7,.0f} rows/s   p50/p99 {waits} ms   log {self.log}   "
            f"companions {self.companions}"
        )

    def compared(self, clean: Pressed) -> str:
        """Return the line of this run in the table of the aims."""
        last, at_best = self.flow.sixths()[-1][1], clean.flow.sixths()[-1][1]
        return (
            f"{self.situation:<9} {self.way:<14} {self.flow.published / self.flow.offered:>20.1%} "
            f"{last / at_best:>15.2f} x {self.log.dead:>22,}"
        )


class Publishing:
    """A publisher as a process, and when each row came out first."""

    def __init__(self, engine: Engine, version: Version, *words: str) -> None:
        self.arrived: dict[int, float] = {}
        self._process, self._reading = start_publisher(engine, self.arrived, version, *words)

    def close(self) -> None:
        """Stop the publisher."""
        self._process.terminate()
        self._reading.join()
        self._process.wait()

    def wait_for(self, rows: int) -> None:
        """Wait until so many rows are out, but not forever."""
        late = time.monotonic() + PATIENCE
        while len(self.arrived) < rows and time.monotonic() < late:
            time.sleep(0.01)


def _hold(engine: Engine) -> Connection:
    """Return a connection that holds a snapshot until it is closed."""
    connection = engine.connect().execution_options(isolation_level="REPEATABLE READ")
    connection.execute(text("select count(*) from usr"))
    return connection


SITUATIONS: dict[str, Callable[[Engine], AbstractContextManager[object]]] = {
    "clean": lambda engine: nullcontext(),
    "open": _hold,
}
MODES: dict[str, tuple[str, ...]] = {"update": (), "delete": ("--delete-from-log",)}  # of finishing rows


def pressed(version: Version, mode: str, situation: str, rate: float, seconds: float) -> Pressed:
    """Measure one way of finishing in one situation."""
    with _server(seconds) as engine:
        prepare(engine, version)
        with closing(Publishing(engine, version, *MODES[mode])) as publishing:
            with engine.connect() as connection:
                _put(connection, -1, 1)
            publishing.wait_for(1)
            with SITUATIONS[situation](engine):
                committed = _write(engine, rate, seconds)
                publishing.wait_for(1 + len(committed))
                publishing.close()
                moments = [(at, publishing.arrived.get(number)) for at, number in committed]
                return Pressed(situation, mode, flow_of(moments), *_table_sizes(engine, "eventlog"))


@contextmanager
def _server(seconds: float) -> Iterator[Engine]:
    looks = {"autovacuum_naptime": f"{max(1, min(60, round(seconds / 10)))}s"}
    with embedded_postgres(settings=looks) as server:
        engine = connect(server.url, keep_open=WRITERS + 3)
        try:
            yield engine
        finally:
            engine.dispose()


def _write(engine: Engine, rate: float, seconds: float) -> list[tuple[float, int]]:
    """Insert rows at a rate, and return when each was committed, in that order, with its number."""
    write = partial(_write_alone, engine, rate / WRITERS, seconds)
    with ThreadPoolExecutor(WRITERS) as pool:
        return sorted(chain.from_iterable(pool.map(write, range(0, WRITERS * SPAN, SPAN))))


def rows_together(rate: float) -> int:
    """Return how many rows a transaction has at this rate."""
    return 1 if rate <= ALONE else round(rate / TRANSACTIONS)


def _write_alone(engine: Engine, rate: float, seconds: float, first: int) -> list[tuple[float, int]]:
    rows_each = rows_together(rate * WRITERS)
    committed: list[tuple[float, int]] = []
    begun = time.monotonic()
    with engine.connect() as connection:
        while time.monotonic() < begun + seconds:
            time.sleep(max(0.0, begun + len(committed) / rate - time.monotonic()))
            following = first + len(committed)
            _put(connection, following, rows_each)
            now = time.monotonic()
            committed += [(now, number) for number in range(following, following + rows_each)]
    return committed


def _put(connection: Connection, first: int, row_count: int) -> None:
    rows = text(
        "insert into usr select n, 'a', 'b', 'c' from generate_series(cast(:first as integer), :last) n"
    )
    connection.execute(rows, {"first": first, "last": first + row_count - 1})
    connection.commit()


def flow_of(moments: Sequence[tuple[float, float | None]]) -> Flow:
    """Return the flow of rows, from the moments when each was committed and came out."""
    begun, until = moments[0][0], moments[-1][0]
    span = until - begun
    out = [published_at for _, published_at in moments if published_at is not None]
    end = max(until, *out)
    in_time = [published_at for published_at in out if published_at <= until]
    waits = [
        1000 * ((end if published_at is None else published_at) - committed_at)
        for committed_at, published_at in moments
    ]
    return Flow(len(moments) / span, len(in_time) / span, waits)


def _table_sizes(engine: Engine, log: str) -> tuple[TableSizes, TableSizes]:
    """Return what a log and its companions hold, after all sessions have reported their work."""
    time.sleep(1.5)  # an idle session reports after a second at the latest
    with engine.connect() as connection:
        connection.execute(text("select pg_stat_force_next_flush()"))
        tables = connection.execute(text(SIZES)).all()
    parts = ([row for row in tables if row[0] == log], [row for row in tables if row[0] != log])
    first, companions = (
        TableSizes(sum(row[1] for row in rows), sum(row[2] for row in rows)) for rows in parts
    )
    return first, companions


def main() -> None:
    """Print a line for each run, and a table of the aims."""
    parser = argparse.ArgumentParser(prog="eventlog bench pressure", description="What a queue fears.")
    parser.add_argument("--minutes", type=float, default=10, help="of each run (10)")
    parser.add_argument("--seconds", type=float, help="of each run, instead")
    parser.add_argument("--only", choices=[*SITUATIONS], help="only this situation, and clean")
    parser.add_argument("--mode", choices=MODES, help="only this way of finishing")
    parser.add_argument("--rate", type=float, default=2_000, help="rows a second that are offered (2000)")
    parser.add_argument("--of", type=Path, help="a checkout of another version, with its .venv")
    arguments = parser.parse_args()
    seconds = arguments.seconds or 60 * arguments.minutes
    chosen = [name for name in SITUATIONS if arguments.only in (None, name) or name == "clean"]
    modes = [mode for mode in MODES if arguments.mode in (None, mode)]
    print(f"{seconds:.0f} s a run, rows in a transaction: {rows_together(arguments.rate)}")
    runs = []
    version = HERE if arguments.of is None else Version(arguments.of.resolve())
    for mode in modes:
        for situation in chosen:
            runs.append(pressed(version, mode, situation, arguments.rate, seconds))
            print(runs[-1], flush=True)
    judge(runs)


def judge(runs: Sequence[Pressed]) -> None:
    """Print the runs compared with the clean ones, and the aims."""
    print(f"\n{'compared':<24} published of offered   p99, last sixth   dead rows of the log")
    clean = {run.way: run for run in runs if run.situation == "clean"}
    for run in runs:
        print(run.compared(clean[run.way]))
    print(f"{'aim':<24} {'95.0%':>20} {'2.00 x':>17}")


if __name__ == "__main__":
    main()
