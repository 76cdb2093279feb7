"""Messages of topics, and binary messages in a file, each after its length in four bytes, high byte first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Final

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object
from eventlog.files import jsonlines
from eventlog.files.limits import LIMITS, Limits

LENGTH: Final = 4  # bytes, ahead of each message
_JSON = jsonlines.decoder()


class NoBytes(Misuse):
    """messages with a length before each must be in Avro: use jsonl for values in JSON, a line each"""


def read(file: IO[bytes], name: str, limits: Limits = LIMITS) -> Iterator[Object | Refused]:
    """Yield the messages; one that is cut short, or too long to be true, ends the file."""
    number = 0
    while head := file.read(LENGTH):
        number += 1
        size = int.from_bytes(head, "big")
        message = file.read(size) if len(head) == LENGTH and size <= limits.max_record else b""
        if len(head) < LENGTH or len(message) < size:
            over = (
                f"over the {limits.max_record} of the setting max-record, or "
                if size > limits.max_record
                else ""
            )
            reason = f"the message is cut short, or its length {size} is {over}no length"
            yield Refused(f"{name}:{number}", reason, head + message)
            return
        yield Object(number, message, message)


def message_at(
    name: str, encoding: str, offset: int, value: bytes | None, key: bytes | None = None
) -> Object | Refused:
    """Return the message at an offset of a source of that name; Refused for what cannot be one."""
    if value is None or encoding == "avro":
        return Object(offset, value, value, key)
    try:
        text = value.decode(json.detect_encoding(value), "surrogatepass")
        return Object(offset, _JSON.decode(text), value, key)
    except (ValueError, RecursionError) as fault:
        return Refused(f"{name}:{offset}", jsonlines.why_none(fault), value)


class FramedWriter:
    """A writer of messages, each after its length."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, message: object) -> None:
        if not isinstance(message, bytes):
            raise NoBytes
        self._file.write(len(message).to_bytes(LENGTH, "big") + message)

    def close(self) -> None:
        """Do nothing, because nothing is held back."""
