"""Jobs of procrastinate that do nothing: `COUNT`, the address on standard input; its own Python runs this.

It prints the seconds in which they were deferred, and in which a worker picked them up and finished them.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from procrastinate import App, PsycopgConnector

TOGETHER = 1_000  # jobs of one statement
CONCURRENCY = 10


async def nothing(number: int) -> None:
    """Finish at once."""


async def main(address: str, count: int) -> None:
    app = App(connector=PsycopgConnector(conninfo=address, max_size=CONCURRENCY + 2))
    task = app.task(name="nothing", queue="peers")(nothing)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        begun = time.perf_counter()
        for start in range(0, count, TOGETHER):
            numbers = range(start, min(start + TOGETHER, count))
            await task.batch_defer_async(*({"number": number} for number in numbers))
        deferred = time.perf_counter()
        await app.connector.execute_query_async("analyze procrastinate_jobs")  # a busy server has done it
        await app.run_worker_async(
            queues=["peers"], wait=False, concurrency=CONCURRENCY, install_signal_handlers=False
        )
        ended = time.perf_counter()
        left = await app.job_manager.list_jobs_async(status="succeeded")
        if len(list(left)) != count:
            sys.exit("not every job is finished")
    print(deferred - begun, ended - deferred)


logging.disable(logging.CRITICAL)
asyncio.run(main(sys.stdin.readline().strip(), int(sys.argv[1])))
