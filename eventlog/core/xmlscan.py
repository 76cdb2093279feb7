"""A scanner of XML, before a parser reads it: the beginning, the encoding and the end of a document.

A parser gets no prolog. Everything before a document's root is read here, and a document type declaration is
refused. The work is linear in the bytes, whatever they contain and however they are divided.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from eventlog.core.errors import InvalidDocument

MAX_TAG = 1 << 20  # bytes of a root's start tag, and of what is before it
_PIECE = 1 << 20  # bytes that are looked at together
_OPENING = 10  # bytes that show what begins here: <!DOCTYPE and the next one

# The legal names in a declaration, and the encoding in which the parser then reads. A stream in UTF-16 is
# already UTF-8 when its declaration is read.
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf8": "UTF-8",
    "utf-16": "UTF-8",
    "utf-16le": "UTF-8",
    "utf-16be": "UTF-8",
    "us-ascii": "US-ASCII",
    "ascii": "US-ASCII",
    "iso-8859-1": "ISO-8859-1",
    "latin1": "ISO-8859-1",
}
# XML 1.0, appendix F: how a stream of an encoding begins
_UTF_16 = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_NOT_READ = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"<\0\0\0": "UTF-32",
    b"\0\0\0<": "UTF-32",
    b"Lo\xa7\x94": "EBCDIC",
}
_BOM = b"\xef\xbb\xbf"

_BLANKS = re.compile(rb"[ \t\r\n]*")
_DECLARATION = re.compile(rb"<\?xml[ \t\r\n]")
_ENCODING = re.compile(rb"[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*[\"']([^\"'<>]*)[\"']")
# XML 1.0, section 3.1: ">" is in a tag only in quotes
_TAG = re.compile(rb"<[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")


class Scanner:
    """A scanner of consecutive documents: `begin` and `pieces` for each, `skip` for a broken one."""

    def __init__(self, chunks: Iterable[bytes], root: str | None = None, max_raw: int = 0) -> None:
        """Read documents with that root, or one with any; keep at most `max_raw` raw bytes of each."""
        name = re.escape((root or "").encode())
        self._root = re.compile(rb"<%b(?=[ \t\r\n/>])" % name if root else rb"<[A-Za-z_:\x80-\xff]")
        self._anew = re.compile(rb"<\?xml[ \t\r\n]|<!DOCTYPE|<%b[ \t\r\n/>]" % name)
        self._end = re.compile(rb"</%b[ \t\r\n]*>" % name)
        self._end_name = b"</" + name
        self._document_name = f"{root or 'XML'} document"
        self._recoded, self._chunks = _in_utf_8(chunks)
        self._max_raw = max_raw
        self._buffer = b""
        self._at = 0  # the buffer before it was consumed
        self._before = 0  # bytes of the stream before the buffer
        self._inside = self._ended = False
        self._in_utf_8 = False  # whatever the document declares
        self.offset = 0  # where the document begins, in bytes of UTF-8 where the stream is in UTF-16
        self.raw = bytearray()  # the bytes of the document

    def begin(self) -> str | None:
        """Return the parser's encoding for the next document, and stop at its root; None after the last."""
        self._inside = self._ended = False
        self._in_utf_8 = self._recoded
        self._pass_blanks()
        self.offset = self._before + self._at
        self.raw.clear()
        encoding = None
        while opening := self._peek(_OPENING):
            if _DECLARATION.match(opening):
                self._inside = True
                encoding = _declared_encoding(self._through(b"?>"))
            elif opening.startswith((b"<!--", b"<?")):
                self._through(b"-->" if opening.startswith(b"<!") else b"?>")
            else:
                self._check_root(opening)
                return "UTF-8" if self._in_utf_8 else encoding or "UTF-8"
            self._pass_blanks()
        if encoding is not None:
            raise InvalidDocument("the document is cut short")
        return None

    def pieces(self) -> Iterator[bytes]:
        """Yield the document; a piece ends wherever its root may end."""
        while not (tag := _TAG.match(self._buffer, self._at)):
            self._read_on()
        self._ended = tag[0].endswith(b"/>")
        yield self._consume(tag.end())
        while True:
            end = self._end.search(self._buffer, self._at)
            self._ended = end is not None
            if piece := self._consume(end.end() if end else self._end_of_whole()):
                yield piece
            if end is None and not self._read_chunks():
                yield self._consume(len(self._buffer))
                return

    def skip(self) -> bytes:
        """Drop the remainder of a broken document; return its bytes so far."""
        if not self._inside:
            self._consume(min(self._at + 1, len(self._buffer)))
            if start := self._search(self._anew):
                self._consume(start.start())
        elif not self._ended and (end := self._search(self._end)):
            self._consume(end.end())
        return bytes(self.raw)

    def _check_root(self, opening: bytes) -> None:
        self._inside = bool(self._root.match(self._buffer, self._at))
        if self._inside:
            return
        if opening.startswith(b"<!DOCTYPE"):
            self._inside = True
            raise InvalidDocument("a document type declaration is not accepted: remove it")
        for beginning, name in _NOT_READ.items():
            if opening.startswith(beginning):
                raise _not_read(name)
        raise InvalidDocument(f"no {self._document_name} begins here")

    def _through(self, end: bytes) -> bytes:
        """Take a comment, an instruction or the declaration, up to its end."""
        start = self._at + (4 if end == b"-->" else 2)  # <!--> is no comment
        while (end_at := self._buffer.find(end, start)) < 0:
            start = max(start, len(self._buffer) - len(end) + 1) - self._at
            self._read_on()
        return self._consume(end_at + len(end))

    def _read_on(self) -> None:
        if len(self._buffer) - self._at > MAX_TAG:
            raise InvalidDocument(f"a tag has no end within {MAX_TAG} bytes")
        if not self._read_chunks():
            raise InvalidDocument("the document is cut short")

    def _end_of_whole(self) -> int:
        """Return where the end tag of the root may begin at the buffer's end; else the buffer's end."""
        last = max(self._at, self._buffer.rfind(b"<", self._at))
        tail = self._buffer[last:].rstrip(b" \t\r\n")
        is_partial = tail != b"" and self._end_name.startswith(tail) and len(self._buffer) - last < MAX_TAG
        return last if is_partial else len(self._buffer)

    def _search(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Skip to the next match, or to the end."""
        while not (match := pattern.search(self._buffer, self._at)):
            self._consume(max(self._at, min(self._end_of_whole(), len(self._buffer) - _OPENING)))
            if not self._read_chunks():
                self._consume(len(self._buffer))
                return None
        return match

    def _pass_blanks(self) -> None:
        """Pass blanks and byte order marks."""
        while self._at < len(self._buffer) or self._read_chunks():
            blanks = _BLANKS.match(self._buffer, self._at)
            assert blanks is not None
            self._consume(blanks.end())
            if self._at == len(self._buffer):
                continue
            if self._peek(len(_BOM)) != _BOM:
                return
            self._consume(self._at + len(_BOM))
            self._in_utf_8 = True

    def _peek(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end of the stream."""
        while len(self._buffer) - self._at < size and self._read_chunks():
            pass
        return self._buffer[self._at : self._at + size]

    def _consume(self, end: int) -> bytes:
        piece = self._buffer[self._at : end]
        self._at = end
        if len(self.raw) < self._max_raw:
            self.raw += piece
        return piece

    def _read_chunks(self) -> bool:
        """Read at least as many bytes as are unread, so that no byte is scanned too often."""
        unread = self._buffer[self._at :]
        chunks, size = [unread], 0
        for chunk in self._chunks:
            chunks.append(chunk)
            size += len(chunk)
            if size > len(unread):
                break
        if size:
            self._before += self._at
            self._buffer, self._at = b"".join(chunks), 0
        return size > 0


def _in_utf_8(chunks: Iterable[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Return whether the bytes are in UTF-16, and yield them in limited chunks, in UTF-8."""
    pieces = (chunk[at : at + _PIECE] for chunk in chunks for at in range(0, len(chunk), _PIECE))
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 4:
            break
    stream = chain((head,), pieces)
    name = None if head[:4] in _NOT_READ else _UTF_16.get(head[:2])
    return name is not None, stream if name is None else _recode(stream, name)


def _recode(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the text in UTF-8; half a surrogate pair stays one, for a parser to refuse."""
    decoder = codecs.getincrementaldecoder(name)("surrogatepass")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")


def _declared_encoding(declaration: bytes) -> str:
    """Return the parser's encoding for an XML declaration."""
    match = _ENCODING.search(declaration)
    name = match[1].decode("latin-1") if match else "UTF-8"
    if name.lower() not in ENCODINGS:
        raise _not_read(name[:40])
    return ENCODINGS[name.lower()]


def _not_read(name: str) -> InvalidDocument:
    return InvalidDocument(
        f"the encoding {name!r} is not read: write the document in UTF-8, UTF-16, US-ASCII or ISO-8859-1"
    )
