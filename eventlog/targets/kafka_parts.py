"""Parts of a run as transactions of Kafka, which hold the state of the source too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.sources.kafka_settings import KafkaSettings, KafkaStates
from eventlog.targets.records import TransferState, state_of


class TopicParts:
    """Each part is one transaction, with the state after it."""

    last, seconds = None, 1.0  # no file

    def __init__(self, job: Job, report: Report) -> None:
        with extra("kafka", "--kafka"):
            from eventlog.targets.kafka_transactions import KafkaTransactions
            from eventlog.targets.topic_state import read_topic_state
        from eventlog.qlik.message_writer import MessageWriter

        if job.state is not None:
            raise Misuse("--state: with kafka-transactional-id the state is in Kafka")
        self._report = report
        kafka = job.settings(KafkaSettings)
        writing: Any = job.settings(job.target.settings)
        self._transactions = KafkaTransactions(kafka, job.settings(KafkaStates))
        self._transactions.begin(writing)
        self.kept: TransferState = self._transactions.state(
            state_of(job.source_format), TransferState(job.source_format)
        )
        assert job.target.remember is not None
        self._memory: Any = (
            read_topic_state(job.tables, writing, kafka)
            if self.kept.written is None
            else job.target.remember(writing, self.kept.written)
        )
        self._writer = MessageWriter(job.tables, replace(writing, memory=self._memory))

    @property
    def written(self) -> Any:
        """Return the state from which the writer of the next run goes on, as JSON."""
        return self._memory.dump()

    @contextmanager
    def part(self) -> Iterator[Callable[[Iterable[Change]], None]]:
        """Return a function that writes to the topics; the transaction stays open for the state."""

        def write(changes: Iterable[Change]) -> None:
            for refused in self._transactions.write(changes, self._writer):
                self._report.refuse(refused)

        yield write

    def keep(self, state: TransferState) -> None:
        """Commit what was written, with the state after it."""
        self._report.flush()
        self._transactions.commit(state._asdict())

    def close(self) -> None:
        """Give up what is not committed."""
        self._transactions.close()
