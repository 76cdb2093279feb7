"""Parts of a run as transactions of Kafka, which hold the state of the source too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from eventlog.convert.conversion import Job, Report
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.core.formats import Format
from eventlog.places.topics import KafkaSettings, KafkaStates


class TopicParts:
    """Each part is one transaction, with the state behind it."""

    last = None  # no file

    def __init__(
        self,
        job: Job,
        target: Format,
        report: Report,
        given: Mapping[str, Any],
        load: Callable[[Any], dict[str, Any]],
        none: dict[str, Any],
    ) -> None:
        with extra("kafka", "--kafka"):
            from eventlog.places.kafka_transactions import KafkaTransactions
            from eventlog.places.topic_state import read_topic_state
        from eventlog.qlik.message_writer import MessageWriter

        if job.state is not None:
            raise Misuse("--state: with kafka-transactional-id the state stands in Kafka")
        self._job = job
        self._report = report
        kafka = settings.build(KafkaSettings, given)
        writing: Any = settings.build(target.settings, given)
        self._transactions = KafkaTransactions(kafka, settings.build(KafkaStates, given))
        self._transactions.begin(writing)
        self.kept = self._transactions.state(load, none)
        assert target.remember is not None
        self._memory: Any = (
            read_topic_state(job.tables, writing, kafka)
            if self.kept["written"] is None
            else target.remember(writing, self.kept["written"])
        )
        self._writing = replace(writing, memory=self._memory)
        self._writer = MessageWriter(job.tables, self._writing)

    @property
    def written(self) -> Any:
        """What the next run goes on from, as JSON holds it."""
        return self._memory.dump()

    @contextmanager
    def part(self) -> Iterator[Callable[[Iterable[Change]], None]]:
        """What writes to the topics; the transaction stays open for the state."""

        def write(changes: Iterable[Change]) -> None:
            for refused in self._transactions.write(changes, self._writer):
                self._report.refuse(refused)

        yield write

    def keep(self, state: Any) -> None:
        """Commit what was written, with the state behind it."""
        self._report.flush()
        self._transactions.commit(state)

    def close(self) -> None:
        """Give up what is not committed."""
        self._transactions.close()
