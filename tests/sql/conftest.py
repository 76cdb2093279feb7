"""Fixtures of the tests that need a log with tracked tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from eventlog.demo.embedded import Server
from tests.databases import EMBEDDED, fresh, installed, server_url
from tests.sql.tracked import Tracked, tracked


@pytest.fixture(scope="session")
def template(server: tuple[str, URL]) -> Iterator[str]:
    """A database with an installed log on each server at hand."""
    with installed(*server) as name:
        yield name


@pytest.fixture
def tracking(server: tuple[str, URL], template: str) -> Iterator[Tracked]:
    """A log on each server at hand."""
    with fresh(*server, template=template) as database, tracked(database) as made:
        yield made


@pytest.fixture(scope="session")
def postgres_template(embedded: Server) -> Iterator[str]:
    """A database with an installed log on the embedded PostgreSQL."""
    with server_url(EMBEDDED, embedded) as url, installed(EMBEDDED, url) as name:
        yield name


@pytest.fixture
def postgres_tracking(embedded: Server, postgres_template: str) -> Iterator[Tracked]:
    """A log on the embedded PostgreSQL alone."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(server_url(EMBEDDED, embedded))
        database = stack.enter_context(fresh(EMBEDDED, url, template=postgres_template))
        yield stack.enter_context(tracked(database))
