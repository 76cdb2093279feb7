"""A source that can be stopped and gone on with: what it hands out, and the text that says how far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eventlog.core.errors import Refused
from eventlog.streams.delivery import Delivery


class Feed(Protocol):
    """One round reads what is there; the next one goes on behind it."""

    def round(self) -> Iterator[Delivery | Refused]: ...

    @property
    def state(self) -> str | None:
        """The state behind everything that was handed out."""

    def close(self) -> None: ...
