"""The registry of places: who reads and writes the records of a format, and where.

A place is asked for by a flag of its own name: `kafka`, or `url` for a server; files have no name.
What has no entry is read from files once, and written to them; so are files that are read without a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.extras import extra
from eventlog.files.inputs import Advance
from eventlog.gbase.address import is_live
from eventlog.gbase.gbase_settings import GbaseSettings
from eventlog.sequence.ordered import COMMITS
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.sources.place_settings import KafkaSettings
from eventlog.transfer.job import Job, only_stream
from eventlog.transfer.loop import ChangeSource
from eventlog.transfer.report import Report


@dataclass(frozen=True)
class Opening:
    """The job and the state from which a source is opened; the settings of the job are complete."""

    job: Job
    state: str | None
    report: Report
    follow: bool = False  # it is read round after round
    once: bool = False  # it is read from its beginning, and never again
    advance: Advance = lambda size: None  # called as files are read


Read = Callable[[Opening], ChangeSource]
WriteAll = Callable[[Iterable[Change], Job], Iterator[Refused]]


@dataclass(frozen=True)
class Place:
    """The functions that read and write the records of a format at a place."""

    read: Read | None = None  # from a state, once or round after round
    write: WriteAll | None = None


def place_of(format_name: str, place: str) -> Place:
    """Return the functions for a format at a place; an empty Place if the registry has no entry."""
    return PLACES.get((format_name, place), Place())


def _read_topics(opening: Opening) -> ChangeSource:
    from eventlog.sources.sequenced_feed import SequencedFeed, TopicReading

    job = opening.job
    with extra("kafka", "--kafka"):
        from eventlog.sources.kafka import Topics

    reading = job.settings(job.source.settings)
    topics = Topics(job.settings(KafkaSettings), reading.encoding)
    stream = job.settings(StreamSettings)
    return SequencedFeed(TopicReading(topics, job.tables, topics.reading(reading), stream, opening.state))


def _write_topics(changes: Iterable[Change], job: Job) -> Iterator[Refused]:
    with extra("kafka", "--kafka"):
        from eventlog.targets.topics import publish, read_topic_state

    writing, kafka = job.settings(job.target.settings), job.settings(KafkaSettings)
    settings_with_memory = replace(writing, memory=read_topic_state(job.tables, writing, kafka))
    return publish(changes, job.tables, settings_with_memory, kafka)


def _read_change_tables(opening: Opening) -> ChangeSource:
    from eventlog.sources import change_tables
    from eventlog.sources.sequenced_feed import ChangeTableReading, SequencedFeed
    from eventlog.sql.connect import connect_any

    job = opening.job
    reading = job.settings(job.source.settings)
    engine = connect_any(str(job.url))
    names = _table_names(job.names, reading.suffix)
    inputs = change_tables.StoredTables(engine, names, job.tables, reading)
    stream = job.settings(StreamSettings)
    return SequencedFeed(ChangeTableReading(inputs, job.tables, reading, stream, opening.state, opening.once))


def _table_names(names: Iterable[str], suffix: str) -> list[str]:
    """Return the change tables of these names, which may lack their suffix."""
    return [name if name.lower().endswith(suffix.lower()) else name + suffix for name in names]


def _write_change_tables(changes: Iterable[Change], job: Job) -> Iterator[Refused]:
    from eventlog.sources import change_tables
    from eventlog.sql.connect import connect_any

    engine = connect_any(str(job.url))
    writing = job.settings(job.target.settings)
    names = [change_tables.name_of(table.schema, table.name, writing) for table in job.tables]
    last = change_tables.last_sequence(engine, names, writing.header_prefix)
    options = {"last_sequence": last} | dict(job.options)
    return change_tables.write(changes, job.tables, settings.build(job.target.settings, options), engine)


def _read_queue(opening: Opening) -> ChangeSource:
    from eventlog.sources.queues import StoredQueue
    from eventlog.sources.stream_feed import StreamFeed
    from eventlog.sql.connect import connect

    job = opening.job
    name = only_stream(job.source_format, job.names or ("DISPATCH_QUEUE",))

    def opened(position: Any) -> StoredQueue:
        reading = job.settings(job.source.settings)
        return StoredQueue(lambda: connect(str(job.url)), job.tables, reading, name, position)

    return StreamFeed(name, opened, COMMITS["linter"], job.settings(StreamSettings).since, opening.state)


def _capture(opening: Opening) -> ChangeSource:
    from eventlog.sources.capture_feed import CaptureFeed

    job = opening.job
    url = str(job.url)
    if not is_live(url):
        raise Misuse(f"{url.partition('://')[0]} is no server whose changes are captured")
    report = opening.report
    return CaptureFeed(url, job.names, job.tables, job.options, opening.state, report.refuse, report.inform)


def _read_files(opening: Opening) -> ChangeSource:
    from eventlog.sources.sequenced_feed import ChangeTableReading, FileTables, SequencedFeed

    job = opening.job
    reading, stream = job.settings(job.source.settings), job.settings(StreamSettings)
    files = FileTables(job.inputs, job.source.shape, job.container, job.limits, opening.advance)
    return SequencedFeed(ChangeTableReading(files, job.tables, reading, stream, opening.state))


def _read_stream(opening: Opening) -> ChangeSource:
    from eventlog.sources.captured_files import capture

    job = opening.job
    return capture(
        only_stream(job.source_format, job.inputs),
        job.tables,
        job.settings(GbaseSettings),
        job.settings(StreamSettings).since,
        opening.state,
        follow=opening.follow,
        limits=job.limits,
        advance=opening.advance,
    )


PLACES: dict[tuple[str, str], Place] = {
    ("qlik-message", "kafka"): Place(_read_topics, _write_topics),
    ("qlik-table", "url"): Place(_read_change_tables, _write_change_tables),
    ("qlik-table", ""): Place(_read_files),
    ("linter", "url"): Place(_read_queue),
    ("gbase", "url"): Place(_capture),
    ("gbase", ""): Place(_read_stream),
}
