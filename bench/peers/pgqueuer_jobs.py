"""Jobs of pgqueuer that do nothing: `COUNT`, the address on standard input; its own Python runs this.

It prints the seconds in which they were enqueued, and in which a manager picked them up and finished them.
"""

from __future__ import annotations

import asyncio
import sys
import time

import asyncpg
from pgqueuer import Job, QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

TOGETHER = 1_000  # jobs of one statement
BATCH = 100


async def nothing(job: Job) -> None:
    """Finish at once."""


async def main(address: str, count: int) -> None:
    connection = await asyncpg.connect(address)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    manager = QueueManager(queries)
    manager.entrypoint("nothing")(nothing)
    begun = time.perf_counter()
    for start in range(0, count, TOGETHER):
        some = min(TOGETHER, count - start)
        await queries.enqueue(["nothing"] * some, [b"a job"] * some, [0] * some)
    enqueued = time.perf_counter()
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    ended = time.perf_counter()
    if await queries.queue_size():
        sys.exit("not every job is finished")
    print(enqueued - begun, ended - enqueued)


asyncio.run(main(sys.stdin.readline().strip(), int(sys.argv[1])))
