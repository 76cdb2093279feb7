"""One run: two publishers, writers, operators and faults; then peace, until everything has left."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

from eventlog import publisher
from eventlog.core import tablesfile
from eventlog.core.errors import EventlogError
from eventlog.files.signals import StopRequested
from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.publisher import comparison, cycle, daemon, delivery, session
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.low_water_mark import LowWaterMark
from eventlog.sql import columns
from eventlog.sql.log import pending
from eventlog.sql.log.position import IdsComeAgain
from eventlog.sql.log.store import Store as Log
from eventlog.sql.readable import ReadableTable
from eventlog.xds.xds_settings import XdsSettings
from tests.laws.simulate import laws
from tests.laws.simulate.compared import comparing
from tests.laws.simulate.decisions import Decisions, Replayed, Seeded
from tests.laws.simulate.ledger import Ledger
from tests.laws.simulate.people import CROWD, OWN_USER, TABLES, Operators, Triggers, Writer
from tests.laws.simulate.receiver import FLIGHTS, SINKS, LawBroken, Receiver
from tests.laws.simulate.server import LOG, Engine, NamedQueries, Server, unite
from tests.laws.simulate.world import Process, Stuck, World

_TABLE = """
[tables.usr]
schema = "public"
key = ["idu"]
columns = { idu = "integer", name = "varchar(40)", phone = "varchar(40)" }
"""
DESCRIBED = tablesfile.read(_TABLE)
_TIMED = [
    module
    for module in (
        importlib.import_module(f"{publisher.__name__}.{place.name}")
        for place in pkgutil.iter_modules(publisher.__path__)
    )
    if hasattr(module, "time")
]
_BEGIN_MARK = LowWaterMark.begin
POLLS = 80.0  # seconds in which each publisher compares more than once, also after the longest stall
PATIENCE = 60_000  # steps in peace until everything must have left


class Signals:
    """The signals of a process; one that asks it to end may come wherever it looks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stop = False

    @property
    def stop(self) -> bool:
        self._stop = self._stop or self._world.dice.chance(self._world.stops)
        return self._stop

    def interrupting(self) -> Any:
        return nullcontext()

    def request_stop(self) -> None:
        self._stop = True

    def sleep(self, seconds: float) -> bool:
        self._world.sleep(seconds)
        return self.stop


class Broken(NamedTuple):
    """A result of a run that should not be."""

    reason: str
    decisions: list[int]

    @property
    def kind(self) -> str:
        """The reason without numbers."""
        return "".join(letter for letter in self.reason if not letter.isdigit())


class Simulation:
    """The world of one run."""

    def __init__(self, decisions: Decisions) -> None:
        self.world = world = World(decisions)
        self.dice = dice = world.dice
        self.server = Server(world, TABLES)
        self.receiver = Receiver(world, lambda: self.server.store.moment)
        self._sink = dice.choose(SINKS)
        self._overlaps = self._sink in FLIGHTS  # documents under way at once
        settings: dict[str, Any] = {
            "batch_size": dice.choose((1, 1, 2) if self._overlaps else (3, 1, 2)),
            "query_limit": dice.choose((100, 100, 7) if self._overlaps else (100, 1, 2, 3, 7)),
            "retry_wait": dice.choose((1.0, 0.1, 10.0)),
            "retry_longest": dice.choose((10.0, 60.0)),
            "polling_interval": dice.choose((1, 2, 10)),
            "delete_from_log": bool(dice.below(2)),
            "reconnect": 5,
            "wake_up": False,
        }
        keeps_tries = not settings["delete_from_log"]
        self.ledger = Ledger(self.server, self.receiver, keeps_tries=keeps_tries)
        self._compares = dice.below(4) == 3
        if self._compares:
            options = dice.choose(("all", "resync"))
            settings |= {
                "publication_mode": "compare",
                "startup_option": options,
                "state_values": not dice.below(2),
            }
        self._config = Config(settings)
        self._by_column_from = dice.choose((300, 300, 0))  # rows
        self._max_documents = dice.choose((500, 500, 2) if self._overlaps else (500, 1, 2))  # of a batch
        self._due_every = dice.choose((1.0, 0.0))  # seconds
        self._max_changes: dict[Process | None, int] = {}
        self._max_changes_from = dice.choose(((1000,), (1,), (1000, 1, 2)))
        self._signals: dict[Process | None, Signals] = {}
        self._publishers: dict[Process, None] = {}
        self._judged, self._quiet = -1, False  # the moment that was looked at last
        self._last = False

    # --- the ports

    @contextmanager
    def ports(self) -> Iterator[None]:
        """Give the publisher this world inside the block, in place of the real one."""
        with ExitStack() as stack:
            for module in _TIMED:
                stack.enter_context(patch.object(module, "time", self.world))
            stack.enter_context(patch.object(LowWaterMark.__init__, "__defaults__", (self.world.monotonic,)))
            stack.enter_context(patch.object(LowWaterMark, "begin", lambda *call: self._begin_mark(*call)))
            stack.enter_context(patch.object(daemon, "opened", self._opened))
            stack.enter_context(patch.object(daemon, "watching_locks", lambda *watched: nullcontext()))
            stack.enter_context(patch.object(daemon, "demand_newest", lambda log: None))
            stack.enter_context(patch.object(session, "open_sink", lambda *words: self._sink(self.receiver)))
            stack.enter_context(patch.object(session, "make_reader", lambda *words: self._make_reader()))
            stack.enter_context(patch.object(comparison, "tracked_tables", lambda *words: []))
            stack.enter_context(patch.object(columns, "_united", unite))
            stack.enter_context(patch.object(pending, "BY_COLUMN_FROM", self._by_column_from))
            stack.enter_context(patch.object(delivery, "MAX_DOCUMENTS", self._max_documents))
            stack.enter_context(patch.object(cycle, "DUE_EVERY", self._due_every))
            stack.enter_context(comparing(DESCRIBED))
            yield

    @contextmanager
    def _opened(self, config: Config) -> Iterator[Log]:
        yield self._log()

    def _log(self) -> Log:
        log = Log(Engine(self.server), LOG)  # type: ignore[arg-type]
        log.queries = NamedQueries(LOG)
        return log

    def _begin_mark(self, mark: LowWaterMark, snapshot: Any) -> int:
        """Return what the mark does, after a look at what the snapshot has below it."""
        above = _BEGIN_MARK(mark, snapshot)
        self.ledger.check_mark(above, self.server.store.rows(snapshot._connection.transaction, "log"))
        return above

    def _make_reader(self) -> PickUpFold:
        with Engine(self.server).connect():
            readable = {table: ReadableTable(table, LOG.dialect) for table in DESCRIBED}
        rules = Rules(driver_user=OWN_USER, max_changes=self._max_changes.get(self.world.current, 1000))
        return PickUpFold(DESCRIBED, readable, rules, self._config.build(XdsSettings))

    # --- the people

    def _publish(self) -> None:
        """Run a publisher as its supervisor does: again after it ended."""
        while True:
            try:
                self._signals[self.world.current] = signals = Signals(self.world)
                self._max_changes[self.world.current] = self.dice.choose(self._max_changes_from)
                daemon.Daemon(self._config, signals).run()  # type: ignore[arg-type]
            except IdsComeAgain as fault:
                raise LawBroken(str(fault)) from fault
            except (EventlogError, StopRequested):
                self.world.sleep(2.0)
            self.world.sleep(1.0)

    def _start_publisher(self, after: float = 0.0) -> None:
        process = self.world.start("publisher", self._publish, after)
        process.mortal = True
        self._publishers[process] = None

        def ended() -> None:
            del self._publishers[process]
            self.server.end_sessions(process)
            if process.doomed and not self._last:
                self._start_publisher(self.dice.choose((0.1, 1.0, 20.0)))

        process.on_end = ended

    def run(self) -> None:
        """Run everything at once, then in peace; raise LawBroken or Stuck if something is not as promised."""
        dice, world = self.dice, self.world
        self._start_publisher()
        self._start_publisher(dice.choose((0.5, 0.0)))
        triggers = None
        if not self._compares:
            triggers = Triggers(dice.choose((1, 5, 7)), dice.choose((2, 6, 8)))
        objects = dice.choose((CROWD, 2, 4, CROWD) if self._overlaps else (2, 1, 4))
        writers = [
            world.start("writer", Writer(self.server, triggers, objects, 1 + dice.below(8)).run)
            for _ in range(dice.choose((2, 1, 3)))
        ]
        operators = Operators(self.server, self._log(), self._make_reader())
        operators.publishers = lambda: list(self._publishers)
        operators.signals = lambda: list(self._signals.values())
        operators.sent = lambda: len(self.receiver.sent)
        busy = [*writers]
        if dice.below(4):
            busy.append(world.start("operators", partial(operators.run, dice.choose((5.0, 15.0, 40.0)))))
        self._worsen()
        try:
            world.run(lambda: all(process.ended for process in busy), PATIENCE)
            self._calm()
            self._settle(operators.calm)
            if dice.below(2):
                self._settle(operators.redrive_all)
            laws.check(self.server, self.receiver, self.ledger)
        finally:
            self._last = True
            world.end()

    def _worsen(self) -> None:
        """Choose what goes wrong in this run, and how often."""
        dice, faults, moods = self.dice, self.server.faults, self.receiver.moods.of
        for name in vars(faults):
            setattr(faults, name, dice.choose((0, 0, 5, 20)))
        faults.unnoticed = dice.choose((0, 300))
        for name in moods:
            moods[name] = dice.choose((0, 0, 30, 150))
        self.world.stalls = dice.choose((0, 0, 3, 20))
        self.world.stops = dice.choose((0, 0, 10, 50))

    def _calm(self) -> None:
        """End all faults."""
        for name in vars(self.server.faults):
            setattr(self.server.faults, name, 0)
        self.receiver.moods.of.update(dict.fromkeys(self.receiver.moods.of, 0))
        self.world.stalls = self.world.stops = 0

    def _settle(self, work: Callable[[], None]) -> None:
        """Do some work, then wait until nothing is pending, also after a poll where tables are compared."""
        self._await_quiet(self.world.start("operator", work))
        for _ in range(2 if self._compares else 0):
            self._await_quiet(self.world.start("patience", partial(self.world.sleep, POLLS)))

    def _await_quiet(self, process: Process) -> None:
        """Wait until a process has ended and nothing is pending."""
        self._judged = -1
        self.world.run(lambda: process.ended and self._is_quiet(), PATIENCE)

    def _is_quiet(self) -> bool:
        """Return whether nothing is pending."""
        store = self.server.store
        if store.moment != self._judged:
            self._judged = store.moment
            view = self.server.begin()
            is_pending = any(row["status"] == "N" for row in store.rows(view, "log"))
            is_sending = any(row["settled_at"] is None for row in store.rows(view, "batch"))
            self._quiet = not (is_pending or is_sending or store.rows(view, "retry"))
        return self._quiet


def run(decisions: Seeded | Replayed) -> Broken | None:
    """Return what was wrong with a run, if something was."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        simulation = Simulation(decisions)
        with simulation.ports():
            simulation.run()
    except (LawBroken, Stuck) as fault:
        return Broken(f"{type(fault).__name__}: {fault}", decisions.taken)
    except Exception as fault:  # a run that fails in any other way is a finding, too
        return Broken(f"{type(fault).__name__}: {fault}", decisions.taken)
    finally:
        logging.disable(before)
    return None
