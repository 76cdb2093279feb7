"""A random history of two tables: whole transactions, and what both tables have after each of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op

COLUMNS = ("id", "name", "age", "note", "amount")
_TABLE = """
[tables.{name}]
schema = "s"
key = ["id"]
[tables.{name}.columns]
id = "integer"
name = "varchar(40)"
age = "integer"
note = "varchar(40)"
amount = "numeric(12,2)"
"""
NAMES = ("t", "u")
TABLES = tablesfile.read("".join(_TABLE.format(name=name) for name in NAMES))
Row = dict[str, Any]
State = dict[str, dict[int, Row]]  # the rows of each table by their keys


class Transaction(NamedTuple):
    """The changes of a transaction, and both tables after it."""

    changes: Sequence[Change]
    state: State


class History:
    """A history that draws its changes from a seed."""

    def __init__(self, seed: int, keys: int) -> None:
        self._random = random.Random(seed)
        self._keys = keys
        self._rows: State = {name: {} for name in NAMES}
        self._position = 0

    def transactions(self, changes: int, truncates: int) -> Iterator[Transaction]:
        """Yield transactions of so many changes together, a few of them truncates."""
        until_truncate = changes // (truncates + 1)
        count = number = 0
        while count < changes:
            number += 1
            size = self._random.choice((1, 1, 2, 5, 20))
            group = [self._drawn(number) for _ in range(size)]
            if truncates and count // until_truncate < (count + size) // until_truncate:
                group.append(self._truncated(number))
            count += len(group)
            yield Transaction(group, {name: dict(rows) for name, rows in self._rows.items()})

    def _facts(self, transaction: int) -> dict[str, Any]:
        self._position += 1
        return {"position": f"{self._position:019}", "transaction": f"{transaction:08X}"}

    def _truncated(self, transaction: int) -> Change:
        name = self._random.choice(NAMES)
        self._rows[name] = {}
        return Change(Op.TRUNCATE, "s", name, **self._facts(transaction))

    def _drawn(self, transaction: int) -> Change:
        name, key = self._random.choice(NAMES), self._random.randrange(self._keys)
        rows, facts = self._rows[name], self._facts(transaction)
        if key not in rows:
            rows[key] = {"id": key, **{column: self._value(column) for column in COLUMNS[1:]}}
            fields = tuple(Field(column, ABSENT, rows[key][column]) for column in COLUMNS)
            return Change(Op.INSERT, "s", name, (("id", key),), fields, **facts)
        if self._random.random() < 0.2:
            row = rows.pop(key)
            fields = tuple(Field(column, row[column], ABSENT) for column in COLUMNS)
            return Change(Op.DELETE, "s", name, (("id", key),), fields, **facts)
        return self._updated(name, key, facts)

    def _updated(self, name: str, key: int, facts: dict[str, Any]) -> Change:
        """Change some columns of a row, and sometimes its key."""
        rows = self._rows[name]
        free = [number for number in range(self._keys) if number not in rows]
        moves = bool(free) and self._random.random() < 0.2
        new_key = self._random.choice(free) if moves else key
        supplied = self._random.sample(COLUMNS[1:], self._random.randrange(0 if moves else 1, 5))
        row = rows.pop(key)
        rows[new_key] = {**row, "id": new_key, **{column: self._value(column) for column in supplied}}
        fields = [Field("id", key, new_key)]
        fields += [Field(column, row[column], rows[new_key][column]) for column in supplied]
        return Change(Op.UPDATE, "s", name, (("id", new_key),), tuple(fields), **facts)

    def _value(self, column: str) -> Any:
        number = self._random.randrange(10**6)
        if number % 7 == 0:
            return None
        return {"age": number % 120, "amount": f"{number / 100:.2f}"}.get(column, f"{column[0]}{number}")
