"""The cases of capture.cases: statements, what is tracked, and the rows that the log then holds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eventlog.sql.relation import Choice
from tests.sql.tracked import Logged

FILE = Path(__file__).with_name("capture.cases")
AT_ONCE = ";;"  # between the statements of one transaction


@dataclass
class Case:
    """A case, and its place in the file."""

    name: str
    line: int
    version: int = 0  # the first PostgreSQL that knows its statements
    preparations: list[str] = field(default_factory=list)
    tracked: list[tuple[str, Choice]] = field(default_factory=list)
    done: list[tuple[bool, list[str]]] = field(default_factory=list)  # transactions, and whether they fail
    rows: list[str] = field(default_factory=list)
    other_rows: list[str] = field(default_factory=list)  # of servers that do it in another way
    refused: str = ""


def read_cases() -> Iterator[Case]:
    """Yield the cases of the file."""
    case = None
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        first, _, words = line.partition(" ")
        if first == "==":
            if case is not None:
                yield case
            case = Case(words, number)
        elif case is not None and line and first != "#":
            _read_line(case, line, first, words)
    if case is not None:
        yield case


def _read_line(case: Case, line: str, first: str, words: str) -> None:
    if first == "version":
        case.version = int(words)
    elif first == "track":
        table, *choice_words = words.split(" ", 1)
        case.tracked.append((table, _choice(*choice_words)))
    elif first in ("do", "fails"):
        statements = [statement.strip() for statement in words.split(AT_ONCE)]
        case.done.append((first == "fails", statements))
    elif first == "refused:":
        case.refused = words
    elif first == "or":
        case.other_rows, case.rows = case.rows, []
    elif first.isdigit():
        case.rows.append(line)
    else:
        case.preparations.append(line)


def _choice(words: str = "") -> Choice:
    """Return the choice that the words of `eventlog track` make."""
    flags = shlex.split(words)
    value_of_flag = dict(zip(flags[::2], flags[1::2], strict=True))
    return Choice(
        insert=int(value_of_flag.get("--insert", 5)),
        update=int(value_of_flag.get("--update", 6)),
        delete=None if value_of_flag.get("--delete") == "off" else 4,
        children=tuple(filter(None, [value_of_flag.get("--child")])),
        without=tuple(filter(None, [value_of_flag.get("--without")])),
    )


def written(table: str, row: Logged) -> str:
    """Return a row of the log as the file has it."""
    start = f"{row.type} {table} {row.key}"
    if row.column is None:
        return start
    return f"{start} {row.column}: {_value(row.old_value)} -> {_value(row.new_value)}"


def _value(text: str | None) -> str:
    if text is None:
        return "null"
    return text if text.strip() else f"'{text}'"
