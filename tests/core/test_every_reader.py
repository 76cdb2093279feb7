"""Every reader, writer and page at doubled sizes: CPU time that grows by more than 2.6 fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import Change, Field, Op
from eventlog.core import tablesfile
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.receiver import Receiver
from tests.core import test_linear_time as linear
from tests.kit.growth import MAX_GROWTH, LeaderTransaction, growth
from tests.web.receiver.conftest import HOST, ask, nds

pytestmark = pytest.mark.nightly

TABLES = tablesfile.read("""\
[tables.usr]
schema = "indirect"
key = ["idu"]
number = 111
multivalued = ["phone"]
columns = { idu = "integer", fname = "varchar(64)", phone = "varchar(64)" }
""")
NONE = Tables()


def change(number: int, op: Op, *fields: Field, idu: int = 1, at: int = 0) -> Change:
    key = (("idu", idu),)
    fact = f"{20240501000000000 + at:017}{number:018}"
    key_field = Field("idu", *((idu, idu) if op is Op.UPDATE else (eventlog.ABSENT, idu)))
    return Change(op, "indirect", "usr", key, (key_field, *fields), fact, f"{number}", "2024-05-01T00:00:00Z")


def many_objects(size: int) -> list[Change]:
    return [change(n, Op.INSERT, Field("fname", after=f"v{n}"), idu=n, at=n) for n in range(1, size)]


def one_object(size: int) -> list[Change]:
    return [change(n, Op.UPDATE, Field("fname", f"v{n}", f"v{n + 1}"), at=n) for n in range(1, size)]


def one_transaction(size: int) -> list[Change]:
    return [object_change._replace(transaction="1") for object_change in one_object(size)]


def many_values(size: int) -> list[Change]:
    return [change(1, Op.INSERT, Field("phone", after=tuple(f"v{n}" for n in range(size))))]


def many_columns(size: int) -> list[Change]:
    return [change(1, Op.INSERT, *(Field(f"c{n}", after="x") for n in range(size)))]


SHAPES = (many_objects, one_object, one_transaction, many_values, many_columns)
FORMATS = ("log", "xds", "qlik-table", "qlik-message", "gbase", "linter", "changes")
EXTENSIONS = {"xds": "xml", "qlik-message": "jsonl", "gbase": "bin", "changes": "jsonl"}


def ignore(refused: Refused) -> None:
    """A record that a format refuses is work too."""


@pytest.mark.parametrize("tables", [TABLES, NONE], ids=["tables", "no tables"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMATS)
def test_formats(tmp_path: Path, form: Any, shape: Callable[[int], list[Change]], tables: Tables) -> None:
    def name(size: int) -> Path:
        return tmp_path / f"usr{size}.{EXTENSIONS.get(form, 'csv')}"

    def writing(size: int) -> LeaderTransaction:
        changes = shape(size)

        def write() -> None:
            with suppress(EventlogError):
                eventlog.write(changes, name(size), form, tables=TABLES, refused=ignore)

        return write

    def reading(size: int) -> LeaderTransaction:
        def read() -> None:
            if name(size).exists():
                with suppress(EventlogError):
                    sum(1 for _ in eventlog.read(name(size), form, tables=tables, refused=ignore))

        return read

    assert growth(writing, 8_000) < MAX_GROWTH
    writing(8_000)()
    assert growth(reading, 8_000) < MAX_GROWTH


def text_cases(pieces: list[str], befores: list[str], behinds: list[str]) -> Iterator[tuple[str, str, str]]:
    return product(pieces, befores, behinds)


@pytest.mark.parametrize("name", linear.TEXTS)
def test_texts(name: str) -> None:
    for piece, before, behind in text_cases(linear.PIECES, linear.BEFORE, ["", "x"]):
        assert grows(linear.TEXTS[name], before, piece, behind, 1 << 16) < MAX_GROWTH, (before, piece, behind)


@pytest.mark.parametrize(
    ("read", "pieces"), [(linear.read_csv, linear.ROWS), (linear.read_json_lines, linear.LINES)]
)
def test_rows_and_lines(read: linear.Read, pieces: list[str]) -> None:
    for piece, before, behind in text_cases(pieces, ["", '"', '{"a":"', "["], ["", '"', '"}\n1,2\n']):
        assert grows(read, before, piece, behind, 1 << 16) < MAX_GROWTH, (before, piece, behind)


@pytest.mark.parametrize("door", linear.DOORS)
def test_documents(door: str) -> None:
    for before, piece, behind in linear.DOCUMENTS:
        assert grows(linear.DOORS[door], before, piece, behind, 1 << 18) < MAX_GROWTH, (before, piece, behind)


def grows(read: linear.Read, before: str, piece: str, after: str, size: int) -> float:
    def prepare(size: int) -> LeaderTransaction:
        text = before + piece * (size // len(piece)) + after
        return lambda: linear.attempt(read, text)

    return growth(prepare, size)


ASSOCIATION = "<association>idu=1,table=usr</association>"


def one_value(number: int) -> str:
    return (
        f'<modify class-name="usr" event-id="log:{number}">{ASSOCIATION}<modify-attr attr-name="phone">'
        f'<add-value><value type="string">v{number}</value></add-value></modify-attr></modify>'
    )


def several_events(size: int) -> list[bytes]:
    return [nds(*map(one_value, range(size)))]


def several_documents(size: int) -> list[bytes]:
    return [nds(one_value(number)) for number in range(size)]


def several_attributes(size: int) -> list[bytes]:
    attributes = "".join(
        f'<add-attr attr-name="a{n}"><value type="string">v</value></add-attr>' for n in range(size)
    )
    return [nds(f'<add class-name="usr" event-id="log:1">{ASSOCIATION}{attributes}</add>')]


def several_values(size: int) -> list[bytes]:
    values = "".join(f'<value type="string">v{n}</value>' for n in range(size))
    attribute = f'<modify-attr attr-name="phone"><add-value>{values}</add-value></modify-attr>'
    removed = attribute.replace("add-value", "remove-value")
    return [
        nds(f'<modify class-name="usr" event-id="log:{n}">{ASSOCIATION}{reported}</modify>')
        for n, reported in enumerate((attribute, removed, attribute))
    ]


PAGES = ("/", "/document/1", "/object")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("documents", [several_events, several_documents, several_attributes, several_values])
def test_pages_of_the_receiver(page: str, documents: Callable[[int], list[bytes]]) -> None:
    def prepare(size: int) -> LeaderTransaction:
        receiver = Receiver(Archive(":memory:"))
        for document in documents(size):
            receiver.receive(document)
        return lambda: ask(receiver.app(HOST), "GET", f"{page}?association=idu%3D1,table%3Dusr")

    assert growth(prepare, 3_000) < MAX_GROWTH


@pytest.mark.parametrize("documents", [several_events, several_attributes, several_values])
def test_a_document_that_comes(documents: Callable[[int], list[bytes]]) -> None:
    def prepare(size: int) -> LeaderTransaction:
        receiver = Receiver(Archive(":memory:"))
        return lambda: [receiver.receive(document) for document in documents(size)]

    assert growth(prepare, 3_000) < MAX_GROWTH
