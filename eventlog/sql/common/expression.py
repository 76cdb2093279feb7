"""How the values of one column type become text, and what is made of such texts: conditions and keys.

Triggers and query-back use the same expression, so a value removed always equals the value that was added.
An expression depends on no setting of the session except those that our sessions and our trigger functions
pin (`session`, a named statement of the dialect).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from eventlog.core.tables import Column

T = TypeVar("T")
Quote = Callable[[str], str]  # a name as an identifier


class Expression(NamedTuple):
    """The way in which values of one type become text, and in which two of them are compared."""

    text: str  # {x} is the value
    plain: bool = False  # the text holds none of the nine characters that a key quotes
    differs: str = ""  # whether {a} and {b} have different texts, null being one; if empty, texts compare
    unreadable: str = ""  # why its values are left out of rows and query-backs; empty if they are not
    in_key: str = ""  # the text within a key, where that is another expression
    parameter: str = ""  # the type of a routine's parameter that takes any such value
    queried: str = ""  # the text in the result of a query, where the server would cut the other one short
    in_query: bool = False  # only a query can make the text, no procedural code
    by_text: bool = False  # values compare as texts, because users may have written the type's operators


class Expressions(NamedTuple):
    """The expressions of one database."""

    by_type: Mapping[str, Expression]
    default: Expression  # of a type that has no entry, and of arrays
    texts_differ: str  # of the texts {a} and {b}
    quoted: str  # the text {v} as a key holds it
    joined: str = " || "
    wrapped: str = "{parts}"
    equals: str = "="
    present: str = "{x} is not null"
    missing: str = "{x} is null"
    escape: bool = False  # a backslash in a constant must be doubled, and the constant marked
    functions: tuple[
        str, ...
    ] = ()  # our own, each a named statement, which a query that calls one begins with
    longest_constant: int = 0  # characters of one constant, where there is a limit; a longer text is joined
    piece: str = "{v}"  # one constant of several

    def of(self, type_name: str) -> Expression:
        """Return the expression of a type as the catalogue writes it."""
        if type_name.endswith("[]"):
            return self.default
        name, arguments = split_type(type_name)
        shape = re.sub(r"[1-9]\d*", "n", arguments)
        for spelling in (f"{name}({arguments})", f"{name}({shape})", name, name.partition(" ")[0]):
            if spelling in self.by_type:
                return self.by_type[spelling]
        return self.default

    def text(self, column: Column, alias: str, quote: Quote) -> str:
        """Return the text of a column's value in the row that the alias names."""
        return self.of(column.type).text.format(x=f"{alias}.{quote(column.name)}")

    def compared(self, column: Column, value: str) -> str:
        """Return the expression by which a value of a column compares with others."""
        expression = self.of(column.type)
        return f"({expression.text.format(x=value)})" if expression.by_text else value

    def queried(self, column: Column, alias: str, quote: Quote) -> str:
        """Return the text of a column's value in the result of a query."""
        expression = self.of(column.type)
        return (expression.queried or expression.text).format(x=f"{alias}.{quote(column.name)}")

    def differ(self, column: Column, old_alias: str, new_alias: str, quote: Quote) -> str:
        """Return the condition that the column has another text in the new row than in the old one."""
        expression = self.of(column.type)
        if expression.differs:
            name = quote(column.name)
            return expression.differs.format(
                a=f"{old_alias}.{name}", b=f"{new_alias}.{name}", name=literal(column.name)
            )
        texts = {"a": self.text(column, old_alias, quote), "b": self.text(column, new_alias, quote)}
        return self.texts_differ.format(**texts)

    def key(self, columns: Iterable[tuple[str, Column]], alias: str, quote: Quote) -> str:
        """Return the table_key of a row: each column under the name that the key gives it."""
        return self.key_of((n, self.of(c.type), f"{alias}.{quote(c.name)}") for n, c in columns)

    def key_of(self, parts: Iterable[tuple[str, Expression, str]]) -> str:
        """Return the table_key of named values, each with the expression of its type."""
        joined: list[str] = []
        for number, (name, expression, value) in enumerate(parts):
            joined.append(self.constant(f"+{name}=" if number else f"{name}="))
            text = (expression.in_key or expression.text).format(x=value)
            joined.append(text if expression.plain else self.quoted.format(v=text))
        return self.wrapped.format(parts=self.joined.join(joined))

    def constant(self, text: str) -> str:
        """Return the text as a constant that no session setting changes."""
        if self.escape and "\\" in text:
            return "E" + literal(text.replace("\\", "\\\\"))
        size = self.longest_constant
        if not size or len(text) <= size:
            return literal(text)
        cut = (literal(text[start : start + size]) for start in range(0, len(text), size))
        return " ||\n".join(self.piece.format(v=part) for part in cut)

    def called_by(self, texts: Iterable[str]) -> list[str]:
        """Return those of our functions that these expressions call."""
        joined = "\n".join(texts)
        return [name for name in self.functions if f"{name}(" in joined]


def literal(text: str) -> str:
    """Return the text as a string constant of standard SQL; for names of ours, never for data."""
    return "'" + text.replace("'", "''") + "'"


def split_type(type_name: str) -> tuple[str, str]:
    """Return the name of a type, and the text in its parentheses."""
    name, _, after_name = type_name.lower().partition("(")
    arguments, _, tail = after_name.partition(")")
    return " ".join(f"{name} {tail}".split()), arguments.replace(" ", "")


def each(names: str, value: T) -> dict[str, T]:
    """Return a table that gives each of these types one value."""
    return {name.strip(): value for name in names.split(",")}
