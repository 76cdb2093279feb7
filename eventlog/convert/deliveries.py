"""Any source of a job as deliveries: whole transactions, with the states that reading goes on from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from eventlog.convert.conversion import (
    Job,
    Report,
    all_given,
    format_named,
    in_order,
    load_current,
    place_of,
    read_changes,
)
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format, Shape, Source
from eventlog.files.inputs import Advance, check_inputs, open_sources, stem_of, stem_told
from eventlog.gbase.format import GbaseSettings, read_source, reader
from eventlog.gbase.transactions import START
from eventlog.places import places
from eventlog.places.growing_stream import Growing, load_position
from eventlog.streams.commits_feed import COMMITS, CommitsFeed
from eventlog.streams.delivery import Delivery, by_transaction
from eventlog.streams.feed import Feed
from eventlog.streams.rows_feed import RowsFeed
from eventlog.streams.settings import StreamSettings


def deliveries(job: Job, state: str | None = None, clock: str = "") -> Iterator[Delivery | Refused]:
    """What the source of a job holds behind a state, in order; the target of the job takes no part.

    A source without positions has no state to go on from, and hands out None for it.
    """
    clock = clock or dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    feed = feed_of(job, state, clock)
    if feed is None:
        if state is not None:
            raise Misuse(f"{job.source_format} has no positions: it cannot be read on from a state")
        yield from by_transaction(_changes(job, clock))
        return
    try:
        yield from feed.round()
    finally:
        feed.close()


def feed_of(
    job: Job, state: str | None, clock: str, follow: bool = False, advance: Advance = lambda size: None
) -> Feed | None:
    """The source of a job, to be read on from a state; None for one without positions.

    A stream that is to be followed stays open between rounds. `advance` is told of what is read of files.
    """
    source = format_named(job.source_format)
    given = all_given(job, source, clock)
    stream = settings.build(StreamSettings, given)
    if stream.order == "as-is":
        raise Misuse("--order as-is has no states: they stand in the sequence")
    make = places.FEEDS.get((source.name, job.place))
    if make is None and job.url:  # the target stands in Kafka, and the source in a database
        make = places.FEEDS.get((source.name, "url"))
    if make is not None:
        return make(source, place_of(job, given), state)
    if source.name == "gbase":
        return _captures(job, settings.build(source.settings, given), stream, state, follow, advance)
    if source.name != "qlik-table":
        return None
    tasks = [FileTables(job, source, "", job.inputs, advance)] * bool(job.inputs)
    tasks += [FileTables(job, source, name, inputs, advance) for name, inputs in job.tasks]
    return RowsFeed(tasks, job.tables, settings.build(source.settings, given), stream, state)


class CaptureReading:
    """One reading of a capture in a file."""

    ended, over = False, None  # it is opened anew in each round

    def __init__(self, job: Job, reading: GbaseSettings, name: str, position: Any, advance: Advance) -> None:
        since = START if position is None else load_position(position)
        self._reading = reading
        self._opened = open_sources([name], Shape.BYTES, None, advance, job.limits)
        source: Source[bytes] = Source(name, stem_of(name), (), ())
        self._stream = reader(reading, job.tables, source, since)

    @property
    def position(self) -> Callable[[], Any]:
        """What gives the position behind what was taken."""
        return self._stream.position._asdict

    def close(self) -> None:
        """Nothing is open between rounds."""

    def answers(self, growing: bool) -> Iterator[Change | Refused | None]:
        """The changes of the capture, behind its position; None where all that came before is whole."""
        for source in self._opened:
            if isinstance(source, Refused):
                yield source
            elif self._reading.framed:
                yield from read_source(self._stream, source, self._reading, growing=growing)
            else:
                yield from self._by_piece(source)
                yield from () if growing else self._stream.close()

    def _by_piece(self, source: Source[bytes]) -> Iterator[Change | Refused | None]:
        """The changes of each piece: those of a transaction come with its commit, all of them."""
        for piece in source.records:
            if isinstance(piece, Refused):
                yield piece
                continue
            yield from self._stream.feed(piece)
            yield None


def _captures(
    job: Job,
    reading: GbaseSettings,
    stream: StreamSettings,
    state: str | None,
    follow: bool,
    advance: Advance,
) -> Feed:
    growing: dict[str, Growing] = {}

    def opened(name: str, position: Any) -> CaptureReading | Growing:
        if not follow:
            return CaptureReading(job, reading, name, position, advance)
        if name not in growing:
            since = START if position is None else load_position(position)
            growing[name] = Growing(name, job.tables, reading, since)
        return growing[name]

    return CommitsFeed(job.all_inputs, opened, COMMITS["gbase"], stream.since, state)


class FileTables:
    """The change tables of one task in files."""

    def __init__(self, job: Job, source: Format, name: str, inputs: Sequence[str], advance: Advance) -> None:
        check_inputs(inputs)
        self.name = name
        self._job = job
        self._advance = advance
        self._shape: Shape = source.shape
        self._beside = source.companion
        stems = {name: stem_told(name, source.companion) for name in inputs}
        ahead = source.describes_others or (lambda name: False)
        self._control = [name for name, stem in stems.items() if ahead(stem)]
        self._inputs = {name: stem for name, stem in stems.items() if not ahead(stem)}
        self.names = tuple(dict.fromkeys(self._inputs.values()))

    def clock(self) -> str:
        """The time part of a change_seq when the files were written: of each table's last, the first."""
        written: dict[str, float] = {}
        for name, stem in self._inputs.items():
            at = dt.datetime.now().timestamp() if name == "-" else Path(name).stat().st_mtime
            written[stem] = max(at, written.get(stem, 0))
        moment = dt.datetime.fromtimestamp(min(written.values(), default=0), dt.UTC)
        return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 10_000:02}"

    def control(self) -> Iterator[Source[Any] | Refused]:
        """The control tables among the files."""
        return self._opened(self._control)

    def open(
        self, low: Callable[[str], str], wanted: Callable[[str], bool]
    ) -> Iterator[Source[Any] | Refused]:
        """The files of the change tables that are wanted, each of which is read as a whole."""
        return self._opened([name for name, stem in self._inputs.items() if wanted(stem)])

    def _opened(self, names: Sequence[str]) -> Iterator[Source[Any] | Refused]:
        return open_sources(
            names, self._shape, self._job.container, self._advance, self._job.limits, self._beside
        )


def _changes(job: Job, clock: str) -> Iterator[Change | Refused]:
    source = format_named(job.source_format)
    refused: list[Refused] = []
    report = Report(refused.append)
    given = all_given(job, source, clock)
    with load_current(job) as current:
        sources = report.good(
            open_sources(
                in_order(job.inputs, source),
                source.shape,
                job.container,
                limits=job.limits,
                beside=source.companion,
            )
        )
        for change in read_changes(job, source, sources, current, report, given):
            yield from refused
            refused.clear()
            yield change
        yield from refused
