"""The registry of places: who reads and writes the records of a format, and where.

A place is asked for by a flag of its own name: `kafka`, `cases`, or `url` for a server. The only input may be
a `folder` of the files sink; the place of other files has no name.
What has no entry is read from files once, and written to them; so are files that are read without a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.extras import extra
from eventlog.core.formats import Format, Memory
from eventlog.core.tables import Tables
from eventlog.files.current_files import CurrentFiles
from eventlog.files.document_folder import is_document_folder
from eventlog.files.inputs import Advance, Input, inputs_of
from eventlog.files.limits import Limits
from eventlog.files.outputs import Part
from eventlog.formats.gbase.address import is_live
from eventlog.formats.qlik.message_writer import MessageWriter
from eventlog.formats.qlik.numbering import SequenceMemory
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.loop import ChangeSource
from eventlog.transfer.ordered import COMMITS, changes_in_order
from eventlog.transfer.report import Report
from eventlog.transfer.settings_by_name import SettingsByName
from eventlog.xds.xds_settings import XdsFileSettings


@dataclass(frozen=True)
class Endpoint:
    """One end of a job, which is read or written: records of a format, and where they are."""

    format: Format
    names: tuple[str, ...]  # of files, or of tables in a database
    tables: Tables
    settings: SettingsByName
    container: str | None = None  # of files whose names do not show it
    place: str = ""
    url: str | None = None
    read: tuple[str, ...] = ()  # files that a target does not replace

    def only_name(self) -> str:
        """Return the only name; raise Misuse if there are several, because streams share no order."""
        if len(self.names) > 1:
            raise Misuse(
                f"{self.format.name}: a run reads one stream, and there are {len(self.names)}: run once for"
                " each, or convert files one after the other with --order as-is"
            )
        return self.names[0]

    @cached_property
    def files(self) -> tuple[Input, ...]:
        """The names with their containers, where they are files."""
        return inputs_of(self.names, self.format.shape, self.container)

    @property
    def limits(self) -> Limits:
        """The limits on what files may contain."""
        return settings.build(Limits, self.settings.options)

    @property
    def connector(self) -> Connector:
        """The functions that read and write these records."""
        return connector_of(self.format.name, self.place)

    @property
    def has_positions(self) -> bool:
        """Return whether states are possible; raise Misuse if the records are wanted as they come."""
        if self.settings(StreamSettings).order == "as-is":
            raise Misuse(
                "--order as-is is for files that are read once: states, topics and databases have a sequence"
            )
        return self.connector.read is not None

    @cached_property
    def of_format(self) -> Any:
        """The settings of the format."""
        return self.settings(self.format.settings)


@dataclass(frozen=True)
class SourceRequest:
    """A source to be read from a state, and what is done with it."""

    source: Endpoint
    state: str | None
    report: Report
    current: CurrentFiles  # the current rows of tables of a log
    follow: bool = False  # it is read round after round
    once: bool = False  # it is read from its beginning, and never again
    whole_transactions: bool = False  # files that are read once are divided into them
    repeats: bool = True  # the target passes over events that it has, so a bad file may be read again
    advance: Advance = lambda size: None  # called as files are read


class Outputs(Protocol):
    """A place for parts; each part is durable when its block ends."""

    @property
    def last(self) -> Part | None: ...

    def part(self) -> AbstractContextManager[Any]: ...


class PartWriter(NamedTuple):
    """A writer of parts: of a folder, of a file that grows, or of topics."""

    outputs: Outputs
    write: Callable[[Iterable[Change], Any], object]  # to the output of a part
    memory: Memory | None  # the state of the format's writer
    seconds: float = 0.0  # that a part may wait for more where the source pauses


Read = Callable[[SourceRequest], ChangeSource]
WriteAll = Callable[[Iterable[Change], Endpoint], Iterator[Refused]]
OpenParts = Callable[[Endpoint, Any, Report], PartWriter]


@dataclass(frozen=True)
class Connector:
    """The functions that read and write the records of a format at a place."""

    read: Read | None = None  # from a state, once or round after round
    write: WriteAll | None = None  # all changes at once
    parts: OpenParts | None = None  # part after part, on from what a state keeps of its writer
    is_here: Callable[[str | None], bool] = bool  # whether what is named for the place names one for reading

    def reads(self, name: str | None) -> bool:
        """Return whether a source of that name is read here."""
        return self.read is not None and self.is_here(name)


def connector_of(format_name: str, place: str) -> Connector:
    """Return the functions for a format at a place; an empty Connector if the registry has no entry."""
    return CONNECTORS.get((format_name, place), Connector())


def refuse_place(place: str, *names: str) -> NoReturn:
    """Raise Misuse, because records of these formats are neither read nor written at a place."""
    right = ", ".join(name for name, of in CONNECTORS if of == place)
    raise Misuse(f"--{place} is no place for {' or '.join(names)}, only for {right}")


def _read_topics(request: SourceRequest) -> ChangeSource:
    from eventlog.transfer.sources.sequenced_feed import SequencedFeed, TopicReading

    source = request.source
    with extra("kafka", "--kafka"):
        from eventlog.clients.topic_reader import Topics
        from eventlog.transfer.sources.metadata_topic import with_metadata

    topics = Topics(source.settings(KafkaSettings), source.of_format.encoding)
    reading, stream = with_metadata(topics, source.of_format), source.settings(StreamSettings)
    return SequencedFeed(TopicReading(topics, source.tables, reading, stream, request.state))


def _read_debezium_topics(request: SourceRequest) -> ChangeSource:
    from eventlog.transfer.sources.debezium_topics import DebeziumReading
    from eventlog.transfer.sources.sequenced_feed import SequencedFeed

    source, stream = request.source, request.source.settings(StreamSettings)
    with extra("kafka", "--kafka"):
        from eventlog.clients.topic_reader import Topics
    if stream.since:
        raise Misuse("--since takes no part: messages of Debezium have no sequence over all topics")
    topics = Topics(source.settings(KafkaSettings))
    return SequencedFeed(DebeziumReading(topics, source.tables, source.of_format, stream, request.state))


def _topic_parts(target: Endpoint, dumped: Any, report: Report) -> PartWriter:
    """Write to topics; a part that a failure repeats has the same change sequences as before."""
    with extra("kafka", "--kafka"):
        from eventlog.transfer.targets.topics import Sender, read_topic_state

    kafka, writing = target.settings(KafkaSettings), target.of_format
    memory = (
        read_topic_state(target.tables, writing, kafka) if dumped is None else SequenceMemory.load(dumped)
    )
    writer = MessageWriter(target.tables, replace(writing, memory=memory))

    def write(changes: Iterable[Change], sender: Sender) -> None:
        for written in writer.write(changes):
            if isinstance(written, Refused):
                report.refuse_change(written)
            elif (refused := sender.send(written)) is not None:
                (report.refuse if written.change is None else report.refuse_change)(refused)

    return PartWriter(Sender(kafka), write, memory, 1.0)


def _write_cases(changes: Iterable[Change], target: Endpoint) -> Iterator[Refused]:
    """Write a folder for each event; the last folders may be missing if the run ends before."""
    from eventlog.xds.cases import write_cases  # loads a parser that no other output needs

    numbers = count(1)
    for case in write_cases(changes, target.tables, target.settings(XdsFileSettings)):
        if isinstance(case, Refused):
            yield case
            continue
        folder = Path(target.only_name()) / f"{next(numbers):06}"
        folder.mkdir(parents=True)
        (folder / "input.xds").write_text(case.input, encoding="utf-8")
        (folder / "directory.xds").write_text(case.directory, encoding="utf-8")


def _read_change_tables(request: SourceRequest) -> ChangeSource:
    from eventlog.sql.connect import connect_any
    from eventlog.transfer.sources import change_tables
    from eventlog.transfer.sources.sequenced_feed import ChangeTableReading, SequencedFeed

    source = request.source
    reading, stream = source.of_format, source.settings(StreamSettings)
    names = _table_names(source.names, reading.suffix)
    inputs = change_tables.StoredTables(connect_any(str(source.url)), names, source.tables, reading)
    return SequencedFeed(
        ChangeTableReading(inputs, source.tables, reading, stream, request.state, request.once)
    )


def _table_names(names: Iterable[str], suffix: str) -> list[str]:
    """Return the change tables of these names, which may lack their suffix."""
    return [name if name.lower().endswith(suffix.lower()) else name + suffix for name in names]


def _write_change_tables(changes: Iterable[Change], target: Endpoint) -> Iterator[Refused]:
    from eventlog.sql.connect import connect_any
    from eventlog.transfer.sources import change_tables

    engine = connect_any(str(target.url))
    writing = target.of_format
    names = [change_tables.name_of(table.schema, table.name, writing) for table in target.tables]
    last = change_tables.last_sequence(engine, names, writing.header_prefix)
    options = {"last_sequence": last} | target.settings.complete
    return change_tables.write(changes, target.tables, settings.build(type(writing), options), engine)


def _read_queue(request: SourceRequest) -> ChangeSource:
    from eventlog.sql.connect import connect
    from eventlog.transfer.sources.queues import StoredQueue
    from eventlog.transfer.sources.stream_feed import StreamFeed

    source = request.source
    name = source.only_name() if source.names else "DISPATCH_QUEUE"

    def opened(position: Any) -> StoredQueue:
        url = str(source.url)
        return StoredQueue(lambda: connect(url), source.tables, source.of_format, name, position)

    return StreamFeed(name, opened, COMMITS["linter"], source.settings(StreamSettings).since, request.state)


def _capture(request: SourceRequest) -> ChangeSource:
    from eventlog.transfer.sources.capture_feed import CaptureFeed

    source, report = request.source, request.report
    options = source.settings.options
    return CaptureFeed(
        str(source.url), source.names, source.tables, options, request.state, report.refuse, report.inform
    )


def _read_files(request: SourceRequest) -> ChangeSource:
    from eventlog.transfer.sources.sequenced_feed import ChangeTableReading, FileTables, SequencedFeed

    source = request.source
    files = FileTables(source.names, source.format.shape, source.container, source.limits, request.advance)
    stream = source.settings(StreamSettings)
    return SequencedFeed(ChangeTableReading(files, source.tables, source.of_format, stream, request.state))


def _read_folder(request: SourceRequest) -> ChangeSource:
    from eventlog.transfer.sources.document_folders import DocumentFolder

    source, stream = request.source, request.source.settings(StreamSettings)
    read = partial(changes_in_order, source.format, source.tables, source.of_format, stream)
    return DocumentFolder(source.only_name(), source.limits, read, request.state, reads_again=request.repeats)


def _read_stream(request: SourceRequest) -> ChangeSource:
    from eventlog.transfer.sources.captured_files import capture

    source = request.source
    return capture(
        source.only_name(),
        source.tables,
        source.of_format,
        source.settings(StreamSettings).since,
        request.state,
        follow=request.follow,
        limits=source.limits,
        advance=request.advance,
    )


CONNECTORS: dict[tuple[str, str], Connector] = {
    ("qlik-message", "kafka"): Connector(_read_topics, parts=_topic_parts),
    ("debezium", "kafka"): Connector(_read_debezium_topics),
    ("qlik-table", "url"): Connector(_read_change_tables, _write_change_tables),
    ("qlik-table", ""): Connector(_read_files),
    ("linter", "url"): Connector(_read_queue),
    ("xds", "cases"): Connector(write=_write_cases),
    ("xds", "folder"): Connector(_read_folder, is_here=is_document_folder),
    ("gbase", "url"): Connector(_capture, is_here=is_live),
    ("gbase", ""): Connector(_read_stream),
}
