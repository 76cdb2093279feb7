"""The settings of messages that are read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.numbering import Arrival
from eventlog.formats.qlik.qlik_settings import QlikSettings
from eventlog.formats.qlik.transaction_places import MemorySorter, OpenSorter


@dataclass(frozen=True, slots=True)
class MessageSettings(QlikSettings):
    """The settings of Qlik's messages."""

    encoding: str = setting("json", "how messages are encoded", choices=("json", "avro"))
    framing: str = setting(
        "envelope", "the framing of Avro messages: Replicate's envelope, or Confluent's wire format",
        choices=("envelope", "confluent"),
    )  # fmt: skip
    logical_types: bool = setting(False, "write dates, times and decimals as logical types of Avro")
    table_names: str = setting(
        "message", "where schema and table are written", choices=("message", "headers", "off")
    )
    metadata: bool = setting(True, "write metadata messages, and their ids into data messages")
    external_schema_id: bool = setting(False, "write the header externalSchemaId")
    whole_transactions: bool = setting(False, "read only complete transactions, each change once")
    replicate_server: str = setting("", "the name of the Replicate server in metadata messages")
    task: str = setting("", "the name of the task of Replicate in metadata messages")
    published: tuple[Metadata, ...] = ()  # metadata that were written or read before, in their order
    table_of_topic: bool = False  # a source has the name of its table, if its messages name none
    schema_of: Callable[[int], str] | None = None  # of a registry, by id
    register: Callable[[str, str], int] | None = None  # at a registry: table and schema, for an id
    since: str = ""  # the change_seq after which the source is read
    arrival: Arrival = Arrival.ANY  # of the changes that are written
    open_sorter: OpenSorter = MemorySorter

    def __post_init__(self) -> None:
        if self.framing == "confluent":  # whose wire format holds Avro and nothing else here
            object.__setattr__(self, "encoding", "avro")
