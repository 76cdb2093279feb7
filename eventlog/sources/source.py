"""What changes come from: deliveries, round after round, and the state that reading goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.sequence.delivery import Delivery


class NotCopied(EventlogError):
    """{0}"""


class ChangeSource(Protocol):
    """One round reads what is there; the next one goes on after it."""

    def round(self, follow: bool = False, /) -> Iterator[Delivery | Refused]:
        """Return what is there; with `follow`, other rounds come."""

    @property
    def blocks(self) -> bool:
        """Return whether a round waits by itself for new changes."""

    @property
    def tables(self) -> Tables | None:
        """The tables as the source describes them, where it does."""

    @property
    def ended(self) -> bool:
        """Return whether nothing can come any more, even if the source is followed."""

    @property
    def state(self) -> str | None:
        """The state after everything that was handed out; None for a source without positions."""

    def commit(self) -> None:
        """Note that everything that was handed out is safely written, with the state after it.

        Raise NotCopied if a copy of the state that others hold is not up to date.
        """

    def close(self) -> None: ...
