"""What `import eventlog` offers, with the types of its settings. This file is made by
`python -m tests.project.generated`; `__init__.py` loads each name when it is first used.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypedDict, Unpack

from eventlog.core.change import ABSENT as ABSENT
from eventlog.core.change import Change as Change
from eventlog.core.change import Field as Field
from eventlog.core.change import Op as Op
from eventlog.core.errors import EventlogError as EventlogError
from eventlog.core.errors import Refused as Refused
from eventlog.core.tables import Tables as Tables
from eventlog.library import Description, FileName, OnRefused, Rows
from eventlog.library import Document as Document
from eventlog.library import Explained as Explained
from eventlog.library import Record as Record
from eventlog.library import RecordRefused as RecordRefused
from eventlog.library import read_table_key as read_table_key
from eventlog.library import settings_of as settings_of
from eventlog.library import table_key as table_key
from eventlog.library import tables as tables

__version__: str

_FormatName = Literal["log", "xds", "qlik-table", "qlik-message", "gbase", "linter", "debezium", "changes"]

class _FoldSettings(TypedDict, total=False):
    allow_loopback: bool | None
    """publish loopback rows too"""
    association: Literal["canonical", "as-logged"] | None
    """the association: of the catalogue's names, or with the table_key of the event's first row"""
    driver_user: str | None
    """rows of this user are loopback"""
    handle_future_events: bool | None
    """order by event_time, and let rows wait whose time has not come"""
    insert_query_back: Literal["modify", "add"] | None
    """what event types 5 and 7 become"""
    log_name: str | None
    """the log's name in event-ids"""
    max_changes: int | None
    """values removed or added in one event; a longer one is cut"""
    max_value: int | None
    """bytes of one value; a row with more is refused"""
    now: str | None
    """the clock: the time of written rows and messages, and of what is read without one"""
    status: str | None
    """the letter of the rows that take part"""
    unknown_columns: Literal["send", "refuse"] | None
    """rows of columns that their table lacks: types 1-3 sent as strings, 7 and 8 without a value; or all
    refused"""
    unknown_tables: Literal["error", "string"] | None
    """rows of undescribed tables: refused, or published as strings (types 1-4)"""

class _DocumentSettings(_FoldSettings, total=False):
    pretty: bool | None
    """indent documents for people"""
    time_syntax: Literal[1, 2, 3] | None
    """times as seconds since 1970 (1), as digits (2) or as ISO text (3)"""

class _FormatSettings(TypedDict, total=False):
    batch_size: int | None
    """events in one document"""
    before_images: bool | None
    """write the values before an update: B rows, or beforeData"""
    change_table_schema: str | None
    """the schema where a database's change tables are written; empty: the connection's, *: each table's"""
    code_set: str | None
    """Code set of the database (DB_LOCALE), as Python names it."""
    decimals: Literal["precise", "string"] | None
    """Debezium's decimal.handling.mode, where messages have no schema."""
    encoding: Literal["json", "avro"] | None
    """how messages are encoded"""
    external_schema_id: bool | None
    """write the header externalSchemaId"""
    framed: bool | None
    """The input is a hex dump: a read of the stream a line, lines of xxd, or typed out with notes."""
    framing: Literal["envelope", "confluent"] | None
    """the framing of Avro messages: Replicate's envelope, or Confluent's wire format"""
    header_columns: list[str] | tuple[str, ...] | set[str] | str | None
    """the header columns that are written; if none are named, also a partition_name that the source has"""
    header_prefix: str | None
    """what the names of header columns begin with"""
    header_time_format: Literal["iso", "epoch", "epoch-millis", "epoch-micros"] | None
    """the form of header timestamps: ISO 8601, or a number since 1970 in seconds, milli- or microseconds"""
    insert_query_back: Literal["modify", "add"] | None
    """what event types 5 and 7 become"""
    keep_contradictions: bool | None
    """Give an INSERT or DELETE that has a second part as raw bytes, instead of refusing it."""
    last_sequence: str | None
    """the change_seq to continue after"""
    legacy_typ5: Literal["error", "commit", "rollback"] | None
    """What TYP 5 of an older version means."""
    lengths: Literal["auto", "row", "operation"] | None
    """Whether LEN1 and LEN2 of an operation of several rows are those of the row or of the operation."""
    logical_types: bool | None
    """write dates, times and decimals as logical types of Avro"""
    mask_order: Literal["auto", "little", "big"] | None
    """byte order of change masks; auto reads the one that a mask or the values before an update prove, and
    writes little into change tables, big into messages"""
    max_open: int | None
    """bytes that open transactions may take in memory together"""
    max_record: int | None
    """bytes of a record of the input (a row, a line, a message, an event); a longer one is refused"""
    max_value: int | None
    """bytes of one value; a row with more is refused"""
    message_keys: bool | None
    """Write each message with its key, and a tombstone after each delete."""
    message_schemas: bool | None
    """Write each message with its schema."""
    metadata: bool | None
    """write metadata messages, and their ids into data messages"""
    no_op_updates: Literal["auto", "write", "drop"] | None
    """updates that are known to change nothing: written or dropped; auto writes messages, and drops rows
    of change tables"""
    now: str | None
    """the clock: the time of written rows and messages, and of what is read without one"""
    open_bytes: int | None
    """bytes that open transactions may take on disk"""
    pretty: bool | None
    """indent documents for people"""
    replicate_server: str | None
    """the name of the Replicate server in metadata messages"""
    server: str | None
    """Only what is queued for this destination server."""
    suffix: str | None
    """what the names of change tables end with, after that of their table"""
    table: str | None
    """the table of messages that name none, or of a file whose name does not show it"""
    table_names: Literal["message", "headers", "off"] | None
    """where schema and table are written"""
    task: str | None
    """the name of the task of Replicate in metadata messages"""
    time_order: Literal["big", "little"] | None
    """Byte order of OPER_DATE and REPL_DATE; big as the vendor states it."""
    time_precision: Literal["auto", "adaptive", "adaptive_time_microseconds", "connect"] | None
    """Debezium's time.precision.mode, where messages have no schema; auto is the connector's own default."""
    time_syntax: Literal[1, 2, 3] | None
    """times as seconds since 1970 (1), as digits (2) or as ISO text (3)"""
    time_zone: str | None
    """Zone of OPER_DATE and REPL_DATE, as Europe/Moscow or +03:00; times without it have no zone."""
    topic_prefix: str | None
    """Debezium's topic.prefix: the name of the server in messages."""
    trim_char: bool | None
    """char(n) loses its padding"""
    unavailable: str | None
    """Debezium's unavailable.value.placeholder: the text of a value that was not captured."""
    until: str | None
    """read to this change_seq, and no further"""
    whole_transactions: bool | None
    """read only complete transactions, each change once"""

class _ChangeSettings(_FormatSettings, total=False):
    allow_loopback: bool | None
    """publish loopback rows too"""
    association: Literal["canonical", "as-logged"] | None
    """the association: of the catalogue's names, or with the table_key of the event's first row"""
    driver_user: str | None
    """rows of this user are loopback"""
    handle_future_events: bool | None
    """order by event_time, and let rows wait whose time has not come"""
    log_name: str | None
    """the log's name in event-ids"""
    max_changes: int | None
    """values removed or added in one event; a longer one is cut"""
    status: str | None
    """the letter of the rows that take part"""
    unknown_columns: Literal["send", "refuse"] | None
    """rows of columns that their table lacks: types 1-3 sent as strings, 7 and 8 without a value; or all
    refused"""
    unknown_tables: Literal["error", "string"] | None
    """rows of undescribed tables: refused, or published as strings (types 1-4)"""

class _FileSettings(_ChangeSettings, total=False):
    accept_late: bool | None
    """deliver late rows of change tables: those that became visible after later ones were delivered"""
    follow_interval: float | None
    """seconds between two looks with --follow"""
    open_time: float | None
    """seconds that a transaction of a topic may be open with --follow"""
    open_transactions: Literal["stop", "refuse", "deliver"] | None
    """a transaction with missing changes: stop the run, refuse its changes, or write those that exist"""
    order: Literal["sequence", "as-is"] | None
    """the order of changes: by their sequence over all inputs, or as the inputs have them"""
    settle: float | None
    """seconds by the source's clock after which rows of change tables are taken as all there"""
    since: str | None
    """read only changes after this sequence"""

def changes(
    records: Rows,
    source: _FormatName = "log",
    *,
    tables: Description | None = None,
    current: Mapping[str, Rows] | None = None,
    refused: OnRefused | None = None,
    name: str = "records",
    **options: Unpack[_ChangeSettings],
) -> Iterator[Change]:
    """Yield the changes in records of any format; the rows of a log are folded."""

def documents(
    rows: Rows,
    tables: Description | None = None,
    *,
    current: Mapping[str, Rows] | None = None,
    refused: OnRefused | None = None,
    **options: Unpack[_DocumentSettings],
) -> Iterator[Document]:
    """Yield the documents of the rows of a log, which are one pick-up, in the order in which they leave."""

def explain(
    rows: Rows,
    tables: Description | None = None,
    *,
    current: Mapping[str, Rows] | None = None,
    **options: Unpack[_FoldSettings],
) -> Iterator[Explained]:
    """Yield the fate of each row of a log, including rows that cannot be understood."""

def read(
    inputs: FileName | Iterable[FileName],
    source: _FormatName,
    *,
    tables: Description | None = None,
    current: Mapping[str, Rows] | None = None,
    refused: OnRefused | None = None,
    container: str | None = None,
    **options: Unpack[_FileSettings],
) -> Iterator[Change]:
    """Return the changes in files; all files of a log are one pick-up."""

def records(
    changes: Iterable[Change],
    target: _FormatName,
    *,
    tables: Description | None = None,
    refused: OnRefused | None = None,
    **options: Unpack[_FormatSettings],
) -> Iterator[Record]:
    """Yield the records of a format for the changes."""

def write(
    changes: Iterable[Change],
    output: FileName,
    target: _FormatName,
    *,
    tables: Description | None = None,
    refused: OnRefused | None = None,
    container: str | None = None,
    **options: Unpack[_FormatSettings],
) -> int:
    """Write the changes to a file of a format, which appears when it is complete. Return how many records."""
