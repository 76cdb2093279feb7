"""A secret in a file."""

from __future__ import annotations

from eventlog.core.errors import Misuse

LONGEST = 64 << 10  # bytes; a device has no end


def read_secret(name: str) -> str:
    """Return the only line of a file; Misuse names the file, never what is in it."""
    try:
        with open(name, "rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise Misuse(f"the secret in {name}: it has more than {LONGEST} bytes")
        secret = data.decode().rstrip("\r\n")
    except OSError as fault:
        raise Misuse(f"the secret in {name}: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise Misuse(f"the secret in {name}: it is not UTF-8") from None
    if not secret.isprintable():
        raise Misuse(f"the secret in {name}: it is more than one line, or no text")
    return secret
