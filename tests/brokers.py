"""The Kafka brokers at hand: librdkafka's own mock cluster and, where EVENTLOG_TEST_KAFKA names it, another.

`.ci/broker` starts one. A topic has a name of its own in every run, for a real broker keeps what it got.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

MOCK, REAL = "mock cluster", "broker"
ADDRESS = os.environ.get("EVENTLOG_TEST_KAFKA", "")
AT_HAND = (MOCK, *([REAL] if ADDRESS else []))


@contextmanager
def addresses(name: str) -> Iterator[str]:
    """The addresses of a broker, as long as the block."""
    kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    if name == REAL:
        yield ADDRESS
        return
    cluster = kafka.Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
    yield ",".join(f"{b.host}:{b.port}" for b in cluster.list_topics(timeout=10).brokers.values())
    cluster.flush(10)


def own_name(text: str) -> str:
    """A name for a topic or a group that no other test has, in this run or another."""
    return f"{re.sub('[^a-z0-9_]', '_', text.lower())}_{secrets.token_hex(4)}"
