"""`convert` on one core: the XDS writer, a log of files by column and row by row, and whole commands.

    eventlog bench convert [rows] [--changes 200000]

Judge ratios within one run: machines differ, and so do minutes on one machine. CPU time is that of the
process and of those that it starts. The loops by hand are those of `bench peers`, in this process. Our
figures of commands include their start; theirs do not. Files of changes are packed to be read row by row;
as they are, JSON and CSV are read by column.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from bench.formats import TABLES as CHANGE_TABLES
from bench.peers.messages import FILES, csv_loop, fastavro_loop, json_loop, prepare
from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Shape
from eventlog.files.current_files import CurrentFiles
from eventlog.files.inputs import Input, open_sources
from eventlog.fold import Rules
from eventlog.transfer.log_files.by_column import BulkPickup
from eventlog.transfer.log_files.by_row import Pickup
from eventlog.xds.documents import HEAD, TAIL, document, write
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings

ROWS = 300_000
SLOWLY = 100_000  # rows at most that are taken row by row
STEP = 100_000  # rows that are made together
DOCUMENTS = 20_000  # of the writer alone
FEW = 20  # rows of a command whose time is that of its start
LOOPS: dict[str, Callable[[Path, Path], None]] = {
    "messages, JSON": json_loop,
    "messages, Avro": fastavro_loop,
    "change table, CSV": csv_loop,
}
CLOCK = "2025-01-01 00:00:00"
TABLES = tablesfile.read(
    '[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n'
    'columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(64)" }\n'
)


def log(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield three rows of type 2 for each object, as a trigger logs them."""
    names = ("fname", "lname", "mail")
    for start in range(0, rows, STEP):
        numbers = range(start, min(start + STEP, rows))
        columns: list[list[object]] = [
            [n + 1 for n in numbers],
            ["N" for _ in numbers],
            [2 for _ in numbers],
            ["2025-03-23 10:57:19" for _ in numbers],
            [None for _ in numbers],
            ["usr" for _ in numbers],
            [f"idu={n // 3 + 1}" for n in numbers],
            [names[n % 3] for n in numbers],
            [f"Jack{n}" for n in numbers],
            [f"John & Sons {n}" for n in numbers],
        ]
        types = [pa.int64(), pa.string(), pa.int64(), *[pa.string()] * 7]
        arrays = [pa.array(cells, kind) for cells, kind in zip(columns, types, strict=True)]
        yield pa.record_batch(arrays, names=list(COLUMNS))


def make(folder: Path, rows: int) -> dict[str, Path]:
    """Return a log as CSV and as Parquet, in a folder that is made where it is missing."""
    folder.mkdir(exist_ok=True)
    paths = {"csv": folder / "log.csv", "parquet": folder / "log.parquet"}
    schema = next(log(1)).schema
    with (
        pv.CSVWriter(paths["csv"], schema, write_options=pv.WriteOptions(quoting_style="needed")) as text,
        pq.ParquetWriter(paths["parquet"], schema) as packed,
    ):
        for batch in log(rows):
            text.write_batch(batch)
            packed.write_batch(batch)
    return paths


def by_row(path: Path, container: str) -> int:
    """Return the bytes of its documents, row by row."""
    with CurrentFiles() as current:
        pickup = Pickup(TABLES, Rules(), current, CLOCK, None, lambda refused: None)
        sources = (s for s in open_sources([str(path)], Shape.ROWS, container) if not isinstance(s, Refused))
        return _size(write((event.change for event in pickup.events(sources)), TABLES, XdsSettings()))


def by_column(path: Path, container: str) -> int:
    """Return the bytes of its documents, by column."""
    with CurrentFiles() as current:
        pickup = BulkPickup(TABLES, Rules(), XdsSettings(), current, CLOCK, lambda refused: None)
        return _size(pickup.documents([Input(str(path), container)], lambda size: None))


def _size(records: Iterable[bytes | Refused]) -> int:
    return sum(len(record) for record in records if not isinstance(record, Refused))


# --- the writer alone


def updates() -> list[Change]:
    """Return updates of two attributes; one needs escaping."""
    return [
        Change(
            *(Op.UPDATE, "indirect", "usr", (("idu", n),)),
            (Field("fname", ABSENT, f"John{n}"), Field("lname", ABSENT, "Doe & Sons")),
            extra=(("table_key", f"idu={n}"),),
        )
        for n in range(1, DOCUMENTS + 1)
    ]


def write_ours(changes: list[Change]) -> int:
    writer = EventWriter(TABLES, XdsSettings())
    return sum(len(document((writer.write(change, "eventlog:1"),))) for change in changes)


def write_bare(changes: list[Change]) -> int:
    """Return the bytes of the same documents joined from strings, nothing checked, nothing escaped."""
    size = 0
    for change in changes:
        attrs = "".join(
            f'<modify-attr attr-name="{column}"><remove-all-values/><add-value>'
            f'<value type="string">{after!s}</value></add-value></modify-attr>'
            for column, _, after in change.fields
        )
        key = f"{change.extra[0][1]},table={change.table},schema={change.schema}"
        size += len(f'{HEAD}<modify event-id="1"><association>{key}</association>{attrs}</modify>{TAIL}')
    return size


# --- whole commands


class Used(NamedTuple):
    """The resources that a command took."""

    cpu: float  # seconds
    peak: int  # MiB


# The peak that the kernel reports of a process includes what its parent had when it began. So a small process
# starts the command.
_STARTER = """
import os, subprocess, sys
command = subprocess.Popen([sys.executable, "-m", "eventlog", *sys.argv[1:]], stdout=subprocess.DEVNULL)
_, status, took = os.wait4(command.pid, 0)
print(os.waitstatus_to_exitcode(status), took.ru_utime + took.ru_stime, took.ru_maxrss >> 10)
"""


def used(*words: str) -> Used:
    """Return what `convert` takes with these words."""
    started = [sys.executable, "-c", _STARTER, "convert", *words]
    result = subprocess.run(started, capture_output=True, text=True, check=True)
    status, cpu, peak = result.stdout.split()
    if status != "0":
        raise Misuse(f"eventlog convert {' '.join(words)}: {result.stderr}")
    return Used(float(cpu), int(peak))


def of_log(folder: Path, path: Path) -> Used:
    """Return what a log in a file takes, made into documents."""
    (folder / "log.toml").write_text(tablesfile.write(TABLES))
    words = ("--tables", str(folder / "log.toml"), "--from", "log", "--to", "xds")
    return used(str(path), *words, "-o", str(folder / "out.xml"))


def of_changes(folder: Path, kind: str, order: str, name: str) -> Used:
    """Return what Qlik changes in a file take, made into lines of JSON."""
    _, source, container, options = FILES[kind]
    (folder / "usr.toml").write_text(tablesfile.write(CHANGE_TABLES))
    settings = [word for key, value in options.items() for word in (f"--{key}", value)]
    formats = ("--from", source, "--as", container, "--to", "changes", "--output-as", "jsonl")
    words = ("--tables", str(folder / "usr.toml"), "--order", order, "-o", str(folder / "out.jsonl"))
    return used(str(folder / name), *words, *formats, *settings)


def main() -> None:
    parser = argparse.ArgumentParser(prog="eventlog bench convert", description="Logs and changes.")
    parser.add_argument("rows", nargs="?", type=int, default=ROWS, help=f"of a log ({ROWS})")
    parser.add_argument("--changes", type=int, default=200_000, help="of Qlik (200000)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        functions(folder, arguments.rows)
        commands(folder, arguments.rows, arguments.changes)


def functions(folder: Path, rows: int) -> None:
    """Print the speed of the writer, and of both ways from files to documents."""
    changes = updates()
    ours, bare = (min(_seconds(lambda: way(changes)) for _ in range(3)) for way in (write_ours, write_bare))  # noqa: B023
    print(f"XDS writer {DOCUMENTS / ours:>9,.0f} documents/s   writer / bare joining = {bare / ours:.2f}")
    few = make(folder / "some", min(rows, SLOWLY))
    for container, path in make(folder / "all", rows).items():
        size, slow = measured(by_row, few[container], container)
        size_by_column, _ = measured(by_column, few[container], container)
        assert size == size_by_column
        _, fast = measured(by_column, path, container)
        row, column = min(rows, SLOWLY) / slow, rows / fast
        print(
            f"{container:<8} row by row {row:>9,.0f} rows a CPU second   by column {column:>9,.0f}   "
            f"{column / row:.1f} x"
        )


def commands(folder: Path, rows: int, changes: int) -> None:
    """Print what whole commands take."""
    start = of_log(folder, make(folder / "few", FEW)["csv"])
    print(f"start, {FEW} rows of a log    {start.cpu:.2f} s of CPU")
    for container, path in make(folder / "all", rows).items():
        use = of_log(folder, path)
        rate = rows / use.cpu
        print(f"log of {rows} rows, {container:<8} {rate:>9,.0f} a CPU second   peak {use.peak:>4} MiB")
    prepare(folder, changes)
    for kind, loop in LOOPS.items():
        by_hand = _seconds(lambda: loop(folder / FILES[kind][0], folder / "by-hand.jsonl"))  # noqa: B023
        name = FILES[kind][0]
        _pack(folder / name)
        for order in ("sequence", "as-is"):
            row, cpu = (of_changes(folder, kind, order, file).cpu for file in (f"{name}.gz", name))
            speed = f"row by row {changes / row:>9,.0f} a CPU second   as it is {changes / cpu:>9,.0f}"
            print(
                f"{kind:<18} {order:<9} {speed}   {row / cpu:.1f} x   {by_hand / cpu:.2f} of a loop by hand"
            )


def _pack(path: Path) -> None:
    """Pack a file, because a packed one is read row by row."""
    with path.open("rb") as source, gzip.open(f"{path}.gz", "wb", 1) as target:
        shutil.copyfileobj(source, target)


def _seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that some work takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def measured(way: Callable[[Path, str], int], path: Path, container: str) -> tuple[int, float]:
    """Return the bytes of the documents, and the CPU seconds that they take."""
    begun = time.process_time()
    return way(path, container), time.process_time() - begun


if __name__ == "__main__":
    main()
