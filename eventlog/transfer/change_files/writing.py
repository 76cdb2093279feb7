"""From files of change tables or messages to a file of lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from eventlog.change_batches.batch import BatchTable
from eventlog.change_batches.lines import LineForm
from eventlog.change_batches.neutral_lines import NeutralLines
from eventlog.change_batches.xds_lines import XdsLines
from eventlog.core.errors import Refused
from eventlog.core.formats import Row, Shape, Source
from eventlog.files.inputs import Advance, check_inputs, stem_of
from eventlog.files.outputs import Output
from eventlog.formats.qlik.change_tables import table_part
from eventlog.formats.qlik.mask import MaskEvidence
from eventlog.formats.qlik.sequenced_messages import MessageSequencer
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.change_files.as_is import TableAsIs
from eventlog.transfer.change_files.by_sequence import SequencedFiles
from eventlog.transfer.change_files.file_rows import open_rows
from eventlog.transfer.change_files.messages import LineMaker, MessageFile, SequencedMessages, lines_as_is
from eventlog.transfer.change_files.odd_lines import OddLines
from eventlog.transfer.change_files.sorted_slabs import MEMORY
from eventlog.transfer.connectors import Endpoint
from eventlog.transfer.report import Prepare, Report

_ROWS: Final = 16_384  # that become lines together

Lines = Iterator[bytes | memoryview]


class ChangeFiles:
    """The files of changes, and the file that their changes become, a line each."""

    def __init__(self, source: Endpoint, target: Endpoint, prepare: Prepare, report: Report) -> None:
        self._source = source
        self._target = target
        self._report = report
        self._odd_lines = OddLines(target, prepare, report)

    def write(self, advance: Advance, at_once: int = _ROWS, memory: int = MEMORY) -> None:
        """Write the lines; so many rows become lines together, and are sorted in so many bytes."""
        check_inputs(self._source.names)
        is_sequenced = self._source.settings(StreamSettings).order == "sequence"
        if self._source.format.name == "qlik-message":
            lines = self._of_messages(advance, at_once, memory, is_sequenced)
        elif is_sequenced:
            lines = self._by_sequence(advance, at_once, memory)
        else:
            lines = self._as_is(advance, at_once)
        with Output(self._target.only_name(), Shape.BYTES, None, read=self._target.read) as output:
            for line in lines:
                output.write(line)
            self._odd_lines.end()

    def _by_sequence(self, advance: Advance, at_once: int, memory: int) -> Lines:
        source = self._source
        sequencer = RowSequencer(source.tables, source.of_format)
        files = SequencedFiles(sequencer, self._make_form, self._report, at_once, memory)
        with closing(files):
            for file in source.files:
                files.read(file, source.limits, advance)
            yield from files.lines(self._odd_lines)

    def _as_is(self, advance: Advance, at_once: int) -> Lines:
        source, evidence = self._source, MaskEvidence()
        for file in source.files:
            with open_rows(file, source.limits, advance) as opened:
                of_file = Source[Row](file.name, stem_of(file.name), opened.columns, ())
                name = source.of_format.table or of_file.stem
                part = table_part(name, of_file, source.tables, source.of_format, evidence)
                assert not isinstance(part, Refused)
                yield from TableAsIs(part, self._make_form, self._odd_lines).lines(opened, at_once)

    def _of_messages(self, advance: Advance, at_once: int, memory: int, is_sequenced: bool) -> Lines:
        source = self._source
        sequencer = MessageSequencer(source.tables, source.of_format)
        maker = LineMaker(sequencer.reader, self._make_form, at_once >> 6, waits=is_sequenced)
        files = [MessageFile(file.name, source.limits, maker, at_once) for file in source.files]
        if not is_sequenced:
            yield from lines_as_is(files, sequencer.reader, self._odd_lines, advance)
            return
        with closing(SequencedMessages(sequencer, maker, self._report, memory)) as messages:
            for file in files:
                messages.read(file, advance)
            yield from messages.lines(self._odd_lines)

    def _make_form(self, table: BatchTable) -> LineForm | None:
        return form_of(self._target, table)


def form_of(target: Endpoint, table: BatchTable) -> LineForm | None:
    """Return the form of a target's lines; None for documents of a table that is not described."""
    if target.format.name != "xds":
        return NeutralLines(table)
    is_described = target.tables.of(table.schema, table.name) is not None
    return XdsLines(target.tables, target.of_format, table) if is_described else None
