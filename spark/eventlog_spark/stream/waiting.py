"""A transaction on its way through batches, as the state of a stream keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from eventlog.sequence.ranges import Ranges
from eventlog.sequence.transactions import Facts, Key
from eventlog.sequence.waiting import Waiting


class TopicMessage(NamedTuple):
    """A message of a topic."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None


class OrderedMessage(NamedTuple):
    """A message of a transaction, after its sort key."""

    counter: int
    seq: str
    number: int  # among all that came
    message: TopicMessage


class KeptTransactions(Protocol):
    """The store of what outlives a batch, by the name of a transaction."""

    def progress(self) -> str | None: ...
    def keep_progress(self, text: str, /) -> None: ...
    def waiting(self) -> Sequence[tuple[str, str]]: ...
    def keep(self, name: str, text: str, /) -> None: ...
    def drop(self, name: str, rounds: Sequence[int], /) -> None: ...
    def messages(self, name: str, round_: int, /) -> bytes: ...
    def keep_messages(self, name: str, round_: int, packed: bytes, /) -> None: ...
    def drop_messages(self, name: str, rounds: Sequence[int], /) -> None: ...
    def metadata(self) -> Mapping[str, str]: ...
    def keep_metadata(self, schema_id: str, text: str, /) -> None: ...
    def drop_metadata(self, schema_id: str, /) -> None: ...


@dataclass(slots=True)
class WaitingTransaction(Waiting):
    """A transaction of messages that waits; its moment is in milliseconds."""

    size: int = 0
    rounds: list[int] = field(default_factory=list)  # whose messages are in the state
    schemas: set[str] = field(default_factory=set)  # the metadata of its messages
    new: list[OrderedMessage] = field(default_factory=list)  # of this round

    def dump(self) -> str:
        """Return all but its messages, as a text."""
        facts = self.facts
        stored = {
            "first": facts.first,
            "last": facts.last,
            "count": facts.count,
            "number": facts.number,
            "counters": list(facts.counters),
            "ends": facts.ends,
            "counted": facts.counted,
            "sources": sorted(facts.sources),
        }
        own = {"since": self.since, "round": self.round, "size": self.size, "rounds": self.rounds}
        own["schemas"] = sorted(self.schemas)
        return json.dumps({"key": self.key, "facts": stored, **own})

    @classmethod
    def load(cls, text: str) -> WaitingTransaction:
        """Return one that was kept."""
        found: dict[str, Any] = json.loads(text)
        stored = found.pop("facts")
        stored["counters"] = Ranges(stored["counters"])
        stored["sources"] = set(stored["sources"])
        found["schemas"] = set(found.get("schemas", ()))
        return cls(tuple(found.pop("key")), Facts(**stored), **found)


@dataclass(slots=True)
class Halted:
    """A partition that is read no further than a message whose metadata did not come yet."""

    topic: str
    partition: int
    schema_id: str
    offset: int
    since: int  # the moment when it was met, in milliseconds
    count: int = 0
    size: int = 0
    rounds: list[int] = field(default_factory=list)  # whose messages are in the state

    @property
    def where(self) -> str:
        """The message at which it halts."""
        return f"{self.topic}[{self.partition}]:{self.offset}"

    @property
    def why(self) -> str:
        """Return a sentence about why it halts."""
        return f"{self.where} names schemaId {self.schema_id}, but no metadata message had it"


@dataclass(slots=True)
class StreamProgress:
    """The progress of a stream besides the waiting transactions."""

    round: int = 0
    number: int = 0  # of the message that came last
    turn: int = 0  # of what was handed out last
    released: str = ""  # the last sequence that was handed out
    greatest: dict[str, str] = field(default_factory=dict)  # sequence of each partition
    recent: dict[Key, None] = field(default_factory=dict)  # transactions, as they were handed out
    halted: dict[str, Halted] = field(default_factory=dict)  # partitions

    def dump(self) -> str:
        numbers = {name: getattr(self, name) for name in ("round", "number", "turn", "released", "greatest")}
        halted = {name: asdict(one) for name, one in self.halted.items()}
        return json.dumps(numbers | {"recent": list(self.recent), "halted": halted})

    @classmethod
    def load(cls, text: str | None) -> StreamProgress:
        """Return what was kept, if anything was."""
        if text is None:
            return cls()
        found: dict[str, Any] = json.loads(text)
        recent: dict[Key, None] = {tuple(key): None for key in found.pop("recent")}
        halted = {name: Halted(**one) for name, one in found.pop("halted", {}).items()}
        return cls(**found, recent=recent, halted=halted)


_PACKED = pa.schema(
    [
        ("counter", pa.int64()),
        ("seq", pa.string()),
        ("number", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.large_binary()),
        ("key", pa.large_binary()),
    ]
)


def pack(messages: Sequence[OrderedMessage]) -> bytes:
    """Return messages as bytes."""
    rows = [(*one[:3], *one.message) for one in messages]
    columns = [
        pa.array(list(cells), f.type) for cells, f in zip(zip(*rows, strict=True), _PACKED, strict=True)
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _PACKED) as writer:
        writer.write_batch(pa.record_batch(columns, schema=_PACKED))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(packed: bytes) -> list[OrderedMessage]:
    """Return messages that were packed."""
    table = pa.ipc.open_stream(packed).read_all()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [OrderedMessage(counter, seq, number, TopicMessage(*rest)) for counter, seq, number, *rest in rows]
