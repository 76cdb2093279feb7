"""Messages of Kafka: frozen into the job's folder, converted, and their offsets kept once the output is out.

A rerun after a crash converts what was frozen; what came since is the next job's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eventlog.core import settings
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object
from eventlog.files.jsonlines import dump_line
from eventlog.qlik.message_settings import MessageSettings
from eventlog.sources.kafka import Topics
from eventlog.sources.kafka_settings import KafkaSettings
from eventlog_spark.backlog.frozen import COMPLETE, FROZEN
from eventlog_spark.backlog.job import Backlog, Result, Stage, facts, run_job
from eventlog_spark.io.folder_files import Files
from eventlog_spark.io.output_folder import folder_of, job_id


def run_topics(spark: Any, backlog: Backlog, stage: Stage) -> Result:
    """Return the output folder of the messages that the topics had when the job began."""
    job = backlog.job
    if job.source_format != "qlik-message":
        raise Misuse(f"--kafka is no place for {job.source_format}")
    reading: MessageSettings = settings.build(MessageSettings, job.given)
    folder = folder_of(spark, job.output, job_id(facts(backlog, [], [])))
    frozen = folder.files.below(FROZEN)
    topics = Topics(settings.build(KafkaSettings, job.given), reading.encoding)
    try:
        if folder.manifest() is None and frozen.text(COMPLETE) is None:
            stage("freeze")
            folder.claim()
            _freeze(topics, reading.encoding, frozen)
        record = json.loads(frozen.text(COMPLETE) or "")
        given = dict(job.given) | {"published": topics.metadata(), "table_of_topic": not reading.table}
        inputs = tuple(frozen.name(name) for name in record["files"])
        container = "messages" if reading.encoding == "avro" else "jsonl"
        wanted = replace(backlog, job=replace(job, inputs=inputs, container=container, given=given))
        result = run_job(spark, wanted, stage, folder.job)
        topics.done = {(topic, partition): offset for topic, partition, offset in record["offsets"]}
        topics.commit()
    finally:
        topics.close()
    return result


def _freeze(topics: Topics, encoding: str, frozen: Files) -> None:
    """A file for each partition that holds something; it is called as its topic, in a folder of its own."""
    frozen.clear()
    files = []
    for number, source in enumerate(topics.sources()):
        name = f"{number}/{source.stem}.{'bin' if encoding == 'avro' else 'jsonl'}"
        size = 0
        with frozen.create(name) as file:
            for record in _framed(source.records, encoding):
                size += file.write(record)
        if size:
            files.append(name)
    offsets = [(topic, partition, offset) for (topic, partition), offset in topics.done.items()]
    frozen.put(COMPLETE, json.dumps({"files": files, "offsets": offsets}))


def _framed(records: Iterable[Object | Refused], encoding: str) -> Iterable[bytes]:
    """Yield the messages as a file contains them; an unreadable one is reported when the file is read."""
    for record in records:
        raw = record.raw or b""
        if encoding == "avro":
            yield len(raw).to_bytes(4, "big") + raw
        elif isinstance(record, Refused):
            yield (raw.replace(b"\n", b" ") or b"null") + b"\n"
        else:
            yield dump_line(record.value)
