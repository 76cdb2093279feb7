"""Servers whose own log can be decoded: that of the wheel, and the installed one, which is older.

EVENTLOG_TEST_LOGICAL_URL names another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL, make_url

from eventlog.embedded import FAST, Server, embedded_postgres
from tests.kit.databases import LOGICAL
from tests.slot.rig import SlotWorld, slot_world

SERVERS = [pytest.param("newest"), pytest.param("installed", marks=pytest.mark.long)]


@pytest.fixture(scope="session", params=SERVERS)
def decoding(request: pytest.FixtureRequest, embedded: Server) -> Iterator[URL]:
    """Each server in turn."""
    if named := os.environ.get("EVENTLOG_TEST_LOGICAL_URL"):
        yield make_url(named)
    elif request.param == "newest":
        yield make_url(embedded.url)
    else:
        settings = FAST | LOGICAL | {"max_prepared_transactions": "4"}
        with embedded_postgres(settings=settings, prefer_installed=True) as server:
            yield make_url(server.url)


@pytest.fixture
def world(decoding: URL) -> Iterator[SlotWorld]:
    """A log that a slot can fill, in a database of its own."""
    with slot_world("slot", decoding) as new_world:
        yield new_world
