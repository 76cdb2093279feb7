"""An oracle of order: no object's documents arrive out of order or at the same time, whatever fails.

The receiver fails in every way of its kind while many documents are under way. A pick-up has few rows, so the
next document of an object comes soon.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eventlog.sinks import open_sink
from eventlog.xds.answers import Level, Status, write
from tests.kit.support import patient
from tests.world.world import World

EVENT = re.compile(rb'event-id="(eventlog:(\d+)[^"]*)"><association>([^<]*)<')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
FAULTS = ("500", "503", "hang up", "lost answer", "retry", "error", "close", "early hint", "garbage")
CONNECTIONS = 16
OBJECTS = 200
PICKED = 200  # rows


class Oracle:
    """A receiver that answers after a while, fails now and then, and notes what breaks the order."""

    def __init__(self, seed: int, faults: int) -> None:
        self.dice = random.Random(seed)
        self.faults = faults  # permille of the documents
        self.breaches: list[str] = []
        self.documents = 0
        self.peak = 0  # documents that were here at once
        self.moods = Counter[str]()
        self._present: set[bytes] = set()  # objects whose documents are not answered
        self._latest: dict[bytes, int] = {}  # the row that came last of each object

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the documents of a connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = LENGTH.search(head)
                assert length is not None
                if not await self._answer(await reader.readexactly(int(length[1])), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _answer(self, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer a document. Return whether the connection is kept."""
        event_id, association = self._arrive(body)
        mood = self.dice.choice(FAULTS) if self.dice.randrange(1000) < self.faults else "well"
        self.moods[mood] += 1
        await asyncio.sleep(self.dice.choice((0, 0, 0.001, 0.003, 0.02)))
        self._present.discard(association)
        if mood in ("hang up", "lost answer"):
            return False
        level = {"retry": Level.RETRY, "error": Level.ERROR}.get(mood, Level.SUCCESS)
        answer = b"?" if mood == "garbage" else write([Status(level, event_id.decode())]).encode()
        status = {"500": b"500 No", "503": b"503 Later\r\nRetry-After: 0"}.get(mood, b"200 OK")
        hint = b"HTTP/1.1 103 Early Hints\r\n\r\n" if mood == "early hint" else b""
        closing = b"Connection: close\r\n" if mood == "close" else b""
        writer.write(hint + b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n" % (status, closing, len(answer)))
        writer.write(answer)
        await writer.drain()
        return mood != "close"

    def _arrive(self, body: bytes) -> tuple[bytes, bytes]:
        """Note a document; return its event-id and its object."""
        ((event_id, digits, association),) = EVENT.findall(body)
        row = int(digits)
        self.documents += 1
        if association in self._present:
            self.breaches.append(f"row {row} came while another document of its object was here")
        if row < self._latest.get(association, 0):
            self.breaches.append(f"row {row} came after row {self._latest[association]} of its object")
        self._latest[association] = row
        self._present.add(association)
        self.peak = max(self.peak, len(self._present))
        return event_id, association

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve in a thread; yield the address."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=256))
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            server.close()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()


def fill(world: World, first: int, rows: int) -> None:
    """Write rows of objects in any order: values, and deletes that divide them into several events."""
    names, dice = world.log.names(), random.Random(first)
    columns = ("event_type", "table_name", "table_key", "column_name", "new_value")
    into = ", ".join(names[column] for column in columns)
    lines = []
    for number in range(first, first + rows):
        facts = f"'usr', 'idu={dice.randrange(OBJECTS)}'"
        lines.append(dice.choice((f"(4, {facts}, null, null)", f"(1, {facts}, 'fname', '{number}')")))
    world.change(f"insert into {names['log']} ({into}) values {', '.join(lines)}")


def publish(world: World, rows: int, faults: int, seed: int = 1) -> Oracle:
    """Publish so many rows to an oracle; each has a letter in the end."""
    oracle = Oracle(seed, faults)
    with oracle.running() as url:
        settings = {"http_url": url, "http_connections": CONNECTIONS, "http_timeout": patient(10)}
        sink = open_sink("http", settings)
        with world.publisher(sink, batch_size=1, retry_wait=0.5, retry_longest=0.5) as publisher:
            for first in range(0, rows, PICKED):
                fill(world, first, PICKED)
                publisher.cycle()
            while world.counts()["N"]:
                publisher.cycle()
        sink.close()
    return oracle


@pytest.mark.quick
@pytest.mark.slow("a thousand documents by HTTP, some of them several times")
def test_objects_keep_their_order_with_many_documents_under_way(world: World) -> None:
    oracle = publish(world, 2_000, faults=50)
    assert oracle.breaches == []
    assert oracle.documents > 1_000
    assert oracle.peak > CONNECTIONS / 2
    assert oracle.moods.keys() >= {"well", *FAULTS}
    assert world.counts().keys() <= {"S", "E"}


@pytest.mark.nightly
def test_objects_keep_their_order_over_a_million_documents(world: World) -> None:
    oracle = publish(world, 2_000_000, faults=10)
    assert oracle.breaches == []
    assert oracle.documents > 1_000_000
