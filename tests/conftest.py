"""What all tests share: the databases at hand, and how examples are drawn."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy.engine import URL, Engine

from eventlog.demo.embedded import Server
from tests import brokers as kafka_brokers
from tests import frugal, parallel
from tests.databases import AT_HAND, EMBEDDED, Database, embedded_server, fresh, server_url, told

frugal.keep_bytecode()
frugal.hurry_spark()

# Tests never judge time: a loaded machine is no fault.
settings.register_profile("eventlog", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("eventlog")

# A shell's background job ignores SIGINT, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return told()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(told())


def pytest_xdist_auto_num_workers() -> int:
    return parallel.workers()


@pytest.hookimpl(trylast=True)  # behind pytest's own order, by parameters of fixtures
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: parallel.turn(item.path))


@pytest.fixture(scope="module", params=kafka_brokers.AT_HAND)
def brokers(request: pytest.FixtureRequest) -> Iterator[str]:
    """The addresses of each Kafka broker at hand in turn."""
    with kafka_brokers.addresses(request.param) as found:
        yield found


@pytest.fixture(scope="session")
def embedded() -> Iterator[Server]:
    """The embedded PostgreSQL, started once."""
    with embedded_server() as server:
        yield server


@pytest.fixture(scope="session", params=AT_HAND)
def server(request: pytest.FixtureRequest, embedded: Server) -> Iterator[tuple[str, URL]]:
    """Each server at hand in turn."""
    with server_url(request.param, embedded) as url:
        yield request.param, url


@pytest.fixture
def database(server: tuple[str, URL]) -> Iterator[Database]:
    """An empty database on each server at hand."""
    with fresh(*server) as made:
        yield made


@pytest.fixture
def postgres(embedded: Server) -> Iterator[Database]:
    """An empty database on the embedded PostgreSQL alone."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(server_url(EMBEDDED, embedded))
        yield stack.enter_context(fresh(EMBEDDED, url))


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    """An engine on an empty database of each server at hand."""
    made = database.engine()
    yield made
    made.dispose()
