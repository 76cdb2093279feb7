"""Messages and change tables as lines of JSON: by our `convert`, and by what data engineers write by hand.

All read the same file and write operation, key, values before and after, and position of each change.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from bench.formats import TABLES
from bench.formats import changes as made_changes
from eventlog.core import tablesfile
from eventlog.core.extras import extra
from eventlog.formats.qlik import avro
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.job_output import write_whole_output
from eventlog.transfer.report import Report

CLOCK = "2025-03-23 10:57:19"
FILES = {  # the file of each kind, and with what settings ours writes and reads it
    "messages, JSON": ("usr.jsonl", "qlik-message", "jsonl", {}),
    "messages, Avro": ("usr.bin", "qlik-message", "messages", {"encoding": "avro"}),
    "change table, CSV": ("usr__ct.csv", "qlik-table", "csv", {}),
}
Way = Callable[[Path, Path], None]


def prepare(folder: Path, count: int) -> None:
    """The files, made of the same changes."""
    for name, kind, container, options in FILES.values():
        job = Job("changes", kind, (), str(folder / name), None, container, TABLES, options=options)
        write_whole_output(job.target, Report(_fail), made_changes(count))


def _fail(refused: Any) -> None:
    raise AssertionError(refused.reason)


def ours(kind: str, order: str) -> Way:
    """`eventlog convert --to changes`."""
    _, source, container, options = FILES[kind]

    def work(path: Path, target: Path) -> None:
        settings = options | {"order": order}
        job = Job(source, "changes", (str(path),), str(target), container, "jsonl", TABLES, options=settings)
        convert(job, Report(_fail), CLOCK)

    return work


def command(kind: str) -> Way:
    """`eventlog convert` as a command, with its start."""
    _, source, container, options = FILES[kind]
    settings = [word for name, value in options.items() for word in (f"--{name}", value)]

    def work(path: Path, target: Path) -> None:
        tables = path.with_name("tables.toml")
        tables.write_text(tablesfile.write(TABLES))
        formats = ["--from", source, "--as", container, "--to", "changes", "--output-as", "jsonl", *settings]
        words = ["convert", str(path), "-o", str(target), "--tables", str(tables), *formats]
        subprocess.run([sys.executable, "-m", "eventlog", *words], check=True)

    return work


def json_loop(path: Path, target: Path) -> None:
    """A loop over `json.loads`."""
    with path.open() as lines, target.open("w") as out:
        for line in lines:
            message = json.loads(line)["message"]
            if "headers" in message:
                out.write(json.dumps(_line_of(message)) + "\n")


def fastavro_loop(path: Path, target: Path) -> None:
    """A loop over `fastavro.schemaless_reader`; the schema comes from the first message."""
    reader = avro.library().schemaless_reader
    schema: Any = None
    with target.open("w") as out:
        for data in _framed(path.read_bytes()):
            envelope = reader(BytesIO(data), avro.envelope())
            if envelope["type"] != "DT":
                meta = avro.decode(avro.foreign(envelope["messageSchema"]), envelope["message"])
                schema = avro.foreign(meta["dataSchema"])
                continue
            out.write(json.dumps(_line_of(reader(BytesIO(envelope["message"]), schema))) + "\n")


def _framed(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : end]
        at = end


def _line_of(message: Any) -> dict[str, Any]:
    headers, after, before = message["headers"], message["data"], message["beforeData"]
    return {
        "op": headers["operation"],
        "key": (after or before)["idu"],
        "before": before,
        "after": after,
        "position": headers["changeSequence"],
    }


def csv_loop(path: Path, target: Path) -> None:
    """A loop over `csv.DictReader`."""
    with path.open(newline="") as lines, target.open("w") as out:
        for row in csv.DictReader(lines):
            values = {name: value for name, value in row.items() if not name.startswith("header__")}
            out.write(
                json.dumps(
                    {
                        "op": row["header__change_oper"],
                        "key": row["idu"],
                        "values": values,
                        "position": row["header__change_seq"],
                    }
                )
                + "\n"
            )


def pandas_messages(path: Path, target: Path) -> None:
    """`read_json`, `json_normalize`, `to_json`."""
    with extra("spark", "pandas"):
        import pandas as pd

    frame = pd.json_normalize(pd.read_json(path, lines=True, convert_dates=False)["message"].tolist())
    frame = frame[frame["headers.operation"].notna()]
    frame.sort_values("headers.changeSequence").to_json(target, orient="records", lines=True)


def pandas_table(path: Path, target: Path) -> None:
    """`read_csv`, `to_json`."""
    with extra("spark", "pandas"):
        import pandas as pd

    frame = pd.read_csv(path, dtype=str)
    frame.sort_values("header__change_seq", kind="stable").to_json(target, orient="records", lines=True)


class OnSpark:
    """A session of PySpark, which is open before anything is measured."""

    def __init__(self) -> None:
        with extra("spark", "PySpark"):
            from pyspark.sql import SparkSession
        quiet = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        quiet = quiet.config("spark.ui.showConsoleProgress", "false")
        self.session = quiet.config("spark.log.level", "OFF").getOrCreate()
        self.session.range(10).count()

    def messages(self, path: Path, target: Path) -> None:
        """`read.json`, a sort, `write.json`."""
        frame = self.session.read.json(str(path)).select("message.*").where("headers.operation is not null")
        frame.sort("headers.changeSequence").write.json(str(target))

    def table(self, path: Path, target: Path) -> None:
        """`read.csv`, a sort, `write.json`."""
        frame = self.session.read.csv(str(path), header=True)
        frame.sort("header__change_seq").write.json(str(target))


def ways() -> Iterator[tuple[str, str, Way, str]]:
    """Yield what is read, by which program, how, and what the result lacks."""
    for kind in FILES:
        yield kind, "eventlog convert", ours(kind, "sequence"), ""
        yield kind, "eventlog convert --order as-is", ours(kind, "as-is"), "the order of the source"
        yield kind, "eventlog convert, as a command", command(kind), ""
    loop = "order, types of the columns, keys that change, B rows joined to U rows, bad records"
    yield "messages, JSON", "json, a loop", json_loop, loop
    yield "messages, JSON", "pandas", pandas_messages, "types, keys that change, bad records; all in memory"
    yield "messages, Avro", "fastavro, a loop", fastavro_loop, loop + "; a second schema"
    yield "change table, CSV", "csv, a loop", csv_loop, loop + ", change masks, null and the empty text"
    yield "change table, CSV", "pandas", pandas_table, loop.partition(", ")[2] + ", masks; all in memory"
    spark = OnSpark()
    limits = "types, keys that change, bad records; its session's start is not counted"
    yield "messages, JSON", "PySpark", spark.messages, limits
    yield "change table, CSV", "PySpark", spark.table, limits + "; B rows joined, masks"


def start(folder: Path, number: int) -> float:
    """Return the seconds of the command for a file that is empty."""
    nothing = folder / f"nothing-{number}.jsonl"
    nothing.touch()
    begun = time.perf_counter()
    command("messages, JSON")(nothing, folder / f"out-{number}")
    return time.perf_counter() - begun


def rate(work: Way, kind: str, folder: Path, count: int, number: int) -> float:
    """Return changes a second."""
    begun = time.perf_counter()
    work(folder / FILES[kind][0], folder / f"out-{number}")
    return count / (time.perf_counter() - begun)
