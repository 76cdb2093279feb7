"""Text as XML holds it: every character checked, CR and LF as references so that a document is a line."""

from __future__ import annotations

from eventlog.values import check_xml


def content(text: str) -> str:
    """The text as an element holds it."""
    if text.isprintable() and "&" not in text and "<" not in text and ">" not in text:
        return text
    return check_xml(text).translate(_IN_CONTENT)


def attribute(text: str) -> str:
    """The text as an attribute in double quotes holds it."""
    return check_xml(text).translate(_IN_ATTRIBUTE)


_IN_CONTENT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;", "\n": "&#10;"})
_IN_ATTRIBUTE = _IN_CONTENT | str.maketrans({'"': "&quot;", "\t": "&#9;"})
