"""Addresses that people type, which may contain secrets."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from eventlog.core.errors import InvalidValue, Misuse
from eventlog.core.redaction import without_secrets

_SCHEMES = ("http", "https")


def header_word(text: str) -> None:
    """Raise Misuse for a text that cannot be in a header line; the error does not quote it, because it is a
    secret.
    """
    if not (text.isascii() and text.isprintable()) or text != text.strip():
        raise Misuse("it holds a line end, a space around it or another character that no header can hold")


def http_address(text: str) -> SplitResult:
    """Return the parts of an http address; secrets have settings of their own."""
    try:
        address = urlsplit(text)
        is_http = address.scheme in _SCHEMES and address.hostname and address.port != 0
    except ValueError:
        is_http = False
    if not is_http or not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidValue(without_secrets(text), "an address such as https://host:port/path")
    if "@" in address.netloc:
        raise Misuse(
            "it must not contain a user or a password: http-user, http-password and http-token take them"
        )
    return address
