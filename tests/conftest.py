"""What all tests share: the databases at hand, and how examples are drawn."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_timeout
from sqlalchemy.engine import URL, Engine

from eventlog.embedded import Server
from tests.kit import brokers as kafka_brokers
from tests.kit import frugal, parallel, tiers, warm
from tests.kit.commands import Shell
from tests.kit.databases import (
    EMBEDDED,
    PARAMETERS,
    Database,
    embedded_server,
    server_url,
    summary,
    temporary_database,
)
from tests.kit.support import patient

if TYPE_CHECKING:
    from tests.world.rig import Arrivals
    from tests.world.world import World

frugal.keep_bytecode()
frugal.hurry_spark()
frugal.write_to_memory()
warm.install()

# A background job ignores SIGINT, and one of nohup SIGHUP. Programs that tests start inherit what is ignored,
# but not what has a handler.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

_LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    tiers.set_examples(tiers.chosen(config))
    config.stash[_LEFT_OUT] = Counter()


def pytest_report_header() -> str:
    return summary()


def pytest_xdist_auto_num_workers() -> int:
    return parallel.workers()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return parallel.scheduler(config, log)


@pytest.hookimpl(trylast=True)  # after pytest's own order, by parameters of fixtures
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[_LEFT_OUT] = tiers.select(config, items)
    if all(Path(argument).is_dir() for argument in config.args):  # else somebody chose the order of files
        items.sort(key=lambda item: parallel.turn(item.path))


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Any:
    return pytest_timeout.pytest_timeout_set_timer(item, settings._replace(timeout=patient(settings.timeout)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    warm.SESSIONS.keep(tiers.is_warm(item))


def pytest_collection_finish() -> None:
    frugal.spare_the_collector()


def pytest_sessionfinish(session: pytest.Session) -> None:
    left_out = session.config.stash[_LEFT_OUT]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    stats = terminalreporter.stats
    passed = [report for report in stats.get("passed", []) if report.when == "call"]
    reports = [report for outcome in ("", "passed", "failed", "error") for report in stats.get(outcome, [])]
    timed = [report for report in reports if isinstance(report, pytest.TestReport)]  # not of collections
    lines = [*tiers.skips(stats.get("skipped", [])), *tiers.over_limit(passed), *tiers.longest(timed)]
    for line in [*lines, summary(), tiers.left_out(config.stash[_LEFT_OUT])]:
        terminalreporter.write_line(line)


@pytest.fixture(scope="module", params=kafka_brokers.PARAMETERS)
def brokers(request: pytest.FixtureRequest) -> Iterator[str]:
    """The addresses of each Kafka broker at hand in turn."""
    with kafka_brokers.addresses(request.param) as addresses:
        yield addresses


@pytest.fixture(scope="session")
def embedded() -> Iterator[Server]:
    """The embedded PostgreSQL, started once."""
    with embedded_server() as server:
        yield server


@pytest.fixture(scope="session", params=PARAMETERS)
def server(request: pytest.FixtureRequest, embedded: Server) -> Iterator[tuple[str, URL]]:
    """Each server at hand in turn."""
    with server_url(request.param, embedded) as url:
        yield request.param, url


@pytest.fixture
def database(server: tuple[str, URL]) -> Iterator[Database]:
    """An empty database on each server at hand."""
    with temporary_database(*server) as empty_database:
        yield empty_database


@pytest.fixture
def postgres(embedded: Server) -> Iterator[Database]:
    """An empty database on the embedded PostgreSQL alone."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(server_url(EMBEDDED, embedded))
        yield stack.enter_context(temporary_database(EMBEDDED, url))


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    """An engine on an empty database of each server at hand."""
    own_engine = database.engine()
    yield own_engine
    own_engine.dispose()


@pytest.fixture(scope="session")
def made_world(server: tuple[str, URL]) -> Iterator[World]:
    """A database with an installed log and the table usr, on each server at hand."""
    from tests.world.world import fresh_world

    with fresh_world(server) as new_world:
        yield new_world


@pytest.fixture
def world(made_world: World) -> World:
    """The database of `made_world`, empty."""
    made_world.clear()
    return made_world


@pytest.fixture
def arrivals() -> Iterator[Arrivals]:
    """A receiver that listens for HTTP."""
    from tests.world.rig import Arrivals

    receiver = Arrivals()
    yield receiver
    receiver.close()


@pytest.fixture
def kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place whose clocks show other hours and other minutes than those of UTC."""
    monkeypatch.setenv("TZ", "NPT-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run commands in a folder of the test's own."""
    return Shell(tmp_path)
