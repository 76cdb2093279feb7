"""Places of rows and messages in one sequence."""

from __future__ import annotations

from typing import NamedTuple

from eventlog.core.errors import Misuse
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.qlik import sequence


def check_limits(since: str, until: str) -> None:
    """Raise Misuse unless both are empty or a change_seq."""
    for flag, seq in (("--since", since), ("--until", until)):
        try:
            if seq:
                sequence.check(seq)
        except sequence.InvalidSequence as fault:
            raise Misuse(f"{flag}: {fault}") from None


class SequencePlace(NamedTuple):
    """The place of a record in the sequence; records sort by it.

    Records of one table under one change_seq are together. A record without a change_seq follows the greatest
    that its own source had before it, in the order of that source.
    """

    seq: str
    without_sequence: bool  # it has no change_seq of its own
    table: int  # the source, where it has none
    source: int
    number: int


class SequenceMark(NamedTuple):
    """The place of a record in its source, and the greatest change_seq before it."""

    number: int
    greatest: str


class SourcePlaces:
    """The places of the records of one source, within the limits of what is read."""

    def __init__(self, source: int, since: str, until: str) -> None:
        self._source = source
        self._since = since
        self._until = until
        self._greatest = ""
        self._greatest_late = ""  # of the records that are placed after all others
        self._number = 0
        self.later_records = 0  # after the end of what is read

    def mark(self) -> SequenceMark:
        """Return the mark of the next record."""
        self._number += 1
        return SequenceMark(self._number, self._greatest)

    def place(self, seq: str | None, table: int) -> SequencePlace | None:
        """Return the place of the next record, or None if it lies outside what is read."""
        mark = self.mark()
        self._greatest = max(self._greatest, seq or "")
        return self._place_of(mark, seq, table)

    def place_late(self, mark: SequenceMark, seq: str | None, table: int) -> SequencePlace | None:
        """Return the place of a record that was marked before; such records are placed in their order."""
        self._greatest_late = max(self._greatest_late, seq or "")
        return self._place_of(SequenceMark(mark.number, max(mark.greatest, self._greatest_late)), seq, table)

    def _place_of(self, mark: SequenceMark, seq: str | None, table: int) -> SequencePlace | None:
        if not seq:
            return SequencePlace(mark.greatest, True, self._source, self._source, mark.number)
        if seq <= self._since:
            return None
        if self._until and seq > self._until:
            self.later_records += 1
            return None
        return SequencePlace(seq, False, table, self._source, mark.number)


def lone_images() -> GroupedWarnings:
    """Return a counter of B rows without a U row."""
    return GroupedWarnings("{count} B rows without their U row, at {places}", fault=True)


def repeats() -> GroupedWarnings:
    """Return a counter of repeated records, which count once."""
    return GroupedWarnings("{count} repeated records are left out, at {places}", fault=False)
