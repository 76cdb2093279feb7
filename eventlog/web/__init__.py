"""What our pages share: markup that escapes by construction, one style, one script, a small server; and the
pages of the publisher (`monitor`) and of the receiver."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
