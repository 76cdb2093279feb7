"""A secret that stands in a file."""

from __future__ import annotations

from pathlib import Path

from eventlog.core.errors import Misuse


def read_secret(name: str) -> str:
    """The only line of a file; Misuse names the file, never what is in it."""
    try:
        secret = Path(name).read_text("utf-8").rstrip("\r\n")
    except OSError as fault:
        raise Misuse(f"the secret in {name}: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise Misuse(f"the secret in {name}: it is not UTF-8") from None
    if not secret.isprintable():
        raise Misuse(f"the secret in {name}: it is more than one line, or no text")
    return secret
