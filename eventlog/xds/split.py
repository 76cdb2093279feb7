"""A stream of nds documents, cut into elements: any number of documents, each of any size.

libxml2's own limits are off, because they would refuse legal values; our own limits apply. The remainder of
a broken document is skipped, and reading continues after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from lxml import etree

from eventlog.core.errors import InvalidDocument
from eventlog.core.xmlparser import Parser
from eventlog.core.xmlscan import Scanner

MAX_EVENT = 256 << 20  # bytes of one event
MAX_DEPTH = 64
BEGINNING = 1 << 16  # bytes of a file, in which its first document begins
_ROOT = b"<nds"


class Element(NamedTuple):
    """A child of a document's input or output."""

    where: str
    element: etree._Element


class Broken(NamedTuple):
    """A document that could not be read, or the remainder of one."""

    where: str
    reason: str
    raw: bytes


def may_begin(beginning: bytes) -> bool:
    """Return whether a document begins in the first bytes of a file, in any encoding, or nothing is there."""
    text = beginning.replace(b"\0", b"")
    return not text.strip() or _ROOT in text


def split(chunks: Iterable[bytes], max_event: int = MAX_EVENT) -> Iterator[Element | Broken]:
    """Yield the elements of the documents of a stream, and Broken in place of what is skipped."""
    scanner = Scanner(chunks, "nds", max_event)
    for number in count(1):
        try:
            encoding = scanner.begin()
            if encoding is None:
                return
            yield from _elements(scanner.pieces(), Parser(encoding, reports_elements=True), number, max_event)
        except InvalidDocument as fault:
            where = f"document {number} (byte {scanner.offset})"
            yield Broken(where, str(fault), scanner.skip())


def _elements(pieces: Iterable[bytes], parser: Parser, number: int, max_event: int) -> Iterator[Element]:
    depth = size = order = 0
    for piece in pieces:
        size += len(piece)
        for event, element in parser.feed(piece):
            if event == "start":
                depth += 1
                if depth > MAX_DEPTH:
                    raise InvalidDocument(f"an event is nested deeper than {MAX_DEPTH}")
                continue
            depth -= 1
            if depth == 2:
                parent = element.getparent()
                assert parent is not None
                if parent.tag != "source":
                    order += 1
                    yield Element(f"document {number}, event {order}", element)
                parent.remove(element)
                parent.text = None
                size = 0
                parser.restart_count()
            elif depth == 0:
                return
        if size > max_event:
            raise InvalidDocument(f"an event is over {max_event} bytes (the setting max-record)")
    raise InvalidDocument("the document is cut short")
