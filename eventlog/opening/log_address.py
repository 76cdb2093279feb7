"""The address of a log: the words by which people distinguish one log from another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import DatabaseSettings
from eventlog.sql.connect import read_url
from eventlog.sql.dialects import dialect_named


class LogAddress(NamedTuple):
    """The name of a log, its database, and the server as the settings name it."""

    log: str
    database: str = ""
    host: str = ""  # or the folder of a socket; empty if the driver decides
    port: str = ""

    def __str__(self) -> str:
        log = f"{self.database}/{self.log}" if self.database else self.log
        return f"{log} on {self.host}:{self.port}" if self.host else log


def address_of_log(config: Config) -> LogAddress:
    """Return the address of the log that the settings name, without user and password."""
    settings = config.build(DatabaseSettings)
    if not settings.url:
        return LogAddress(settings.log_table)
    url = read_url(settings.url)
    host = url.host or _joined(url.query.get("host"))
    default = dialect_named(url.get_backend_name()).sessions.port
    port = str(url.port or _joined(url.query.get("port")) or default) if host else ""
    return LogAddress(settings.log_table, url.database or "", host, port)


def _joined(values: str | Sequence[str] | None) -> str:
    """Return what a parameter of a URL has, once or several times."""
    return values if isinstance(values, str) else ",".join(values or ())
