"""The digest of an object's values: SHA-256, cut to 128 bits, over texts with their types and lengths.

Format 1 is the UTF-8 text `1;` and then, for each column in its order, `n;` where it is null, else the
letter of its kind, the number of bytes of its text, a colon, the text and a semicolon. Of an attribute of
many values each distinct value stands so, in the order of their bytes, behind a `v`, their number and a
semicolon. Databases make the same text by SQL; `examples/digests.jsonl` holds vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from eventlog.core.tables import Column
from eventlog.core.values import Kind

FORMAT = 1
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
    """The digest of the texts of these columns, as a log would hold them."""
    parts = (_part(column.kind, text) for column, text in zip(columns, texts, strict=True))
    return short(f"{FORMAT};{''.join(parts)}")


def short(text: str) -> bytes:
    """The digest of one text, such as a key's."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:SIZE]


def _part(kind: Kind, text: str | tuple[str, ...] | None) -> str:
    if text is None:
        return "n;"
    if isinstance(text, str):
        return _value(kind, text)
    distinct = sorted(set(text), key=str.encode)
    return f"v{len(distinct)};{''.join(_value(kind, one) for one in distinct)}"


def _value(kind: Kind, text: str) -> str:
    text = text.rstrip(" ") if kind is Kind.PADDED else text
    return f"{LETTERS[kind]}{len(text.encode('utf-8', 'surrogatepass'))}:{text};"
