"""Differences between two states of tables: the key and values of each object on both sides.

Both sides meet by their keys, letter for letter, never by the order of a database. If they do not fit in
memory, they are divided by a hash of the key, on disk.
"""

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
