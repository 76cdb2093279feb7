"""The settings of topics that are read and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventlog.core.address import http_address
from eventlog.core.errors import Misuse
from eventlog.core.settings import setting


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    kafka_brokers: str = setting("localhost:9092", "the brokers to begin with", metavar="HOST:PORT,...")
    kafka: str = setting(
        "", "the topic that is read or written; when reading, also several", metavar="TOPIC,..."
    )
    kafka_topics: str = setting(
        "one", "write to one topic, or to one for each table", choices=("one", "table")
    )
    kafka_metadata_topic: str = setting("", "the topic of metadata messages; else they stand among the data")
    kafka_key: str = setting(
        "primary-key", "the key of data messages", choices=("none", "primary-key", "table")
    )
    kafka_group: str = setting("eventlog", "the consumer group whose offsets are kept")
    schema_registry: str = setting(
        "", "the registry of --framing confluent", metavar="URL", check=http_address
    )
    kafka_timeout: float = setting(30.0, "seconds to wait for a broker", metavar="SECONDS")
    kafka_options: str = setting(
        "", "further settings of librdkafka, such as security.protocol=SSL", metavar="N=V,…"
    )

    def client(self, **own: Any) -> dict[str, Any]:
        """The configuration of a client."""
        quiet = {"log_level": 0}  # what librdkafka has to say comes as errors
        return {"bootstrap.servers": self.kafka_brokers} | quiet | _options(self.kafka_options) | own


def _options(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise Misuse(f"kafka-options: {text.partition('=')[0]!r} is not name=value, several with commas")
    return {name.strip(): value.strip() for name, _, value in pairs}
