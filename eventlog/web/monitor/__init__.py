"""The pages of a running publisher: metrics and health on a small HTTP port."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.web import is_loopback

CLOSING = "set monitor-host to 127.0.0.1, or let a proxy or a firewall decide who reaches it"


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

    @property
    def readers(self) -> str:
        """The clause about readers on other machines; empty if there are none."""
        if not self.monitor_port or is_loopback(self.monitor_host):
            return ""
        place = f"{self.monitor_host}, port {self.monitor_port}"
        return f"anyone who reaches {place} may read the status page, without a token"
