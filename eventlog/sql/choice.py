"""What is logged of one table: the event types, the columns, how, and which child tables with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any

from eventlog.core.errors import EventlogError
from eventlog.sql.relation import MARK

INSERTS = (5, 1, 7)
UPDATES = (6, 2, 3, 8)
DELETES = (4, None)
GRANULARITIES = ("auto", "statement", "row")


class IllegalChoice(EventlogError):
    """{0!r} is no choice of what to track: it is {1}"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice that `track` is given; the first of each is the default."""

    insert: int = 5
    update: int = 6
    delete: int | None = 4
    columns: tuple[str, ...] | None = None  # None: all
    granularity: str = "auto"
    children: tuple[str, ...] = ()  # child.column
    without: tuple[str, ...] = ()  # of all columns, or of those chosen
    replicated: bool = False  # also what replication writes

    def __post_init__(self) -> None:
        for value, legal in (
            (self.insert, INSERTS),
            (self.update, UPDATES),
            (self.delete, DELETES),
            (self.granularity, GRANULARITIES),
        ):
            if value not in legal:
                raise IllegalChoice(value, ", ".join(map(str, legal)))

    def mark(self) -> str:
        """Return the words by which a trigger's text contains the choice: one line, without quotes or comment
        ends.
        """
        chosen = {name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]}
        return MARK + json.dumps(chosen, sort_keys=True).replace("'", r"\u0027").replace("*/", r"*\u002f")

    def words(self) -> str:
        """Return the choice as it is on record, where children have lines of their own."""
        return replace(self, children=()).mark().removeprefix(MARK)

    def flags(self) -> str:
        """Return the flags of `track` that make this choice, each after a blank, as a shell takes them."""
        flags = []
        for name, value in asdict(self).items():
            if value == _DEFAULTS[name]:
                continue
            if name == "children":
                flags += [f" --child {quote(child)}" for child in value]
            elif value is True:
                flags.append(f" --{name}")
            else:
                words = "off" if value is None else ",".join(value) if isinstance(value, tuple) else value
                flags.append(f" --{name} {quote(str(words))}")
        return "".join(flags)


def read_mark(text: str) -> Choice | None:
    """Return the choice in a trigger's text; None if the text is not ours."""
    _, mark, rest = text.partition(MARK)
    if not mark:
        return None
    try:
        return read_choice(rest)
    except IllegalChoice:
        return None


def read_choice(words: str, children: Iterable[str] | None = None) -> Choice:
    """Return the choice at the beginning of a text, with its children if they are given separately."""
    try:
        entries = json.JSONDecoder().raw_decode(words)[0]
        values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in entries.items()}
        return Choice(**values) if children is None else Choice(**values, children=tuple(children))
    except (ValueError, TypeError, AttributeError) as fault:
        raise IllegalChoice(words[:80], "what track writes") from fault


_DEFAULTS = asdict(Choice())
