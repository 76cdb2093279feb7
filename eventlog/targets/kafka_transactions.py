"""Transactions of Kafka with messages and the source's state after them: both are committed, or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.message_writer import MessageWriter
from eventlog.sources.kafka import KafkaFault, asked, identity
from eventlog.sources.kafka_settings import KafkaSettings, KafkaStates
from eventlog.targets.kafka_writing import Sender, keys_of

T = TypeVar("T")

_FENCED = (
    "another run began to write under {}, or the brokers aborted a transaction that took longer than "
    "transaction.timeout.ms. Nothing uncommitted is in the topic; the next run continues after what is "
    "committed"
)
_PARTITION = 0  # of the topic of states, however many it has: there they are looked for


class KafkaTransactions:
    """Writes to topics under a transactional id; who begins under the same id ends what another left open."""

    def __init__(self, kafka: KafkaSettings, states: KafkaStates) -> None:
        self._kafka = kafka
        self._id = states.kafka_transactional_id
        self._topic = states.kafka_state_topic
        self._sender: Sender | None = None
        self._open = False

    def begin(self, settings: MessageSettings) -> None:
        """Become the only writer under this id; uncommitted messages of an earlier run are lost."""
        self._sender = Sender(self._kafka, keys_of(settings, self._kafka), {"transactional.id": self._id})
        asked(lambda: self._producer.init_transactions(self._kafka.kafka_timeout))

    def state(self, load: Callable[[Any], T], none: T) -> T:
        """Return the state that was committed last, as `load` makes it; `none` if there is none."""
        text = self._last()
        try:
            return none if text is None else load(json.loads(text))
        except (ValueError, KeyError, TypeError, EventlogError) as fault:
            raise Misuse(f"what {self._topic} holds under {self._id} is not a state") from fault

    def write(self, changes: Iterable[Change], writer: MessageWriter) -> Iterator[Refused]:
        """Write the messages of changes in the transaction that is open, or in a new one."""
        with self._alone():
            self._started()
            assert self._sender is not None
            yield from self._sender.write(writer.write(changes))

    def commit(self, state: Any) -> None:
        """Commit the transaction with the state after it; without messages it contains the state alone."""
        with self._alone():
            self._started()
            assert self._sender is not None
            self._sender.produce(self._topic, json.dumps(state).encode(), self._id.encode(), _PARTITION)
            self._sender.flush()
            asked(lambda: self._producer.commit_transaction(self._kafka.kafka_timeout))
        self._open = False

    def close(self) -> None:
        """Abort what is not committed; if the brokers cannot be reached, the next writer aborts it."""
        if self._open:
            self._open = False
            with suppress(KafkaFault):
                asked(lambda: self._producer.abort_transaction(self._kafka.kafka_timeout))

    @property
    def _producer(self) -> Any:
        assert self._sender is not None
        return self._sender.producer

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Report that another writer took our place."""
        try:
            yield
        except KafkaFault as fault:
            if fault.code != KafkaError._FENCED:
                raise
            raise KafkaFault(_FENCED.format(self._id)) from fault

    def _started(self) -> None:
        if not self._open:
            asked(lambda: self._producer.begin_transaction())
            self._open = True

    def _last(self) -> bytes | None:
        """Return the last record under our id; the topic is made where there is none, and must keep its
        records.
        """
        client = AdminClient(self._kafka.client())
        seconds = self._kafka.kafka_timeout
        if self._topic not in asked(lambda: client.list_topics(timeout=seconds)).topics:
            topic = NewTopic(self._topic, 1, -1, config={"cleanup.policy": "compact"})
            try:
                asked(lambda: client.create_topics([topic])[self._topic].result(seconds))
                return None
            except KafkaFault as fault:
                if fault.code != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise  # else the broker that was asked did not know of it yet
        policy = identity(self._kafka, self._topic)[1]
        if policy != "compact":
            raise Misuse(f"{self._topic} has cleanup.policy={policy}: states would go, it must be compact")
        behind, _ = self._ours("read_uncommitted")
        return self._ours("read_committed", behind)[1] if behind else None

    def _ours(self, isolation: str, end: int | None = None) -> tuple[int, bytes | None]:
        """Return our last record before an end, and the offset after it.

        A reader of committed records sees nothing after an open transaction of another run.
        """
        own = {"group.id": self._id, "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = asked(lambda: Consumer(self._kafka.client(**own, **{"isolation.level": isolation})))
        try:
            return self._read(consumer, end)
        finally:
            consumer.close()

    def _read(self, consumer: Any, end: int | None) -> tuple[int, bytes | None]:
        partition, seconds = (
            TopicPartition(self._topic, _PARTITION, OFFSET_BEGINNING),
            self._kafka.kafka_timeout,
        )
        if end is None:
            end = asked(lambda: consumer.get_watermark_offsets(partition, seconds))[1]
        found: tuple[int, bytes | None] = 0, None
        reached = 0
        consumer.assign([partition])
        while reached < end:
            message = consumer.poll(seconds)
            if message is None:
                raise KafkaFault(
                    f"{self._topic}: its end is not reached in {seconds:g} s; a transaction of another run"
                    " may be open there"
                )
            fault, reached = message.error(), message.offset()
            if fault is not None and fault.code() != KafkaError._PARTITION_EOF:
                raise KafkaFault(f"{self._topic}: {fault.str()}")
            if fault is None:
                reached += 1
                if message.key() == self._id.encode():
                    found = reached, message.value()
        return found
