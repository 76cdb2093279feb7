"""What is logged of one table: the event types, the columns, how, and which child tables with it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

INSERTS = (5, 1, 7)
UPDATES = (6, 2, 3, 8)
DELETES = (4, None)
GRANULARITIES = ("auto", "statement", "row")

MARK = "eventlog track "


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

    def mark(self) -> str:
        """The words by which a trigger's text remembers the choice, of one line and without quotes' harm."""
        given = {name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]}
        return MARK + json.dumps(given, sort_keys=True).replace("'", r"\u0027").replace("*/", r"*\u002f")

    def flags(self) -> str:
        """The flags of `track` that make this choice, each after a blank."""
        flags = []
        for name, value in asdict(self).items():
            if value == _DEFAULTS[name]:
                continue
            if name == "children":
                flags += [f" --child {child}" for child in value]
            else:
                words = "off" if value is None else ",".join(value) if isinstance(value, tuple) else value
                flags.append(f" --{name} {words}")
        return "".join(flags)


def read_mark(text: str) -> Choice | None:
    """The choice that a trigger's text remembers, None if the text is not ours."""
    _, found, rest = text.partition(MARK)
    if not found:
        return None
    try:
        found = json.JSONDecoder().raw_decode(rest)[0]
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in found.items()}
        return Choice(**given)
    except (ValueError, TypeError, AttributeError):
        return None


_DEFAULTS = asdict(Choice())
