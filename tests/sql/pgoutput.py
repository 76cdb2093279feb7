"""What PostgreSQL's own log of writes says of each row, decoded from pgoutput: the same that Debezium reads.

The messages are those of "Logical Replication Message Formats" in PostgreSQL's manual, protocol 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

Values = dict[str, str | None]


class Act(NamedTuple):
    """A change of a row; of a truncate, the table."""

    table: str
    before: Values | None
    after: Values | None
    truncated: bool = False


class _Relation(NamedTuple):
    name: str
    columns: tuple[str, ...]


def begin(engine: Engine, tables: tuple[str, ...]) -> None:
    """Write whole rows of these tables to the server's log from now on, and keep them for `acts`."""
    with engine.begin() as connection:
        for table in tables:
            connection.execute(text(f"alter table {table} replica identity full"))
        named = ", ".join(tables)
        connection.execute(text(f"create publication proof for table {named}"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("select pg_create_logical_replication_slot(current_database(), 'pgoutput')"))


def acts(connection: Connection) -> list[Act]:
    """Return all acts since `begin`, in the order of their commits; the slot is dropped."""
    all_acts = list(chain.from_iterable(transactions(connection)))
    connection.execute(text("select pg_drop_replication_slot(current_database())"))
    return all_acts


def transactions(connection: Connection) -> list[list[Act]]:
    """Return the acts of each transaction since the last call or `begin`, in the order of their commits."""
    changes = (
        "select data from pg_logical_slot_get_binary_changes(current_database(), null, null,"
        " 'proto_version', '1', 'publication_names', 'proof')"
    )
    return list(_decode(bytes(row[0]) for row in connection.execute(text(changes))))


def _decode(messages: Iterable[bytes]) -> Iterator[list[Act]]:
    relations: dict[int, _Relation] = {}
    of_transaction: list[Act] = []
    for message in messages:
        reader = _Reader(message)
        kind = reader.letter()
        if kind == "R":
            number = reader.number("I")
            relations[number] = reader.relation()
        elif kind in "IUD":
            relation = relations[reader.number("I")]
            sides: dict[str, Values] = {}
            while reader.has_more():
                side = reader.letter()
                sides[side] = reader.row(relation)
            of_transaction.append(Act(relation.name, sides.get("O"), sides.get("N")))
        elif kind == "T":
            count, _ = reader.number("I"), reader.number("B")
            tables = [relations[reader.number("I")].name for _ in range(count)]
            of_transaction += [Act(name, None, None, truncated=True) for name in tables]
        elif kind == "C":
            yield of_transaction
            of_transaction = []


class _Reader:
    """The fields of one message, one after the other."""

    def __init__(self, message: bytes) -> None:
        self._message, self._at = message, 0

    def has_more(self) -> bool:
        return self._at < len(self._message)

    def letter(self) -> str:
        return chr(self.number("B"))

    def number(self, code: str) -> int:
        (number,) = struct.unpack_from(f"!{code}", self._message, self._at)
        self._at += struct.calcsize(f"!{code}")
        return int(number)

    def word(self) -> str:
        end = self._message.index(0, self._at)
        word, self._at = self._message[self._at : end].decode(), end + 1
        return word

    def relation(self) -> _Relation:
        _schema, name, _identity = self.word(), self.word(), self.number("B")
        return _Relation(name, tuple(self._column() for _ in range(self.number("H"))))

    def row(self, relation: _Relation) -> Values:
        assert self.number("H") == len(relation.columns)
        return {column: self._value() for column in relation.columns}

    def _column(self) -> str:
        self.number("B")
        name = self.word()
        self.number("I")
        self.number("i")
        return name

    def _value(self) -> str | None:
        kind = self.letter()
        assert kind in "nt", "a value that is not in the log: the row's identity is not full"
        if kind == "n":
            return None
        length = self.number("I")
        self._at += length
        return self._message[self._at - length : self._at].decode()
