"""XML as bytes, before a parser sees it: where a document begins, its encoding, and where it ends.

A parser gets no prolog. Everything before a document's root is read here, and a document type declaration is
refused. Within a document, comments and processing instructions are removed. The work is linear in the bytes,
whatever they contain and however they are divided.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from eventlog.core.errors import InvalidDocument

MAX_TAG = 1 << 20  # bytes
_PIECE = 1 << 20  # bytes that are looked at together
_OPENING = 10  # bytes that show what begins here: <!DOCTYPE and the next one
_MAX_DECLARATION = 1024  # bytes

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
_ANY_ROOT = re.compile(rb"<[A-Za-z_:\x80-\xff]")
_ANY_SPECIAL = re.compile(rb"<[!?]")
# XML 1.0, sections 2.4 and 3.1: "<" only begins a tag, and ">" is in a tag only in quotes.
# The outer repetition may give back, though nothing else could match then: possessive, it fails in Python
# 3.11.2, which goes on from where an attempt broke off (mended in 3.11.5).
_TAG = re.compile(rb"<[^<>\"']*+(?:(?:\"[^\"<]*+\"|'[^'<]*+')[^<>\"']*+)*>")


class Scanner:
    """A scanner of consecutive documents: `begin` and `pieces` for each, `skip` for a broken one."""

    def __init__(self, chunks: Iterable[bytes], root: str | None = None, kept: int = 0) -> None:
        """Read documents with that root, or with any; keep so many bytes of each as they came."""
        name = re.escape((root or "").encode())
        self._root = re.compile(rb"<%b(?=[ \t\r\n/>])" % name) if root else _ANY_ROOT
        self._anew = re.compile(rb"<\?xml[ \t\r\n]|<!DOCTYPE|<%b[ \t\r\n/>]" % name)
        self._special = re.compile(rb"<(?:[!?]|/%b(?=[ \t\r\n>]))" % name) if root else _ANY_SPECIAL
        self._end = b"</" + name
        self._what = f"{root or 'XML'} document"
        self._recoded, self._chunks = _in_utf_8(chunks)
        self._kept = kept
        self._buffer = b""
        self._at = 0  # what is before it in the buffer was taken
        self._before = 0  # bytes of the stream before the buffer
        self._inside = self._ended = False
        self._in_utf_8 = False  # whatever the document declares
        self.offset = 0  # where the document begins, in bytes of UTF-8 where the stream is in UTF-16
        self.taken = bytearray()  # the document as it came

    def begin(self) -> str | None:
        """Return the parser's encoding for the next document, and stop at its root; None after the last."""
        self._inside = self._ended = False
        self._in_utf_8 = self._recoded
        self._pass_blanks()
        self.offset = self._before + self._at
        self.taken.clear()
        encoding = None
        while opening := self._peek(_OPENING):
            if _DECLARATION.match(opening):
                encoding = self._declared()
            elif opening.startswith(b"<!--"):
                self._pass(4, b"-->")
            elif opening.startswith(b"<?"):
                self._pass(2, b"?>")
            else:
                self._check_root(opening)
                return "UTF-8" if self._in_utf_8 else encoding or "UTF-8"
            self._pass_blanks()
        if encoding is not None:
            raise _cut_short()
        return None

    def pieces(self) -> Iterator[bytes]:
        """Yield the document's text and its tags, whole; a piece ends where its root does."""
        end = self._end_of_tag(self._at)
        if self._buffer.endswith(b"/>", self._at, end):
            self._ended = True
            yield self._take(end)
        while True:
            self._ended = False
            special = self._special.search(self._buffer, self._at)
            if special and len(special[0]) > 2:
                end = self._end_of_tag(special.start())
                self._ended = True
                yield self._take(end)
                continue
            end = special.start() if special else self._end_of_whole_tags()
            if end > self._at:
                yield self._take(end)
            if special:
                yield from self._markup()
            elif not self._more():
                yield self._take(len(self._buffer))
                return

    def skip(self) -> bytes:
        """Drop what is left of a broken document; what was there of it."""
        if not self._inside:
            self._skip_to_start()
        elif not self._ended:
            self._skip_past_end()
        return bytes(self.taken)

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
        raise InvalidDocument(f"no {self._what} begins here")

    def _declared(self) -> str:
        """Return the parser's encoding for the XML declaration that begins here."""
        self._inside = True
        while (end := self._buffer.find(b"?>", self._at, self._at + _MAX_DECLARATION)) < 0:
            if len(self._buffer) - self._at >= _MAX_DECLARATION or not self._more():
                raise InvalidDocument("the XML declaration has no end")
        found = _ENCODING.search(self._take(end + 2))
        name = found[1].decode("latin-1") if found else "UTF-8"
        if name.lower() not in ENCODINGS:
            raise _not_read(name[:40])
        return ENCODINGS[name.lower()]

    def _markup(self) -> Iterator[bytes]:
        """Return the character data here; comments and instructions are skipped."""
        opening = self._peek(_OPENING)
        if opening.startswith(b"<![CDATA["):
            yield from self._through(9, b"]]>")
        elif opening.startswith(b"<!--"):
            self._pass(4, b"-->")
        elif opening.startswith(b"<?") and not _DECLARATION.match(opening):
            self._pass(2, b"?>")
        else:
            raise InvalidDocument("a declaration is inside the document")

    def _end_of_tag(self, start: int) -> int:
        """Return the end of the tag that begins there."""
        while not (tag := _TAG.match(self._buffer, start)):
            self._check_tag(start)
            start -= self._at  # which _more makes the buffer's beginning
            if not self._more():
                raise _cut_short()
        return tag.end()

    def _end_of_whole_tags(self) -> int:
        """Return where a partial tag begins in the buffer; else the buffer's end."""
        last = self._buffer.rfind(b"<", self._at)
        if last < 0 or _TAG.match(self._buffer, last):
            return len(self._buffer)
        self._check_tag(last)
        return last

    def _check_tag(self, start: int) -> None:
        if len(self._buffer) - start > MAX_TAG:
            raise InvalidDocument(f"a tag has no end within {MAX_TAG} bytes")

    def _through(self, opening: int, end: bytes) -> Iterator[bytes]:
        """Yield the bytes up to an end and with it, in pieces; so many of them are its opening."""
        start = self._at + opening
        while (found := self._buffer.find(end, start)) < 0:
            yield self._take(max(start, len(self._buffer) - len(end) + 1))
            if not self._more():
                raise _cut_short()
            start = self._at
        yield self._take(found + len(end))

    def _pass(self, opening: int, end: bytes) -> None:
        for _ in self._through(opening, end):
            pass

    def _skip_past_end(self) -> None:
        """Go to the position after the next end tag of the root, wherever it is."""
        while True:
            end = self._buffer.find(self._end, self._at)
            if end >= 0:
                self._take(end + len(self._end))
                self._pass_blanks()
                if self._peek(1) == b">":
                    self._take(self._at + 1)
                    return
            elif not self._pass_buffer(len(self._end)):
                return

    def _skip_to_start(self) -> None:
        """Go to the next place where a document may begin, by at least a byte."""
        self._take(min(self._at + 1, len(self._buffer)))
        while not (start := self._anew.search(self._buffer, self._at)):
            if not self._pass_buffer(_OPENING):
                return
        self._take(start.start())

    def _pass_buffer(self, kept: int) -> bool:
        """Go on to more bytes, and keep the last ones; at the end of the stream pass them too."""
        self._take(max(self._at, len(self._buffer) - kept))
        more = self._more()
        if not more:
            self._take(len(self._buffer))
        return more

    def _pass_blanks(self) -> None:
        """Pass blanks and byte order marks."""
        while self._at < len(self._buffer) or self._more():
            blanks = _BLANKS.match(self._buffer, self._at)
            assert blanks is not None
            self._take(blanks.end())
            if self._at == len(self._buffer):
                continue
            if self._peek(len(_BOM)) != _BOM:
                return
            self._take(self._at + len(_BOM))
            self._in_utf_8 = True

    def _peek(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end of the stream."""
        while len(self._buffer) - self._at < size and self._more():
            pass
        return self._buffer[self._at : self._at + size]

    def _take(self, end: int) -> bytes:
        piece = self._buffer[self._at : end]
        self._at = end
        if len(self.taken) < self._kept:
            self.taken += piece
        return piece

    def _more(self) -> bool:
        """Read on, at least as much again as is left, so that nothing is gone through too often."""
        left = self._buffer[self._at :]
        chunks, size = [left], 0
        for chunk in self._chunks:
            chunks.append(chunk)
            size += len(chunk)
            if size > len(left):
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


def _not_read(name: str) -> InvalidDocument:
    return InvalidDocument(
        f"the encoding {name!r} is not read: write the document in UTF-8, UTF-16, US-ASCII or ISO-8859-1"
    )


def _cut_short() -> InvalidDocument:
    return InvalidDocument("the document is cut short")
