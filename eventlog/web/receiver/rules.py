"""The receiver's answers: rules of a TOML file; the first rule that matches an event answers it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from eventlog.core import toml
from eventlog.core.errors import EventlogError, InvalidDocument
from eventlog.web.receiver.incoming import AttributeStep, Incoming, ReceivedEvent
from eventlog.xds import answers
from eventlog.xds.answers import Level, Status

LONGEST_DELAY = 600.0  # seconds


class InvalidRules(EventlogError):
    """answers file: {0}"""


class Spoiled(enum.Enum):
    """A faulty answer instead of a proper one."""

    GARBAGE = "garbage"  # something that is not XML
    CUT = "cut"  # the first half of the answer
    EMPTY = "empty"  # no byte
    REFUSED = "503"  # the HTTP status of a receiver that is not there
    SILENCE = "hang-up"  # the connection closes


_ANSWERS: dict[str, Level | Spoiled] = {level.name.lower(): level for level in Level} | {
    spoiled.value: spoiled for spoiled in Spoiled
}


@dataclass(frozen=True)
class Rule:
    """An answer, and the events that get it; every pattern of the rule must match."""

    answer: Level | Spoiled
    text: str = ""
    operation: str = "*"
    class_name: str = "*"
    key: str = "*"
    attribute: str | None = None
    value: str | None = None
    times: int | None = None  # how many deliveries of one event get it; None is all
    delay: float = 0.0

    def fits(self, event: ReceivedEvent, earlier: int) -> bool:
        """Return whether the rule answers this event, which was delivered so many times before."""
        return (
            (self.times is None or earlier < self.times)
            and fnmatchcase(event.operation, self.operation)
            and fnmatchcase(event.class_name, self.class_name)
            and fnmatchcase(event.key, self.key)
            and any(map(self._names, event.attributes or (AttributeStep("", ""),)))
        )

    def _names(self, attribute: AttributeStep) -> bool:
        name, value = self.attribute, self.value
        return (name is None or fnmatchcase(attribute.name, name)) and (
            value is None or fnmatchcase(attribute.value, value)
        )


OTHERWISE = Rule(Level.SUCCESS)


@dataclass(frozen=True)
class Verdict:
    """The answer to a document: a status for each event, or a faulty answer."""

    statuses: tuple[Status, ...]
    spoiled: Spoiled | None = None
    delay: float = 0.0

    @property
    def level(self) -> str:
        """The worst level, or what came back instead."""
        if self.spoiled is not None:
            return self.spoiled.value
        return max((status.level for status in self.statuses), default=Level.SUCCESS).name.lower()

    @property
    def reply(self) -> bytes:
        """The answer document."""
        return answers.write(self.statuses).encode()


def decide(rules: Sequence[Rule], incoming: Incoming, earlier: Callable[[ReceivedEvent], int]) -> Verdict:
    """Return the verdict on a document; `earlier` returns how often an event was delivered before."""
    if incoming.fault:
        return Verdict((Status(Level.ERROR, None, incoming.fault, "invalid-document"),))
    chosen = [(event, _rule(rules, event, earlier(event))) for event in incoming.events]
    spoiled = next((rule.answer for _, rule in chosen if isinstance(rule.answer, Spoiled)), None)
    return Verdict(
        tuple(_status(event, rule) for event, rule in chosen) or (Status(Level.SUCCESS),),
        spoiled,
        max((rule.delay for _, rule in chosen), default=0.0),
    )


def read(text: str) -> tuple[Rule, ...]:
    """Return the rules of a file in its order; the error names the faulty rule."""
    try:
        document = toml.load(text)
    except InvalidDocument as fault:
        raise InvalidRules(str(fault)) from fault
    strangers = document.keys() - {"rule"}
    found = document.get("rule", [])
    if strangers or not isinstance(found, list):
        raise InvalidRules(f"it holds [[rule]] tables and nothing else, not {sorted(strangers) or 'rule'}")
    return tuple(_read_rule(number, entries) for number, entries in enumerate(found, 1))


def _rule(rules: Iterable[Rule], event: ReceivedEvent, earlier: int) -> Rule:
    return next((rule for rule in rules if rule.fits(event, earlier)), OTHERWISE)


def _status(event: ReceivedEvent, rule: Rule) -> Status:
    level = rule.answer if isinstance(rule.answer, Level) else Level.RETRY
    return Status(level, event.event_id, rule.text)


def _read_rule(number: int, entries: Any) -> Rule:
    if not isinstance(entries, dict):
        raise InvalidRules(f"rule {number} is no table")
    strangers = sorted(entries.keys() - _ENTRIES.keys())
    if strangers or "answer" not in entries:
        wrong = f"unknown entry {strangers[0]!r}" if strangers else "the entry 'answer' is missing"
        raise InvalidRules(f"rule {number}: {wrong}; there are {', '.join(_ENTRIES)}")
    given = {}
    for name, value in entries.items():
        field, check, wanted = _ENTRIES[name]
        try:
            given[field] = check(value)
        except (KeyError, TypeError, ValueError):
            raise InvalidRules(f"rule {number}: {name} is {value!r}, not {wanted}") from None
    return Rule(**given)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _times(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError
    return value


def _delay(value: Any) -> float:
    if isinstance(value, bool) or not 0 <= value <= LONGEST_DELAY:
        raise ValueError
    return float(value)


_PATTERN = "a text; * matches any characters and ? one"
_ENTRIES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "answer": ("answer", lambda value: _ANSWERS[str(value)], f"one of {', '.join(_ANSWERS)}"),
    "text": ("text", _text, "a text"),
    "operation": ("operation", _text, _PATTERN),
    "class": ("class_name", _text, _PATTERN),
    "key": ("key", _text, _PATTERN),
    "attribute": ("attribute", _text, _PATTERN),
    "value": ("value", _text, _PATTERN),
    "times": ("times", _times, "a whole number from 1 on"),
    "delay": ("delay", _delay, f"seconds from 0 to {LONGEST_DELAY:.0f}"),
}
