"""The parser of XML; no other one is made in the project.

Documents may come from anyone. A parser is given no prolog, and no encoding but the one that `xmlscan`
found. XML's own entities and character references are read, and no other is resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from lxml import etree

from eventlog.core.errors import InvalidDocument
from eventlog.core.xmlscan import Scanner

MAX_MARKUP = 4_000_000  # tags and attributes that are held together
_SPACED = re.compile(rb"=[ \t\r\n]+[\"']")


class Parser:
    """A parser that is fed a document in pieces, and reports its elements if `reports_elements` is set."""

    def __init__(self, encoding: str, reports_elements: bool = False) -> None:
        self._parser = etree.XMLPullParser(
            ("start", "end") if reports_elements else (),
            encoding=encoding,
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            remove_comments=True,
            remove_pis=True,
            huge_tree=True,  # libxml2's own limits refuse values that are legal here; the limits are ours
        )
        self._markup = 0

    def feed(self, piece: bytes) -> Iterable[tuple[str, etree._Element]]:
        """Return the elements that begin and end in a piece."""
        self._markup += _count_markup(piece)
        if self._markup > MAX_MARKUP:
            raise InvalidDocument(f"the document has more than {MAX_MARKUP} tags and attributes")
        try:
            self._parser.feed(piece)
        except etree.XMLSyntaxError as fault:
            raise InvalidDocument(str(fault)) from fault
        self._check()
        return cast(Iterable[tuple[str, etree._Element]], self._parser.read_events())

    def _check(self) -> None:
        """Raise what the parser only noted: an entity without a declaration."""
        log = self._parser.feed_error_log
        for fault in log.filter_from_fatals() if len(log) else ():
            raise InvalidDocument(f"{fault.message}, line {fault.line}, column {fault.column}")

    def restart_count(self) -> None:
        """Count tags and attributes anew."""
        self._markup = 0

    def close(self) -> etree._Element:
        """Return the root of the document, which must be whole."""
        try:
            return check(self._parser.close())
        except etree.XMLSyntaxError as fault:
            raise InvalidDocument(str(fault)) from fault


def parse(data: bytes) -> etree._Element:
    """Return the root of a single document."""
    scanner = Scanner([data])
    encoding = scanner.begin()
    if encoding is None:
        raise InvalidDocument("there is no document")
    parser = Parser(encoding)
    parser.feed(b"".join(scanner.pieces()))
    return parser.close()


def check(root: etree._Element) -> etree._Element:
    """Return the root; raise InvalidDocument for a document type declaration or an entity."""
    if root.getroottree().docinfo.internalDTD is not None or next(root.iter(etree.Entity), None) is not None:
        raise InvalidDocument("a document type declaration is not accepted: remove it")
    return root


def _count_markup(piece: bytes) -> int:
    """Return the tags and attributes of a piece, or a few more."""
    quoted = piece.count(b'="') + piece.count(b"='")
    unquoted = piece.count(b"=") - quoted
    return piece.count(b"<") + quoted + (len(_SPACED.findall(piece)) if unquoted > 1000 else unquoted)
