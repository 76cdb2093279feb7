"""What was read and handed out of topics, as states keep it.

A partition of a topic has an end, and open messages before it, which were not handed out yet.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from eventlog.core.errors import EventlogError, InvalidValue
from eventlog.transactions.counted import Key
from eventlog.transactions.ranges import Ranges

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
RECENT: Final = 1000  # delivered transactions that are recognised if they are sent again
MAX_NOTES: Final = 10_000
Partition = tuple[str, int]  # a topic, and the number of a partition


class TopicChanged(EventlogError):
    """{0}: start anew with another state"""


class GroupAstray(EventlogError):
    """{0}: set new offsets for the group, or name another with --kafka-group"""


class PartitionOffsets(NamedTuple):
    """A partition as the brokers know it: the offsets that it holds, and the one that the group keeps."""

    low: int
    high: int
    committed: int | None = None

    def start(self, partition: Partition) -> int:
        """Return the offset at which a reader without a state begins.

        Raise GroupAstray if the partition no longer contains the offset that the group committed.
        """
        if self.committed is None:
            return self.low
        if not self.low <= self.committed <= self.high:
            topic, number = partition
            raise GroupAstray(
                f"{topic}[{number}] holds the offsets {self.low} to {self.high}, but its group continues at "
                f"{self.committed}: messages are missing"
            )
        return self.committed


@dataclass(slots=True)
class PartitionRead:
    """The end up to which a partition was read, and the messages before it that are not handed out yet."""

    end: int
    open: Ranges = field(default_factory=Ranges)

    @property
    def start(self) -> int:
        """Return the offset of the oldest open message; without one, the end."""
        return next(iter(self.open), (self.end, self.end))[0]

    def is_new(self, offset: int) -> bool:
        """Return whether a message was not handed out yet."""
        return offset >= self.end or offset in self.open


class TopicNote(NamedTuple):
    """A text that later messages need, and the place of the message that has it."""

    partition: Partition
    offset: int
    text: str


def remember(newest: dict[K, V], key: K, value: V, max_count: int) -> None:
    """Put a value at the end; drop the first if there are too many."""
    newest.pop(key, None)
    if len(newest) >= max_count:
        newest.pop(next(iter(newest)))
    newest[key] = value


@dataclass(slots=True)
class TopicProgress:
    """The state of topics: each partition's end and open messages, the last transactions handed out, and what
    later messages need of those that are read no more.
    """

    partitions: dict[Partition, PartitionRead] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)  # of the topics
    recent: dict[Key, None] = field(default_factory=dict)  # in the order in which they were handed out
    notes: dict[str, None] = field(default_factory=dict)  # the newest last
    newer_notes: deque[TopicNote] = field(default_factory=lambda: deque(maxlen=MAX_NOTES))

    def check(
        self,
        partition: Partition,
        offsets: PartitionOffsets,
        topic_id: str | None,
        open_in_memory: bool = False,
    ) -> None:
        """Raise TopicChanged if a partition is not the one that was read before, or lost messages that are
        needed.

        Needed are the messages after its end and, unless they are in memory, its open messages.
        """
        topic, number = partition
        read_id = self.ids.get(topic)
        if read_id and topic_id and read_id != topic_id:
            raise TopicChanged(f"topic {topic} was created again: its id is {topic_id}, not {read_id}")
        read = self.partitions.get(partition)
        if read is None:
            return
        if offsets.high < read.end:
            raise TopicChanged(
                f"{topic}[{number}] ends at offset {offsets.high}, though it was read up to {read.end}"
            )
        needed = read.end if open_in_memory else read.start
        if offsets.low > needed:
            raise TopicChanged(
                f"{topic}[{number}] begins at offset {offsets.low}: what is wanted from {needed} on is gone"
            )

    def _settle_notes(self) -> None:
        """Keep the notes of messages before the open ones; the next run reads later messages again."""
        newer = [*self.newer_notes]
        self.newer_notes.clear()
        for note in newer:
            if note.offset < self.partitions[note.partition].start:
                remember(self.notes, note.text, None, MAX_NOTES)
            else:
                self.newer_notes.append(note)

    def dump(self) -> str:
        """Return the state as a text."""
        self._settle_notes()
        topics: dict[str, Any] = {}
        for (topic, number), read in self.partitions.items():
            dumped = topics.setdefault(topic, {"id": self.ids.get(topic), "partitions": {}})
            dumped["partitions"][str(number)] = [read.end, list(read.open)]
        return json.dumps({"topics": topics, "recent": list(self.recent), "metadata": list(self.notes)})


def load_topic_progress(state: str) -> TopicProgress:
    """Return the progress of a state; raise InvalidValue if it is none."""
    try:
        dumped: Mapping[str, Any] = json.loads(state)
        progress = TopicProgress()
        progress.recent = {tuple(map(str, key)): None for key in dumped["recent"]}
        progress.notes = dict.fromkeys(map(str, dumped["metadata"]))
        for topic, read in dumped["topics"].items():
            if read["id"] is not None:
                progress.ids[topic] = str(read["id"])
            for number, (end, open_ranges) in read["partitions"].items():
                progress.partitions[topic, int(number)] = PartitionRead(int(end), Ranges(open_ranges))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(state[:40], "the state of topics") from None
    return progress
