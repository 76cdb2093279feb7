"""The settings that change documents."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting


@dataclass(frozen=True, slots=True)
class XdsSettings:
    """The settings of documents."""

    batch_size: int = setting(1, "events in one document", metavar="N", within=(1, 100_000))
    insert_query_back: str = setting("modify", "what event types 5 and 7 become", choices=("modify", "add"))
    time_syntax: int = setting(
        1, "times as seconds since 1970 (1), as digits (2) or as ISO text (3)", choices=("1", "2", "3")
    )
    pretty: bool = setting(False, "indent documents for people")


@dataclass(frozen=True, slots=True)
class XdsFileSettings(XdsSettings):
    """The limits of documents in a file, which may come from anyone."""

    max_record: int = setting(256 << 20, "bytes of an event", metavar="BYTES", within=(1, 2**31 - 1))
    max_value: int = setting(
        64 << 20, "bytes of one value; a row with more is refused", metavar="BYTES", within=(1, 2**31 - 1)
    )
