"""What can be chosen about how changes become tables."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting


@dataclass(frozen=True, slots=True)
class ApplySettings:
    history: bool = setting(False, "keep every version of every row, with its beginning and its end")
    schema_changes: str = setting(
        "apply",
        "create tables and columns that are missing, refuse the changes that need them, or leave them out",
        choices=("apply", "refuse", "ignore"),
    )
    missing_rows: str = setting(
        "refuse",
        "what becomes of an update that lacks columns, where its row is missing",
        choices=("refuse", "insert", "ignore"),
    )
    reload: str = setting(
        "refuse",
        "what becomes of a full load of a table that had changes before",
        choices=("refuse", "replace"),
    )
    group: int = setting(
        10_000, "changes that share a transaction of the target", metavar="CHANGES", within=(1, 1_000_000)
    )
    source: str = setting("", "the name under which the target remembers this source  [default: the format]")
