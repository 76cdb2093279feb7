"""Change tables, messages and captures on Spark: many tasks, compared with one that reads them all.

    eventlog bench sequences [CHANGES] [ROUNDS] [CORES] [CASE…]

Each is read to `changes`. Change tables and messages are in four files in no order; a capture is one file.
Judge ratios within one run: machines differ, and so do minutes on one machine.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.cluster.session import start

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.extras import show_pandas
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.neutral import dumps
from eventlog.transfer.convert import convert

TABLES = tablesfile.read(
    """
    [tables.usr]
    schema = "indirect"
    key = ["idu"]
    number = 1
    columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(99)",
        born = "date", changed = "varchar(30)", level = "smallint", note = "varchar(200)" }
    """.replace("\n        ", " ")
)
CLOCK = "2025-01-01 00:00:00"
FILES = 4
EACH = 5  # changes of a transaction
PARTITIONS = 8
CASES = {"qlik-table": "usr__ct.csv", "qlik-message": "usr.jsonl", "gbase": "usr.bin"}


def changes(wanted: int) -> Iterator[str]:
    """Yield changes: of ten, seven are updates, two are inserts, one is a delete."""
    for i in range(1, wanted + 1):
        row = {
            "idu": i,
            "fname": f"Given {i}",
            "lname": f"Family {i}",
            "mail": f"user{i}@example.org",
            "born": f"19{i % 90 + 10}-0{i % 9 + 1}-15",
            "changed": "2024-03-18T10:47:26.661",
            "level": i % 100,
            "note": None if i % 3 else "a note of some length, as notes are",
        }
        op = (Op.INSERT, Op.INSERT, Op.DELETE)[i % 10] if i % 10 < 3 else Op.UPDATE
        before = row if op is not Op.INSERT else dict.fromkeys(row, ABSENT)
        after = {**row, "lname": f"Other {i}"} if op is Op.UPDATE else row
        fields = [Field(c, before[c], ABSENT if op is Op.DELETE else after[c]) for c in row]  # type: ignore[arg-type]
        begun = i // EACH
        time_of = f"2024-03-18T{begun // 3600 % 24:02}:{begun // 60 % 60:02}:{begun % 60:02}"
        yield dumps(
            Change(
                op, "indirect", "usr", (("idu", i),), tuple(fields), str(i), f"DEMO/{begun}", f"{time_of}Z"
            )
        )  # fmt: skip


def written(folder: Path, source: str, wanted: int) -> tuple[str, ...]:
    """Return the inputs of one case."""
    folder.mkdir()
    made, whole = folder / "changes.jsonl", folder / CASES[source]
    with made.open("w") as file:
        file.writelines(f"{line}\n" for line in changes(wanted))
    convert(Job("changes", source, (str(made),), str(whole), tables=TABLES), Report(_no), CLOCK)
    made.unlink()
    if source == "gbase":
        return (str(whole),)
    head, *lines = whole.read_text().splitlines()
    whole.unlink()
    if source == "qlik-message":
        head, lines = "", [head, *lines]
    names = []
    for number in range(FILES):
        path = folder / str(number) / whole.name
        path.parent.mkdir()
        path.write_text("\n".join([*([head] if head else ()), *lines[number::FILES]]) + "\n")
        names.append(str(path))
    return tuple(names)


def _no(refused: Any) -> None:
    raise AssertionError(refused)


def run(spark: Any, source: str, names: tuple[str, ...], out: Path, partitions: int) -> float:
    """Return the seconds that it takes."""
    order = "sequence" if source.startswith("qlik") else "object"
    job = Job(source, "changes", names, str(out), tables=TABLES)
    began = time.monotonic()
    run_job(spark, Backlog(job, CLOCK, order, partitions=partitions))
    taken = time.monotonic() - began
    shutil.rmtree(out)
    return taken


def main() -> None:
    """A line for each case and way."""
    show_pandas()
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    cores = sys.argv[3] if len(sys.argv) > 3 else "2"
    spark = start(f"local[{cores}]", {})
    with tempfile.TemporaryDirectory() as place:
        for source in sys.argv[4:] or CASES:
            names = written(Path(place) / source, source, wanted)
            out = Path(place) / "out"
            rates = {}
            for partitions in (1, PARTITIONS):
                run(spark, source, names, out, partitions)
                taken = [run(spark, source, names, out, partitions) for _ in range(rounds)]
                rates[partitions] = wanted / statistics.median(taken)
                ratio = rates[partitions] / rates[1]
                name = f"{source}, {'one task' if partitions == 1 else 'many tasks'}"
                print(
                    f"{name:26}{rates[partitions] / 1000:7.1f} k changes/s   {ratio:.2f} of one task",
                    flush=True,
                )
    spark.stop()


if __name__ == "__main__":
    main()
