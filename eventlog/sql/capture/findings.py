"""Findings, and the rows of the tables that make them: a look, its condition, the sentence, the remedy.

A fault needs someone to act. A note is a way around the triggers that the database leaves open, so that users
learn of it before they lose a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from string import Formatter
from typing import Any, Generic, NamedTuple, TypeVar

from eventlog.core.plurals import quantity

Facts = Mapping[str, Any]
Checked = TypeVar("Checked")


class Finding(NamedTuple):
    """A fault, and its remedy."""

    where: str
    what: str
    remedy: str
    fault: bool = True
    shown: bool = False  # always, though it is no fault
    commands: tuple[str, ...] = ()  # that do it: of a shell, or of SQL with ; at the end


@dataclass(frozen=True, slots=True)
class Check(Generic[Checked]):
    """A row of a table of checks, whose texts have holes for facts: `{count:row has|rows have}` counts."""

    look: Callable[[Checked], Iterable[Facts]]
    condition: str  # the fact that is a finding where it holds
    sentence: str
    remedy: str
    commands: tuple[str, ...] = ()  # before those that are among the facts
    fault: bool = True
    shown: bool = False

    def finding(self, facts: Facts) -> Finding:
        """Return the finding that these facts are."""
        what, remedy, *commands = (
            _SENTENCES.vformat(text, (), facts) for text in (self.sentence, self.remedy, *self.commands)
        )
        commands += facts.get("commands", ())
        return Finding(facts["where"], what, remedy, self.fault, self.shown, tuple(commands))


def findings_of(checks: Iterable[Check[Checked]], checked: Checked, names: Facts) -> Iterator[Finding]:
    """Yield the findings of a table of checks; successive rows of one look share its facts."""
    for look, checks_of_look in groupby(checks, attrgetter("look")):
        rows = list(checks_of_look)
        for facts in look(checked):
            yield from (row.finding({**names, **facts}) for row in rows if facts.get(row.condition))


class _Sentences(Formatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        """Return a value as text; a number with its noun, if the hole has the noun's two forms."""
        singular, is_noun, plural = format_spec.partition("|")
        return quantity(value, singular, plural) if is_noun else super().format_field(value, format_spec)


_SENTENCES = _Sentences()
