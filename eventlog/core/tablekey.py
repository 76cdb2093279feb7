"""The text that names a row: table_key, and the association that wraps it.

    <table-key>             ::= <unique-row-identifier> {"+" <unique-row-identifier>}
    <unique-row-identifier> ::= <primary-key-column-name> "=" <value>

A value with one of the nine special characters is in double quotes; inside them a backslash precedes each
quote and backslash. Positions in errors count characters from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from eventlog.core.errors import MalformedAssociation, MalformedKey

SPECIAL = frozenset(",;'+\"=\\<>")

_PLAIN = re.compile(r"[^,;'+\"=\\<>]*")
_ONE_PLAIN_PAIR = re.compile(r"([^,;'+\"=\\<>]+)=([^,;'+\"=\\<>]*)")
_QUOTED = re.compile(r'"([^"\\]*+(?:\\["\\][^"\\]*+)*+)"')
_ESCAPED = re.compile(r'\\(["\\])')

Pairs = tuple[tuple[str, str], ...]


def read(text: str) -> Pairs:
    """Return the columns and values of a table_key, in its order."""
    if plain := _ONE_PLAIN_PAIR.fullmatch(text):
        column, value = plain.groups()
        return ((column, value),)
    pairs, end = _read_pairs(text)
    if end < len(text):
        raise MalformedKey(end + 1, "'+' or the end of the key")
    return pairs


def write(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the table_key of columns and values, quoted only where it must be."""
    return "+".join(f"{_legal_name(column)}={quote(value)}" for column, value in pairs)


def quote(value: str) -> str:
    """Return the value as a key holds it."""
    if SPECIAL.isdisjoint(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def legal_name(column: str) -> bool:
    """Return whether a key can name this column."""
    return bool(column) and SPECIAL.isdisjoint(column)


def read_association(text: str) -> tuple[str, str, str | None]:
    """Return the table_key, the table and the schema of an association; blanks at its ends are dropped."""
    text = text.strip(" \t\r\n")
    try:
        _, end = _read_pairs(text)
    except MalformedKey as fault:
        raise MalformedAssociation(*fault.args) from fault
    key = text[:end]
    table, end = _read_word(text, end, ",table=")
    if end == len(text):
        return key, table, None
    schema, end = _read_word(text, end, ",schema=")
    if end < len(text):
        raise MalformedAssociation(end + 1, "the end of the association")
    return key, table, schema


def write_association(key: str, table: str, schema: str | None) -> str:
    """Return the association of a table_key, which contains the key byte for byte."""
    words = f"{key},table={_quote_word(table)}"
    return words if schema is None else f"{words},schema={_quote_word(schema)}"


def _legal_name(column: str) -> str:
    if not legal_name(column):
        at = next((i for i, c in enumerate(column) if c in SPECIAL), 0)
        raise MalformedKey(at + 1, "a column name without , ; ' + \" = \\ < >")
    return column


def _read_pairs(text: str) -> tuple[Pairs, int]:
    """Return the pairs that open the text, and where they end."""
    pairs = []
    at = 0
    while True:
        end = _end(_PLAIN, text, at)
        if end == at:
            raise MalformedKey(at + 1, "a column name")
        if not text.startswith("=", end):
            raise MalformedKey(end + 1, "'=' after the column name")
        column = text[at:end]
        value, at = _read_value(text, end + 1)
        pairs.append((column, value))
        if not text.startswith("+", at):
            return tuple(pairs), at
        at += 1


def _read_value(text: str, at: int) -> tuple[str, int]:
    if not text.startswith('"', at):
        end = _end(_PLAIN, text, at)
        return text[at:end], end
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        raise MalformedKey(*_fault_in_quotes(text, at + 1))
    return _ESCAPED.sub(r"\1", quoted[1]), quoted.end()


def _fault_in_quotes(text: str, at: int) -> tuple[int, str]:
    for escape in re.compile(r"\\(.?)", re.DOTALL).finditer(text, at):
        if escape[1] not in ('"', "\\"):
            return escape.start() + 2, "'\"' or '\\' after the backslash"
    return len(text) + 1, "the closing quote"


def _read_word(text: str, at: int, keyword: str) -> tuple[str, int]:
    if not text.startswith(keyword, at):
        raise MalformedAssociation(at + 1, repr(keyword))
    try:
        return _read_value(text, at + len(keyword))
    except MalformedKey as fault:
        raise MalformedAssociation(*fault.args) from fault


def _quote_word(word: str) -> str:
    """Return a table or schema name; blanks at its ends are quoted too, for readers drop them."""
    quoted = quote(word)
    return f'"{word}"' if quoted == word and word != word.strip(" \t\r\n") else quoted


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
