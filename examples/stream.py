"""Messages of Qlik Replicate become Delta tables by Structured Streaming.

    python examples/stream.py MESSAGES LAKE

MESSAGES is a folder of JSON lines with topic, partition, offset and value; it takes the place of a topic of
Kafka: with `spark.readStream.format("kafka")` everything else is the same.
"""

import sys
from pathlib import Path

from eventlog_spark import into_tables
from pyspark.sql import SparkSession

import eventlog

folder, lake = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").appName("stream").getOrCreate()
tables = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "integer", "fname": "text"}}})

messages = spark.readStream.schema("topic string, partition int, offset long, value string").json(folder)

into_tables(
    messages,
    tables,
    to_delta=Path(lake) / "tables",
    checkpoint=str(Path(lake) / "checkpoint"),
    refused=lambda one: print(f"{one.where}: {one.reason}"),
    available_now=True,
)
