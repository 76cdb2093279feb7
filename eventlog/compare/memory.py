"""How much memory comparing takes."""

from __future__ import annotations

from typing import Any

from eventlog.core.settings import setting

MEMORY = 256 << 20  # bytes of both sides that are compared at once


def compare_memory() -> Any:
    """Return the setting for how much is compared in memory."""
    return setting(
        MEMORY >> 20,
        "MiB of rows that are compared in memory; what goes beyond is divided on disk",
        metavar="MIB",
        within=(1, 1 << 20),
    )
