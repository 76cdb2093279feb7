"""Patterns of names: regular expressions as Java writes them, matched in time linear in the name.

Whoever wrote the pattern may have had anything in mind, so nothing here goes back and tries again: the
pattern becomes a machine with so many places, and each character moves it once. What such a machine
cannot do (back references, look-around, possessive quantifiers) is refused, with the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from eventlog.core.errors import EventlogError

LONGEST: Final = 1000  # characters of a pattern
DEEPEST: Final = 50  # groups in groups
MOST_PLACES: Final = 10_000  # of the machine; {1000} stands for so many of what is before it

Test = Callable[[str], bool]


class InvalidPattern(EventlogError):
    """{2!r} is no pattern: at character {0}, {1}"""


class TooManyPlaces(EventlogError):
    """the machine would be too large"""


class One(NamedTuple):
    """A character that passes a test."""

    test: Test


class InTurn(NamedTuple):
    """One after the other."""

    nodes: tuple[Node, ...]


class Either(NamedTuple):
    """One or the other."""

    nodes: tuple[Node, ...]


class Times(NamedTuple):
    """So many of it; `most` None: without end."""

    node: Node
    least: int
    most: int | None


Node = One | InTurn | Either | Times


class Pattern:
    """A pattern that a whole name matches, or does not."""

    def __init__(self, text: str) -> None:
        self.text = text
        reader = _Reader(text)
        self._folds = reader.folds
        try:
            self._machine = _Machine(reader.read())
        except TooManyPlaces:
            reason = f"it stands for more than {MOST_PLACES} characters"
            raise InvalidPattern(1, reason, _short(text)) from None

    def matches(self, name: str) -> bool:
        """Whether the whole name is of the pattern."""
        return self._machine.accepts(name.lower() if self._folds else name)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise InvalidPattern(LONGEST + 1, f"it is longer than {LONGEST} characters", _short(text))
        self.folds = text.startswith("(?i)")
        self._text = text
        self._at = len("(?i)") if self.folds else 0
        self._depth = 0

    def read(self) -> Node:
        """The whole pattern; ^ and $ round it say what is so anyway."""
        self._take("^")
        node = self._alternatives()
        self._take("$")
        if self._at < len(self._text):
            raise self._fault("a bracket that closes nothing" if self._next() == ")" else "^ or $ within it")
        return node

    def _alternatives(self) -> Node:
        found = [self._sequence()]
        while self._take("|"):
            found.append(self._sequence())
        return found[0] if len(found) == 1 else Either(tuple(found))

    def _sequence(self) -> Node:
        found: list[Node] = []
        while (mark := self._next()) and mark not in "|)^" and not self._ends():
            *others, last = self._atoms()
            found += [*others, self._repeated(last)]
        return InTurn(tuple(found))

    def _ends(self) -> bool:
        return self._text[self._at :] == "$"

    def _atoms(self) -> list[Node]:
        """The next atom; of a quotation, its characters."""
        start, mark = self._at, self._text[self._at]
        self._at += 1
        if mark == "(":
            return [self._group()]
        if mark == "[":
            return [One(self._class())]
        if mark == ".":
            return [One(lambda character: character not in _LINE_ENDS)]
        if mark == "\\" and self._take("Q"):
            return self._quotation()
        if mark == "\\":
            return [One(self._escape())]
        if mark in "*+?{$":
            self._at = start
            raise self._fault("$ within it" if mark == "$" else f"{mark} repeats nothing")
        return [One(self._is(mark))]

    def _group(self) -> Node:
        if self._take("?") and not self._take(":"):
            raise self._fault("only (?:…) is known of the groups that begin with ?")
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._fault(f"more than {DEEPEST} groups in groups")
        node = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise self._fault("a bracket is not closed")
        return node

    def _repeated(self, node: Node) -> Node:
        """The atom with the quantifier behind it. Lazy or greedy, the whole name is of the pattern or not."""
        bounds = self._quantifier()
        if bounds is None:
            return node
        self._take("?")
        if self._next() in ("*", "+", "?", "{"):
            raise self._fault("a quantifier behind a quantifier, or a possessive one")
        return Times(node, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for mark, known in _QUANTIFIERS.items():
            if self._take(mark):
                return known
        if not self._take("{"):
            return None
        inside, closed, _ = self._text[self._at :].partition("}")
        least, comma, most = inside.partition(",")
        numbers = [number for number in (least, most) if number]
        if not closed or not least or not all(n.isascii() and n.isdigit() and len(n) < 6 for n in numbers):
            raise self._fault("{n}, {n,} or {n,m} is expected")
        bounds = int(least), int(most) if most else None if comma else int(least)
        if bounds[1] is not None and bounds[1] < bounds[0]:
            raise self._fault("the least number is greater than the most")
        self._at += len(inside) + 1
        return bounds

    def _quotation(self) -> list[Node]:
        quoted, _, rest = self._text[self._at :].partition(r"\E")
        self._at = len(self._text) - len(rest)
        return [One(self._is(character)) for character in quoted] or [InTurn(())]

    def _class(self) -> Test:
        negated = self._take("^")
        tests: list[Test] = []
        while not (tests and self._take("]")):
            if not self._next() or self._text.startswith("&&", self._at) or self._next() == "[":
                raise self._fault("a class of characters is not closed, or holds [ or &&")
            tests.append(self._member())
        return lambda character: any(test(character) for test in tests) != negated

    def _member(self) -> Test:
        low, test = self._single()
        if low is None or self._next() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return test
        self._at += 1
        high, _ = self._single()
        if high is None or high < low:
            raise self._fault("a range of characters that goes down, or to a class")
        return partial(_within, low, high, self.folds)

    def _single(self) -> tuple[str | None, Test]:
        """A character of a class, or a class such as \\d."""
        mark = self._next()
        self._at += 1
        if mark != "\\":
            return mark, self._is(mark)
        escaped = self._next()
        test = self._escape()
        return (None if escaped in _CLASSES else escaped), test

    def _escape(self) -> Test:
        mark = self._next()
        self._at += len(mark)
        if mark in _CLASSES:
            return _CLASSES[mark]
        if not mark or mark.isalnum():
            raise self._fault(f"\\{mark} is not known")
        return self._is(mark)

    def _is(self, character: str) -> Test:
        wanted = character.lower() if self.folds else character
        return lambda other: other == wanted

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, mark: str) -> bool:
        """Pass the mark, if it stands here."""
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def _fault(self, reason: str) -> InvalidPattern:
        return InvalidPattern(self._at + 1, reason, _short(self._text))


class _Machine:
    """Places, each with a test that leads to the next one, or with places to which it leads without one."""

    def __init__(self, node: Node) -> None:
        self._tests: list[Test | None] = []
        self._to: list[list[int]] = []
        self._end = self._build(node, self._place())
        self._start = 0

    def accepts(self, name: str) -> bool:
        """Whether the end can be reached over all of the name."""
        here = self._spread([self._start])
        for character in name:
            moved = []
            for place in here:
                test = self._tests[place]
                if test is not None and test(character):
                    moved += self._to[place]
            here = self._spread(moved)
        return self._end in here

    def _spread(self, places: Iterable[int]) -> set[int]:
        """These places and all to which they lead without a test."""
        found: set[int] = set()
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            if place not in found:
                found.add(place)
                waiting += self._to[place] if self._tests[place] is None else ()
        return found

    def _place(self) -> int:
        if len(self._to) >= MOST_PLACES:
            raise TooManyPlaces
        self._tests.append(None)
        self._to.append([])
        return len(self._to) - 1

    def _build(self, node: Node, start: int) -> int:
        """The places of a node, from a place on; where they end."""
        match node:
            case One(test):
                self._tests[start] = test
                return self._lead(start)
            case InTurn(nodes):
                for one in nodes:
                    start = self._build(one, start)
                return start
            case Either(nodes):
                ends = [self._build(one, self._lead(start)) for one in nodes]
                return self._lead(*ends)
            case Times(one, least, most):
                for _ in range(least):
                    start = self._build(one, start)
                return self._endless(one, start) if most is None else self._upto(one, start, most - least)

    def _endless(self, node: Node, start: int) -> int:
        loop = self._lead(start)
        self._to[self._build(node, self._lead(loop))].append(loop)
        return self._lead(loop)

    def _upto(self, node: Node, start: int, most: int) -> int:
        ends = [start]
        for _ in range(most):
            ends.append(self._build(node, self._lead(ends[-1])))
        return self._lead(*ends)

    def _lead(self, *places: int) -> int:
        """A new place to which these lead."""
        made = self._place()
        for place in places:
            self._to[place].append(made)
        return made


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _within(low: str, high: str, folds: bool, character: str) -> bool:
    return low <= character <= high or (folds and low <= character.upper() <= high)


_QUANTIFIERS: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_LINE_ENDS: Final = frozenset("\n\r\x85\u2028\u2029")
_DIGITS: Final = frozenset("0123456789")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORDS: Final = _DIGITS | _LETTERS | {"_"}
_BLANKS: Final = frozenset(" \t\n\x0b\f\r")
_CLASSES: Final[dict[str, Test]] = {
    "d": lambda character: character in _DIGITS,
    "D": lambda character: character not in _DIGITS,
    "w": lambda character: character in _WORDS,
    "W": lambda character: character not in _WORDS,
    "s": lambda character: character in _BLANKS,
    "S": lambda character: character not in _BLANKS,
}
