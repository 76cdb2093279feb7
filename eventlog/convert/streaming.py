"""Reading on from a state: part after part is written, and the state behind each says what is out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from eventlog.convert.conversion import (
    Job,
    Report,
    all_given,
    allowed,
    expand_truncates,
    format_named,
    load_current,
)
from eventlog.convert.current import CurrentFiles
from eventlog.convert.deliveries import feed_of
from eventlog.convert.transactional import TopicParts
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Format
from eventlog.files.outputs import Output
from eventlog.files.parts import Part, Parts
from eventlog.files.statefile import read_state, write_state
from eventlog.places import places
from eventlog.streams.commits_feed import COMMITS
from eventlog.streams.feed import Feed, NotCopied
from eventlog.streams.ordered import SEQUENCERS

CHANGES: Final = 50_000  # after which a part ends, with its transaction
Write = Callable[[Iterable[Change]], None]


class ChangeSink(Protocol):
    """Where changes go; the part is on disk when the block ends."""

    @property
    def last(self) -> Part | None: ...

    @property
    def written(self) -> Any: ...

    def part(self) -> AbstractContextManager[Write]: ...

    def keep(self, state: Any) -> None:
        """Keep the state behind what was written."""


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def stream(
    job: Job,
    report: Report,
    clock: str,
    follow: bool = False,
    wait: Callable[[float], bool] = _sleep,
) -> None:
    """Read what stands behind the state of a job, write it in parts, and keep the state behind each.

    With `follow` it looks again after a while, as long as `wait` says so.
    """
    kept: dict[str, Any] = {"format": job.source_format, "position": None, "part": None, "written": None}
    if job.state is not None:
        kept = read_state(job.state, _load(job.source_format), kept)
    sink: ChangeSink
    with ExitStack() as stack:
        if job.given.get("kafka_transactional_id"):
            parts = _in_transactions(job, report, clock, kept)
            stack.callback(parts.close)
            sink, kept = parts, parts.kept
        else:
            sink = stack.enter_context(_sink(job, report, clock, kept))
        if job.state is not None and kept["part"] != sink.last:
            kept["part"] = sink.last
            write_state(job.state, kept)
        feed = feed_of(job, kept["position"], clock, follow)
        if feed is None:
            raise Misuse(f"--state and --follow: {job.source_format} there has no positions to go on from")
        stack.callback(feed.close)
        current = stack.enter_context(load_current(job))
        run = _Run(job, report, sink, current, kept)
        while True:
            run.round(feed, follow)
            if not follow or feed.ended or not wait(poll_interval(job)):
                return


def reads_on(job: Job, follow: bool) -> bool:
    """Return whether a job reads its source part after part, each with the state after it."""
    if job.given.get("kafka_transactional_id"):
        return True
    if job.source_format in SEQUENCERS:
        return follow or job.state is not None
    return job.source_format in COMMITS and job.state is not None and is_folder(job.output)


def poll_interval(job: Job) -> float:
    return float(job.given.get("poll_interval") or 5.0)


class _Run:
    """What is written, and how far the source was."""

    def __init__(
        self, job: Job, report: Report, sink: ChangeSink, current: CurrentFiles, kept: dict[str, Any]
    ) -> None:
        self._job = job
        self._report = report
        self._sink = sink
        self._current = current
        self._kept = kept
        self._fault: EventlogError | None = None
        self._warned = False

    def round(self, feed: Feed, follow: bool) -> None:
        """Everything that one round of the source gives."""
        items = feed.round(follow)
        while (first := self._next(items)) is not None:
            with self._sink.part() as write:
                write(self._changes(self._of_part(first, items)))
            self._keep(self._position)
        if self._fault is not None:
            raise self._fault
        self._keep(feed.state)
        try:
            feed.kept()
        except NotCopied as fault:
            if self._job.state is None:
                raise
            if not self._warned:
                self._report.refuse(Refused(self._job.place, str(fault), fault=False))
            self._warned = True

    def _next(self, items: Iterator[Any]) -> Any:
        """The next delivery; what was refused is told. A fault ends the round behind what was handed out."""
        try:
            for item in items:
                if isinstance(item, Refused):
                    self._report.refuse(item)
                elif item.changes:
                    return item
        except EventlogError as fault:
            self._fault = fault
        return None

    def _of_part(self, delivery: Any, items: Iterator[Any]) -> Iterator[Change]:
        """The changes of the deliveries of a part, of which the state behind the last one is kept: to tell it
        behind each would take the square of how many share a time."""
        count = 0
        following = delivery
        while following is not None:
            delivery = following
            yield from delivery.changes
            count += len(delivery.changes)
            following = None if count >= CHANGES else self._next(items)
        self._position = delivery.state

    def _changes(self, changes: Iterable[Change]) -> Iterable[Change]:
        target = format_named(self._job.target_format)
        told = self._report.keyless(self._report.good(allowed(changes, self._job.tables)), target)
        if self._job.expand_truncate:
            return self._report.good(expand_truncates(told, self._job.tables, self._current))
        return told

    def _keep(self, position: str | None) -> None:
        told = self._kept | {"position": position, "part": self._sink.last, "written": self._sink.written}
        if told != self._kept:
            self._sink.keep(told)
        self._kept = told


def _load(source_format: str) -> Callable[[Any], dict[str, Any]]:
    def load(found: Any) -> dict[str, Any]:
        if found["format"] != source_format:
            raise ValueError
        return {name: found[name] for name in ("format", "position", "part", "written")}

    return load


# --- where the parts go


def is_folder(output: str) -> bool:
    """Whether an output is a folder, which then holds parts."""
    return output.endswith("/") or (output != "-" and Path(output).is_dir())


def _in_transactions(job: Job, report: Report, clock: str, none: dict[str, Any]) -> TopicParts:
    """The topics of a job, which are written in transactions."""
    target = format_named(job.target_format)
    if (target.name, "kafka") not in places.WRITERS or job.place != "kafka":
        raise Misuse("kafka-transactional-id is for what is written to --kafka")
    if (job.source_format, "kafka") in places.READERS:
        raise Misuse("kafka-transactional-id: what is read from --kafka is not written there")
    given = all_given(job, format_named(job.source_format), clock)
    return TopicParts(job, target, report, given, _load(job.source_format), none)


@contextmanager
def _sink(job: Job, report: Report, clock: str, kept: Mapping[str, Any]) -> Iterator[ChangeSink]:
    target = format_named(job.target_format)
    given = all_given(job, format_named(job.source_format), clock)
    if (target.name, job.place) in places.WRITERS and (job.source_format, job.place) not in places.READERS:
        raise Misuse(f"--state: write to files, not to --{job.place}")
    writer = _Writer(job, target, report, given, kept["written"])
    if is_folder(job.output):
        yield _Folder(job, target, writer, kept["part"])
        return
    with Output(job.output, target.shape, job.output_container, grows=True) as output:
        yield _Growing(writer, output)


class _Writer:
    """Writes changes as records of the target."""

    def __init__(
        self, job: Job, target: Format, report: Report, given: Mapping[str, Any], written: Any
    ) -> None:
        self._job = job
        self._target = target
        self._report = report
        self._writing: Any = settings.build(target.settings, given)
        self._memory = None if target.remember is None else target.remember(self._writing, written)
        if self._memory is not None:
            self._writing = replace(self._writing, memory=self._memory)

    def keep(self, state: Any) -> None:
        """Keep a state in its file, if there is one, when all that was refused is on disk."""
        if self._job.state is not None:
            self._report.flush()
            write_state(self._job.state, state)

    @property
    def written(self) -> Any:
        """What the next run goes on from, as JSON holds it."""
        return None if self._memory is None else self._memory.dump()

    def to(self, output: Output) -> Write:
        """What writes to an output."""

        def write(changes: Iterable[Change]) -> None:
            self._report.write(self._target.write(changes, self._job.tables, self._writing), output)

        return write


class _Folder:
    """A folder of parts: what is in it is there once."""

    def __init__(self, job: Job, target: Format, writer: _Writer, last: Part | None) -> None:
        if job.state is None:
            raise Misuse("-o with a folder of parts needs --state, which tells which of them are whole")
        extension = "xml" if target.name == "xds" else ""
        self.keep = writer.keep
        self._parts = Parts(job.output, target.shape, job.output_container, extension, last)
        self._writer = writer

    @property
    def last(self) -> Part | None:
        return self._parts.last

    @property
    def written(self) -> Any:
        return self._writer.written

    @contextmanager
    def part(self) -> Iterator[Write]:
        with self._parts.part() as output:
            yield self._writer.to(output)


class _Growing:
    """One file or standard output, which grows: what was written behind the last state comes again."""

    last = None

    def __init__(self, writer: _Writer, output: Output) -> None:
        self.keep = writer.keep
        self._writer = writer
        self._write = writer.to(output)
        self._output = output

    @property
    def written(self) -> Any:
        return self._writer.written

    @contextmanager
    def part(self) -> Iterator[Write]:
        yield self._write
        self._output.flush()
