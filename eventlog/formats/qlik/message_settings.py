"""The settings of messages that are read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.headers import header_time_setting
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.numbering import SequenceMemory
from eventlog.formats.qlik.structure import Structure


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """The settings of Qlik's messages."""

    table: str = setting("", "the table of messages that name none; for Kafka the topic")
    encoding: str = setting("json", "how messages are encoded", choices=("json", "avro"))
    framing: str = setting(
        "envelope", "the framing of Avro messages: Replicate's envelope, or Confluent's wire format",
        choices=("envelope", "confluent"),
    )  # fmt: skip
    logical_types: bool = setting(False, "write dates, times and decimals as logical types of Avro")
    mask_order: str = setting(
        "auto",
        "byte order of the masks; auto reads the one that a mask or beforeData proves, and writes big",
        choices=("auto", "little", "big"),
    )
    header_time_format: str = header_time_setting()
    table_names: str = setting(
        "message", "where schema and table are written", choices=("message", "headers", "off")
    )
    metadata: bool = setting(True, "write metadata messages, and their ids into data messages")
    external_schema_id: bool = setting(False, "write the header externalSchemaId")
    before_images: bool = setting(True, "write beforeData on updates")
    no_op_updates: str = setting(
        "write",
        "updates that are known to change nothing: written or dropped",
        choices=("write", "drop"),
    )
    whole_transactions: bool = setting(False, "read only complete transactions, each change once")
    until: str = setting("", "read to this change_seq, and no further", metavar="SEQ")
    server: str = setting("", "the name of the server in metadata messages")
    task: str = setting("", "the name of the task in metadata messages")
    last_sequence: str = setting(sequence.START, "the change_seq to continue after", metavar="SEQ")
    now: str = setting("", "the time of metadata messages, and of changes that have none", metavar="TIME")
    published: tuple[Metadata, ...] = ()  # metadata that were written or read before, in their order
    memory: SequenceMemory | None = None  # the state of a writer, which it keeps up to date
    table_of_topic: bool = False  # a source has the name of its table, if its messages name none
    on_structure: Callable[[Structure], None] | None = None  # called with each structure that is read
    schema_of: Callable[[int], str] | None = None  # of a registry, by id
    register: Callable[[str, str], int] | None = None  # at a registry: table and schema, for an id

    def __post_init__(self) -> None:
        if self.framing == "confluent":  # whose wire format holds Avro and nothing else here
            object.__setattr__(self, "encoding", "avro")
