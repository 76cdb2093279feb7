"""The documents of a live log, as Structured Streaming gives them, in files: for each batch one.

    python examples/live_stream.py SETTINGS FOLDER

SETTINGS is the publisher's file (examples/eventlog.toml); the environment may hold settings too. For a topic
of Kafka the last statement is another one: see docs/spark-streams.md.
"""

import sys
from pathlib import Path

from eventlog_spark import register
from pyspark.sql import SparkSession

settings, folder = sys.argv[1], Path(sys.argv[2]).absolute()
spark = SparkSession.builder.master("local[2]").appName("live").getOrCreate()
register(spark)

log = spark.readStream.format("eventlog").option("config", settings)
documents = log.option("frozen", str(folder / "frozen")).load()

query = (
    documents.select("document")
    .writeStream.format("text")
    .option("path", str(folder / "documents"))
    .option("checkpointLocation", str(folder / "checkpoint"))
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
