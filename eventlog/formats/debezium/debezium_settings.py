"""The settings of messages of Debezium."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting


@dataclass(frozen=True, slots=True)
class DebeziumSettings:
    """The settings of Debezium's messages."""

    time_precision: str = setting(
        "auto",
        "Debezium's time.precision.mode, where messages have no schema; auto is the connector's own default.",
        choices=("auto", "adaptive", "adaptive_time_microseconds", "connect"),
    )
    decimals: str = setting(
        "precise",
        "Debezium's decimal.handling.mode, where messages have no schema.",
        choices=("precise", "string"),
    )
    unavailable: str = setting(
        "__debezium_unavailable_value",
        "Debezium's unavailable.value.placeholder: the text of a value that was not captured.",
        metavar="TEXT",
    )
    message_schemas: bool = setting(False, "Write each message with its schema.")
    message_keys: bool = setting(False, "Write each message with its key, and a tombstone after each delete.")
    topic_prefix: str = setting("eventlog", "Debezium's topic.prefix: the name of the server in messages.")
