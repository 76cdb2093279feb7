"""The registry of places: who reads and writes the records of a format, and where.

A place is asked for by a flag of its own name: `kafka`, or `url` for a server; files have no name.
What has no entry is read from files once, and written to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.extras import extra
from eventlog.files.inputs import Advance
from eventlog.files.statefile import read_state, write_state
from eventlog.gbase.address import is_live
from eventlog.gbase.settings import GbaseSettings
from eventlog.jobs.job import Job, only_stream
from eventlog.jobs.report import Report
from eventlog.sequence.commits import COMMITS
from eventlog.sequence.settings import StreamSettings
from eventlog.sources.kafka_settings import KafkaSettings
from eventlog.sources.source import ChangeSource

Answers = Iterable[Change | Refused]


@dataclass(frozen=True)
class Opening:
    """The job and the state from which a source is opened; the settings of the job are complete."""

    job: Job
    state: str | None
    report: Report
    follow: bool = False  # it is read round after round
    advance: Advance = lambda size: None  # hears how far the files are read


# The changes from the beginning, or from where the place keeps how far they were read; and what is to be
# called when all of them are written.
ReadOnce = Callable[[Job, ExitStack], tuple[Answers, Callable[[], None]]]
ReadOn = Callable[[Opening], ChangeSource]
WriteAll = Callable[[Iterable[Change], Job], Iterator[Refused]]


@dataclass(frozen=True)
class Place:
    """The functions that read and write the records of a format at a place."""

    read: ReadOnce | None = None
    keeps: bool = False  # whether `read` keeps in the job's state file how far it came
    read_on: ReadOn | None = None
    write: WriteAll | None = None


def place_of(format_name: str, place: str) -> Place:
    """Return the functions for a format at a place; an empty Place if the registry has no entry."""
    return PLACES.get((format_name, place), Place())


def _read_topics(job: Job, stack: ExitStack) -> tuple[Answers, Callable[[], None]]:
    with extra("kafka", "--kafka"):
        from eventlog.sources.kafka import Topics

    reading = job.settings(job.source.settings)
    topics = Topics(job.settings(KafkaSettings), reading.encoding)
    stack.callback(topics.close)
    return topics.changes(job.tables, reading, job.settings(StreamSettings)), topics.commit


def _read_on_topics(opening: Opening) -> ChangeSource:
    from eventlog.sources.topics_feed import TopicsFeed

    job = opening.job
    with extra("kafka", "--kafka"):
        from eventlog.sources.kafka import Topics

    reading = job.settings(job.source.settings)
    topics = Topics(job.settings(KafkaSettings), reading.encoding)
    return TopicsFeed(
        topics, job.tables, topics.reading(reading), job.settings(StreamSettings), opening.state
    )


def _write_topics(changes: Iterable[Change], job: Job) -> Iterator[Refused]:
    with extra("kafka", "--kafka"):
        from eventlog.targets.kafka_writing import publish
        from eventlog.targets.topic_state import read_topic_state

    writing, kafka = job.settings(job.target.settings), job.settings(KafkaSettings)
    known = replace(writing, memory=read_topic_state(job.tables, writing, kafka))
    return publish(changes, job.tables, known, kafka)


def _read_change_tables(job: Job, stack: ExitStack) -> tuple[Answers, Callable[[], None]]:
    from eventlog.sources import change_tables
    from eventlog.sql.connect import connect_any

    reading = job.settings(job.source.settings)
    engine = connect_any(str(job.url))
    names = _table_names(job, reading.suffix)
    answers = change_tables.read(engine, names, job.tables, reading, job.settings(StreamSettings))
    return answers, _nothing_to_keep


def _read_on_change_tables(opening: Opening) -> ChangeSource:
    from eventlog.sources import change_tables
    from eventlog.sources.rows_feed import RowsFeed
    from eventlog.sql.connect import connect_any

    job = opening.job
    reading = job.settings(job.source.settings)
    engine = connect_any(str(job.url))
    names = _table_names(job, reading.suffix)
    inputs = change_tables.StoredTables(engine, names, job.tables, reading)
    return RowsFeed(inputs, job.tables, reading, job.settings(StreamSettings), opening.state)


def _table_names(job: Job, suffix: str) -> list[str]:
    """Return the change tables of a job; a name may lack its suffix."""
    return [name if name.lower().endswith(suffix.lower()) else name + suffix for name in job.names]


def _write_change_tables(changes: Iterable[Change], job: Job) -> Iterator[Refused]:
    from eventlog.sources import change_tables
    from eventlog.sql.connect import connect_any

    engine = connect_any(str(job.url))
    writing = job.settings(job.target.settings)
    names = [change_tables.name_of(table.schema, table.name, writing) for table in job.tables]
    last = change_tables.last_sequence(engine, names, writing.header_prefix)
    given = {"last_sequence": last} | dict(job.given)
    return change_tables.write(changes, job.tables, settings.build(job.target.settings, given), engine)


def _read_queue(job: Job, stack: ExitStack) -> tuple[Answers, Callable[[], None]]:
    """Return a LINTER queue, from where the last run left it."""

    from eventlog.linter.changes import QueueReader
    from eventlog.linter.progress import START, dump_state, load_state
    from eventlog.sources.queues import rows
    from eventlog.sources.sql_clock import at_one_moment
    from eventlog.sql.connect import connect

    name = only_stream(job, job.names or ("DISPATCH_QUEUE",))
    since = START if job.state is None else read_state(job.state, load_state, START)
    reader = QueueReader(job.tables, job.settings(job.source.settings).reading(), since)

    def keep() -> None:
        if job.state is not None:
            write_state(job.state, dump_state(reader.state))

    connection = stack.enter_context(at_one_moment(connect(str(job.url))))
    waiting = rows(connection, name, since)
    reader.pass_over(waiting.past)
    return reader.read(waiting.source), keep


def _read_on_queue(opening: Opening) -> ChangeSource:
    from eventlog.sources.queues import StoredQueue
    from eventlog.sources.stream_feed import StreamFeed
    from eventlog.sql.connect import connect

    job = opening.job
    name = only_stream(job, job.names or ("DISPATCH_QUEUE",))

    def opened(position: Any) -> StoredQueue:
        reading = job.settings(job.source.settings).reading()
        return StoredQueue(lambda: connect(str(job.url)), job.tables, reading, name, position)

    return StreamFeed(name, opened, COMMITS["linter"], job.settings(StreamSettings).since, opening.state)


def _capture(opening: Opening) -> ChangeSource:
    from eventlog.sources.capture_feed import CaptureFeed

    job = opening.job
    url = str(job.url)
    if not is_live(url):
        raise Misuse(f"{url.partition('://')[0]} is no server whose changes are captured")
    return CaptureFeed(url, job.names, job.tables, job.given, opening.state, opening.report)


def _read_on_files(opening: Opening) -> ChangeSource:
    from eventlog.sources.change_table_files import FileTables
    from eventlog.sources.rows_feed import RowsFeed

    job = opening.job
    reading, stream = job.settings(job.source.settings), job.settings(StreamSettings)
    return RowsFeed(FileTables(job, opening.advance), job.tables, reading, stream, opening.state)


def _read_on_stream(opening: Opening) -> ChangeSource:
    from eventlog.sources.captured_files import capture

    job = opening.job
    name, reading = only_stream(job, job.inputs), job.settings(GbaseSettings)
    return capture(job, name, reading, opening.state, opening.follow, opening.advance)


def _nothing_to_keep() -> None:
    """No one else is to know how far was read."""


PLACES: dict[tuple[str, str], Place] = {
    ("qlik-message", "kafka"): Place(_read_topics, read_on=_read_on_topics, write=_write_topics),
    ("qlik-table", "url"): Place(
        _read_change_tables, read_on=_read_on_change_tables, write=_write_change_tables
    ),
    ("qlik-table", ""): Place(read_on=_read_on_files),
    ("linter", "url"): Place(_read_queue, keeps=True, read_on=_read_on_queue),
    ("gbase", "url"): Place(read_on=_capture),
    ("gbase", ""): Place(read_on=_read_on_stream),
}
