"""The stream itself: from messages through the state of open transactions to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

from eventlog.core import settings
from eventlog.core.errors import Misuse, Refused
from eventlog.core.extras import extra
from eventlog.core.tables import Tables
from eventlog.library import read_given
from eventlog.qlik import avro
from eventlog.qlik.message_settings import MessageSettings
from eventlog.sequence.settings import StreamSettings
from eventlog.sources.kafka_settings import KafkaSettings
from eventlog.targets.tables.settings import ApplySettings
from eventlog.transfer.given import connected
from eventlog_spark.stream.table_sink import TableSink

with extra("spark", "a stream into tables"):
    import google.protobuf  # noqa: F401 - PySpark itself would miss it in a worker, in the midst of a batch

    from eventlog_spark.stream.processor import SCHEMA, TransactionProcessor

_COLUMNS = {"topic": "string", "partition": "int", "offset": "long", "value": "binary"}
_MESSAGES = {"table", "mask_order", "header_time_format", "encoding"}
_BOUNDS = {"open_transactions", "open_time", "open_bytes"}
_REGISTRY = {field.name for field in settings.declared(KafkaSettings) if "registry" in field.name}
_SETTINGS = _MESSAGES | _BOUNDS | _REGISTRY
_LOOK = 0.2  # seconds between two looks at a stream that is to end
_IDLE = 2  # batches without messages; an earlier run may have begun the first
# One sequence needs one task; state on disk; and batches for what waits, though no message comes.
_CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}


def into_tables(
    messages: Any,
    tables: Tables,
    *,
    checkpoint: str,
    to_url: str | None = None,
    to_delta: str | PathLike[str] | None = None,
    refused: Callable[[Refused], object] | None = None,
    interval: str = "5 seconds",
    available_now: bool = False,
    **given: Any,
) -> Any:
    """Return the running query that applies a stream of Qlik messages to tables of a database or to Delta
    tables.

    With `available_now` it has ended, and everything that was there is applied. `messages` is what Spark's
    Kafka source returns. Changes that cannot be applied go to `refused`; without it, they end the query.
    Other settings are those of `eventlog apply`.
    """
    sink = _sink(tables, to_url, to_delta, refused, given)
    key = f.col("key") if "key" in messages.columns else f.lit(None)  # schemas of a registry ask for it
    columns = (f.col(name).cast(kind).alias(name) for name, kind in _COLUMNS.items())
    frame = messages.select(*columns, key.cast("binary").alias("key")).fillna({"topic": "", "partition": 0})
    bounds = read_given(_of(given, _BOUNDS), StreamSettings)
    state = TransactionProcessor(tables, sink.reading, settings.build(StreamSettings, bounds))
    task = frame.withColumn("task", f.lit("")).groupBy("task")
    whole = task.transformWithStateInPandas(state, SCHEMA, "Append", "ProcessingTime")
    writer = (
        whole.writeStream.outputMode("append").foreachBatch(sink).option("checkpointLocation", checkpoint)
    )
    writer = writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime=interval)
    with _configured(messages.sparkSession):
        query = writer.start()
    if available_now:
        _finish(query, sink)
    return query


def _sink(
    tables: Tables,
    to_url: str | None,
    to_delta: str | PathLike[str] | None,
    refused: Callable[[Refused], object] | None,
    given: Mapping[str, Any],
) -> TableSink:
    if (to_url is None) == (to_delta is None):
        raise Misuse("name the target: to_url, or to_delta")
    own = {name: value for name, value in given.items() if name not in _SETTINGS}
    chosen = settings.build(ApplySettings, read_given(own, ApplySettings))
    options = read_given(_of(given, _MESSAGES | _REGISTRY), MessageSettings, KafkaSettings)
    if options.get("encoding") == "avro":
        avro.library()
    reading = settings.build(MessageSettings, {**options, **connected(options), "table_of_topic": True})
    return TableSink(tables, chosen, reading, refused, to_url, None if to_delta is None else Path(to_delta))


def _of(given: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in names}


def _finish(query: Any, sink: TableSink) -> None:
    """End a query once it has read what was there, and applied what of it is whole.

    Spark itself goes on with empty batches for as long as a timer could be set.
    """
    try:
        while not query.awaitTermination(_LOOK):
            if sink.idle >= _IDLE and not sink.busy:  # what is interrupted in a batch fails with noise
                query.stop()
    finally:
        sink.close()
    for refused in sink.open:
        sink.tell(refused)


@contextmanager
def _configured(spark: Any) -> Iterator[None]:
    """The session as the stream takes it along when it starts."""
    before = {name: spark.conf.get(name, None) for name in _CONF}
    for name, value in _CONF.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
