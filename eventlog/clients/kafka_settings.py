"""The settings of Kafka's brokers and of a schema registry, for topics that are read or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventlog.core.errors import InvalidValue, Misuse
from eventlog.core.redaction import header_word, http_address
from eventlog.core.settings import setting
from eventlog.files.small_files import read_secret

_FLAGS = {"group.id": "--kafka-group"}
_BROKERS = frozenset(("bootstrap.servers", "test.mock.num.brokers"))  # which name brokers, too


def read_options(text: str) -> dict[str, str]:
    """Return librdkafka's own settings, given as name=value with commas."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise InvalidValue(text.partition("=")[0], "name=value, several with commas")
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True, slots=True)
class Brokers:
    """The settings by which brokers of Kafka are reached."""

    kafka_brokers: str | None = setting(
        None, "the brokers to begin with: host:port, several with commas", metavar="HOST:PORT,..."
    )
    kafka_timeout: float = setting(
        30.0,
        "seconds to wait for a broker; a message that none confirms by then is not delivered",
        metavar="S",
        within=(0.01, 86_400),
    )
    kafka_options: str = setting(
        "",
        "further settings of librdkafka, such as security.protocol=SSL",
        metavar="N=V,…",
        check=read_options,
    )

    def librdkafka(self, user: str) -> dict[str, Any]:
        """Return the settings of a client; raise Misuse, with its user, if no broker is named."""
        options = read_options(self.kafka_options)
        if self.kafka_brokers is None and not options.keys() & _BROKERS:
            raise Misuse(f"{user} needs the setting kafka-brokers")
        return {
            "bootstrap.servers": self.kafka_brokers or "",
            "log_level": 0,  # messages of librdkafka come as errors
        } | options


@dataclass(frozen=True, slots=True)
class KafkaSettings(Brokers):
    """The brokers and topics of Kafka."""

    kafka: str = setting(
        "", "the topic that is read or written; when reading, also several", metavar="TOPIC,..."
    )
    kafka_topics: str = setting(
        "one", "write to one topic, or to one for each table", choices=("one", "table")
    )
    kafka_metadata_topic: str = setting(
        "", "the topic of metadata messages; without it they are among the data"
    )
    kafka_key: str = setting(
        "primary-key", "the key of data messages", choices=("none", "primary-key", "table")
    )
    kafka_group: str = setting("eventlog", "the consumer group whose offsets are kept")
    schema_registry: str = setting(
        "", "the registry of --framing confluent", metavar="URL", check=http_address
    )
    registry_user: str = setting("", "the user of basic authentication at the registry", metavar="USER")
    registry_password: str = setting("", "its password; better in the environment", metavar="WORD")
    registry_token: str = setting(
        "",
        "the token of bearer authentication; better in the environment",
        metavar="TOKEN",
        check=header_word,
    )
    registry_secret_file: str = setting(
        "", "a file with the password or, without a user, the token", metavar="FILE"
    )
    registry_ca: str = setting(
        "", "certificates that are trusted instead of the system's, for the registry", metavar="FILE"
    )
    registry_cert: str = setting("", "our own certificate and key, for a registry that asks", metavar="FILE")

    @property
    def registry_identity(self) -> tuple[str, str, str]:
        """Return user, password and token for the registry; a secret may be in a file."""
        secret = read_secret(self.registry_secret_file) if self.registry_secret_file else ""
        user, password, token = self.registry_user, self.registry_password, self.registry_token
        if user and token:
            raise Misuse("registry-user and registry-token are two ways to log in: give one")
        return (user, password or secret, "") if user else ("", "", token or secret)

    @property
    def brokers(self) -> str:
        """The addresses by which the brokers are reached."""
        return str(self.librdkafka("a topic")["bootstrap.servers"])

    def topic_of(self, schema: str | None, table: str) -> str:
        """Return the topic of a table's data messages."""
        if self.kafka_topics == "one":
            return self.kafka
        return ".".join(name for name in (self.kafka, schema, table) if name)

    def client(self, **client_options: Any) -> dict[str, Any]:
        """Return the configuration of a client."""
        for name in read_options(self.kafka_options).keys() & _FLAGS.keys():
            raise Misuse(f"kafka-options: {name} is {_FLAGS[name]}")
        return self.librdkafka("a topic") | client_options
