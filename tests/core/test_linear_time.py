"""Linear time for every input: what takes a quadratic reader hours, or an exponential one for ever.

No clock is read: a reader that is not linear does not end within the time limit of its test.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from random import Random

import pytest

from eventlog.core import entry, meta_identifiers, redaction, tablekey, toml, typenames, values
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column
from eventlog.core.values import Kind
from eventlog.files import csv, jsonlines
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.declared_types import read_declared
from eventlog.formats.gbase.hex_dump import read_dump
from eventlog.formats.gbase.schema import read_schema
from eventlog.formats.linter import types as linter
from eventlog.formats.qlik import mask, sequence, structure
from eventlog.formats.qlik.headers import read_header_time
from eventlog.netiq import export, parameters, translate
from eventlog.sql.dialects import DIALECTS
from eventlog.web.receiver import incoming
from eventlog.xds import answers, split
from tests.kit.tiers import drawn

pytestmark = pytest.mark.long

Read = Callable[[str], object]
Case = tuple[str, str, str]
BYTES = 1 << 20
LETTERS = 1 << 17


def sampled(cases: Iterable[Case], name: str) -> list[Case]:
    """Return the cases of a reader: at night all, else a third, another one for each reader."""
    every = list(cases)
    return Random(name).sample(every, drawn(len(every)))


def attempt(read: Read, text: str) -> None:
    """Reads a text; that it is refused is right too."""
    with suppress(EventlogError):
        read(text)


# --- documents


def split_whole(text: str) -> object:
    return list(split.split([text.encode()]))


def split_in_bytes(text: str) -> object:
    data = (text[: BYTES // 8] + text[-20:]).encode()
    return list(split.split(data[at : at + 1] for at in range(len(data))))


DOORS: dict[str, Read] = {
    "split": split_whole,
    "split in bytes": split_in_bytes,
    "answer": lambda text: answers.read(text.encode()),
    "export": lambda text: export.read("driver.xml", text.encode()),
    "receiver": lambda text: incoming.read(text.encode()),
}
DOCUMENTS = [  # before, many of these, after
    ("", "<!---->", ""),
    ("", "<!---->", "<nds/>"),
    ("", "<!-- ", ""),
    ("<nds>", "<!--", ""),
    ("", "<?a?>", "<nds"),
    ("", "<?a ", ""),
    ("", "<nds ", ""),
    ("", "<nds", ""),
    ("", "<nds>", ""),
    ("", "<nds/>", ""),
    ("", "</nds ", ""),
    ("<nds>", "</nds", ""),
    ("", "</nds>", ""),
    ("<nds", " ", "/>"),
    ("<nds></nds", " ", ""),
    ("<nds>", " ", "</nds>"),
    ("<nds>", "a", "</nds>"),
    ("<nds><input>", "a<!---->", "</input></nds>"),
    ("<nds><input><add>", "a<?b?>", "</add></input></nds>"),
    ("<nds>", "<![CDATA[", ""),
    ("<nds><input><add>", "<![CDATA[]]>", "</add></input></nds>"),
    ("<nds><![CDATA[", "]]", ""),
    ("<nds>", "&#65;", "</nds>"),
    ("<nds a='", "&lt;", "'></nds>"),
    ("<nds>", "&", ""),
    ("<nds>", "&a", ""),
    ("<nds a='", "<", ""),
    ("<nds a=", "'", ""),
    ("<nds ", 'a="" ', ""),
    (f"<nds {' '.join(f'a{n}={chr(34)}{chr(34)}' for n in range(50_000))}", " ", "/>"),
    ("<nds>", "x", ""),
    ("<nds>", "<a>", ""),
    ("<nds><input><add>", "<a>", ""),
    ("<nds><input>", "<a/>", "</input></nds>"),
    ("<nds><input>", "<a> </a>", "</input></nds>"),
    ("<nds><input><add>", "<a/>b", "</add></input></nds>"),
    ("<nds dtdversion='1'><input>", "<add/>b", "</input></nds>"),
    ("", "<?xml ", ""),
    ("<?xml ", " ", "?>"),
    ("", "<?xml version='1.0'?>", ""),
    ("", "<!DOCTYPE nds [", ""),
    ("", "\ufeff", ""),
    ("", "\0", ""),
    ("", "<\0", ""),
]


@pytest.mark.parametrize("door", DOORS)
def test_documents(door: str) -> None:
    for before, piece, behind in sampled(DOCUMENTS, door):
        attempt(DOORS[door], before + piece * (BYTES // len(piece)) + behind)


# --- rows and lines


def read_csv(text: str) -> object:
    _, rows = csv.read(io.BytesIO(b"a,b\n" + text.encode()), "f")
    return sum(1 for _ in rows)


def read_json_lines(text: str) -> object:
    return sum(1 for _ in jsonlines.read(io.BytesIO(text.encode()), "f"))


ROWS = [
    '"',
    '""',
    '"\n',
    '""\n',
    '"a\n',
    'a"b\n',
    ',"',
    '",',
    '",\n',
    '"",',
    '"x"y',
    ",",
    "\n",
    "\r\n",
    'a,"b""\n',
]
LINES = [
    "[",
    "{",
    '{"":',
    "[{},",
    '"',
    '\\"',
    '"\\',
    '"\\u',
    "1",
    "1e",
    "-",
    "[1,",
    "\n",
    "{\n",
    '""\n',
    "null",
]


@pytest.mark.parametrize(("read", "pieces"), [(read_csv, ROWS), (read_json_lines, LINES)])
def test_rows_and_lines(read: Read, pieces: Iterable[str]) -> None:
    around = ("", '"', '{"a":"', "["), ("", '"', '"}\n1,2\n')
    for piece, before, behind in sampled(product(pieces, *around), "".join(pieces)):
        attempt(read, before + piece * (LETTERS // len(piece)) + behind)


# --- texts


TEXTS: dict[str, Read] = {
    "key": tablekey.read,
    "association": tablekey.read_association,
    "type": typenames.kind_of,
    "type of Replicate": lambda text: structure.spec_of(Column("c", text, Kind.STRING, "c")),
    "type of a stream": read_declared,
    "schema of a stream": lambda text: read_schema(text, Text()),
    "type of a layout": lambda text: linter.image_type(text, linter.Form()),
    "dump": lambda text: list(read_dump([text.encode()], 1 << 22)),
    "mask": mask.load,
    "change_seq": sequence.check,
    "header time": lambda text: read_header_time(text, "iso"),
    "header time since 1970": lambda text: read_header_time(text, "epoch-millis"),
    "record_id": entry.read_record_id,
    "event_time": entry.read_event_time,
    "display name": lambda text: parameters.find("", text),
    "tag": parameters.find,
    "secret": export.looks_secret,
    "JDBC URL": lambda text: translate.read_jdbc(text, "me"),
    "column": meta_identifiers.read_name,
    "page": redaction.visible,
    "message": redaction.without_secrets,
}
for kind in Kind:
    TEXTS[kind.value] = values.CODECS[kind].load
for kind, syntax in product((kind for kind in values.Kind if kind in values.TIMES), (1, 2, 3)):
    TEXTS[f"{kind.value}, syntax {syntax}"] = lambda text, kind=kind, syntax=syntax: values.read_time(  # type: ignore[misc]
        kind, text, syntax
    )
for dialect in DIALECTS.values():
    for key_type in dict.fromkeys(dialect.values.key_types.values()):
        TEXTS[f"key of {dialect.name}, {key_type.declared}"] = key_type.sent

PIECES = [
    *"a01 \n=+,\"\\'().:-_~第\0\u202e",
    *(
        '""',
        '\\"',
        "\\\\",
        "( ",
        "()",
        "a ",
        "a=1+",
        'a="b"+',
        "~a",
        "ab",
        "第一",
        "第1行",
        "a.",
        "ff ",
        "12,",
    ),
]
BEFORE = [
    *(
        "",
        "a=",
        'a="',
        "a=1,table=",
        'a="1",table="',
        "int",
        "(",
        "(1",
        "decimal(1",
        "0x",
        "-",
        "1",
        '"',
        "c ",
    ),
    *(
        "2025-01-01 00:00:00.",
        "jdbc:postgresql://",
        "jdbc:oracle:thin:@",
        "jdbc:mysql://a:",
        "identified",
        "fk__a",
        "interval day",
        "第1行",
    ),
]


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    for piece, before, behind in sampled(product(PIECES, BEFORE, ("", "x")), name):
        attempt(TEXTS[name], before + piece * (LETTERS // len(piece)) + behind)


@pytest.mark.parametrize("name", ["a.", "'a'.", '"a" . ', "a.\t"])
def test_names_in_toml(name: str) -> None:
    for before, behind in product(("", "[", "[[", "x = {"), ("a = 1", "a] ", "a]]", "")):
        attempt(toml.load, before + name * LETTERS + behind)


# --- statements
