"""Every error that a caller may want to catch: one base class, the docstring is the message.

Arguments are positional and fill the docstring's fields, so each error pickles as it is and
reaches the driver from a Spark worker unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple


def shortened(text: str, max_length: int = 200) -> str:
    """Return the text, or its first characters and an ellipsis."""
    return text if len(text) <= max_length else f"{text[:max_length]}…"


def similar(name: str, names: Iterable[str]) -> str:
    """Return a question that names what is similar to a wrong name; nothing if nothing is."""
    near = get_close_matches(name, list(names))
    return f"; did you mean {' or '.join(near)}?" if near else ""


class EventlogError(Exception):
    """{0}"""

    def __str__(self) -> str:
        return (type(self).__doc__ or "").format(*self.args)


class QuotedError(EventlogError):
    """{0}"""

    # Its message quotes names and values of rows, each cut to a length that a line of a log can have.
    def __str__(self) -> str:
        parts = (shortened(part) if isinstance(part, str) else part for part in self.args)
        return (type(self).__doc__ or "").format(*parts)


# Raised if a flag, a setting or an input is wrong: exit code 2.
class Misuse(EventlogError):
    """{0}"""


class Stopped(EventlogError):
    """stopped at the first bad record"""


class MalformedKey(EventlogError):
    """malformed key: at character {0}, expected {1}"""


class MalformedAssociation(EventlogError):
    """malformed association: at character {0}, expected {1}"""


class IllegalCharacter(EventlogError):
    """character U+{0:04X} at position {1} is not allowed in XML 1.0"""


class InvalidBase64(EventlogError):
    """not Base64: {0}"""


class InvalidValue(QuotedError):
    """{0!r} is not {1}"""


class NotText(QuotedError):
    """{0!r} is not text in the encoding of this environment: write UTF-8, and set LC_ALL=C.UTF-8"""


class ValueTooLarge(EventlogError):
    """a value of {0} bytes is over the limit of {1}"""


class UnknownTable(QuotedError):
    """unknown table {0!r}: track it, describe it in a tables file, or publish such rows as strings \
(unknown-tables = string)"""


class AmbiguousName(EventlogError):
    """{0!r} may be any of {1}: name one exactly"""


class UnknownColumn(QuotedError):
    """table {0} has no column {1!r}"""


class InvalidTables(Misuse):
    """tables file: {0}"""


# Raised if a row of a log cannot be understood.
class WrongRow(EventlogError):
    """{0}"""


# Raised if a format or a type has no form for a value or a change.
class NotExpressible(EventlogError):
    """{0}"""


# Raised if a file or a document cannot be parsed.
class InvalidDocument(Misuse):
    """{0}"""


class Refused(NamedTuple):
    """A record that was left out: its place, the reason, and the record as it came."""

    where: str
    reason: str
    raw: bytes | None = None
    fault: bool = True  # False: a notice, for example about an unfinished transaction
    grouped: bool = False  # counted, and reported together with others
    spoils: tuple[str, str] | None = None  # the id and time of the transaction that is incomplete without it


class BadFile(Refused):
    """An input that cannot be read, or not to its end."""

    __slots__ = ()
