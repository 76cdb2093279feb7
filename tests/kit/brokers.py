"""The Kafka brokers at hand: librdkafka's own mock cluster and, where EVENTLOG_TEST_KAFKA names it, another.

`.ci/broker` starts one. A topic has a name of its own in every run, for a real broker keeps what it got.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.support import patient, until

MOCK, REAL = "mock cluster", "broker"
ADDRESS = os.environ.get("EVENTLOG_TEST_KAFKA", "")
JARS = os.environ.get("EVENTLOG_TEST_KAFKA_JARS", "")
ROOT = Path(__file__).parents[2]
_PORTS = range(21_000, 23_000, 2)  # and the next for the controller; below those that systems hand out
PARAMETERS = [MOCK, *([pytest.param(REAL, marks=pytest.mark.servers)] if ADDRESS else [])]


@contextmanager
def addresses(name: str) -> Iterator[str]:
    """The addresses of a broker, as long as the block."""
    kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    if name == REAL:
        yield ADDRESS
        return
    cluster = kafka.Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlog.clients.topic_reader._TELL", 0.2)  # this cluster never describes a topic
        yield ",".join(
            f"{b.host}:{b.port}" for b in cluster.list_topics(timeout=patient(10)).brokers.values()
        )
    cluster.flush(10)


def own_name(text: str) -> str:
    """Return a name for a topic or a group that no other test has, in this run or another."""
    return f"{re.sub('[^a-z0-9_]', '_', text.lower())}_{secrets.token_hex(4)}"


def settle(topic: str, address: str) -> None:
    """Wait until each transaction of the topic is over for readers too.

    A broker reports a commit or abort before its partitions know of it.
    """
    until(lambda: _ends(topic, address, "read_committed") == _ends(topic, address, "read_uncommitted"), 30)


def _ends(topic: str, address: str, isolation: str) -> list[int]:
    from confluent_kafka import Consumer, TopicPartition

    reading = Consumer({"bootstrap.servers": address, "group.id": topic, "isolation.level": isolation})
    try:
        partitions = reading.list_topics(topic, timeout=patient(30)).topics[topic].partitions
        return [
            reading.get_watermark_offsets(TopicPartition(topic, partition), 30)[1]
            for partition in sorted(partitions)
        ]
    finally:
        reading.close()


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) != 0


class OwnBroker:
    """A broker that a test starts and stops as it likes; `.ci/broker` knows how."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = next(port for port in _PORTS if _is_free(port) and _is_free(port + 1))
        self.address = f"127.0.0.1:{self._port}"
        (folder / "lib").symlink_to(JARS)
        (folder / "complete").touch()
        self._do("begin_broker")

    def stop(self) -> None:
        """End it; what it holds stays on its disk."""
        self._do("stop_broker")

    def start(self) -> None:
        """Start it again with what it held."""
        self._do("begin_broker")

    def _do(self, what: str) -> None:
        text = (ROOT / ".ci" / "broker").read_text().removesuffix("start_broker\n") + what
        reported = {"EVENTLOG_TEST_BROKER": str(self._folder), "EVENTLOG_TEST_KAFKA_PORT": str(self._port)}
        subprocess.run(["bash", "-c", text], env=os.environ | reported, check=True, stdin=subprocess.DEVNULL)
