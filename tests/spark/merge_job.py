"""A stream of files whose changes are merged into a table of a lake: `merge_job FORMAT FOLDER JARS [STOP]`.

Each file is a micro-batch. STOP is `2` to die after the commit of batch 2, and `2:0.5` to die half a second
after it begins. After each batch the table is a line on standard output. With `settings` in place of STOP the
lines have what becomes of settings.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eventlog_spark import merge
from eventlog_spark.session import start
from pyspark.sql import functions as f

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.formats.neutral import dumps
from tests.laws.lake_history import COLUMNS, TABLES

ROW = "id int, name string, age int, note string, amount decimal(12,2)"
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "jdbc",
    "spark.sql.catalog.ice.jdbc.schema-version": "V1",  # as pyiceberg has it
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.enabled": "false",
}


def session(folder: Path, jars: Path) -> Any:
    """Return a session that has both formats."""
    places = {"spark.sql.catalog.ice.warehouse": f"file://{folder}/ice"}
    places["spark.sql.catalog.ice.uri"] = f"jdbc:sqlite:{folder}/catalogue.db"
    places["spark.jars"] = ",".join(map(str, sorted(jars.glob("*.jar"))))
    return start("local[1]", CONF | places)


def table_of(name: str, folder: Path, table: str = "t") -> str:
    """Return the name of a table in SQL."""
    return f"ice.db.{table}" if name == "iceberg" else f"delta.`{folder}/delta/{table}`"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def frame_of(spark: Any, *changes: Change) -> Any:
    """Return changes as the function `changes` returns them."""
    rows = [(f"{n:09}", dumps(change), None, None) for n, change in enumerate(changes)]
    return spark.createDataFrame(rows, "order string, change string, refused string, record string")


def insert(key: int, amount: str) -> Change:
    """Return the change that makes a row."""
    cells = dict.fromkeys(COLUMNS) | {"id": key, "amount": amount}
    fields = tuple(Field(column, ABSENT, cell) for column, cell in cells.items())
    return Change(Op.INSERT, "s", "t", (("id", key),), fields)


def repeat(attempt: Callable[..., None], unfinished: str) -> None:
    """Merge a batch again that failed after it had kept a change, and the next one, which ends that change.

    The change moves a row, so that a second time it is impossible.
    """
    moved = Change(Op.UPDATE, "s", "t", (("id", 8),), (Field("id", 7, 8),), transaction="B")
    batch = [insert(7, "1")._replace(transaction="A"), insert(9, "0.005")._replace(transaction="A"), moved]
    how: dict[str, Any] = {"stream": "again", "unfinished": unfinished}
    attempt(1, *batch, **how)
    attempt(1, *batch, refused=lambda frame: None, **how)
    attempt(2, insert(10, "1")._replace(transaction="C"), **how)


def try_settings(spark: Any, name: str, into: str, unfinished: str) -> None:
    """Merge with settings of the user, refused changes, a batch that comes again, and a table that has other
    columns meanwhile.
    """
    mine = {
        "spark.databricks.delta.commitInfo.userMetadata": "mine",
        "spark.sql.iceberg.snapshot-property.eventlog.number": "mine",
    }
    for setting, value in mine.items():
        spark.conf.set(setting, value)

    def attempt(number: int, *changes: Change, **how: Any) -> None:
        try:
            outcome = str(merge(frame_of(spark, *changes), into, TABLES, "t", number=number, **how).is_new)
        except Exception as fault:  # of Spark, too
            outcome = type(fault).__name__
        ours = [
            spark.conf.get(setting, None) for setting in (*mine, "spark.databricks.delta.write.txnVersion")
        ]
        print(json.dumps({"outcome": outcome, "settings": ours, "views": len(spark.catalog.listTables())}))

    good, bad, rows = insert(1, "1.00"), insert(2, "0.005"), []
    attempt(1)
    attempt(2, good, bad)
    attempt(2, good, bad, refused=lambda frame: rows.extend(frame.collect()))
    attempt(2, insert(3, "1"))
    attempt(1, insert(3, "1"), stream="another")
    print(json.dumps({"rows": spark.table(into).count(), "refused": len(rows)}))
    repeat(attempt, unfinished)
    replacing = f"create or replace table {into} (other int) using {name}"
    attempt(3, bad, refused=lambda frame: spark.sql(replacing))


def main(name: str, folder: Path, jars: Path, stop: str = "") -> None:
    spark, into = session(folder, jars), table_of(name, folder)
    if name == "iceberg":
        spark.sql("create namespace if not exists ice.db")
    spark.sql(f"create table if not exists {into} ({ROW}) using {name}")
    unfinished = table_of(name, folder, "unfinished")
    if stop == "settings":
        try_settings(spark, name, into, unfinished)
        return
    tables_by_option: dict[str, Any] = {"unfinished": unfinished}
    tables_by_option["rounds"] = table_of(name, folder, "eventlog_rounds")
    stop_batch, _, delay = stop.partition(":")

    def batch(frame: Any, number: int) -> None:
        if delay and number == int(stop_batch):
            threading.Timer(float(delay), die).start()
        order = f.get_json_object("value", "$.position").alias("order")
        none = [f.lit(None).cast("string").alias(name) for name in ("refused", "record")]
        changes = frame.select(order, f.col("value").alias("change"), *none)
        for _ in range(2):  # the second time its number is there
            merged = merge(changes, into, TABLES, "t", number=number, stream="law", **tables_by_option)
            names = ", ".join(f"cast({column} as string)" for column in COLUMNS)
            rows = sorted(map(list, frame.sparkSession.sql(f"select {names} from {into}").collect()))
            facts = {"number": number, "is_new": merged.is_new, "position": merged.position, "rows": rows}
            print(json.dumps(facts), flush=True)
            if stop == str(number):
                die()

    stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder / "arriving"))
    writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
