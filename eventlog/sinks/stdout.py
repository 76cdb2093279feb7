"""Documents on standard output, one a line: for people, pipes and the demo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from eventlog.files.output_files import standard_output
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, Sink, SinkKind, unreachable


@dataclass(frozen=True, slots=True)
class StdoutSettings:
    """The settings of standard output: none."""


class StdoutSink(Sink):
    """Writes each document on a line of its own; a line that was flushed is out."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        for document in documents:
            try:
                self._out.flush()  # the other part of a document that a full disk cut
                self._out.write(document.data + b"\n")
                self._out.flush()
            except OSError as fault:
                yield unreachable(f"standard output: {fault.strerror}")
            else:
                yield ACCEPTED

    def close(self) -> None:
        """Leave standard output open, because it is not ours to close."""


KIND = SinkKind(StdoutSettings, lambda settings: StdoutSink(standard_output()))
