"""Tables in which the poll before found no difference: sums show whether anything changed since.

What a poll finds follows from the rows of a table and from the state alone. So if both are as they were when
nothing was found, nothing is found again. Decision 71 has the reasons.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy.engine import Connection

from eventlog.compare.polling import PolledChange, why_here
from eventlog.compare.segments import SegmentSum, sums, text_of_row
from eventlog.core.tables import Table
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.queries import Queries
from eventlog.sql.readable import ReadableTable

_STATE = ("key_hash", "digest", "failed", "next_digest", "first_id")  # none contains a comma
_NULL = "';'"


class _Seen(NamedTuple):
    """A table as a poll saw it."""

    table: Table
    names: tuple[str, ...]  # of its columns, in the order in which rows have them
    objects: int  # in the state, by its own record
    sums: tuple[frozenset[SegmentSum], frozenset[SegmentSum]]  # of the rows, and of the state

    @property
    def is_certain(self) -> bool:
        """Return whether every row has a hash."""
        return all(one.rows for part in self.sums for one in part)


class UnchangedTables:
    """The tables without a difference, as they and their states were seen last."""

    def __init__(self) -> None:
        self._salt = secrets.token_hex(16)
        self._seen: dict[str, _Seen] = {}

    def differences(
        self,
        connection: Connection,
        queries: Queries,
        name: str,
        source: ReadableTable,
        objects: int,
        found: Iterator[PolledChange],
    ) -> Iterator[PolledChange]:
        """Yield the differences that a poll finds in the connection's snapshot; the poll is left out if the
        table and its state are as they were when it found none."""
        before, now = self._seen.pop(name, None), None
        if before is not None:
            now = self._look(connection, queries, name, source, objects)
        if now is None or now != before or not now.is_certain:
            differs = False
            for one in found:
                differs = True
                yield one
            if differs:
                return
        self._seen[name] = now or self._look(connection, queries, name, source, objects)

    def _look(
        self, connection: Connection, queries: Queries, name: str, source: ReadableTable, objects: int
    ) -> _Seen:
        dialect = queries.log.dialect
        row_text = text_of_row(source, dialect, self._salt)
        rows = sums(connection, source.source, row_text, "1 = 1", functions=source.functions)
        own = f"t.object_table = {literal(name)} and t.key_hash <> 'base'"
        state = sums(connection, queries.name("known"), _text_of_state(dialect, self._salt), own)
        names = tuple(column.name for column in (*source.table.key_columns, *source.table.data))
        return _Seen(source.table, names, objects, (frozenset(rows), frozenset(state)))


def can_sum(dialect: Dialect, table: Table) -> bool:
    """Return whether the database makes the sums of a table."""
    return bool(dialect.escaped) and why_here(dialect, table) is None


def _text_of_state(dialect: Dialect, salt: str) -> str:
    """Return the expression of a text for a row of the state."""
    own = dialect.expressions
    texts = (dialect.text.format(column=f"t.{name}") for name in _STATE)
    parts = (literal(salt), *(f"coalesce({text}, {_NULL})" for text in texts))
    return own.wrapped.format(parts=f"{own.joined}','{own.joined}".join(parts))
