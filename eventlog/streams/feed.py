"""A source that can be stopped and gone on with: what it hands out, and the text that says how far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eventlog.core.errors import Refused
from eventlog.streams.delivery import Delivery


class Feed(Protocol):
    """One round reads what is there; the next one goes on behind it."""

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """What is there; with `follow`, others come."""

    @property
    def state(self) -> str | None:
        """The state behind everything that was handed out."""

    def kept(self) -> None:
        """The state behind everything that was handed out is safely kept."""

    def close(self) -> None: ...
