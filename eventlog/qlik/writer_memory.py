"""What a writer of messages or change tables goes on from in the next part, or in the next run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from eventlog.qlik import metadata, sequence
from eventlog.qlik.metadata import Metadata


class SequenceMemory:
    """The greatest change_seq that was given, and the last metadata message of each table."""

    def __init__(self, last: str = sequence.START, published: Iterable[Metadata] = ()) -> None:
        self.last = last
        self.published = {(m.structure.schema, m.structure.table): m for m in published}

    def dump(self) -> dict[str, Any]:
        """Return the same as JSON holds it."""
        messages = [[metadata.payload(m), m.message_schema] for m in self.published.values()]
        return {"last_sequence": self.last, "published": messages}

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> SequenceMemory:
        """Return what was dumped; raise any error if it was something else."""
        last = found["last_sequence"]
        if last != sequence.START:  # nothing was written yet
            sequence.check(last)
        return cls(last, [metadata.read(payload, schema) for payload, schema in found["published"]])


class Remembering(Protocol):
    """The settings of a writer that goes on."""

    @property
    def last_sequence(self) -> str: ...

    @property
    def memory(self) -> SequenceMemory | None: ...


def goes_on(settings: Remembering, dumped: Any) -> SequenceMemory:
    """Return the memory of a writer: from the end of its last run, else from its settings."""
    return SequenceMemory(settings.last_sequence) if dumped is None else SequenceMemory.load(dumped)


def remembered(settings: Remembering, published: Iterable[Metadata] = ()) -> SequenceMemory:
    """Return the state from which a writer with these settings goes on."""
    return (
        settings.memory if settings.memory is not None else SequenceMemory(settings.last_sequence, published)
    )
