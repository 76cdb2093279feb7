"""Where changes go: what every target must do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eventlog.sequence.delivery import Delivery


class ChangeTarget(Protocol):
    """Takes the deliveries of a source, and cuts them into what it writes at once."""

    def write(self, deliveries: Iterator[Delivery], /) -> None:
        """Write all of them; when it returns they are durable, with the source's state after them."""
