"""A source that can be stopped and gone on with: what it hands out, and the text that says how far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eventlog.core.errors import EventlogError, Refused
from eventlog.streams.delivery import Delivery


class NotCopied(EventlogError):
    """{0}"""


class Feed(Protocol):
    """One round reads what is there; the next one goes on behind it."""

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """What is there; with `follow`, others come."""

    @property
    def ended(self) -> bool:
        """Whether nothing can come any more, however long it is followed."""

    @property
    def state(self) -> str | None:
        """The state behind everything that was handed out."""

    def kept(self) -> None:
        """The state behind everything that was handed out is safely kept: others get their copy of it.

        NotCopied says that they did not, which matters only where that copy is the only one.
        """

    def close(self) -> None: ...
