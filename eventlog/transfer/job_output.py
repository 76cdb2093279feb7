"""Where a job writes: one output, a place, or parts with the state after each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse, NotExpressible, Refused
from eventlog.core.state_versions import TRANSFER
from eventlog.core.tables import Tables
from eventlog.files.durable import read_state, write_state
from eventlog.files.outputs import Output, Part, Parts, is_folder
from eventlog.transactions.delivery import Delivery
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import Endpoint, PartWriter
from eventlog.transfer.loop import ChangeTarget, ReadState
from eventlog.transfer.report import Report

CHANGES: Final = 50_000  # after which a part ends, with its transaction


# --- at once


class WholeOutput:
    """Writes all changes at once, to files or to the place of a target."""

    def __init__(self, target: Endpoint, report: Report) -> None:
        self._target = target
        self._report = report

    def write(self, deliveries: Iterator[Delivery], read_state: ReadState) -> None:
        """Write all changes."""
        changes = chain.from_iterable(delivery.changes for delivery in deliveries)
        write = self._target.connector.write
        if write is None:
            write_whole_output(self._target, self._report, changes)
            return
        for refused in write(changes, self._target):
            self._report.refuse_change(refused)


def write_whole_output(target: Endpoint, report: Report, changes: Iterable[Change]) -> None:
    """Write a file, or a folder of tables, which appears when it is complete."""
    form = target.format
    records = form.write(changes, target.tables, target.of_format)
    with Output(target.only_name(), form.shape, target.container, read=target.read) as output:
        if form.sheet is not None:
            output.sheet(form.sheet)
        write_records(records, output, report)


def write_records(records: Iterable[Any], output: Output, report: Report) -> int:
    """Write the records that were not refused, and that the output can hold. Return how many."""
    count = 0
    for record in records:
        refused = record
        try:
            if not isinstance(record, Refused):
                output.write(record)
                count += 1
                continue
        except NotExpressible as fault:
            refused = Refused(record.sheet.name, str(fault))
        report.refuse_change(refused)
    return count


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
        TRANSFER.check(state, fields["version"])
        if fields["format"] != source_format:
            raise ValueError
        return TransferState(*(fields[name] for name in TransferState._fields))

    return read_state(state, load, empty)


@contextmanager
def open_target(
    target: Endpoint,
    tables: Tables,
    report: Report,
    state: Path | None,
    saved_state: TransferState,
    *,
    in_parts: bool,
) -> Iterator[ChangeTarget]:
    """Yield a target that writes all at once, or part after part from a saved state on."""
    if not in_parts and target.connector.parts is None:
        yield WholeOutput(target, report)
        return
    with ExitStack() as stack:
        if target.connector.parts is not None:
            parts = target.connector.parts(target, saved_state.written, report)
        else:
            parts = stack.enter_context(_file_parts(target, tables, state, saved_state, report))
        output = PartedOutput(parts, state, saved_state, report)
        if target.place or is_folder(target.only_name()):
            # the folder is ours, and a message sent again has the same sequence
            output.save_state(saved_state.position)
        yield output


@contextmanager
def _file_parts(
    target: Endpoint, tables: Tables, state: Path | None, saved_state: TransferState, report: Report
) -> Iterator[PartWriter]:
    """Write files of a folder, or additions to one file, which a failure may repeat."""
    form, name, writing = target.format, target.only_name(), target.of_format
    memory = None if form.remember is None else form.remember(writing, saved_state.written)
    if memory is not None:
        writing = replace(writing, memory=memory)

    def write(changes: Iterable[Change], output: Output) -> None:
        write_records(form.write(changes, tables, writing), output, report)

    if not is_folder(name):
        with Output(name, form.shape, target.container, grows=True) as output:
            yield PartWriter(output, write, memory)
        return
    if state is None:
        raise Misuse("-o with a folder of parts needs --state, which records the whole ones")
    extension = "xml" if form.name == "xds" else ""
    parts = Parts(name, form.shape, target.container, extension, saved_state.part)
    yield PartWriter(parts, write, memory, target.settings(StreamSettings).follow_interval)


class PartedOutput:
    """Writes part after part, and keeps the state after each: what is out is known."""

    def __init__(
        self, parts: PartWriter, state: Path | None, saved_state: TransferState, report: Report
    ) -> None:
        self._parts = parts
        self._state = state
        self._saved_state = saved_state
        self._report = report

    def write(self, deliveries: Iterator[Delivery], read_state: ReadState) -> None:
        """Write all parts. Raise what ended the source once all that came before is kept.

        The state is read once a part: after each delivery it would take the square of how many share a time.
        """
        self._fault: EventlogError | None = None
        while (first := self._next(deliveries)) is not None:
            with self._parts.outputs.part() as output:
                self._parts.write(self._of_part(first, deliveries), output)
            self.save_state(read_state())
        if self._fault is not None:
            raise self._fault
        self.save_state(read_state())

    def _next(self, deliveries: Iterator[Delivery]) -> Delivery | None:
        """Return the next delivery that has changes; None at the end, and after a fault of the source."""
        while True:
            try:
                delivery = next(deliveries, None)
            except EventlogError as fault:
                self._fault, delivery = fault, None
            if delivery is None:
                return None
            changes = iter(delivery.changes)
            first = next(changes, None)
            if first is not None:
                return delivery._replace(changes=chain((first,), changes))

    def _of_part(self, first: Delivery, deliveries: Iterator[Delivery]) -> Iterator[Change]:
        count, begun = 0, time.monotonic()
        delivery: Delivery | None = first
        while delivery is not None:
            for change in delivery.changes:
                count += 1
                yield change
            is_late = delivery.may_wait and time.monotonic() - begun >= self._parts.seconds
            if not delivery.is_overlapped and (count >= CHANGES or is_late):
                return
            delivery = self._next(deliveries)

    def save_state(self, position: str | None) -> None:
        """Keep the source's state in the file, if there is one, when all that was refused is on disk."""
        outputs, memory = self._parts.outputs, self._parts.memory
        written = None if memory is None else memory.dump()
        state = self._saved_state._replace(position=position, part=outputs.last, written=written)
        if state != self._saved_state and self._state is not None:
            self._report.sync_rejects()
            write_state(self._state, {"version": TRANSFER.version} | state._asdict())
        self._saved_state = state
