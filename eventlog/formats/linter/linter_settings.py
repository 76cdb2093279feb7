"""The settings of queues of LINTER."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventlog.core.settings import setting
from eventlog.core.shared_settings import max_open_setting, open_bytes_setting

if TYPE_CHECKING:
    from eventlog.transactions.open_transactions import Spool


def _check_zone(text: str) -> None:
    from eventlog.formats.linter.times import read_zone  # zones take a while to load

    read_zone(text)


@dataclass(frozen=True, slots=True)
class LinterSettings:
    time_order: str = setting(
        "big",
        "Byte order of OPER_DATE and REPL_DATE; big as the vendor states it.",
        choices=("big", "little"),
    )
    time_zone: str = setting(
        "",
        "Zone of OPER_DATE and REPL_DATE, as Europe/Moscow or +03:00; times without it have no zone.",
        metavar="ZONE",
        check=_check_zone,
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
    max_open: int = max_open_setting()
    open_bytes: int = open_bytes_setting()

    spool: Callable[[], Spool] | None = None  # makes the place on disk
