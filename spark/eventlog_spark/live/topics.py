"""Messages of Kafka: frozen into the job's folder, converted, and their offsets kept once the output is out.

A rerun after a crash converts what was frozen; what came since is the next job's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventlog.core import settings
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object
from eventlog.files.jsonlines import dump_line
from eventlog.places.kafka import Topics
from eventlog.places.topics import KafkaSettings
from eventlog.qlik.message_settings import MessageSettings
from eventlog_spark.job import Backlog, Result, Stage, facts, run_job
from eventlog_spark.live.frozen import FROZEN
from eventlog_spark.output.commit import Folder, job_id

_COMPLETE = "complete.json"


def run_topics(spark: Any, backlog: Backlog, stage: Stage) -> Result:
    """The output folder of what stood in the topics when the job began."""
    job = backlog.job
    if job.source_format != "qlik-message":
        raise Misuse(f"--kafka: {job.source_format} does not stand there")
    reading: MessageSettings = settings.build(MessageSettings, job.given)
    output = Path(job.output).resolve()
    folder = Folder(output, job_id(facts(backlog, [], [])))
    frozen = output / FROZEN
    topics = Topics(settings.build(KafkaSettings, job.given), reading.encoding)
    try:
        if folder.manifest() is None and not (frozen / _COMPLETE).exists():
            stage("freeze")
            folder.claim()
            _freeze(topics, reading.encoding, frozen)
        told = json.loads((frozen / _COMPLETE).read_text("utf-8"))
        given = dict(job.given) | {"published": topics.metadata(), "table_of_topic": not reading.table}
        inputs = tuple(str(frozen / name) for name in told["files"])
        container = "messages" if reading.encoding == "avro" else "jsonl"
        wanted = replace(backlog, job=replace(job, inputs=inputs, container=container, given=given))
        result = run_job(spark, wanted, stage, folder.job)
        topics.done = {(topic, partition): offset for topic, partition, offset in told["offsets"]}
        topics.commit()
    finally:
        topics.close()
    return result


def _freeze(topics: Topics, encoding: str, frozen: Path) -> None:
    """A file for each partition that holds something; it is called as its topic, in a folder of its own."""
    files = []
    for number, source in enumerate(topics.sources()):
        path = frozen / str(number) / f"{source.stem}.{'bin' if encoding == 'avro' else 'jsonl'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(_framed(source.records, encoding))
        if path.stat().st_size:
            files.append(path.relative_to(frozen).as_posix())
    offsets = [(topic, partition, offset) for (topic, partition), offset in topics.done.items()]
    (frozen / _COMPLETE).write_text(json.dumps({"files": files, "offsets": offsets}), "utf-8")


def _framed(records: Iterable[Object | Refused], encoding: str) -> Iterable[bytes]:
    """The messages as a file holds them; one that cannot be read is told when the file is."""
    for record in records:
        raw = record.raw or b""
        if encoding == "avro":
            yield len(raw).to_bytes(4, "big") + raw
        elif isinstance(record, Refused):
            yield (raw.replace(b"\n", b" ") or b"null") + b"\n"
        else:
            yield dump_line(record.value)
