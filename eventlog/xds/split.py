"""A stream of nds documents, cut into elements: any number of documents, each of any size.

No entity is resolved, no document type accepted, no network touched. libxml2's own limits are off,
for they would refuse values that are legal here; the limits are ours. A broken document costs what
is left of it: reading goes on behind its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lxml import etree

from eventlog.errors import InvalidDocument

MAX_EVENT = 256 << 20  # bytes of one event
MAX_DEPTH = 64
MAX_ELEMENTS = 1_000_000  # in one event
MAX_PROLOG = 64 << 10

_BLANKS = re.compile(rb"[ \t\r\n]*")
_BOM = b"\xef\xbb\xbf"
_PROLOG = re.compile(rb"(?:<\?xml\s[^>]*\?>\s*)?(?:<!--.*?-->\s*|<\?.*?\?>\s*)*<nds(?=[\s/>])", re.DOTALL)
_END = re.compile(rb"</nds\s*>|<nds(?:\s[^>]*)?/>")
_LONGEST_END = 64  # bytes kept back so that an end tag cut by a chunk is still found
_START = re.compile(rb"<\?xml\s|<nds[\s/>]")


class Element(NamedTuple):
    """A child of a document's input or output, alone."""

    where: str
    element: etree._Element


class Broken(NamedTuple):
    """A document, or what is left of it, that could not be read."""

    where: str
    reason: str
    raw: bytes


def split(chunks: Iterable[bytes]) -> Iterator[Element | Broken]:
    """The elements of the documents of a stream; Broken stands for what is skipped."""
    window = _Window(chunks)
    number = 0
    while window.start_document():
        number += 1
        if not _PROLOG.match(window.prolog()):
            reason, skipped = _refuse(window)
            yield Broken(f"document {number} (byte {window.offset})", reason, skipped)
            continue
        where = f"document {number} (byte {window.offset})"
        try:
            yield from _elements(window, number)
        except (etree.XMLSyntaxError, InvalidDocument) as fault:
            yield Broken(where, str(fault), window.skip_past_end())


def _refuse(window: _Window) -> tuple[str, bytes]:
    """Why no document can be read here, and the bytes up to where the next may begin."""
    prolog = window.prolog()
    if b"<!DOCTYPE" in prolog:
        return "a document type declaration is not accepted", window.skip_past_end()
    if prolog.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 is not read; convert it to UTF-8", window.skip_to_start()
    return "no nds document begins here", window.skip_to_start()


def _elements(window: _Window, number: int) -> Iterator[Element]:
    parser = etree.XMLPullParser(
        ("start", "end"),
        remove_comments=True,
        remove_pis=True,
        resolve_entities=True,  # there are none but XML's own: a document type is refused before
        no_network=True,
        load_dtd=False,
        huge_tree=True,
    )
    depth = count = size = order = 0
    for piece in window.pieces():
        size += len(piece)
        parser.feed(piece)
        for event, element in parser.read_events():
            assert isinstance(element, etree._Element)
            if event == "start":
                depth += 1
                count += 1
                if depth > MAX_DEPTH or count > MAX_ELEMENTS:
                    raise InvalidDocument("an event is nested too deeply or has too many elements")
                continue
            depth -= 1
            if depth == 2:
                parent = element.getparent()
                assert parent is not None
                if parent.tag != "source":
                    order += 1
                    yield Element(f"document {number}, event {order}", element)
                parent.remove(element)
                count = size = 0
            elif depth == 0:
                return
        if size > MAX_EVENT:
            raise InvalidDocument(f"an event is over {MAX_EVENT} bytes")
    parser.close()
    raise InvalidDocument("the document is cut short")


class _Window:
    """The bytes of a stream of which the documents' boundaries are not known yet."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._buffer = b""
        self._at = 0  # what is before it in the buffer was taken
        self._before = 0  # bytes of the stream before the buffer
        self._document = bytearray()  # what was taken of the document, up to the limit of an event
        self.offset = 0

    def start_document(self) -> bool:
        """Stand at the next document's first byte; False at the end of the stream."""
        while self._at == len(self._buffer) or self._skip_blanks():
            if not self._more():
                return False
        self.offset = self._before + self._at
        self._document.clear()
        return True

    def prolog(self) -> bytes:
        """The first bytes of the document."""
        while len(self._buffer) - self._at < MAX_PROLOG and not _PROLOG.match(self._buffer, self._at):
            if not self._more():
                break
        return self._buffer[self._at : self._at + MAX_PROLOG]

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the document; a piece ends where an end tag of nds does."""
        while True:
            end = _END.search(self._buffer, self._at)
            if end:
                yield self._take(end.end())
            elif len(self._buffer) - self._at > _LONGEST_END:
                yield self._take(len(self._buffer) - _LONGEST_END)
            elif not self._more():
                yield self._take(len(self._buffer))
                return

    def skip_past_end(self) -> bytes:
        """Drop the rest of the document, and give what was read of it."""
        if _END.search(self._document[-_LONGEST_END:]):
            return bytes(self._document)
        for piece in self.pieces():
            if _END.search(piece[-_LONGEST_END:]):
                break
        return bytes(self._document)

    def skip_to_start(self) -> bytes:
        """Drop everything up to where a document may begin, and give it."""
        self._take(self._at + 1)
        while True:
            start = _START.search(self._buffer, self._at)
            if start:
                self._take(start.start())
                return bytes(self._document)
            self._take(max(self._at, len(self._buffer) - _LONGEST_END))
            if not self._more():
                self._take(len(self._buffer))
                return bytes(self._document)

    def _skip_blanks(self) -> bool:
        """Pass blanks, and a byte order mark at the stream's beginning; whether nothing is left."""
        if self._before + self._at == 0 and self._buffer.startswith(_BOM):
            self._at = len(_BOM)
        blanks = _BLANKS.match(self._buffer, self._at)
        assert blanks is not None
        self._at = blanks.end()
        return self._at == len(self._buffer)

    def _take(self, end: int) -> bytes:
        piece = self._buffer[self._at : end]
        self._at = end
        if len(self._document) < MAX_EVENT:
            self._document += piece
        return piece

    def _more(self) -> bool:
        for chunk in self._chunks:
            if chunk:
                self._before += self._at
                self._buffer = self._buffer[self._at :] + chunk
                self._at = 0
                return True
        return False
