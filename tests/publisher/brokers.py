"""The mock cluster of librdkafka, and its planned errors."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.support import patient

_PRODUCER = 0  # rd_kafka_type_t
PRODUCE, LIST_OFFSETS = 0, 2  # the protocol's keys of requests
TAKEN, NOT_LEADER, VIOLATION = 0, 6, 44  # the protocol's error codes
TOO_LARGE, INVALID_RECORD, FORBIDDEN, CLUSTER_FORBIDDEN = 10, 87, 29, 31


class Cluster:
    """One broker whose topics have one partition, so that all messages of each share their batches."""

    def __init__(self, library: Any, cluster: ctypes.c_void_p) -> None:
        self._library, self._cluster = library, cluster
        self.address = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        self.create("eventlog")

    def create(self, topic: str) -> None:
        """Create a topic."""
        self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), 1, 1)

    def messages(self, topic: str = "eventlog") -> list[Any]:
        """Return the messages of a topic."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        options = {"bootstrap.servers": self.address, "group.id": "g", "enable.partition.eof": True}
        consumer = Consumer(options)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        polled = iter(lambda: consumer.poll(patient(10)), None)
        messages = list(itertools.takewhile(lambda message: message.error() is None, polled))
        consumer.close()
        return messages

    def refuse(self, *codes: int, request: int = PRODUCE) -> None:
        """Answer the next requests of a kind with these errors, one each."""
        errors = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(codes)), errors
        )


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster that lives as long as the block."""
    library = _library()
    reason = ctypes.create_string_buffer(512)
    owner = library.rd_kafka_new(_PRODUCER, library.rd_kafka_conf_new(), reason, len(reason))
    handle = library.rd_kafka_mock_cluster_new(owner, 1)
    yield Cluster(library, handle)
    library.rd_kafka_mock_cluster_destroy(handle)
    library.rd_kafka_destroy(owner)


def _library() -> Any:
    """Return the library that the Python package brings, with the types of what is called there."""
    kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    folder = Path(kafka.__file__).parent.with_name("confluent_kafka.libs")
    path = next(folder.glob("librdkafka*"), None)
    if path is None:
        pytest.skip("this confluent-kafka does not bring librdkafka as a file")
    library = ctypes.CDLL(str(path))
    pointer = ctypes.c_void_p
    library.rd_kafka_conf_new.restype = pointer
    library.rd_kafka_new.restype = pointer
    library.rd_kafka_new.argtypes = (ctypes.c_int, pointer, ctypes.c_char_p, ctypes.c_size_t)
    library.rd_kafka_mock_cluster_new.restype = pointer
    library.rd_kafka_mock_cluster_new.argtypes = (pointer, ctypes.c_int)
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    library.rd_kafka_mock_cluster_bootstraps.argtypes = (pointer,)
    library.rd_kafka_mock_topic_create.argtypes = (pointer, ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
    library.rd_kafka_mock_push_request_errors_array.argtypes = (
        *(pointer, ctypes.c_int16, ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_int),
    )
    library.rd_kafka_mock_cluster_destroy.argtypes = (pointer,)
    library.rd_kafka_destroy.argtypes = (pointer,)
    return library
