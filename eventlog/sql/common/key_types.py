"""How the text of a key finds its row: what each type's text must look like, and how it is compared.

A text is checked here, before the database sees it: in a set-based query one bad value would fail
all the others. Types without an entry are compared as text, which finds the row without its index. They must
have one text for each value, because a key is asked for by the one form of its texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from eventlog.core import values
from eventlog.core.errors import InvalidValue
from eventlog.core.values import Kind, Precision
from eventlog.sql.common.expression import split_type


class KeyType(NamedTuple):
    """A type of key columns: how the key's text is declared, compared and sent."""

    declared: str  # the type that the list of keys has in the statement
    # {c} is the column, {k} the key's value; {charset} and {collation} are the column's
    matches: str = "{c} {equals} {k}"
    sent: Callable[[str], str] = str  # the text as it is sent; InvalidValue if it is none of the type
    as_it_is: str | None = None  # a pattern of texts that are sent as they are
    unfit: str = ""  # why no key may be of the type; empty if one may


_INTEGER = re.compile(r" *[+-]?[0-9]{1,40} *")
_DIGITS = {16: 4, 32: 9, 64: 18, 65: 18}  # that each integer of so many bits has room for


def integer_of(declared: str, bits: int) -> KeyType:
    """Return the key type of integers of so many bits."""
    limit = 2 ** (bits - 1)

    def check(text: str) -> str:
        if not _INTEGER.fullmatch(text) or not -limit <= int(text) < limit:
            raise InvalidValue(text[:40], f"an integer of {bits} bits")
        return str(int(text))

    return KeyType(declared, sent=check, as_it_is=f"0|-?[1-9][0-9]{{0,{_DIGITS[bits] - 1}}}")


def number(text: str) -> str:
    """Return a number as it is sent, with all its digits."""
    return str(values.read_number(Precision.EXACT, text))


def double(text: str) -> str:
    """Return a number of double precision as it is sent."""
    return str(values.read_number(Precision.DOUBLE, text))


WITHOUT_ZERO = r"[^\x00]*"
UUID_TEXT = "-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12))


def text_value(text: str) -> str:
    """Return a text as it is sent; InvalidValue if it contains a zero character."""
    if "\0" in text:
        raise InvalidValue(text[:40], "text that a database can hold")
    return text


def uuid_value(text: str) -> str:
    """Return a uuid in its usual form."""
    try:
        return str(UUID(text))
    except ValueError:
        raise InvalidValue(text[:40], "a uuid") from None


def moment(kind: Kind) -> Callable[[str], str]:
    """Return the check of texts of a date, a time or a timestamp."""

    def check(text: str) -> str:
        values.load(kind, text)
        return text.replace("T", " ", 1)

    return check


def _refuse_search(text: str) -> str:
    raise InvalidValue(text[:40], "a value of a type that can be looked for")


def unfit(declared: str, why: str) -> KeyType:
    """Return the key type of values whose texts do not find their rows again."""
    return KeyType(declared, "1 = 0", _refuse_search, unfit=why)


def key_type_of(key_types: Mapping[str, KeyType], type_name: str) -> KeyType | None:
    """Return how keys of a type are looked up, None if they are compared as text."""
    name, arguments = split_type(type_name)
    for spelling in (
        f"{name}({arguments})",
        name,
        name.removesuffix(" unsigned"),
        name.removesuffix(" zerofill"),
    ):
        if spelling in key_types:
            return key_types[spelling]
    return None
