"""Ours and its peers: the same table, the same changes, the same machine, in turn.

    eventlog bench peers [ROWS] [--rounds 3] [--only capture|mariadb|messages]

What is not part of this environment is installed into the folder that EVENTLOG_PEERS names, the first
time, from Debian, PyPI and Maven Central; without that folder it is skipped. Each figure is the median of
the rounds; ratios are of one round. A peer that cannot run here is listed as SKIPPED with the reason.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from bench.peers import messages, workload
from bench.peers.capture import EVENTLOGS, Capture, Debezium, Nothing, PgQ
from bench.peers.installing import Skipped
from bench.peers.server import own_database, peers_server
from eventlog.core.errors import EventlogError
from eventlog.sql.connect import connect

ROWS = 20_000
_WIDE = 34  # of a name
NOT_MEASURED = {
    "SymmetricDS": "Maven Central ends at a release of 2013; its makers keep today's elsewhere",
}


def main() -> None:
    """Print what is measured, part by part."""
    parser = argparse.ArgumentParser(prog="eventlog bench peers", description="Ours beside its peers.")
    parser.add_argument("rows", nargs="?", type=int, default=ROWS, help=f"of the table ({ROWS})")
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement (3)")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.rows, arguments.rounds)
            print(flush=True)


def captured(rows: int, rounds: int) -> None:
    """Measure writers and readers on one PostgreSQL."""
    with peers_server() as url:
        print(_version(url))
        _captures(url, [Nothing(), *EVENTLOGS, *_at_hand()], rows, rounds)
    for name, reason in NOT_MEASURED.items():
        print(f"{name:{_WIDE}} SKIPPED: {reason}")


def captured_on_mariadb(rows: int, rounds: int) -> None:
    """Measure writers and readers on MariaDB, if a server is named."""
    named = [text.strip() for text in os.environ.get("EVENTLOG_TEST_URLS", "").split(",")]
    urls = [make_url(text) for text in named if text.startswith(("mariadb", "mysql"))]
    if not urls:
        print(f"{'MariaDB':{_WIDE}} SKIPPED: EVENTLOG_TEST_URLS names none; .ci/databases starts one")
        return
    print(_version(urls[0]))
    _captures(urls[0], [Nothing(), *EVENTLOGS], rows, rounds)


def _version(url: URL) -> str:
    engine = connect(url)
    with engine.connect() as connection:
        version = connection.exec_driver_sql("select version()").scalar_one()
    engine.dispose()
    return str(version).partition(" on ")[0]


def _at_hand() -> Iterator[Capture]:
    for peer in (PgQ, Debezium):
        try:
            yield peer()
        except Skipped as reason:
            print(f"{peer.name:{_WIDE}} SKIPPED: {reason}")


def _captures(url: URL, ways: list[Capture], rows: int, rounds: int) -> None:
    took: dict[str, list[float]] = {way.name: [] for way in ways}
    rates: dict[str, list[float]] = {way.name: [] for way in ways}
    changes = workload.changes(rows)
    for _ in range(rounds):
        for way in ways:
            with own_database(url) as engine:
                workload.prepare(engine, rows)
                with way.capturing(engine):
                    took[way.name].append(workload.change(engine, rows))
                    rate = way.rate(engine, changes)
                    rates[way.name] += [] if rate is None else [rate]
    bare = took[ways[0].name]
    print(f"{changes} changes of rows, {workload.OF_ONE} in a transaction      writers      read into a file")
    for way in ways:
        ratio = statistics.median(
            seconds / floor for seconds, floor in zip(took[way.name], bare, strict=True)
        )
        read = f"{statistics.median(rates[way.name]):>9,.0f}/s" if rates[way.name] else f"{'-':>11}"
        print(f"{way.name:{_WIDE}} RUN {ratio:7.2f} x   {read}   {_in_brackets(way.limits)}".rstrip())


def _in_brackets(words: str) -> str:
    return words and f"[{words}]"


def converted(rows: int, rounds: int) -> None:
    """Measure messages and change tables, converted to lines of JSON."""
    numbers = count()
    print(f"{rows} changes as lines of JSON                                   (what the result lacks)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        messages.prepare(folder, rows)
        start = statistics.median(messages.start(folder, next(numbers)) for _ in range(rounds))
        print(f"{'no change':18} {'eventlog convert, as a command':{_WIDE}} RUN {start:9.2f} s")
        try:
            for kind, who, work, limits in messages.ways():
                rates = [messages.rate(work, kind, folder, rows, next(numbers)) for _ in range(rounds)]
                figures = f"{statistics.median(rates):9,.0f}/s   {_in_brackets(limits)}".rstrip()
                print(f"{kind:18} {who:{_WIDE}} RUN {figures}", flush=True)
        except EventlogError as missing:
            print(f"{'PySpark':{_WIDE}} SKIPPED: {missing}")


PARTS: dict[str, Callable[[int, int], None]] = {
    "capture": captured,
    "mariadb": captured_on_mariadb,
    "messages": converted,
}


if __name__ == "__main__":
    main()
