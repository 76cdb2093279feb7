"""Where a job writes: one output, a place, or parts with the state after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.extras import extra
from eventlog.core.formats import Memory
from eventlog.core.tables import Tables
from eventlog.files.durable import read_state, write_state
from eventlog.files.outputs import Output, Part, Parts, is_folder
from eventlog.qlik.message_writer import MessageWriter
from eventlog.sequence.delivery import Delivery
from eventlog.sources.place_settings import KafkaSettings
from eventlog.transfer.job import Job
from eventlog.transfer.loop import ChangeSource, ChangeTarget
from eventlog.transfer.opening import is_at_source
from eventlog.transfer.places import place_of
from eventlog.transfer.report import Report
from eventlog.xds.settings import XdsFileSettings

CHANGES: Final = 50_000  # after which a part ends, with its transaction
Write = Callable[[Iterable[Change]], None]


def target_place(job: Job) -> str:
    """Return the place where a job writes; empty for files."""
    if job.place == "kafka" and place_of(job.source_format, "kafka").read is None:
        return "kafka"
    return "" if is_at_source(job.source_format, job.place, job.url) else job.place


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
    if saved_state is None:
        yield AtOnce(_whole_writer(job, report))
        return
    with ExitStack() as stack:
        if target_place(job):
            parts = _topic_parts(job, saved_state, report)
        else:
            files = _file_parts(job, source.tables or job.tables, saved_state, report)
            parts = stack.enter_context(files)
        target = InParts(parts, job.state, saved_state, report)
        if target_place(job) or is_folder(job.output):
            target.save_state()  # the folder is ours, and a message that is sent again has the same sequence
        yield target


def _check_cases(job: Job, has_state: bool) -> None:
    if job.target_format != "xds" or job.output != "-" or has_state:
        raise Misuse("--cases is for --to xds, and goes with none of -o, --state and --follow")
    if job.cases is not None and job.cases.exists() and any(job.cases.iterdir()):
        raise Misuse(f"{job.cases} is not empty: name a new folder for the cases")


# --- at once


class AtOnce:
    """Writes all changes by one call of a function."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def write(self, deliveries: Iterator[Delivery]) -> None:
        """Write all changes."""
        self._write(chain.from_iterable(delivery.changes for delivery in deliveries))


def _whole_writer(job: Job, report: Report) -> Write:
    """Return the function that writes all changes of a job."""
    write = place_of(job.target_format, target_place(job)).write
    if job.cases is not None:
        return partial(_write_cases, job.cases, job, report)
    if write is None:
        return partial(write_output, job, report)

    def write_at_place(changes: Iterable[Change]) -> None:
        for refused in write(changes, job):
            report.refuse_change(refused)

    return write_at_place


def _write_cases(folder: Path, job: Job, report: Report, changes: Iterable[Change]) -> None:
    """Write a folder for each event; the last folders may be missing if the run ends before."""
    from eventlog.xds.cases import write_cases  # loads a parser that no other output needs

    cases = write_cases(changes, job.tables, job.settings(XdsFileSettings))
    for number, case in enumerate(report.accepted(cases), 1):
        case_folder = folder / f"{number:06}"
        case_folder.mkdir(parents=True)
        (case_folder / "input.xds").write_text(case.input, encoding="utf-8")
        (case_folder / "directory.xds").write_text(case.directory, encoding="utf-8")


def write_output(job: Job, report: Report, changes: Iterable[Change]) -> None:
    """Write a file, or a folder of tables, which appears when it is complete."""
    target = job.target
    records = target.write(changes, job.tables, job.settings(target.settings))
    with Output(job.output, target.shape, job.output_container, read=job.files_read) as output:
        if target.sheet is not None:
            output.sheet(target.sheet)
        report.write(records, output)


# --- in parts


class TransferState(NamedTuple):
    """The facts that are kept between two runs."""

    format: str  # of the source
    position: str | None = None  # the source's own state
    part: Part | None = None  # the last one
    written: Any = None  # what the target's writer goes on from, as JSON holds it


def load_state(state: Path | None, source_format: str) -> TransferState:
    """Return the state that a file has, or an empty one."""
    empty = TransferState(source_format)
    if state is None:
        return empty

    def load(fields: Any) -> TransferState:
        if fields["format"] != source_format:
            raise ValueError
        return TransferState(*(fields[name] for name in TransferState._fields))

    return read_state(state, load, empty)


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


@contextmanager
def _file_parts(job: Job, tables: Tables, saved_state: TransferState, report: Report) -> Iterator[PartWriter]:
    """Write files of a folder, or additions to one file, which a failure may repeat."""
    target = job.target
    writing: Any = job.settings(target.settings)
    memory = None if target.remember is None else target.remember(writing, saved_state.written)
    if memory is not None:
        writing = replace(writing, memory=memory)

    def write(changes: Iterable[Change], output: Output) -> None:
        report.write(target.write(changes, tables, writing), output)

    if not is_folder(job.output):
        with Output(job.output, target.shape, job.output_container, grows=True) as output:
            yield PartWriter(output, write, memory)
        return
    if job.state is None:
        raise Misuse("-o with a folder of parts needs --state, which records the whole ones")
    extension = "xml" if target.name == "xds" else ""
    parts = Parts(job.output, target.shape, job.output_container, extension, saved_state.part)
    yield PartWriter(parts, write, memory, job.poll_interval)


def _topic_parts(job: Job, saved_state: TransferState, report: Report) -> PartWriter:
    """Write to topics; a part that a failure repeats has the same change sequences as before."""
    with extra("kafka", "--kafka"):
        from eventlog.targets.topics import Sender, read_topic_state

    kafka, writing = job.settings(KafkaSettings), job.settings(job.target.settings)
    assert job.target.remember is not None
    memory: Any = (
        read_topic_state(job.tables, writing, kafka)
        if saved_state.written is None
        else job.target.remember(writing, saved_state.written)
    )
    writer = MessageWriter(job.tables, replace(writing, memory=memory))

    def write(changes: Iterable[Change], sender: Sender) -> None:
        for refused in sender.write(writer.write(changes)):
            report.refuse(refused)

    return PartWriter(Sender(kafka), write, memory, 1.0)


class InParts:
    """Writes part after part, and keeps the state after each: what is out is known."""

    def __init__(
        self, parts: PartWriter, state: Path | None, saved_state: TransferState, report: Report
    ) -> None:
        self._parts = parts
        self._state = state
        self._saved_state = saved_state
        self._report = report
        self._position = saved_state.position

    def write(self, deliveries: Iterator[Delivery]) -> None:
        """Write all parts. Raise what ended the source once all that came before is kept."""
        self._fault: EventlogError | None = None
        while (first := self._next(deliveries)) is not None:
            with self._parts.outputs.part() as output:
                self._parts.write(self._of_part(first, deliveries), output)
            self.save_state()
        if self._fault is not None:
            raise self._fault
        self.save_state()

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

    def save_state(self) -> None:
        """Keep the state in its file, if there is one, when all that was refused is on disk."""
        outputs, memory = self._parts.outputs, self._parts.memory
        written = None if memory is None else memory.dump()
        state = self._saved_state._replace(position=self._position, part=outputs.last, written=written)
        if state != self._saved_state and self._state is not None:
            self._report.flush()
            write_state(self._state, state._asdict())
        self._saved_state = state
