"""Fixtures of the publisher's tests."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture(params=["row by row", "by column"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read pick-ups row by row, or by column however few rows they have."""
    if request.param == "by column":
        monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", 0)


@pytest.fixture
def free_port() -> int:
    """A port that no server has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
