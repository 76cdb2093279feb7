"""What a stream can be wrong in; the answers of a reader that are not records."""

from __future__ import annotations

from eventlog.core.errors import EventlogError

SHOWN = 40  # characters of a value that a message shows


class Corrupt(EventlogError):
    """byte {0}: {1} is {2}: {3}"""

    @property
    def offset(self) -> int:
        return int(self.args[0])


class BadSchema(EventlogError):
    """schema text: {0}"""


class SessionOver(EventlogError):
    """the server ended the capture session with {0}"""


class BadDump(EventlogError):
    """hex dump: line {0}: {1}"""


def as_hex(data: bytes) -> str:
    """Return bytes as messages show them."""
    text = data[: SHOWN // 2].hex()
    return f"{text}... ({len(data)} bytes)" if len(data) > SHOWN // 2 else text or "empty"
