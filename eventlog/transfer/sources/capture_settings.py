"""The settings of a live capture."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.formats.gbase.gbase_settings import Lock


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """The settings of a capture session."""

    jar: tuple[str, ...] = setting((), "the vendor's JDBC driver, and what it needs", metavar="FILE,...")
    password_file: str = setting("", "the file with the password; else EVENTLOG_PASSWORD", metavar="FILE")
    snapshot_lock: str = setting(
        "share",
        "how a table is kept still while its rows are read first; none: only changes from now on",
        choices=tuple(Lock),
    )
    keep_logging: bool = setting(
        True, "leave full-row logging on at the end; what changes while it is off cannot be captured later"
    )
    server_timeout: int = setting(
        5, "seconds that the server waits for a record", metavar="SECONDS", within=(1, 3600)
    )
