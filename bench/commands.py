"""`convert` as a whole command: its start, its speed compared with a loop by hand, and its peak of memory.

    eventlog bench commands [--changes 200000] [--rows 1000000] [--of FOLDER]

CPU time is that of the process and of those that it starts. The loops are those of `bench peers`, in this
process. Our figures include the start of a command; theirs do not, so few changes give a lower ratio.
`--of` names a checkout of another version, with an environment of its own in `.venv`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.convert import TABLES, make
from bench.latency import Version
from bench.peers.messages import FILES, csv_loop, fastavro_loop, json_loop, prepare
from bench.qlik import KNOWN
from eventlog.core import tablesfile
from eventlog.core.errors import Misuse

FEW = 20  # rows of a command whose time is that of its start
LOOPS: dict[str, Callable[[Path, Path], None]] = {
    "messages, JSON": json_loop,
    "messages, Avro": fastavro_loop,
    "change table, CSV": csv_loop,
}


class Used(NamedTuple):
    """The resources that a command took."""

    cpu: float  # seconds
    peak: int  # MiB


def used(version: Version, *words: str) -> Used:
    """Return what a command takes."""
    process = version.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, took = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Misuse(f"eventlog {' '.join(words)}: {said}")
    return Used(took.ru_utime + took.ru_stime, took.ru_maxrss >> 10)


def of_log(version: Version, folder: Path, rows: int, container: str) -> Used:
    """Return what a log in a file takes, made into documents."""
    tables = folder / "log.toml"
    tables.write_text(tablesfile.write(TABLES))
    path = make(folder / str(rows), rows)[container]
    words = ("--tables", str(tables), "--from", "log", "--to", "xds", "-o", str(folder / "out.xml"))
    return used(version, "convert", str(path), *words)


def of_changes(version: Version, folder: Path, kind: str, order: str) -> Used:
    """Return what Qlik changes in a file take, made into lines of JSON."""
    name, source, container, given = FILES[kind]
    tables = folder / "usr.toml"
    tables.write_text(tablesfile.write(KNOWN))
    settings = [word for key, value in given.items() for word in (f"--{key}", value)]
    formats = ("--from", source, "--as", container, "--to", "changes", "--output-as", "jsonl")
    words = ("--tables", str(tables), "--order", order, "-o", str(folder / "out.jsonl"), *formats, *settings)
    return used(version, "convert", str(folder / name), *words)


def main() -> None:
    parser = argparse.ArgumentParser(prog="eventlog bench commands", description="Whole commands.")
    parser.add_argument("--changes", type=int, default=200_000, help="of Qlik (200000)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a log (1000000)")
    parser.add_argument("--of", type=Path, help="a checkout of another version, with its .venv")
    given = parser.parse_args()
    version = Version(given.of)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        start = of_log(version, folder, FEW, "csv")
        print(f"start, {FEW} rows of a log    {start.cpu:.2f} s of CPU")
        for container in ("csv", "parquet"):
            found = of_log(version, folder, given.rows, container)
            rate = given.rows / found.cpu
            print(
                f"log of {given.rows} rows, {container:<8} {rate:>9,.0f} a CPU second   "
                f"peak {found.peak:>4} MiB"
            )
        prepare(folder, given.changes)
        for kind, loop in LOOPS.items():
            begun = time.process_time()
            loop(folder / FILES[kind][0], folder / "by-hand.jsonl")
            by_hand = time.process_time() - begun
            for order in ("sequence", "as-is"):
                cpu = of_changes(version, folder, kind, order).cpu
                rate = given.changes / cpu
                print(
                    f"{kind:<18} {order:<9} {rate:>9,.0f} a CPU second   "
                    f"{by_hand / cpu:.2f} of a loop by hand"
                )


if __name__ == "__main__":
    main()
