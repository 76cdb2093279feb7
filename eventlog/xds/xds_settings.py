"""The settings that change documents."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.core.shared_settings import insert_query_back_setting, max_record_setting, max_value_setting


@dataclass(frozen=True, slots=True)
class XdsSettings:
    """The settings of documents."""

    batch_size: int = setting(1, "events in one document", metavar="N", within=(1, 100_000))
    insert_query_back: str = insert_query_back_setting()
    time_syntax: int = setting(
        1, "times as seconds since 1970 (1), as digits (2) or as ISO text (3)", choices=("1", "2", "3")
    )
    pretty: bool = setting(False, "indent documents for people")


@dataclass(frozen=True, slots=True)
class XdsFileSettings(XdsSettings):
    """The limits of documents in a file, which may come from anyone."""

    max_record: int = max_record_setting()
    max_value: int = max_value_setting()
