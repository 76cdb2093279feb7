"""The settings of queues of LINTER."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.formats.linter.operations import MAX_OPEN


@dataclass(frozen=True, slots=True)
class LinterSettings:
    time_order: str = setting(
        "big",
        "Byte order of OPER_DATE and REPL_DATE; big as the vendor states it.",
        choices=("big", "little"),
    )
    lengths: str = setting(
        "auto",
        "Whether LEN1 and LEN2 of an operation of several rows are those of the row or of the operation.",
        choices=("auto", "row", "operation"),
    )
    legacy_typ5: str = setting(
        "error", "What TYP 5 of an older version means.", choices=("error", "commit", "rollback")
    )
    server: str = setting("", "Only what is queued for this destination server.", metavar="NAME")
    keep_contradictions: bool = setting(
        False, "Give an INSERT or DELETE that has a second part as raw bytes, instead of refusing it."
    )
    max_open: int = setting(MAX_OPEN, "Bytes that unfinished transactions may take in memory together.")
