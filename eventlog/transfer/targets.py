"""Where a job writes: one output, a place, or parts with the state after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.extras import extra
from eventlog.files.durable import read_state, write_state
from eventlog.files.outputs import Output, Part, Parts
from eventlog.qlik.message_writer import MessageWriter
from eventlog.sequence.delivery import Delivery
from eventlog.sources.place_settings import KafkaSettings
from eventlog.transfer.job import Job, files_read
from eventlog.transfer.loop import ChangeSource, ChangeTarget
from eventlog.transfer.opening import is_at_source
from eventlog.transfer.places import WriteAll, place_of
from eventlog.transfer.report import Report
from eventlog.xds.settings import XdsFileSettings

CHANGES: Final = 50_000  # after which a part ends, with its transaction
Write = Callable[[Iterable[Change]], None]


def target_place(job: Job) -> str:
    """Return the place where a job writes; empty for files."""
    if job.place == "kafka" and place_of(job.source_format, "kafka").read is None:
        return "kafka"
    return "" if is_at_source(job) else job.place


def check_target(job: Job, has_state: bool) -> None:
    """Raise Misuse if a job cannot write where it is to write."""
    if job.cases is not None:
        _check_cases(job, has_state)
    place = target_place(job)
    if place and place_of(job.target_format, place).write is None:
        raise Misuse(f"--{place} is no place for {job.source_format} or {job.target_format}")
    if has_state and place == "url":
        raise Misuse("--state: write to files or to --kafka, not to --url")


@contextmanager
def open_target(
    job: Job, source: ChangeSource, saved_state: TransferState | None, report: Report
) -> Iterator[ChangeTarget]:
    """Return where a job writes: at once, or part after part from a saved state on."""
    if job.cases is not None:
        yield CaseFolders(job, job.cases, report)
        return
    place = target_place(job)
    write = place_of(job.target_format, place).write
    if saved_state is None:
        yield OneOutput(job, report) if write is None else AtPlace(write, job, report)
    elif place:
        topics = TopicParts(job, saved_state, report)
        if saved_state.written is None:
            save_state(job, report, saved_state._replace(written=topics.written))
        yield InParts(topics, job, saved_state, report)
    else:
        job = replace(job, tables=source.tables or job.tables)
        with open_parts(job, saved_state, report) as parts:
            if job.state is not None and saved_state.part != parts.last:
                saved_state = saved_state._replace(part=parts.last)
                write_state(job.state, saved_state._asdict())
            yield InParts(parts, job, saved_state, report)


def _check_cases(job: Job, has_state: bool) -> None:
    if job.target_format != "xds" or job.output != "-" or has_state:
        raise Misuse("--cases is for --to xds, and goes with none of -o, --state and --follow")
    if job.cases is not None and job.cases.exists() and any(job.cases.iterdir()):
        raise Misuse(f"{job.cases} is not empty: name a new folder for the cases")


class CaseFolders:
    """A folder for each event, with what a policy simulator reads."""

    def __init__(self, job: Job, folder: Path, report: Report) -> None:
        self._job = job
        self._folder = folder
        self._report = report

    def write(self, deliveries: Iterator[Delivery]) -> None:
        """Write all events; the last folders may be missing if the run ends before."""
        from eventlog.xds.cases import write_cases  # loads a parser that no other output needs

        job = self._job
        cases = write_cases(_changes(deliveries), job.tables, job.settings(XdsFileSettings))
        for number, case in enumerate(self._report.accepted(cases), 1):
            folder = self._folder / f"{number:06}"
            folder.mkdir(parents=True)
            (folder / "input.xds").write_text(case.input, encoding="utf-8")
            (folder / "directory.xds").write_text(case.directory, encoding="utf-8")


class OneOutput:
    """A file, or a folder of tables, which appears when it is complete."""

    def __init__(self, job: Job, report: Report) -> None:
        self._job = job
        self._report = report

    def write(self, deliveries: Iterator[Delivery]) -> None:
        """Write all changes."""
        job, target = self._job, self._job.target
        records = target.write(_changes(deliveries), job.tables, job.settings(target.settings))
        with Output(job.output, target.shape, job.output_container, read=files_read(job)) as output:
            if target.sheet is not None:
                output.sheet(target.sheet)
            self._report.write(records, output)


class AtPlace:
    """A target in topics, or in tables of a database."""

    def __init__(self, write: WriteAll, job: Job, report: Report) -> None:
        self._write = write
        self._job = job
        self._report = report

    def write(self, deliveries: Iterator[Delivery]) -> None:
        """Write all changes."""
        for refused in self._write(_changes(deliveries), self._job):
            self._report.refuse_change(refused)


def _changes(deliveries: Iterator[Delivery]) -> Iterator[Change]:
    return chain.from_iterable(delivery.changes for delivery in deliveries)


# --- in parts


class TransferState(NamedTuple):
    """The facts that are kept between two runs."""

    format: str  # of the source
    position: str | None = None  # the source's own state
    part: Part | None = None  # the last one
    written: Any = None  # what the target's writer goes on from, as JSON holds it


def load_state(job: Job) -> TransferState:
    """Return the state that a job's file has, or an empty one."""
    empty = TransferState(job.source_format)
    if job.state is None:
        return empty

    def load(fields: Any) -> TransferState:
        if fields["format"] != job.source_format:
            raise ValueError
        return TransferState(*(fields[name] for name in TransferState._fields))

    return read_state(job.state, load, empty)


class PartWriter(Protocol):
    """A place for parts; each part is on disk when its block ends."""

    seconds: float  # that a part may wait for more where the source pauses

    @property
    def last(self) -> Part | None: ...

    @property
    def written(self) -> Any: ...

    def part(self) -> AbstractContextManager[Write]: ...


def save_state(job: Job, report: Report, state: TransferState) -> None:
    """Keep a state in its file, if there is one, when all that was refused is on disk."""
    if job.state is not None:
        report.flush()
        write_state(job.state, state._asdict())


class InParts:
    """Writes part after part, and keeps the state after each: what is out is known."""

    def __init__(self, parts: PartWriter, job: Job, saved_state: TransferState, report: Report) -> None:
        self._parts = parts
        self._job = job
        self._saved_state = saved_state
        self._report = report
        self._position = saved_state.position

    def write(self, deliveries: Iterator[Delivery]) -> None:
        """Write all parts. Raise what ended the source once all that came before is kept."""
        self._fault: EventlogError | None = None
        while (first := self._next(deliveries)) is not None:
            with self._parts.part() as write:
                write(self._of_part(first, deliveries))
            self._save_state()
        if self._fault is not None:
            raise self._fault
        self._save_state()

    def _next(self, deliveries: Iterator[Delivery]) -> tuple[Delivery, Iterable[Change]] | None:
        """Return the next delivery that has changes; a delivery without changes sets the position."""
        try:
            for delivery in deliveries:
                changes = iter(delivery.changes)
                first = next(changes, None)
                if first is not None:
                    return delivery, chain((first,), changes)
                self._position = delivery.state
        except EventlogError as fault:
            self._fault = fault
        return None

    def _of_part(
        self, first: tuple[Delivery, Iterable[Change]], deliveries: Iterator[Delivery]
    ) -> Iterator[Change]:
        """Yield the changes of a part.

        The state is asked for once, after the last of them: after each it would take the square of how many
        share a time.
        """
        count, begun = 0, time.monotonic()
        following: tuple[Delivery, Iterable[Change]] | None = first
        while following is not None:
            delivery, changes = following
            for change in changes:
                count += 1
                yield change
            if count >= CHANGES or (delivery.may_wait and time.monotonic() - begun >= self._parts.seconds):
                self._position = delivery.state
                return
            following = self._next(deliveries)
        if self._fault is not None:  # else the end of the round set it
            self._position = delivery.state

    def _save_state(self) -> None:
        parts = self._parts
        saved_state = self._saved_state._replace(
            position=self._position, part=parts.last, written=parts.written
        )
        if saved_state != self._saved_state:
            save_state(self._job, self._report, saved_state)
        self._saved_state = saved_state


@contextmanager
def open_parts(job: Job, saved_state: TransferState, report: Report) -> Iterator[PartWriter]:
    """The parts of a job's output: files of a folder, or additions to one file."""
    target = job.target
    writer = _Writer(job, report, saved_state.written)
    if is_folder(job.output):
        yield _Folder(job, writer, saved_state.part)
        return
    with Output(job.output, target.shape, job.output_container, grows=True) as output:
        yield _Growing(writer, output)


def is_folder(output: str) -> bool:
    """Return whether an output is a folder; a folder contains parts."""
    return output.endswith("/") or (output != "-" and Path(output).is_dir())


class _Writer:
    """Writes changes as records of the target."""

    def __init__(self, job: Job, report: Report, written: Any) -> None:
        target = job.target
        self._job = job
        self._report = report
        self._writing: Any = job.settings(target.settings)
        self._memory = None if target.remember is None else target.remember(self._writing, written)
        if self._memory is not None:
            self._writing = replace(self._writing, memory=self._memory)

    @property
    def written(self) -> Any:
        """Return the state from which the writer of the next run goes on, as JSON."""
        return None if self._memory is None else self._memory.dump()

    def to(self, output: Output) -> Write:
        """Return what writes to an output."""

        def write(changes: Iterable[Change]) -> None:
            self._report.write(self._job.target.write(changes, self._job.tables, self._writing), output)

        return write


class _Folder:
    """A folder of parts: what is in it is there once."""

    def __init__(self, job: Job, writer: _Writer, last: Part | None) -> None:
        if job.state is None:
            raise Misuse("-o with a folder of parts needs --state, which records the whole ones")
        extension = "xml" if job.target.name == "xds" else ""
        self.seconds = job.poll_interval
        self._parts = Parts(job.output, job.target.shape, job.output_container, extension, last)
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
    """One file or standard output, which grows: what was written after the last state comes again."""

    last, seconds = None, 0.0

    def __init__(self, writer: _Writer, output: Output) -> None:
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


class TopicParts:
    """Each part is in the topics before the state after it is kept.

    A part that a failure repeats has the same change sequences as before.
    """

    last, seconds = None, 1.0  # no file

    def __init__(self, job: Job, saved_state: TransferState, report: Report) -> None:
        with extra("kafka", "--kafka"):
            from eventlog.targets.topics import Sender, read_topic_state

        self._job = job
        self._report = report
        kafka, writing = job.settings(KafkaSettings), job.settings(job.target.settings)
        assert job.target.remember is not None
        self._memory: Any = (
            read_topic_state(job.tables, writing, kafka)
            if saved_state.written is None
            else job.target.remember(writing, saved_state.written)
        )
        self._writer = MessageWriter(job.tables, replace(writing, memory=self._memory))
        self._sender = Sender(kafka)

    @property
    def written(self) -> Any:
        """Return the state from which the writer of the next run goes on, as JSON."""
        return self._memory.dump()

    @contextmanager
    def part(self) -> Iterator[Callable[[Iterable[Change]], None]]:
        """Return a function that writes to the topics; the brokers have all of it when the block ends."""

        def write(changes: Iterable[Change]) -> None:
            for refused in self._sender.write(self._writer.write(changes)):
                self._report.refuse(refused)

        yield write
        self._sender.flush()
