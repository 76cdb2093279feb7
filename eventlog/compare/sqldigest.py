"""The digest as an expression of SQL: the same as `digest` makes of the same texts."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.compare.digest import LETTERS, heading
from eventlog.core.tables import Column
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal


def digest_of(dialect: Dialect, columns: Iterable[tuple[Column, str]]) -> str:
    """Return the digest of columns whose texts these expressions are."""
    own, columns = dialect.expressions, tuple(columns)
    head = heading([column for column, _ in columns])
    parts = [literal(head), *(_part(dialect, column, text) for column, text in columns)]
    return dialect.digest.format(x=own.wrapped.format(parts=own.joined.join(parts)))


def key_hash_of(dialect: Dialect, key_text: str) -> str:
    """Return the digest of a key's text."""
    return dialect.digest.format(x=key_text)


def _part(dialect: Dialect, column: Column, text: str) -> str:
    """Return the part of one value; null makes the whole part null."""
    own = dialect.expressions
    pieces = (literal(LETTERS[column.kind]), dialect.octets.format(x=text), "':'", text, "';'")
    return f"coalesce({own.wrapped.format(parts=own.joined.join(pieces))}, 'n;')"
