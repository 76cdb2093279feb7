"""The texts of a column as JSON writes their values: copied if a pattern shows how, else one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.compare.changes import load
from eventlog.core.change import Side
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Table
from eventlog.core.values import Kind
from eventlog.fold.by_column.key_patterns import int_form
from eventlog.formats.neutral import dumps_side

_TEXT = r'[^"\\\x00-\x1f\x{FFFE}\x{FFFF}]*'  # legal in XML, and the same in JSON
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"
_DATE = "[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"  # a day that every month has
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"


class _Form(NamedTuple):
    """A form of texts with a known JSON form, and the text around them there."""

    pattern: str
    opening: str = '"'
    closing: str = '"'


_FORMS = {
    Kind.STRING: _Form(_TEXT),
    Kind.PADDED: _Form(_TEXT),
    Kind.OCTET: _Form(_BASE64, '{"base64":"', '"}'),
    Kind.STATE: _Form("true|false", "", ""),
    Kind.DATE: _Form(_DATE),
    Kind.TIME: _Form(_CLOCK),
    Kind.TIMESTAMP: _Form(f"{_DATE}[ T]{_CLOCK}"),
}


class JsonTexts:
    """The JSON form of the texts of one column."""

    def __init__(self, form: _Form | None, plain: Callable[[str], Side], kind: Kind, *, padded: bool) -> None:
        self._form = form
        self._plain = plain
        self._padded = padded
        self._moment = kind is Kind.TIMESTAMP

    @classmethod
    def of_column(cls, column: Column) -> Self:
        """Return the form for a column outside the key."""
        form = None if column.multivalued else _form(column)
        return cls(form, lambda text: load(column, text), column.kind, padded=column.kind is Kind.PADDED)

    @classmethod
    def of_key(cls, table: Table, name: str) -> Self:
        """Return the form for a column of the key; a value that would be written otherwise stays text."""
        column = table.column(name)
        kind = Kind.STRING if column is None else column.kind
        form = _FORMS[Kind.STRING] if column is None else _form(column)
        return cls(form, lambda text: table.load_pairs(((name, text),))[0][1], kind, padded=False)

    def of(self, texts: pa.Array) -> pa.Array:
        """Return the JSON of each text; null where a text is none of the column's type."""
        if self._form is None:
            return self._one_by_one(texts)
        pattern, opening, closing = self._form
        copied = pc.utf8_rtrim(texts, " ") if self._padded else texts
        matches = pc.fill_null(pc.match_substring_regex(copied, rf"\A(?:{pattern})\z"), False)
        if self._moment:
            copied = pc.replace_substring(copied, " ", "T", max_replacements=1)
        json = pc.binary_join_element_wise(opening, copied, closing, "") if opening else copied
        if pc.all(matches).as_py():
            return json
        unmatched = pc.invert(matches)
        return pc.replace_with_mask(json, unmatched, self._one_by_one(texts.filter(unmatched)))

    def _one_by_one(self, texts: pa.Array) -> pa.Array:
        """Return the JSON of each text, made once for each distinct text."""
        distinct = pc.dictionary_encode(texts, null_encoding="encode")
        json = pa.array(map(self._json_of, distinct.dictionary.to_pylist()), pa.string())
        return json.take(distinct.indices)

    def _json_of(self, text: str | None) -> str | None:
        try:
            return dumps_side(None if text is None else self._plain(text))
        except EventlogError:
            return None


def _form(column: Column) -> _Form:
    return _Form(int_form(column), "", "") if column.kind is Kind.INT else _FORMS[column.kind]
