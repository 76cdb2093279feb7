"""Parts of a run as messages in topics, with the state after each in a file: at least once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from eventlog.core.change import Change
from eventlog.core.extras import extra
from eventlog.files.statefile import write_state
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.qlik.message_writer import MessageWriter
from eventlog.sources.kafka_settings import KafkaSettings
from eventlog.targets.records import TransferState


class TopicParts:
    """Each part is in the topics before the state after it is kept.

    A part that a failure repeats has the same change sequences as before.
    """

    last, seconds = None, 1.0  # no file

    def __init__(self, job: Job, saved_state: TransferState, report: Report) -> None:
        with extra("kafka", "--kafka"):
            from eventlog.targets.kafka_writing import Sender
            from eventlog.targets.topic_state import read_topic_state

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
        if saved_state.written is None:
            self.keep(saved_state._replace(written=self.written))

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

    def keep(self, state: TransferState) -> None:
        """Keep a state in its file, if there is one, when all that was refused is on disk."""
        if self._job.state is not None:
            self._report.flush()
            write_state(self._job.state, state._asdict())
