"""The digest of an object's values: SHA-256, cut to 128 bits, over texts with their types and lengths.

Format 2 is a UTF-8 text. It begins with `2;`, the digest of the columns' names and a semicolon. The columns
follow in order: `n;` for null, else the letter of the kind, the number of bytes, a colon, the text and a
semicolon. An attribute of many values is a `v`, the number of distinct values and a semicolon. Its values
follow, in the order of their bytes. The text of the names has for each name its number of bytes, a colon,
the name and a semicolon. Expressions of SQL make the same text in a database.
`examples/digests.jsonl` contains vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from eventlog.core.tables import Column
from eventlog.core.values import Kind
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal

FORMAT = 2
SIZE = 16  # bytes
LETTERS = {
    Kind.STRING: "s",
    Kind.PADDED: "p",
    Kind.OCTET: "o",
    Kind.INT: "i",
    Kind.STATE: "b",
    Kind.DATE: "d",
    Kind.TIME: "t",
    Kind.TIMESTAMP: "m",
}
Texts = Sequence[str | tuple[str, ...] | None]  # a tuple: the values of an attribute of many


def digest(columns: Iterable[Column], texts: Texts) -> bytes:
    """Return the digest of the texts of these columns, as a log would hold them."""
    columns = tuple(columns)
    parts = (_part(column.kind, text) for column, text in zip(columns, texts, strict=True))
    return short(f"{heading(columns)}{''.join(parts)}")


def heading(columns: Sequence[Column]) -> str:
    """Return what precedes the values: the format and the digest of the names."""
    return _heading(tuple(column.name for column in columns))


@lru_cache(maxsize=1024)
def _heading(names: tuple[str, ...]) -> str:
    names_with_lengths = (f"{len(name.encode('utf-8', 'surrogatepass'))}:{name};" for name in names)
    return f"{FORMAT};{short(''.join(names_with_lengths)).hex()};"


def short(text: str) -> bytes:
    """Return the digest of one text, such as a key's."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:SIZE]


def _part(kind: Kind, text: str | tuple[str, ...] | None) -> str:
    if text is None:
        return "n;"
    if isinstance(text, str):
        return _value(kind, text)
    distinct = sorted(set(text), key=str.encode)
    return f"v{len(distinct)};{''.join(_value(kind, value_text) for value_text in distinct)}"


def _value(kind: Kind, text: str) -> str:
    text = text.rstrip(" ") if kind is Kind.PADDED else text
    return f"{LETTERS[kind]}{len(text.encode('utf-8', 'surrogatepass'))}:{text};"


def digest_of(dialect: Dialect, columns: Iterable[tuple[Column, str]]) -> str:
    """Return the digest of columns whose texts these expressions are."""
    expressions, columns = dialect.values.expressions, tuple(columns)
    head = heading([column for column, _ in columns])
    parts = [literal(head), *(_part_in_sql(dialect, column, text) for column, text in columns)]
    return dialect.values.digest.format(x=expressions.wrapped.format(parts=expressions.joined.join(parts)))


def key_hash_of(dialect: Dialect, key_text: str) -> str:
    """Return the digest of a key's text."""
    return dialect.values.digest.format(x=key_text)


def _part_in_sql(dialect: Dialect, column: Column, text: str) -> str:
    """Return the part of one value; null makes the whole part null."""
    expressions = dialect.values.expressions
    pieces = (literal(LETTERS[column.kind]), dialect.values.octets.format(x=text), "':'", text, "';'")
    return f"coalesce({expressions.wrapped.format(parts=expressions.joined.join(pieces))}, 'n;')"
