"""Topics of Kafka through `backlog`: every message once, also after a crash, and offsets kept at the end."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog.frozen_topics import run_topics
from eventlog_spark.backlog.job import Backlog

from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.transfer.convert import convert
from tests.brokers import own_name
from tests.spark.helpers import CLOCK, converted, job
from tests.spark.test_sources import TABLES, lines

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_messages_of_topics_become_documents_once(
    spark: Any, tmp_path: Path, brokers: str, encoding: str
) -> None:
    (tmp_path / "changes.jsonl").write_text(lines(10))
    name = own_name(f"usr.{encoding}")
    kafka = {"kafka": name, "kafka_group": name, "kafka_brokers": brokers, "kafka_options": "log_level=0"}
    kafka |= {"encoding": encoding, "kafka_key": "primary-key"}
    made = Job("changes", "qlik-message", (str(tmp_path / "changes.jsonl"),), "-", tables=TABLES, given=kafka)
    convert(made, Report(lambda bad: None), CLOCK)
    wanted = replace(
        job([tmp_path / "changes.jsonl"], tmp_path / "expected", source="changes"), tables=TABLES
    )
    expected, _ = converted(wanted)

    read = replace(wanted, source_format="qlik-message", inputs=(), given=kafka)
    found = []
    for name in ("one", "one", "two"):  # the second run finds its output there, the third no message left
        result = run_topics(
            spark, Backlog(replace(read, output=str(tmp_path / name)), CLOCK), lambda stage: None
        )
        parts = [tmp_path / name / part["name"] for part in result.manifest["parts"]]
        found.append(sorted(line for part in parts for line in part.read_text("utf-8").splitlines()))
    assert [without_names(found[0]), found[1], found[2]] == [without_names(sorted(expected)), found[0], []]


def without_names(documents: list[str]) -> list[str]:
    """Return the documents without their event-ids, which contain positions of the source."""
    return sorted(re.sub(r' event-id="[^"]*"', "", line) for line in documents)
