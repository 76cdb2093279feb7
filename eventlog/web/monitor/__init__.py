"""The pages of a running publisher: metrics and health on a small HTTP port."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    monitor_port: int = setting(
        0,
        "the port of the status page, /metrics, /healthz and /readyz; 0: none",
        metavar="PORT",
        within=(0, 65_535),
    )
    monitor_host: str = setting("127.0.0.1", "the address that the port listens at", metavar="HOST")
    monitor_token: str | None = setting(
        None, "its holder may redrive on the status page; better set it in the environment", metavar="TOKEN"
    )
