"""Warnings about many records together: their number, and the places of the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from eventlog.core.errors import Refused

NAMED = 10  # places that a message names


class GroupedWarnings:
    """A counter of records that are reported together."""

    def __init__(self, sentence: str, *, fault: bool) -> None:
        self._sentence = sentence  # with {count} and {places}
        self._fault = fault
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def add(self, name: str, where: str, raw: bytes | None) -> Refused:
        """Count a record; return it as one that is not reported alone."""
        self._counts[name] += 1
        places = self._places.setdefault(name, [])
        if len(places) < NAMED:
            places.append(where)
        return Refused(where, self._sentence.format(count=1, places=where), raw, self._fault, grouped=True)

    @property
    def totals(self) -> dict[str, tuple[int, list[str]]]:
        """Return the count of each name, and the first places."""
        return {name: (count, self._places[name]) for name, count in self._counts.items()}

    def merge(self, totals: Mapping[str, tuple[int, list[str]]]) -> None:
        """Add the totals of another counter."""
        for name, (count, places) in totals.items():
            self._counts[name] += count
            first_places = self._places.setdefault(name, [])
            first_places += places[: NAMED - len(first_places)]

    def warnings(self) -> Iterator[Refused]:
        """Yield one sentence for each name."""
        for name, count in self._counts.items():
            places = self._places[name]
            listed = ", ".join(places) + (f" and {count - len(places)} more" if count > len(places) else "")
            yield Refused(name, self._sentence.format(count=count, places=listed), fault=False)


def unchanged_updates() -> GroupedWarnings:
    """Return a counter of updates without changes, which a format cannot express."""
    return GroupedWarnings("{count} updates that change nothing are left out, at {places}", fault=False)


def repeats() -> GroupedWarnings:
    """Return a counter of repeated records, which count once."""
    return GroupedWarnings("{count} repeated records are left out, at {places}", fault=False)
