"""The commands over a server of ours."""

from __future__ import annotations

import pytest

from eventlog.transfer.sources import capture_feed
from tests.formats.gbase.live import Live
from tests.formats.gbase.world import World


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Live:
    """A command whose captures reach a world of two tables."""
    world = World(("shop:own.t1", "shop:own.t2"), 5, steps=0)
    monkeypatch.setitem(capture_feed.TRANSPORTS, "informix", lambda address, settings: world)
    return Live(world, monkeypatch, capfd)
