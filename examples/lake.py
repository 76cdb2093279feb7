"""A stream on Spark: messages of Qlik become a current table of Delta Lake, each batch once.

    python examples/lake.py MESSAGES LAKE

MESSAGES is a folder that files of messages arrive in, one message a line. LAKE is a new folder, or that of a
former run, which then goes on. The session needs the jars of Delta Lake. For Iceberg, take the name of its
table in place of `into`, and `using iceberg`. It needs the extra `spark`.
"""

import os
import sys
from pathlib import Path

from eventlog_spark import changes, merge
from pyspark.sql import SparkSession

import eventlog

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = (
    SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
arriving, lake = sys.argv[1:]
tables = eventlog.tables(Path(__file__).parent / "tables.toml")
into = f"delta.`{lake}/usr`"

# The table must be there: it has the columns of the tables file.
columns = "idu int, fname string, lname string, photo binary"
spark.sql(f"create table if not exists {into} ({columns}) using delta")


def batch(messages, number):
    """Merge a batch; what is refused goes where somebody looks, and comes again if the batch does."""
    usr_changes = changes(messages, "qlik-message", tables=tables, name="usr")
    merged = merge(
        usr_changes,
        into,
        tables,
        "usr",
        number=number,
        refused=lambda rows: rows.write.mode("overwrite").json(f"{lake}/refused/{number}"),
    )
    print(merged)


stream = spark.readStream.format("text").load(arriving).selectExpr("cast(value as binary) as value")
writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", f"{lake}/checkpoint")
writer.trigger(availableNow=True).start().awaitTermination()
