"""The progress of topics: how far partitions were handed out, and which messages still wait."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError, InvalidValue
from eventlog.sequence.ranges import Ranges

Key = tuple[str, ...]
At = tuple[str, int]  # a topic, and the number of a partition


class TopicChanged(EventlogError):
    """{0}: start anew with another state"""


class GroupAstray(EventlogError):
    """{0}: set new offsets for the group, or name another with --kafka-group"""


class Spot(NamedTuple):
    """A partition as the brokers know it: the offsets that it holds, and the one that the group keeps."""

    low: int
    high: int
    committed: int | None = None

    def begin(self, at: At) -> int:
        """Return the offset at which a reader without a state begins.

        Raise GroupAstray if the partition no longer contains the offset that the group committed.
        """
        if self.committed is None:
            return self.low
        if not self.low <= self.committed <= self.high:
            raise GroupAstray(
                f"{at[0]}[{at[1]}] holds the offsets {self.low} to {self.high}, but its group continues at "
                f"{self.committed}: messages are missing"
            )
        return self.committed


@dataclass(slots=True)
class PartitionRead:
    """A partition was read up to an end; what is open of it was not handed out."""

    end: int
    open: Ranges = field(default_factory=Ranges)

    @property
    def start(self) -> int:
        """The offset of the oldest message that is open; without one, the end."""
        return next(iter(self.open), (self.end, self.end))[0]

    def wants(self, offset: int) -> bool:
        """Return whether a message was not handed out yet."""
        return offset >= self.end or offset in self.open


@dataclass(slots=True)
class TopicProgress:
    """The state of topics: each partition's end and open messages, and the last transactions handed out."""

    partitions: dict[At, PartitionRead] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)  # of the topics
    recent: dict[Key, None] = field(default_factory=dict)  # in the order in which they were handed out

    def check(self, at: At, spot: Spot, topic_id: str | None, held: bool = False) -> None:
        """Raise TopicChanged if a partition is not the one that was read before, or lost messages that are
        needed.

        Needed are the messages after its end and, unless they are `held` in memory, its open messages.
        """
        topic, number = at
        known = self.ids.get(topic)
        if known and topic_id and known != topic_id:
            raise TopicChanged(f"topic {topic} was created again: its id is {topic_id}, not {known}")
        partition = self.partitions.get(at)
        if partition is None:
            return
        if spot.high < partition.end:
            raise TopicChanged(
                f"{topic}[{number}] ends at offset {spot.high}, though it was read up to {partition.end}"
            )
        wanted = partition.end if held else partition.start
        if spot.low > wanted:
            raise TopicChanged(
                f"{topic}[{number}] begins at offset {spot.low}: what is wanted from {wanted} on is gone"
            )

    def dump(self) -> str:
        """Return the state as a text."""
        topics: dict[str, Any] = {}
        for (topic, number), partition in self.partitions.items():
            kept = topics.setdefault(topic, {"id": self.ids.get(topic), "partitions": {}})
            kept["partitions"][str(number)] = [partition.end, list(partition.open)]
        return json.dumps({"topics": topics, "recent": list(self.recent)})


def load_topics(state: str) -> TopicProgress:
    """Return the progress of a state; raise InvalidValue if it is none."""
    try:
        found: Mapping[str, Any] = json.loads(state)
        progress = TopicProgress()
        progress.recent = {tuple(map(str, key)): None for key in found["recent"]}
        for topic, kept in found["topics"].items():
            if kept["id"] is not None:
                progress.ids[topic] = str(kept["id"])
            for number, (end, left) in kept["partitions"].items():
                progress.partitions[topic, int(number)] = PartitionRead(int(end), Ranges(left))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(state[:40], "the state of topics") from None
    return progress
