"""A process on the same machine that connects to whatever port listens ends no job."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux lists its ports there"),
]

_LISTENING = "0A"
_LENGTH_FIRST = bytes(8)  # how the protocols of Spark's executors and of Kafka begin


def _listening_ports(process: int) -> set[int]:
    """Return the ports that a process listens on, of IPv4 and IPv6."""
    sockets = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):  # it may be closed already
            sockets.add(str(descriptor.readlink()))
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()]
    return {
        int(fields[1].rpartition(":")[2], 16)
        for fields in lines
        if fields[3] == _LISTENING and f"socket:[{fields[9]}]" in sockets
    }


def test_results_arrive_whoever_connects_to_new_ports(spark: Any) -> None:
    from eventlog_spark.spark_versions import version_of

    if version_of(spark.version).first < (4, 1):
        pytest.skip("an earlier Spark has ports for results")
    java = spark.sparkContext._gateway.proc.pid
    known, done = _listening_ports(java), threading.Event()

    def intrude() -> None:
        while not done.is_set():
            for port in _listening_ports(java) - known:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as stranger:
                    stranger.sendall(_LENGTH_FIRST)

    intruder = threading.Thread(target=intrude)
    intruder.start()
    try:
        for _ in range(40):
            assert len(spark.range(3).collect()) == 3
    finally:
        done.set()
        intruder.join()
