"""Publishing without triggers: whether it is asked for, and how."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.compare import compare_memory
from eventlog.core.delete_limit import max_deletes_setting
from eventlog.core.errors import Misuse
from eventlog.core.settings import setting

MODES = ("trigger", "compare", "slot")


@dataclass(frozen=True, slots=True)
class ComparingSettings:
    """The settings of publishing without triggers."""

    publication_mode: str = setting(
        "trigger",
        "who fills the log: triggers, or the publisher, which compares states or reads a replication slot",
        choices=MODES,
    )
    startup_option: str = setting(
        "all",
        "with compare, what a start publishes: every object again, only later changes, or all changes since"
        " the last event",
        choices=("resync", "future", "all"),
    )
    state_values: bool = setting(
        True, "with compare, keep values and not only digests; else changed columns are cleared and set again"
    )
    snapshot: str = setting(
        "one",
        "with compare, one: read all tables at one moment; none: if a database cannot do that, read table"
        " after table, and each difference once more",
        choices=("one", "none"),
    )
    on_dropped_table: str = setting(
        "keep",
        "with compare, the objects of a missing table: the receiver keeps them, or they are deleted",
        choices=("keep", "delete"),
    )
    max_deletes: str = max_deletes_setting()
    compare_memory: int = compare_memory()
    slot_origin: str = setting(
        "any",
        "with slot, none: leave out what replication wrote, which has an origin (PostgreSQL 16)",
        choices=("any", "none"),
    )


class SourceOfTriggers(Misuse):
    """source-url names a database without the log, whose tables can only be compared: set publication-mode \
to `compare`"""
