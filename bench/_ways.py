"""Ways in which documents leave, each through our sink and through a loop that others would write.

The loop delivers the same documents without a database. It writes files one after another, as durably; it
posts with http.client; it writes lines to a pipe, or to a program and reads its answers; it sends with
confluent-kafka.
"""

from __future__ import annotations

import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eventlog.files.durable import sync, write_all
from eventlog.sinks import open_sink
from eventlog.sinks.sink import Sink
from eventlog.sinks.stdout import StdoutSink

BATCH = 500  # documents after which the loops bring to disk, or wait for, what was sent
RECEIVER = Path(__file__).with_name("_receiver.py")
SAMPLES = 100  # files whose syncs are timed


class Way(NamedTuple):
    """A way of documents: our sink, and a loop that delivers documents without us."""

    sink: Callable[[], Sink]
    floor: Callable[[Sequence[bytes]], None]


class Case(NamedTuple):
    """A way that is measured: its name, how many documents, and what is there meanwhile."""

    name: str
    documents: int
    open: Callable[[], AbstractContextManager[Way]]


class Cost(NamedTuple):
    """The time that some work took, in seconds."""

    elapsed: float
    cpu: float  # of this process


def cost_of(work: Callable[[], object]) -> Cost:
    """Do some work. Return what it took."""
    begun, cpu = time.monotonic(), time.process_time()
    work()
    return Cost(time.monotonic() - begun, time.process_time() - cpu)


def median_sync(folder: Path) -> float:
    """Return the seconds that a small new file needs to get to disk, in the median."""
    seconds = []
    for number in range(SAMPLES):
        path = folder / f"sync-{number}"
        with path.open("xb", buffering=0) as file:
            file.write(b"x" * 400)
            seconds.append(cost_of(partial(os.fsync, file.fileno())).elapsed)
        path.unlink()
    return statistics.median(seconds)


@contextmanager
def files() -> Iterator[Way]:
    """Let documents go into a folder on the disk of temporary files."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"fsync of a small new file, median: {1000 * median_sync(Path(folder)):.2f} ms", flush=True)
        numbers = iter(range(1000))
        yield Way(
            lambda: open_sink("files", {"files_folder": f"{folder}/{next(numbers)}"}),
            lambda documents: write_files(Path(folder) / str(next(numbers)), documents),
        )


def write_files(folder: Path, documents: Sequence[bytes]) -> None:
    """Write each document into a file that is on disk before it gets its name."""
    folder.mkdir()
    for number, document in enumerate(documents, 1):
        part = folder / f".{number}.part"
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        write_all(file, document)
        os.fsync(file)
        os.close(file)
        part.rename(folder / f"{number}.xml")
        if number % BATCH == 0 or number == len(documents):
            sync(folder)


@contextmanager
def http_way(seconds: float) -> Iterator[Way]:
    """Let documents go by HTTP to a receiver that takes so long for each."""
    with _process(str(seconds), stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        url = f"http://127.0.0.1:{port}/"
        yield Way(lambda: open_sink("http", {"http_url": url}), partial(post, port))


def post(port: int, documents: Sequence[bytes]) -> None:
    """Post documents with http.client."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for document in documents:
            connection.request("POST", "/", document, {"Content-Type": "application/xml"})
            connection.getresponse().read()


@contextmanager
def standard_output() -> Iterator[Way]:
    """Let documents go to a pipe, as standard output often is."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as cat:
        assert cat.stdin is not None
        pipe = cat.stdin

        def write_lines(documents: Sequence[bytes]) -> None:
            for document in documents:
                pipe.write(document)
                pipe.flush()

        yield Way(lambda: StdoutSink(pipe), write_lines)


@contextmanager
def command() -> Iterator[Way]:
    """Let documents go to a program that answers each."""
    words = f"{sys.executable} {RECEIVER} lines"
    yield Way(lambda: open_sink("command", {"command": words}), exchange)


def exchange(documents: Sequence[bytes]) -> None:
    """Write documents to the program, and read the answer to each."""
    with _process("lines", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for document in documents:
            process.stdin.write(document)
            process.stdin.flush()
            process.stdout.readline()


@contextmanager
def kafka() -> Iterator[Way]:
    """Let documents go to the broker that librdkafka has for tests, in this process."""
    from confluent_kafka import Producer

    owner = Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers.values()
    address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    settings = {"kafka_brokers": address, "kafka_topic": "eventlog"}
    yield Way(lambda: open_sink("kafka", settings), partial(produce, address))
    owner.flush(10)


def produce(address: str, documents: Sequence[bytes]) -> None:
    """Send documents with confluent-kafka, and wait for all of a batch."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0})
    for first in range(0, len(documents), BATCH):
        for document in documents[first : first + BATCH]:
            producer.produce("eventlog", document)
        producer.flush()


@contextmanager
def _process(*words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, RECEIVER, *words], stdout=subprocess.PIPE, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


CASES = (
    Case("files", 1000, files),
    Case("http, receiver of 0 ms", 1000, partial(http_way, 0)),
    Case("http, receiver of 5 ms", 200, partial(http_way, 0.005)),
    Case("http, receiver of 50 ms", 40, partial(http_way, 0.05)),
    Case("stdout", 2000, standard_output),
    Case("command", 1000, command),
    Case("kafka, broker for tests", 1000, kafka),
)
