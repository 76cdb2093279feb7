"""What moves from one broker to another is asked again, for a while."""

from __future__ import annotations

import pytest

from eventlog.sources.kafka import KafkaFault, call_brokers
from tests.publisher.brokers import FORBIDDEN, LIST_OFFSETS, NOT_LEADER, cluster

pytestmark = pytest.mark.quick

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


def test_a_partition_that_moves_is_asked_for_its_ends_again() -> None:
    with cluster() as brokers:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": brokers.address, "group.id": "x"})
        partition = confluent_kafka.TopicPartition("eventlog", 0)
        brokers.refuse(*[NOT_LEADER] * 8, request=LIST_OFFSETS)
        assert call_brokers(lambda: consumer.get_watermark_offsets(partition, 10)) == (0, 0)
        brokers.refuse(*[FORBIDDEN] * 8, request=LIST_OFFSETS)
        with pytest.raises(KafkaFault):
            call_brokers(lambda: consumer.get_watermark_offsets(partition, 10))
        consumer.close()
