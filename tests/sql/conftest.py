"""Fixtures of the tests that need a log with tracked tables."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from eventlog.embedded import Server
from eventlog.sql.log.store import Store
from tests.kit.databases import EMBEDDED, Database, installed, server_url, temporary_database
from tests.sql.tracked import Tracked, tracked


@pytest.fixture(scope="session")
def template(server: tuple[str, URL]) -> Iterator[str]:
    """A database with an installed log on each server at hand."""
    with installed(*server) as name:
        yield name


@pytest.fixture
def database(server: tuple[str, URL], request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database on each server at hand: empty, or with an installed log if the test asks for `tracking`."""
    template = request.getfixturevalue("template") if "tracking" in request.fixturenames else "template0"
    with temporary_database(*server, template=template) as new_database:
        yield new_database


@pytest.fixture
def tracking(database: Database) -> Iterator[Tracked]:
    """A log on each server at hand."""
    with tracked(database) as tracked_log:
        yield tracked_log


@pytest.fixture
def store(tracking: Tracked) -> Store:
    """The log of `tracking`, as a store."""
    return Store(tracking.engine, tracking.log)


@pytest.fixture(scope="session")
def postgres_template(embedded: Server) -> Iterator[str]:
    """A database with an installed log on the embedded PostgreSQL."""
    with server_url(EMBEDDED, embedded) as url, installed(EMBEDDED, url) as name:
        yield name


@pytest.fixture
def postgres(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A new database on the embedded PostgreSQL alone; it has a log for `pg`."""
    copied = "pg" in request.fixturenames
    template = request.getfixturevalue("postgres_template") if copied else "template0"
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url, template=template) as new_database,
    ):
        yield new_database


@pytest.fixture
def pg(postgres: Database) -> Iterator[Tracked]:
    """A log on the embedded PostgreSQL alone."""
    with tracked(postgres) as tracked_log:
        yield tracked_log


@pytest.fixture
def mallory(pg: Tracked) -> Iterator[str]:
    """A role with a schema of its own, which may make types, functions and casts."""
    name = f"mallory_{secrets.token_hex(4)}"
    pg.run(f"create role {name}", f"create schema {name} authorization {name}")
    yield name
    pg.run(f"drop owned by {name} cascade", f"drop role {name}")
