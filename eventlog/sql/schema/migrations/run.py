"""What a revision is handed: a way to run a named statement."""

from __future__ import annotations

from typing import Protocol


class RunStatement(Protocol):
    def __call__(self, name: str, *, own_log: bool = False) -> None:
        """Run a named statement; one for a log of our own is left out where an existing one is attached."""
