"""Who we are to a server of HTTP: the header of authorization, certificates that we trust and our own."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from typing import TypeVar

from eventlog.core.errors import Misuse

T = TypeVar("T")


def authorization(user: str | None, password: str | None, token: str | None) -> dict[str, str]:
    """Return the header of bearer or basic authentication; none without a token and a user."""
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user:
        words = f"{user}:{password or ''}"
        return {"Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
    return {}


def tls_context(of: str, ca: str | None, cert: str | None) -> ssl.SSLContext:
    """Return the TLS context of a connection; the settings are those of `http`, or of another section."""
    context = _loaded(f"{of}-ca {ca}", lambda: ssl.create_default_context(cafile=ca))
    if cert is not None:
        _loaded(f"{of}-cert {cert}", lambda: context.load_cert_chain(cert, None, _no_password))
    return context


def _loaded(setting: str, load: Callable[[], T]) -> T:
    """Return what a certificate file contains; raise Misuse if it is none."""
    try:
        return load()
    except ssl.SSLError as fault:
        raise Misuse(f"{setting}: it does not hold what it should, in PEM ({fault.reason})") from None
    except (OSError, ValueError) as fault:
        raise Misuse(f"{setting}: {getattr(fault, 'strerror', None) or fault}") from None


def _no_password() -> str:
    """Return no password, because a daemon has no one to ask for it."""
    raise ValueError("its key has a password, which a service cannot ask for")
