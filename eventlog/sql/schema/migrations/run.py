"""What a revision is handed: a way to run one of its .sql files."""

from __future__ import annotations

from typing import Protocol


class Run(Protocol):
    def __call__(self, name: str, *, own_log: bool = False) -> None:
        """Run a file; one that is for a log of our own is left out where an existing one is attached."""
