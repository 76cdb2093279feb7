"""A capture in a file as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape, Source
from eventlog.files.inputs import Advance, open_sources, stem_of
from eventlog.gbase.changes import read_source, reader
from eventlog.gbase.settings import GbaseSettings
from eventlog.jobs.job import Job
from eventlog.sequence.ordered import COMMITS
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.sources.growing_stream import Growing, load_position
from eventlog.sources.stream_feed import StreamFeed


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
        self._reading = reading
        self._opened = open_sources([name], Shape.BYTES, None, advance, job.limits)
        source: Source[bytes] = Source(name, stem_of(name), (), ())
        self._stream = reader(reading, job.tables, source, load_position(position))

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


def capture(
    job: Job, name: str, reading: GbaseSettings, state: str | None, follow: bool, advance: Advance
) -> StreamFeed:
    """Return the capture in a file, or in a pipe; one that is followed stays open between rounds."""
    growing: list[Growing] = []

    def opened(position: Any) -> CaptureReading | Growing:
        if not follow:
            return CaptureReading(job, reading, name, position, advance)
        if not growing:
            growing.append(Growing(name, job.tables, reading, load_position(position)))
        return growing[0]

    return StreamFeed(name, opened, COMMITS["gbase"], job.settings(StreamSettings).since, state)
