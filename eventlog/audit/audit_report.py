"""The report of an audit: the laws, and where they do not hold."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from eventlog.core.remedies import Remedy

ObjectsOf = Callable[[Sequence[int]], Mapping[int, str]]  # the names of the objects of rows in the log
_RESYNC = f"`{Remedy.RESYNC}` sends the present rows, and `{Remedy.PURGE}` ends the search for it"


class Law(enum.StrEnum):
    """A promise in words, and what to do where it is broken."""

    remedy: str

    def __new__(cls, promise: str, remedy: str) -> Self:
        law = str.__new__(cls, promise)
        law._value_, law.remedy = promise, remedy
        return law

    ACCOUNTED = (
        "every row is in an event on record, or has its reason there",
        "find out who changed the log; only the publisher finishes rows",
    )
    DELIVERED = (
        "what is on record as sent is at the receiver, byte for byte",
        f"look for the document; if it is lost, {_RESYNC}",
    )
    EXPLAINED = (
        "the receiver has nothing that is not on record as sent",
        "find out who else sends documents to this receiver, or changed one",
    )
    IN_ORDER = (
        "the events of an object came in the order in which they were sent",
        f"compare the object at the receiver with the table; if it differs, {_RESYNC}",
    )
    ANSWERED = (
        "a row has the letter of the answer to its event",
        "find out who changed the status column; only the publisher writes it",
    )
    SAME_STATE = (
        "the documents make what the table has",
        "look for changes that were not logged, or at the receiver",
    )


class Breach(NamedTuple):
    """A place where a law does not hold."""

    law: Law
    record_id: int  # the row, or the first row of the event
    words: str
    object: str = ""  # if the log does not have the row
    is_gone: bool = False  # the table does not have the object


@dataclass
class AuditReport:
    """The result of an audit."""

    letters: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    late: int = 0  # events that may have come after the log was read
    not_judged: int = 0  # events of a version before digests, or of a backlog whose sum is not on record
    without_record: int = 0  # events at the receiver whose rows or batches were deleted
    spelled_anew: int = 0  # events whose XML has another spelling than what left
    open_laws: dict[Law, str] = field(default_factory=dict)  # that are not judged, and why
    is_purged: bool = False
    is_whole: bool = True  # the receiver still has all its documents
    breach_counts: Counter[Law] = field(default_factory=Counter)
    first_breaches: dict[Law, Breach] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)  # present rows that no document can carry
    faults: list[str] = field(default_factory=list)  # what could not be read
    digest: str = ""
    state_remedy: str = ""  # of the first object whose state differs, where its table is known

    @property
    def outcome(self) -> str:
        """Return whether all that was judged holds; it is open if an event on record is not judged."""
        if self.first_breaches or self.faults:
            return "broken"
        return "open" if self.not_judged else "holds"

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(self.letters.values())

    def add(self, breaches: Iterable[Breach]) -> None:
        """Count breaches; of each law the one at the first row is kept."""
        for breach in breaches:
            self.breach_counts[breach.law] += 1
            first = self.first_breaches.setdefault(breach.law, breach)
            if breach.record_id < first.record_id:
                self.first_breaches[breach.law] = breach

    def remedy_of(self, law: Law) -> str:
        """Return what to do where a law is broken."""
        return f"{law.remedy}; {self.state_remedy}" if law is Law.SAME_STATE else law.remedy

    def name_objects(self, objects_of: ObjectsOf) -> None:
        """Name the objects of the first breaches."""
        names = objects_of([breach.record_id for breach in self.first_breaches.values()])
        for law, breach in self.first_breaches.items():
            name = names.get(breach.record_id, breach.object)
            self.first_breaches[law] = breach._replace(object=name)
