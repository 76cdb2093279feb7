"""Text as XML holds it: every character checked, CR and LF as references so that a document is a line."""

from __future__ import annotations

from eventlog.core.values import check_xml


def content(text: str) -> str:
    """Return the text as an element holds it."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    if text.isprintable():
        return text
    return check_xml(text).replace("\r", "&#13;").replace("\n", "&#10;")


def attribute(text: str) -> str:
    """Return the text as an attribute in double quotes holds it."""
    text = content(text)
    if '"' in text or "\t" in text:
        return text.replace('"', "&quot;").replace("\t", "&#9;")
    return text
