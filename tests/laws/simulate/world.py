"""The world of a run: processes that take turns at each call of a port, and the clock that they share.

A process is a greenlet, so the synchronous code of the publisher runs unchanged. At each step it sleeps for
a time that a decision gives, and the one that wakes first goes on. A process that is killed gets `Death` from
every port from then on, so nothing that it does while it unwinds has an effect.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import greenlet

from tests.laws.simulate.decisions import Decisions, Dice

# seconds that a step takes: mostly little, sometimes so long that the others do a lot meanwhile
PACE = (0.001,) * 10 + (0.0, 0.002, 0.005, 0.01, 0.02, 0.1)
STALLS = (0.5, 1.5, 5.0, 30.0, 70.0)


class Death(BaseException):
    """The process was killed."""


class Stuck(Exception):
    """The world has no process that could go on, or takes too many steps."""


class Process:
    """A process of the world."""

    def __init__(self, name: str, job: Callable[[], None], parent: greenlet.greenlet) -> None:
        self.name = name
        self.doomed = False
        self.mortal = False  # whether faults may kill it
        self.ended = False
        self.awaited: object | None = None  # what it waits for, outside the queue
        self._job = job
        self.greenlet = greenlet.greenlet(self._run, parent)
        self.on_end: Callable[[], None] = lambda: None
        self.fault: BaseException | None = None

    def _run(self) -> None:
        try:
            if not self.doomed:
                self._job()
        except Death:
            pass
        except BaseException as fault:  # handed to the run, which reports it
            self.fault = fault
        self.ended = True
        self.on_end()


class World:
    """A world of processes, with a clock that moves with them."""

    def __init__(self, decisions: Decisions) -> None:
        self.dice = Dice(decisions)
        self.now = 0.0
        self.steps = 0
        self.stalls = 0  # permille of steps that take long
        self.stops = 0  # permille of a process's looks at its signals that find one
        self.current: Process | None = None
        self._queue: list[tuple[float, int, Process]] = []
        self._entries = 0
        self._waiting: dict[object, list[Process]] = {}
        self._main = greenlet.getcurrent()
        self._processes: list[Process] = []

    def monotonic(self) -> float:
        """Return the clock, as the module `time` does."""
        return self.now

    def thread_time(self) -> float:
        """Return that the processes of this world need no time to compute."""
        return 0.0

    def time(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int(self.now * 1e9) + self.steps

    def start(self, name: str, job: Callable[[], None], after: float = 0.0) -> Process:
        """Begin a process after so many seconds."""
        process = Process(name, job, self._main)
        self._processes.append(process)
        self._push(process, after)
        return process

    def kill(self, process: Process) -> None:
        """End a process wherever it is."""
        process.doomed = True
        if process.awaited is not None:
            self._waiting[process.awaited].remove(process)
            process.awaited = None
        self._push(process, 0.0)

    def die(self) -> None:
        """Kill the current process here."""
        if self.current is not None and self.current.mortal:
            self.kill(self.current)
            raise Death

    def step(self) -> None:
        """Let time pass at a call of a port, in which other processes may go on."""
        pace = STALLS if self.dice.chance(self.stalls) else PACE
        self.sleep(self.dice.choose(pace))

    def sleep(self, seconds: float) -> None:
        """Sleep in the current process; Death if it was killed meanwhile."""
        process = self.current
        if process is None:  # the run itself looks at the world
            return
        if process.doomed:
            raise Death
        self.steps += 1
        until = self.now + seconds
        if not self._queue or until < self._queue[0][0]:
            self.now = until  # no other comes before
            if self.steps & 15:
                return
        self._push(process, until - self.now)
        self._main.switch()
        if process.doomed:
            raise Death

    def wait(self, event: object) -> None:
        """Wait in the current process until somebody reports that event."""
        process = self.current
        if process is None:
            raise Stuck("the run itself would wait")
        if process.doomed:
            raise Death
        process.awaited = event
        self._waiting.setdefault(event, []).append(process)
        self._main.switch()
        if process.doomed:
            raise Death

    def report(self, event: object) -> None:
        """Wake the processes that wait for an event."""
        for process in self._waiting.pop(event, ()):
            process.awaited = None
            self._push(process, 0.0)

    def run(self, is_over: Callable[[], bool], steps: int) -> None:
        """Run until that holds between two steps; Stuck if that takes too many."""
        limit = self.steps + steps
        while not is_over():
            if not self._queue:
                raise Stuck("every process waits or has ended")
            if self.steps > limit:
                raise Stuck(f"not at the end after {steps} steps")
            when, _, process = heapq.heappop(self._queue)
            if not process.ended:
                self.now = max(self.now, when)
                self._switch_to(process)
                if process.fault is not None:
                    raise process.fault

    def end(self) -> None:
        """Kill every process that still runs."""
        for process in self._processes:
            self.kill(process)
            while not process.ended:
                self._switch_to(process)

    def _switch_to(self, process: Process) -> None:
        self.current = process
        process.greenlet.switch()
        self.current = None

    def _push(self, process: Process, after: float) -> None:
        self._entries += 1
        heapq.heappush(self._queue, (self.now + after, self._entries, process))
