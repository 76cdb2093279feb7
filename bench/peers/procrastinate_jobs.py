"""Jobs of procrastinate that do nothing: `COUNT`, the address on standard input; its own Python runs this.

It prints the seconds in which they were deferred, and in which a worker picked them up and finished them.
With `RATE SECONDS` they are deferred while the worker runs. Then it prints when each was deferred, and done.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from procrastinate import App, PsycopgConnector

TOGETHER = 1_000  # jobs of one statement
TRANSACTIONS = 200  # a second, at a rate
CONCURRENCY = 10
WORKER = {"queues": ["peers"], "concurrency": CONCURRENCY, "install_signal_handlers": False}
done: dict[int, float] = {}


async def nothing(number: int) -> None:
    """Finish at once."""
    done[number] = time.monotonic()


async def main(address: str, *words: str) -> None:
    app = App(connector=PsycopgConnector(conninfo=address, max_size=CONCURRENCY + 3))
    task = app.task(name="nothing", queue="peers")(nothing)

    async def defer(numbers: Sequence[int]) -> None:
        await task.batch_defer_async(*({"number": number} for number in numbers))

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        if len(words) > 1:
            await at_rate(app, defer, *map(float, words))
        else:
            await all_at_once(app, defer, int(words[0]))


async def all_at_once(app: App, defer: Callable[[Sequence[int]], Awaitable[None]], count: int) -> None:
    begun = time.perf_counter()
    for start in range(0, count, TOGETHER):
        await defer(range(start, min(start + TOGETHER, count)))
    deferred = time.perf_counter()
    await app.connector.execute_query_async("analyze procrastinate_jobs")  # a busy server has done it
    await app.run_worker_async(wait=False, **WORKER)
    ended = time.perf_counter()
    left = await app.job_manager.list_jobs_async(status="succeeded")
    if len(list(left)) != count:
        sys.exit("not every job is finished")
    print(deferred - begun, ended - deferred)


async def at_rate(
    app: App, defer: Callable[[Sequence[int]], Awaitable[None]], rate: float, seconds: float
) -> None:
    worker = asyncio.create_task(app.run_worker_async(shutdown_graceful_timeout=1, **WORKER))
    many = max(1, round(rate / TRANSACTIONS))
    put: list[float] = []
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        await asyncio.sleep(max(0, begun + len(put) / rate - time.monotonic()))
        await defer(range(len(put), len(put) + many))
        put += [time.monotonic()] * many
    await asyncio.sleep(1)
    worker.cancel()
    await asyncio.wait([worker], timeout=10)
    print(json.dumps([[at, done.get(number)] for number, at in enumerate(put)]))


logging.disable(logging.CRITICAL)
asyncio.run(main(sys.stdin.readline().strip(), *sys.argv[1:]))
