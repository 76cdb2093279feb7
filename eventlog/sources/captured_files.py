"""Captures in files as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape, Source
from eventlog.files.inputs import Advance, open_sources, stem_of
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream_sources import read_source, reader
from eventlog.gbase.transactions import START
from eventlog.jobs.job import Job
from eventlog.sequence.commits import COMMITS
from eventlog.sequence.settings import StreamSettings
from eventlog.sources.commits_feed import CommitsFeed
from eventlog.sources.growing_stream import Growing, load_position


class CaptureReading:
    """One reading of a capture in a file."""

    ended, over = False, None  # it is opened anew in each round

    def __init__(
        self,
        job: Job,
        reading: GbaseSettings,
        name: str,
        position: Any,
        advance: Advance,
    ) -> None:
        since = START if position is None else load_position(position)
        self._reading = reading
        self._opened = open_sources([name], Shape.BYTES, None, advance, job.limits)
        source: Source[bytes] = Source(name, stem_of(name), (), ())
        self._stream = reader(reading, job.tables, source, since)

    @property
    def position(self) -> Callable[[], Any]:
        """Return a function for the position after what was taken."""
        return self._stream.position._asdict

    def close(self) -> None:
        """Do nothing, because no file is open between rounds."""

    def answers(self, growing: bool) -> Iterator[Change | Refused | None]:
        """Yield the changes of the capture after its position; None where all transactions before it are
        whole.
        """
        for source in self._opened:
            if isinstance(source, Refused):
                yield source
            elif self._reading.framed:
                yield from read_source(self._stream, source, self._reading, growing=growing)
            else:
                yield from self._by_piece(source, growing)

    def _by_piece(self, source: Source[bytes], growing: bool) -> Iterator[Change | Refused | None]:
        """Yield the changes of each piece: those of a transaction come with its commit, all of them."""
        for piece in source.records:
            if isinstance(piece, Refused):
                yield piece
                continue
            yield from self._stream.feed(piece)
            yield None
        yield from () if growing else self._stream.close()


def captures(
    job: Job,
    reading: GbaseSettings,
    state: str | None,
    follow: bool,
    advance: Advance,
) -> CommitsFeed:
    """Return the captures of a job as one source; those that are followed stay open between rounds."""
    growing: dict[str, Growing] = {}
    since = job.settings(StreamSettings).since

    def opened(name: str, position: Any) -> CaptureReading | Growing:
        if not follow:
            return CaptureReading(job, reading, name, position, advance)
        if name not in growing:
            start = START if position is None else load_position(position)
            growing[name] = Growing(name, job.tables, reading, start)
        return growing[name]

    return CommitsFeed(job.inputs, opened, COMMITS["gbase"], since, state)
