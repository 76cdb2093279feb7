"""A source that waits by itself has rounds of the usual length, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.connectors import CONNECTORS, Connector, SourceRequest
from tests.kit.lake import Duck
from tests.transfer.lake.growing import JACK, JANE
from tests.transfer.lake.test_lake_commands import follow

pytestmark = pytest.mark.quick


class Trickle:
    """A source that has one transaction at each look."""

    blocks, ended, tables = True, False, None

    def __init__(self, request: SourceRequest) -> None:
        self._changes: list[Change] = [JACK, JANE]
        self.state: str | None = request.state

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return the next transaction."""
        if self._changes:
            self.state = f"after {self._changes[0].key}"
            yield Delivery([self._changes.pop(0)])

    def commit(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def test_a_source_that_waits_by_itself_is_paced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONNECTORS, ("changes", ""), Connector(Trickle))
    waits = follow(tmp_path, Path("-"), iter((True, True)), source_format="changes", tables=Tables())
    assert waits == [60.0, 60.0, 60.0]
    assert len(Duck().rows(tmp_path / "lake", "usr")) == 2
