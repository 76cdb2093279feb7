"""Helpers of the tests of the stream: reading pieces, and streams from lists of records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from eventlog.core.change import Change, Value
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.format import FORMAT
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import BeginTx, CommTx, Number, RowHead
from eventlog.formats.gbase.schema import Schema, read_schema
from eventlog.formats.gbase.writer import write_head, write_row, write_schema

HERE = Path(__file__).parent
T1 = "c1 integer, c2 varchar(20,0)"


def facts(name: str) -> Any:
    """Return a file of facts next to the tests."""
    return json.loads((HERE / name).read_text("utf-8"))


def read_all(
    chunks: Iterable[bytes], tables: Tables | None = None, settings: GbaseSettings | None = None
) -> list[Change | Refused]:
    """Return all that the format answers to one source."""
    source = Source("in", "in", (), chunks)
    return list(FORMAT.read([source], tables or Tables(), settings or GbaseSettings()))


def changes_of(answers: Iterable[Change | Refused]) -> list[Change]:
    return [answer for answer in answers if isinstance(answer, Change)]


def refusals_of(answers: Iterable[Change | Refused]) -> list[Refused]:
    return [answer for answer in answers if isinstance(answer, Refused)]


def cut(data: bytes, places: Iterable[int]) -> Iterator[bytes]:
    """Yield the bytes in pieces that end at these places."""
    start = 0
    for place in sorted(places):
        yield data[start:place]
        start = place
    yield data[start:]


def write_changes(changes: Iterable[Change], tables: Tables | None = None) -> bytes:
    """Return a stream of changes that can all be written."""
    parts = list(FORMAT.write(changes, tables or Tables(), GbaseSettings()))
    assert all(isinstance(part, bytes) for part in parts), parts
    return b"".join(parts)


class StreamBuilder:
    """A stream in the making; each call is a record."""

    def __init__(self, *, order: str = "big", prefix: int = 1) -> None:
        self.data = b""
        self.order = order
        self.form = Text(prefix=prefix)
        self.schemas: dict[int, Schema] = {}

    def table(self, number: int, text: str) -> StreamBuilder:
        self.schemas[number] = read_schema(text, self.form)
        self.data += write_schema(number, self.schemas[number])
        return self

    def begin(self, sequence: int, transaction: int) -> StreamBuilder:
        return self.say(BeginTx(sequence, transaction, 1_750_000_000, 1001))

    def commit(self, sequence: int, transaction: int) -> StreamBuilder:
        return self.say(CommTx(sequence, transaction, 1_750_000_005))

    def row(
        self,
        kind: Number,
        sequence: int,
        transaction: int,
        table: int,
        values: tuple[Value, ...],
        flags: int = 0,
    ) -> StreamBuilder:
        image = self.schemas[table].write(values, self.order)
        self.data += write_row(kind, RowHead(sequence, transaction, table, flags), image)
        return self

    def say(self, head: Any) -> StreamBuilder:
        self.data += write_head(head)
        return self
