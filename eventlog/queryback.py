"""The query-back: the current rows of a pick-up's objects, a statement for each table and chunk of keys.

table_name and table_key come from whoever can write to the log. So only tables of the catalogue are
read, under the catalogue's own names; and a key that the database refuses costs only its own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eventlog import values
from eventlog.errors import EventlogError, InvalidValue, WrongRow
from eventlog.fold import Answer, CurrentRow, Need, QueryKey
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.dialects import Dialect
from eventlog.sql.expressions import EXPRESSIONS
from eventlog.sql.fitting import check_fits
from eventlog.sql.queries import CHUNK
from eventlog.sql.snapshot import KeyColumn, Snapshot
from eventlog.tables import Column, Table


@dataclass(frozen=True)
class Readable:
    """A table as the statement of the query-back needs it."""

    source: str
    key: tuple[KeyColumn, ...]
    expressions: tuple[str, ...]


def readable(table: Table, dialect: Dialect) -> Readable:
    """The table under its quoted names, each column as its text."""
    quote = dialect.quote
    place = "" if table.schema is None else f"{quote(table.schema)}."
    texts = EXPRESSIONS[dialect.name]
    return Readable(
        place + quote(table.name),
        tuple(KeyColumn(quote(column.name), column.type) for column in table.key_columns),
        tuple(texts.text(column, "t", dialect) for column in table.data),
    )


class _Asked(NamedTuple):
    key: QueryKey
    texts: tuple[str, ...]


class CurrentRows:
    """The answers to what a plan needs, all read in one snapshot."""

    def __init__(self, snapshot: Snapshot, dialect: Dialect) -> None:
        self._snapshot = snapshot
        self._dialect = dialect
        self._rows: dict[tuple[Table, QueryKey], list[CurrentRow]] = {}
        self.refused = False  # the database refused a statement
        self._faults: dict[tuple[Table, QueryKey], EventlogError] = {}

    def read(self, needs: Iterable[Need]) -> None:
        """Read what is needed."""
        tables: dict[Table, list[_Asked]] = {}
        for need in needs:
            try:
                asked = _Asked(need.key, tuple(map(self._key_text, need.table.key_columns, need.key)))
            except InvalidValue as fault:
                self._faults[need] = WrongRow(f"key of {need.table}: {fault}")
            else:
                tables.setdefault(need.table, []).append(asked)
        for table, wanted in tables.items():
            source = readable(table, self._dialect)
            for start in range(0, len(wanted), CHUNK):
                self._read(table, source, wanted[start : start + CHUNK])

    def lookup(self, table: Table, key: QueryKey) -> Answer:
        """The current rows of one object."""
        if (table, key) in self._faults:
            return self._faults[table, key]
        return self._rows.get((table, key), ())

    def _read(self, table: Table, source: Readable, asked: Sequence[_Asked]) -> None:
        """One statement; where the database refuses it, two halves, down to the key that it refuses."""
        try:
            with self._snapshot.attempt():
                found = list(self._snapshot.current_rows(source, [one.texts for one in asked]))
        except DatabaseFailed as fault:
            self.refused = True
            if len(asked) == 1:
                self._faults[table, asked[0].key] = WrongRow(f"key of {table}: {fault}")
                return
            middle = len(asked) // 2
            self._read(table, source, asked[:middle])
            self._read(table, source, asked[middle:])
            return
        for place, texts in found:
            self._rows.setdefault((table, asked[place].key), []).append(texts)

    def _key_text(self, column: Column, value: object) -> str:
        """The text of a key's value as the database reads it in a JSON text."""
        assert isinstance(value, str | int | float | bytes)
        if isinstance(value, bytes):
            return f"\\x{value.hex()}"
        text = values.plain_text(value)
        check_fits(column.type, text, self._dialect.fraction)
        return text
