"""Debezium's engine as a process that reads one database's log of writes into a file of JSON lines."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import URL, Engine

PROGRAM = Path(__file__).with_name("Changes.java")
PATIENCE = 120.0
NAME = "debezium"  # of the publication and the slot


def begin(engine: Engine, tables: Sequence[str]) -> None:
    """Make the server keep the changes of these tables, with whole rows before and after."""
    with engine.begin() as connection:
        for table in tables:
            connection.execute(text(f"alter table {table} replica identity full"))
        connection.execute(text(f"create publication {NAME} for table {', '.join(tables)}"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"select pg_create_logical_replication_slot('{NAME}', 'pgoutput')"))


def end(engine: Engine) -> None:
    """The server keeps nothing any more."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"select pg_drop_replication_slot('{NAME}')"))
        connection.execute(text(f"drop publication {NAME}"))


class Debezium:
    """The engine, from its start to `stop`."""

    def __init__(
        self,
        url: URL,
        jars: Sequence[str],
        tables: Sequence[str],
        output: Path,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._output = output
        self._batches: list[tuple[int, int]] = []  # how many changes there are, and when, in nanoseconds
        self._progress = threading.Condition()
        command = ["java", "-Xmx1g", "-cp", os.pathsep.join(jars), str(PROGRAM), str(output)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        self._process.stdin.write(_properties(url, tables, properties or {}) + "end\n")
        self._process.stdin.flush()
        self._messages: list[str] = []
        self._threads = [threading.Thread(target=work) for work in (self._count, self._listen)]
        for thread in self._threads:
            thread.start()

    def wait(self, count: int) -> list[tuple[int, int]]:
        """Wait until so many changes were read. Return how many there were after each batch, and when."""
        with self._progress:
            self._progress.wait_for(lambda: self._ended() or self._read() >= count, PATIENCE)
            if self._read() < count:
                raise RuntimeError(f"Debezium has read {self._read()} of {count} changes; {self._last()}")
            return list(self._batches)

    def stop(self) -> None:
        """End it by a signal."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def changes(self) -> Iterator[dict[str, Any]]:
        """Yield what it has read, in its order."""
        with self._output.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def _read(self) -> int:
        return self._batches[-1][0] if self._batches else 0

    def _ended(self) -> bool:
        return self._process.poll() is not None

    def _last(self) -> str:
        return self._messages[-1] if self._messages else "it said nothing"

    def _count(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            count, _, moment = line.partition(" ")
            with self._progress:
                self._batches.append((int(count), int(moment)))
                self._progress.notify_all()
        with self._progress:
            self._progress.notify_all()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._messages.append(line.strip())


def _properties(url: URL, tables: Sequence[str], changed: Mapping[str, str]) -> str:
    properties: dict[str, object] = {
        "name": NAME,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": url.host,
        "database.port": url.port,
        "database.user": url.username,
        "database.password": url.password,
        "database.dbname": url.database,
        "topic.prefix": NAME,
        "table.include.list": ",".join(f"public.{table}" for table in tables),
        "slot.name": NAME,
        "publication.name": NAME,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "tombstones.on.delete": "false",
        "decimal.handling.mode": "string",
        "skipped.operations": "none",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "offset.flush.interval.ms": 1000,
        "converter.schemas.enable": "false",
        **changed,
    }
    return "".join(f"{name}={_escaped(str(value))}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    """Return a value as Java's properties have it."""
    return value.replace("\\", "\\\\")
