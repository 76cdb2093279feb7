"""Texts for people without control characters and secrets, and the addresses that people type."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from eventlog.core.errors import InvalidValue, Misuse

# What is not shown, or shown as a change of direction, is named instead.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_WORD = re.compile(r"\S+")
_SECRET = re.compile(r"\b(\w*(?:password|passwd|pwd|secret|token|api_?key))=[^&\s;,]+", re.IGNORECASE)
_QUERY = re.compile(r"\?[^\s#'\")>\]]*[^\s#'\")>\],;:.]")
_HIDDEN = "***"
_PARAMETERS = re.compile(r"[?;#].*", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][\w+.:-]*://")
_EXAMPLE = "user:password"  # of an address in our own words


def visible(text: str) -> str:
    """Return the text, its unseen characters named by their number."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return the text on one line, with nothing unseen in it."""
    return visible(" ".join(text.split()))


def without_secrets(text: str) -> str:
    """Return the text without users and passwords of addresses, without queries of http addresses, and
    without values of password=, token= and such.

    A password may hold every character but a space, so an address loses everything up to its last `@`.
    """
    return _SECRET.sub(rf"\1={_HIDDEN}", _WORD.sub(_without_user, text))


def shown_address(text: str) -> str:
    """Return an address without its user and password, and without its parameters."""
    users, at, place = text.rpartition("@")
    scheme = _SCHEME.match(users)
    shown = f"{scheme[0] if scheme else ''}{_HIDDEN}@{place}" if at else text
    return without_secrets(_PARAMETERS.sub(lambda parameters: f"{parameters[0][0]}{_HIDDEN}", shown))


def _without_user(word: re.Match[str]) -> str:
    scheme, slashes, address = word[0].partition("://")
    if slashes and scheme.lower().endswith(("http", "https")):
        address = _QUERY.sub(rf"?{_HIDDEN}", address)
    user, at, place = address.rpartition("@")
    if not at or user == _EXAMPLE:
        return f"{scheme}{slashes}{address}"
    return f"{scheme}{slashes}{_HIDDEN}@{place}"


# --- addresses

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
