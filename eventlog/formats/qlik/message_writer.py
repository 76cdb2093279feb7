"""Messages written: before the first of a structure its metadata message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from eventlog.core.change import Change, Op, check_decoded
from eventlog.core.errors import EventlogError, Misuse, NotExpressible, Refused
from eventlog.core.grouped_warnings import unchanged_updates
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.formats.qlik import avro, metadata, sequence
from eventlog.formats.qlik.headers import utc_millis
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.numbering import (
    Arrival,
    Drafted,
    HeldDrafts,
    Numbered,
    key_of_transaction,
    memory_of,
    number_drafts,
    without_no_ops,
)
from eventlog.formats.qlik.records import RecordWriter
from eventlog.formats.qlik.structure import (
    Structure,
    check_width,
    in_message,
    observe,
    shown,
    structure_of,
)
from eventlog.formats.qlik.transaction_windows import HeldChanges, KeyedChange, in_sequence, in_windows

Message = dict[str, Any] | bytes
_MAX_ENCODERS = 10_000


class FallingSequence(EventlogError):
    """{0}: change_seq {1} comes after {2}, and those of a run never fall: {3}"""


# why messages have no place in their transactions
_AS_IS = "--order as-is does not show where transactions end"
_CUT = "--since or --until may cut their transactions"
# what to do about a change_seq that falls
_SORT = "--order sequence sorts the changes"
_MIXED = "one was made for a change without a change_seq, so convert such changes in a run of their own"
_START_AGAIN = "a new run begins with it; with --follow, a greater --settle keeps change tables in one order"


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A message, with what decides its topic and partition."""

    message: Message
    metadata: Metadata | None  # of a metadata message
    change: Change | None  # of a data message
    structure: Structure


class Unnumbered(NamedTuple):
    """A message without the numbers of its change, which are filled in at the end."""

    message: dict[str, Any]
    writer: RecordWriter
    encode: Callable[[dict[str, Any]], Message]


class MessageWriter:
    """Writes messages, and keeps the last structure of each table."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        if settings.framing == "confluent" and (settings.encoding != "avro" or settings.register is None):
            raise Misuse("Confluent's wire format needs encoding avro and a schema registry")
        if settings.encoding == "avro":
            avro.library()  # if it is missing, that is reported before anything is read
        self._tables = tables
        self._settings = settings
        self._avro = settings.encoding == "avro"
        self._last = memory_of(settings, settings.published).published
        for at, table_metadata in self._last.items():
            self._last[at] = replace(table_metadata, structure=shown(table_metadata.structure))
        self._writers: dict[tuple[str | None, str], RecordWriter] = {}
        self._due: set[str] = set()  # ids of metadata messages to write before the next message
        self._encoders: dict[str | None, Callable[[dict[str, Any]], Message]] = {}

    def write(self, changes: Iterable[Change]) -> Iterator[WrittenMessage | Refused]:
        """Yield the messages of the changes: before the first of a structure its metadata message."""
        settings = self._settings
        drops = settings.no_op_updates == "drop"
        tally = unchanged_updates()
        if drops:
            changes = without_no_ops(changes, self._tables, tally)
        memory = memory_of(settings, settings.published)
        as_is, uncounted = settings.arrival is Arrival.AS_IS, 0
        claims = _no_time if as_is else _whole_times(settings)
        remedy = _SORT if as_is else _START_AGAIN if memory.written else _MIXED
        for item in number_drafts(
            map(self._drafted, _in_order(changes, settings)),
            memory,
            settings.now,
            recounted=drops,
            claims=claims,
            open_sorter=settings.open_sorter,
        ):
            if isinstance(item, Refused):
                yield item
                continue
            numbered, draft = item
            if seq := numbered.sequence:
                if seq < memory.written:
                    raise FallingSequence(numbered.change.table, seq, memory.written, remedy)
                memory.written = seq
            if claims is not None:
                uncounted += _is_uncounted(numbered)
            yield from self._finish(numbered, draft)
        yield from tally.warnings()
        if uncounted:
            yield _notice_of(uncounted, _AS_IS if as_is else _CUT)

    def _drafted(self, item: KeyedChange | HeldChanges) -> Drafted[Unnumbered] | HeldDrafts[Unnumbered]:
        """Return a change with its draft. A copy of this writer shows which of those that are held are
        refused.
        """
        if not isinstance(item, HeldChanges):
            change, key = item
            return change, key, self._draft(change)
        probe = copy(self)
        probe._last, probe._writers, probe._due = dict(self._last), dict(self._writers), set(self._due)
        return HeldDrafts(probe._drafts(item), self._drafts(item))

    def _drafts(self, changes: Iterable[KeyedChange]) -> Iterator[Drafted[Unnumbered]]:
        return ((change, key, self._draft(change)) for change, key in changes)

    def _draft(self, change: Change) -> Unnumbered | Refused:
        """Return the message of a change without its numbers; Refused if it has none, so that its
        transaction is counted without it.
        """
        try:
            check_decoded(change)
            if change.op is Op.TRUNCATE:
                raise NotExpressible(
                    "a truncate has no message: its operations are INSERT, UPDATE, DELETE, REFRESH"
                )
            writer, new = self._writer(change)
            draft = Unnumbered(writer.draft(change), writer, self._encoding(writer.metadata))
        except EventlogError as fault:
            return Refused(f"{change.table}:{change.position or ''}", str(fault))
        self._writers[change.schema, change.table] = writer
        if new and writer.metadata is not None:
            self._last[change.schema, change.table] = writer.metadata
            self._due.add(writer.metadata.schema_id)
        return draft

    def _finish(self, numbered: Numbered, draft: Unnumbered) -> Iterator[WrittenMessage | Refused]:
        """Yield the messages of one change: one, or the metadata message first."""
        change, (message, writer, encode) = numbered.change, draft
        table_metadata = writer.metadata
        if table_metadata is not None and table_metadata.schema_id in self._due:
            self._due.remove(table_metadata.schema_id)
            if self._settings.framing == "envelope":
                dump = metadata.write_avro if self._avro else metadata.write
                yield WrittenMessage(dump(table_metadata), table_metadata, None, writer.structure)
        try:
            writer.fill(message, numbered)
            yield WrittenMessage(encode(message), None, change, writer.structure)
        except EventlogError as fault:
            yield Refused(f"{change.table}:{change.position or numbered.sequence}", str(fault))

    def _writer(self, change: Change) -> tuple[RecordWriter, bool]:
        """Return the writer for a change, and whether its structure is a new one."""
        at = change.schema, change.table
        writer = self._writers.get(at)
        if writer is not None and writer.holds(change):
            return writer, False
        last = self._last.get(at)
        structure = _observe(self._described_structure(at, writer, last), change)
        check_width(structure)
        if self._avro:
            metadata.check_names(structure)
        if not self._settings.metadata and not self._avro:
            return RecordWriter(structure, None, self._settings), False
        if last is not None and last.structure == structure:
            return RecordWriter(structure, last, self._settings), False
        version = change.fact("table_version") if change.extra else None
        new = self._following(last, structure, version if isinstance(version, int) else 0)
        return RecordWriter(structure, new, self._settings), True

    def _described_structure(
        self, at: tuple[str | None, str], writer: RecordWriter | None, last: Metadata | None
    ) -> Structure | None:
        if writer is not None:
            return writer.structure
        table = self._tables.of(*at)
        if table is not None and table.columns:
            return Structure(*at, tuple(map(in_message, structure_of(table).columns)))
        return last.structure if last else None

    def _following(self, last: Metadata | None, structure: Structure, version: int) -> Metadata:
        """Return the metadata of the structure that a table has after `last`.

        Its version is one more than that of `last`, or that of its source if that is greater.
        """
        settings = self._settings
        version = max(last.version + 1 if last else 1, version)
        schema = avro.data_schema(
            structure.columns, settings.logical_types, settings.table_names, settings.external_schema_id
        )
        return Metadata(
            metadata.schema_id_of(structure, version),
            structure,
            version,
            avro.dump_schema(schema),
            server=settings.replicate_server,
            task=settings.task,
            timestamp=utc_millis(settings.now) if settings.now else "",
        )

    def _encoding(self, table_metadata: Metadata | None) -> Callable[[dict[str, Any]], Message]:
        """Return what makes a message of a data message's payload."""
        schema_id = table_metadata.schema_id if table_metadata else None
        encode = self._encoders.get(schema_id)
        if encode is None:
            if len(self._encoders) >= _MAX_ENCODERS:
                self._encoders.clear()
            encode = self._encoder(table_metadata) if self._avro else partial(_envelope, schema_id)
            self._encoders[schema_id] = encode
        return encode

    def _encoder(self, table_metadata: Metadata | None) -> Callable[[dict[str, Any]], bytes]:
        assert table_metadata is not None
        schema = avro.foreign(table_metadata.data_schema)
        if self._settings.framing == "confluent":
            assert self._settings.register is not None
            number = self._settings.register(str(table_metadata.structure), table_metadata.data_schema)
            return lambda message: avro.frame(number, avro.encode(schema, message))
        if not self._settings.metadata:
            raise NotExpressible("Avro in Replicate's envelope cannot be read without metadata messages")
        around = {**_envelope(table_metadata.schema_id, {}), "magic": avro.MAGIC}
        outer = avro.envelope()
        return lambda message: avro.encode(outer, {**around, "message": avro.encode(schema, message)})


def _in_order(changes: Iterable[Change], settings: MessageSettings) -> Iterator[KeyedChange | HeldChanges]:
    """Yield the changes with their transactions, by change_seq unless the source's order is wanted."""
    if settings.arrival is Arrival.ANY:
        return in_sequence(changes, settings.open_sorter)
    if settings.arrival is Arrival.SEQUENCE:
        return in_windows(changes, settings.open_sorter)
    return ((change, key_of_transaction(change)) for change in changes)


def _no_time(time: str) -> bool:
    return False


def _whole_times(settings: MessageSettings) -> Callable[[str], bool] | None:
    """Return whether the transactions of a time are whole; None if those of all times are."""
    cut_times = {seq[: sequence.TIME] for seq in (settings.since, settings.until) if seq}
    return (lambda time: time not in cut_times) if cut_times else None


def _is_uncounted(numbered: Numbered) -> bool:
    """Return whether a change has no place in its transaction."""
    change = numbered.change
    return numbered.counter is None and change.transaction is not None and change.op is not Op.SNAPSHOT


def _notice_of(uncounted: int, reason: str) -> Refused:
    messages = quantity(uncounted, "message does not state", "messages do not state")
    counters = "transactionEventCounter and transactionLastEvent"
    return Refused("transactions", f"{messages} {counters}, because {reason}", fault=False)


def _observe(described: Structure | None, change: Change) -> Structure:
    """Return a structure that has room for a change; columns that are not described get lengths in bytes."""
    structure = observe(described, change)
    if structure is described:
        return structure
    columns = frozenset(described.columns if described else ())
    return replace(structure, columns=tuple(c if c in columns else in_message(c) for c in structure.columns))


def _envelope(schema_id: str | None, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "magic": "atMSG",
        "type": "DT",
        "headers": None,
        "messageSchemaId": schema_id,
        "messageSchema": None,
        "message": message,
    }
