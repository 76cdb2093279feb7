"""XML from strangers: no document type, no entity of theirs, no encoding that hides one, at any reader."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import eventlog
from eventlog.core import xmlparser
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.core.xmlscan import MAX_TAG
from eventlog.netiq import export
from eventlog.web.receiver import incoming
from eventlog.xds import answers, documents, split
from eventlog.xds.read import read
from eventlog.xds.xds_settings import XdsFileSettings

pytestmark = pytest.mark.quick

SECRET = "what only this machine knows"


def _changes(data: bytes) -> str:
    answers = list(read([Source("f", "f", (), [data])], Tables(), XdsFileSettings()))
    for item in answers:
        if isinstance(item, Refused):
            raise EventlogError(item.reason)
    return repr(answers)


def _incoming(data: bytes) -> str:
    document = incoming.read(data)
    if document.fault:
        raise EventlogError(document.fault)
    return repr(document)


READERS: dict[str, Callable[[bytes], object]] = {
    "xds": _changes,
    "receiver": _incoming,
    "page": documents.indent,
    "answer": answers.read,
    "export": lambda data: export.read("driver.xml", data),
}


def body(name: str, text: str) -> str:
    """Return a document that the reader of that name likes, with a text in it."""
    if name == "answer":
        return f'<nds><output><status level="error" event-id="{text}">{text}</status></output></nds>'
    if name == "export":
        return f'<d><definition name="log-table"><value>{text}</value></definition></d>'
    return (
        '<nds dtdversion="4.0"><input><delete class-name="t">'
        f"<association>k={text},table=t</association></delete></input></nds>"
    )


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path / "secret.txt"


HIDDEN = {
    "plain": "{dtd}{body}",
    "behind a declaration": '<?xml version="1.0"?>{dtd}{body}',
    "behind blanks": " \r\n\t{dtd}\n{body}",
    "between comments": "<!-- a -->{dtd}<!-- b -->{body}",
    "between instructions": "<?a b?>{dtd}<?a b?>{body}",
    "between many": "<?a?><!----><!-- - -->{dtd}<!-- <nds> --><?b?>{body}",
    "behind a comment that names the root": "<!--<nds>-->{dtd}<!-- -->{body}",
    "with a comment within": "<!-- a --><!DOCTYPE nds <!-- c --> [{subset}]><!-- b -->{body}",
    "behind the document": "{first}{dtd}{body}",
}
CODED = {
    "UTF-7": lambda text: text.encode("utf-7"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16LE": lambda text: text.encode("utf-16-le"),
    "UTF-16BE": lambda text: text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "EBCDIC-CP-US": lambda text: text.encode("cp037"),
    "ISO-2022-JP": lambda text: text.encode(),
    "windows-1252": lambda text: text.encode(),
    "UTF-8": lambda text: b"\xef\xbb\xbf" + text.encode(),
}


@pytest.mark.parametrize("where", HIDDEN)
@pytest.mark.parametrize("name", READERS)
def test_no_reader_takes_a_document_type(name: str, where: str, secret: Path) -> None:
    root = body(name, "x")[1:4].strip(" >")
    subset = f'<!ENTITY x SYSTEM "{secret.as_uri()}"><!ENTITY % p SYSTEM "{secret.as_uri()}">%p;'
    dtd = f"<!DOCTYPE {root} [{subset}]>"
    text = HIDDEN[where].format(dtd=dtd, subset=subset, body=body(name, "&x;"), first=body(name, "1"))
    with pytest.raises(EventlogError, match=r"declaration|Extra content") as fault:
        READERS[name](text.encode())
    assert SECRET not in str(fault.value)


@pytest.mark.parametrize("encoding", CODED)
@pytest.mark.parametrize("name", READERS)
def test_no_encoding_hides_a_document_type(name: str, encoding: str, secret: Path) -> None:
    dtd = f'<!DOCTYPE nds [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    data = f'<?xml version="1.0" encoding="{encoding}"?>{dtd}{body(name, "&x;")}'
    for text in (CODED[encoding](data), data.encode(), CODED[encoding](data.partition("?>")[2])):
        with pytest.raises(EventlogError) as fault:
            READERS[name](text)
        assert SECRET not in str(fault.value)


def test_utf_7_within_a_document_is_text() -> None:
    """Take the encoding from the declaration and the first bytes alone."""
    text = "+ADwAIQ-DOCTYPE"
    assert text in repr(answers.read(body("answer", text).encode()))


@pytest.mark.parametrize("name", READERS)
def test_entities_of_xml_are_read_and_no_other(name: str) -> None:
    assert "Jäck" in str(READERS[name](body(name, "J&#228;&#x63;k").encode()))
    READERS[name](body(name, "&quot;&amp;&lt;&gt;&apos;&quot;").encode())
    with pytest.raises(EventlogError, match="'x' not defined"):
        READERS[name](body(name, "&x;").encode())


ENCODED = [
    ("", "utf-8"),
    ("UTF-8", "utf-8"),
    ("utf8", "utf-8-sig"),
    ("UTF-16", "utf-16"),
    ("UTF-16LE", "utf-16-le"),
    ("UTF-16BE", "utf-16-be"),
    ("", "utf-16"),
    ("utf-16", "utf-8"),  # as some programs write it
    ("ISO-8859-1", "latin-1"),
    ("latin1", "latin-1"),
    ("ISO-8859-1", "utf-8-sig"),  # the mark is surer than the word
    ("ISO-8859-1", "utf-16"),
]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("declared", "encoding"), ENCODED)
def test_four_encodings_are_read(name: str, declared: str, encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    assert "kän" in str(READERS[name]((head + body(name, "kän")).encode(encoding)))


@pytest.mark.parametrize("name", READERS)
def test_another_encoding_is_refused_with_the_remedy(name: str) -> None:
    data = f'<?xml version="1.0" encoding="windows-1252"?>{body(name, "x")}'.encode()
    with pytest.raises(EventlogError, match="'windows-1252' is not read: write the document in UTF-8"):
        READERS[name](data)
    with pytest.raises(EventlogError, match="'UTF-32' is not read"):
        READERS[name](body(name, "x").encode("utf-32"))
    with pytest.raises(EventlogError):
        READERS[name](f'<?xml version="1.0" encoding="US-ASCII"?>{body(name, "ä")}'.encode())


DOCUMENT = body("xds", "1<!-- </nds> --><![CDATA[</nds><!--]]><?p </nds>?>").replace(" class", "\n class")
STREAM = (
    f"\ufeff<?xml version='1.0'?> {DOCUMENT}\r\n<!-- between --> \ufeff{body('xds', 'ö')}"
    '<nds dtdversion=">"/><nds><input><delete></input></nds >' + body("xds", "3") + "junk" + DOCUMENT
).replace("</nds>", "</nds \n>", 1)


def test_a_stream_may_be_cut_anywhere() -> None:
    """Cut it also within the quotes of a tag after a `>`, which Python 3.11.2 took for the tag's end."""
    data = STREAM.replace("\ufeff", "").encode()
    whole = _reported([data])
    assert [cut for cut in range(len(data)) if _reported([data[:cut], data[cut:]]) != whole] == []


@given(cuts=st.lists(st.integers(0, len(STREAM.encode()))), encoding=st.sampled_from(["utf-8", "utf-16"]))
def test_a_stream_may_come_in_any_chunks(cuts: list[int], encoding: str) -> None:
    data = STREAM.replace("\ufeff", "").encode(encoding)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[start:end] for start, end in itertools.pairwise(places)]
    assert _reported(chunks) == _reported([data])
    assert _reported([data[at : at + 1] for at in range(len(data))]) == _reported([data])


def _reported(chunks: list[bytes]) -> list[tuple[str, str, bytes]]:
    """Return the place of each element or fault, the reason of a fault, and its bytes."""
    return [
        (f.where, f.reason, f.raw)
        if isinstance(f, split.Broken)
        else (f.where, "", etree.tostring(f.element))
        for f in split.split(chunks)
    ]


def test_what_stands_in_a_stream_is_reported_in_its_place() -> None:
    reported = _reported([STREAM.encode()])
    assert [bool(reason) for _, reason, _ in reported] == [False, False, True, False, True, False]
    assert [raw for _, reason, raw in reported if reason] == [b"<nds><input><delete></input></nds >", b"junk"]


def test_comments_and_instructions_behind_the_last_document_are_nothing() -> None:
    assert len(_reported([(body("xds", "1") + "<!-- end --> <?done?>\n").encode()])) == 1
    assert _reported([b"<!-- nothing at all -->"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "<!-- never closed",
        "<?xml version='1.0'?>",
        "<?xml version='1.0'",
        "<?never closed",
        '<nds dtdversion="',
        "<nds><input><![CDATA[",
        "<nds><input><!-- ",
    ],
)
def test_a_stream_that_is_cut_short_is_reported(text: str) -> None:
    ((where, reason, raw),) = _reported([text.encode()])
    assert where == "document 1 (byte 0)"
    assert raw == text.encode()
    assert "cut short" in reason or "no end" in reason


def test_a_tag_is_limited() -> None:
    """Limit the root's start tag by itself, and any other as a part of its event."""
    fits, too_long = (f' a="{"x" * size}" ' for size in (MAX_TAG - 100, 2 * MAX_TAG))
    roots = "".join(body("xds", "1").replace(" dtdversion", tag + "dtdversion") for tag in (fits, too_long))
    reported = _reported([(roots + body("xds", "1")).encode()])
    assert [reason for _, reason, _ in reported] == ["", f"a tag has no end within {MAX_TAG} bytes", ""]
    events = "".join(body("xds", "1").replace(" class-name", tag + "class-name") for tag in (fits, too_long))
    for size in (len(events), 1 << 16):
        data = (events + body("xds", "1")).encode()
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        limited = list(split.split(chunks, MAX_TAG + 1000))
        assert [isinstance(item, split.Broken) for item in limited] == [False, True, False]


def test_white_space_between_events_is_not_gathered() -> None:
    event = body("xds", "1").removeprefix('<nds dtdversion="4.0"><input>').removesuffix("</input></nds>")
    chunks = [b"<nds><input>", *((event + " " * 1000).encode() for _ in range(100)), b"</input></nds>"]
    gathered = []
    for found in split.split(chunks):
        assert isinstance(found, split.Element)
        parent = found.element.getparent()
        assert parent is not None
        gathered.append(len(parent.text or ""))
    assert len(gathered) == 100
    assert max(gathered) <= 1000


def test_a_tree_that_another_parser_made_is_refused_if_it_holds_declarations() -> None:
    loose = etree.XMLParser(resolve_entities=False)
    root = etree.fromstring(b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', loose)
    with pytest.raises(EventlogError, match="document type"):
        xmlparser.check(root)


# --- one door


SOURCES = [
    *Path(eventlog.__file__).parent.rglob("*.py"),
    *(Path(__file__).parents[2] / "spark").rglob("*.py"),
]
MAKER = re.compile(
    "X?HTML|XML|XMLID|XMLDTDID|.*Parser|.*_parser|fromstring.*|parse|parseid|iterparse"
    "|DTD|XSLT|XMLSchema|RelaxNG|Schematron|XInclude"
)


def _doors(source: str) -> Iterator[str]:
    """Yield the uses of what parses XML in a file; a file without these words is not parsed."""
    if "xml" not in source and "etree" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name("etree"), attr=name) if MAKER.fullmatch(name):
                yield name
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.split(".")[0] == "xml" or n.name == "lxml.html")
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] == "xml" or module == "lxml.html":
                    yield module
                if module.startswith("lxml"):
                    yield from (n.name for n in names if n.name != "etree" and n.name != "_Element")


def test_all_parsers_are_made_in_one_place() -> None:
    assert len(SOURCES) > 250
    found = {path.name: set(_doors(path.read_text("utf-8"))) for path in SOURCES}
    assert {name: doors for name, doors in found.items() if doors} == {"xmlparser.py": {"XMLPullParser"}}


def test_another_parser_would_be_found() -> None:
    source = "import xml.sax\nfrom lxml.html import parse\nfrom lxml import etree\netree.fromstring(b'')"
    assert sorted(_doors(source)) == ["fromstring", "lxml.html", "parse", "xml.sax"]
