"""The cost of work as it grows: more rows, wider tables, longer lives of objects, more tables.

    eventlog bench scale [--most 1000000] [--only AXIS]

The pending rows of a log on an embedded PostgreSQL become documents in a folder; `files` are logs in CSV.
Each point is measured in a process and a database of its own, so that its peak of memory is its own. Its
rate is compared with the best of its axis, and stays near that if the cost is linear.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import make_url, text
from sqlalchemy.engine import Engine

from bench.convert import by_column, make
from bench.peers.server import own_database
from eventlog.core.tables import Tables
from eventlog.demo.embedded import FAST, embedded_postgres
from eventlog.fold import Rules
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.fold import Reader
from eventlog.publisher.open_log import read_readable
from eventlog.publisher.settings import PublisherSettings
from eventlog.sinks.files import FilesSink
from eventlog.sql.catalogue import Catalogue, Directory
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.schema import migrate
from eventlog.xds.settings import XdsSettings

MOST = 1_000_000
STEADY = 100_000  # log rows, where something else grows
MIXED = 20_000  # log rows, where tables do
LIMIT = 10_000
SETTINGS = FAST | {"shared_buffers": "512MB", "max_wal_size": "4GB", "max_locks_per_transaction": "4096"}
COLUMNS = "event_type, table_name, table_key, column_name, old_value, new_value"


class Filled(NamedTuple):
    """The work of a point."""

    tables: int
    units: int  # rows or cells


class Axis(NamedTuple):
    """A dimension that grows."""

    what: str
    unit: str
    points: tuple[int, ...]
    fill: Callable[[Engine, int], Filled]


def _table(engine: Engine, number: int, columns: int, rows: int) -> None:
    named = ", ".join(f"c{n} text" for n in range(columns))
    values = ", ".join(f"'Frost {n} ' || i" for n in range(columns))
    _run(engine, f"create table t{number} (idu integer primary key, {named})")
    if rows:
        _run(engine, f"insert into t{number} select i, {values} from generate_series(1, {rows}) i")


def _log(engine: Engine, selected: str, rows: int) -> None:
    _run(engine, f"insert into eventlog ({COLUMNS}) select {selected} from generate_series(0, {rows - 1}) i")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum analyze"))


def _more_rows(engine: Engine, rows: int) -> Filled:
    _table(engine, 0, 3, 0)
    values = "'Jack' || i, 'John' || i"
    _log(engine, f"2, 't0', 'idu=' || i / 3 + 1, 'c' || i % 3, {values}", rows)
    return Filled(1, rows)


def _more_columns(engine: Engine, columns: int) -> Filled:
    _table(engine, 0, columns, 0)
    place = f"'idu=' || i / {columns} + 1, 'c' || i % {columns}"
    _log(engine, f"2, 't0', {place}, 'Jack' || i, 'John' || i", STEADY)
    return Filled(1, STEADY)


def _wider_rows(engine: Engine, columns: int) -> Filled:
    objects = STEADY // columns
    _table(engine, 0, columns, objects)
    _log(engine, "6, 't0', 'idu=' || i + 1, null, null, null", objects)
    return Filled(1, objects * columns)


def _longer_lives(engine: Engine, length: int) -> Filled:
    _table(engine, 0, 3, 0)
    objects = STEADY // length
    place = f"'idu=' || i % {objects} + 1, 'c0'"
    _log(engine, f"2, 't0', {place}, 'Jack' || i, 'Jack' || i + {objects}", STEADY)
    return Filled(1, STEADY)


def _more_tables(engine: Engine, tables: int) -> Filled:
    for number in range(tables):
        _table(engine, number, 3, MIXED // tables)
    place = f"'t' || i % {tables}, 'idu=' || i / {tables} + 1"
    _log(engine, f"6, {place}, null, null, null", MIXED)
    return Filled(tables, MIXED)


AXES = {
    "rows": Axis("log rows", "rows", (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000), _more_rows),
    "columns": Axis("columns, a log row for each", "rows", (1, 2, 10, 50, 200), _more_columns),
    "width": Axis("columns, read back", "cells", (1, 2, 10, 50, 200), _wider_rows),
    "lives": Axis("rows of an object, among others", "rows", (1, 10, 100, 1_000, 10_000), _longer_lives),
    "tables": Axis("tracked tables, read back", "rows", (1, 10, 100, 500, 2_000), _more_tables),
}
FILES = "files"


class Point(NamedTuple):
    """The measurements of a point."""

    seconds: float
    units: int
    memory: int  # MiB at most
    opening: float  # seconds until the tables are known
    worked: float  # seconds of our own processor time


def measured(axis: str, size: int, url: str) -> Point:
    """Return one point, in this process and in a database of its own on that server."""
    if axis == FILES:
        return _of_file(size)
    with own_database(make_url(url)) as engine, tempfile.TemporaryDirectory() as folder:
        log = Log(POSTGRESQL)
        migrate.install(engine, log)
        filled = AXES[axis].fill(engine, size)
        store = Store(engine, log)
        leader = store.lead("bench")
        assert leader is not None
        with leader:
            begun = time.perf_counter()
            publisher = _publisher(store, leader.epoch, filled.tables, Path(folder))
            opened, worked = time.perf_counter(), time.process_time()
            while publisher.cycle().rows:
                pass
            seconds, worked = time.perf_counter() - opened, time.process_time() - worked
    return Point(seconds, filled.units, _peak(), opened - begun, worked)


def _publisher(store: Store, epoch: int, tables: int, folder: Path) -> Publisher:
    with store.engine.execution_options(**store.log.dialect.session_options).connect() as connection:
        directory = Directory(Catalogue(connection))
        known = Tables([directory.find(f"t{number}").table for number in range(tables)])
    readable = read_readable(store.engine, store.log, known)
    reader = Reader(known, readable, Rules(), XdsSettings(LIMIT))
    settings = PublisherSettings(query_limit=LIMIT)
    return Publisher(store, lambda: reader, FilesSink(folder), epoch, LIMIT, settings)


def _of_file(rows: int) -> Point:
    with tempfile.TemporaryDirectory() as folder:
        making = multiprocessing.get_context("fork").Process(target=make, args=(Path(folder), rows))
        making.start()  # elsewhere, for its memory is not what is measured
        making.join()
        begun, worked = time.perf_counter(), time.process_time()
        by_column(Path(folder) / "log.csv", "csv")
        seconds, worked = time.perf_counter() - begun, time.process_time() - worked
        return Point(seconds, rows, _peak(), 0.0, worked)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _run(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def lines(name: str, axis: Axis, points: tuple[int, ...], tries: int, url: str) -> Iterator[str]:
    """Yield a line for each point of an axis: of its fastest try, for whatever else a machine does takes
    time.
    """
    found = [(size, min(_elsewhere(name, size, url) for _ in range(tries))) for size in points]
    best = max(point.units / point.seconds for _, point in found)
    for size, point in found:
        rate = point.units / point.seconds
        opening = f"   tables known in {point.opening:5.2f} s" if name == "tables" else ""
        yield (
            f"{size:>10} {axis.what:32} {rate:>9,.0f} {axis.unit}/s   {rate / best:>4.0%} of the best"
            f"   {point.worked / point.units * 1e6:5.1f} us of CPU   at most {point.memory:>4} MiB{opening}"
        )


def _elsewhere(axis: str, size: int, url: str) -> Point:
    """Return one point, in a process of its own."""
    command = [sys.executable, "-m", "eventlog", "bench", "scale", "--point", axis, str(size), url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Point(*json.loads(done.stdout))


def main() -> None:
    """Print each axis."""
    parser = argparse.ArgumentParser(prog="eventlog bench scale", description="What work costs as it grows.")
    parser.add_argument("--most", type=int, default=MOST, help=f"log rows at most ({MOST})")
    parser.add_argument("--tries", type=int, default=2, help="of each point (2)")
    parser.add_argument("--only", choices=[*AXES, FILES], help="only this axis")
    parser.add_argument(
        "--point", nargs=3, metavar=("AXIS", "SIZE", "URL"), help="one point, in this process"
    )
    given = parser.parse_args()
    if given.point is not None:
        axis, size, url = given.point
        print(json.dumps(measured(axis, int(size), url)))
        return
    with embedded_postgres(settings=SETTINGS) as server:
        grown(given.only, given.most, given.tries, server.url)


def grown(only: str | None, most: int, tries: int, url: str) -> None:
    """Print each axis, or only one."""
    files = Axis("log rows in a file", "rows", AXES["rows"].points, _more_rows)
    for name, axis in {**AXES, FILES: files}.items():
        if only in (None, name):
            grows = name in ("rows", FILES)
            points = tuple(size for size in axis.points if not grows or size <= most)
            for line in lines(name, axis, points, tries, url):
                print(line, flush=True)
            print()


if __name__ == "__main__":
    main()
