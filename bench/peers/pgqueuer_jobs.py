"""Jobs of pgqueuer that do nothing: `COUNT`, the address on standard input; its own Python runs this.

It prints the seconds in which they were enqueued, and in which a manager picked them up and finished them.
With `RATE SECONDS` they are enqueued while the manager runs. Then it prints when each was enqueued, and done.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import asyncpg
from pgqueuer import Job, QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

TOGETHER = 1_000  # jobs of one statement
TRANSACTIONS = 200  # a second, at a rate
BATCH = 100
done: dict[int, float] = {}


async def nothing(job: Job) -> None:
    """Finish at once."""
    done[int(job.payload or b"0")] = time.monotonic()


async def enqueue(queries: Queries, numbers: range) -> None:
    many = len(numbers)
    await queries.enqueue(["nothing"] * many, [b"%d" % number for number in numbers], [0] * many)


async def main(address: str, *words: str) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(address)))
    await queries.install()
    manager = QueueManager(queries)
    manager.entrypoint("nothing")(nothing)
    if len(words) > 1:
        writer = Queries(AsyncpgDriver(await asyncpg.connect(address)))
        await at_rate(manager, writer, *map(float, words))
    else:
        await all_at_once(manager, queries, int(words[0]))


async def all_at_once(manager: QueueManager, queries: Queries, count: int) -> None:
    begun = time.perf_counter()
    for start in range(0, count, TOGETHER):
        await enqueue(queries, range(start, min(start + TOGETHER, count)))
    enqueued = time.perf_counter()
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    ended = time.perf_counter()
    if await queries.queue_size():
        sys.exit("not every job is finished")
    print(enqueued - begun, ended - enqueued)


async def at_rate(manager: QueueManager, writer: Queries, rate: float, seconds: float) -> None:
    working = asyncio.create_task(manager.run(batch_size=BATCH))
    many = max(1, round(rate / TRANSACTIONS))
    put: list[float] = []
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        await asyncio.sleep(max(0, begun + len(put) / rate - time.monotonic()))
        await enqueue(writer, range(len(put), len(put) + many))
        put += [time.monotonic()] * many
    await asyncio.sleep(1)
    manager.shutdown.set()
    await asyncio.wait([working], timeout=10)
    print(json.dumps([[at, done.get(number)] for number, at in enumerate(put)]))


asyncio.run(main(sys.stdin.readline().strip(), *sys.argv[1:]))
