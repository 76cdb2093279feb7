"""The query-back: the current rows of a pick-up's objects, a statement for each table and chunk of keys.

Any user who can write to the log chooses table_name and table_key. So only tables of the catalogue are read,
under the catalogue's own names, and a key that the database refuses costs only its own rows.

If the database refuses a statement, either the table has changed since its catalogue was read, or a key is
bad. This is not known at first, and of a changed table each key would fail. So all keys of the
statement are refused at first, and the caller reads the catalogue again. Then it reads the rows again,
thoroughly: the keys of a statement are halved until the bad one is alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from eventlog.core import values
from eventlog.core.change import Value
from eventlog.core.errors import WrongRow
from eventlog.core.tables import Table
from eventlog.fold import CurrentOrError, CurrentRow, Need, QueryKey
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import Current, byte_count
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable

if TYPE_CHECKING:
    from eventlog.fold.by_column import CurrentAnswer, Needs

CHUNK = 10_000  # keys that one refusal may concern at first
MAX_BYTES = 4 << 20  # of current rows that are held at a time


class Allowance:
    """The bytes of current rows that may be in memory at a time, and those that are."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self.used = 0

    @property
    def remaining(self) -> int:
        """Return how many more bytes may be in memory."""
        return max(1, self._max_bytes - self.used)

    def use(self, size: int) -> None:
        """Add the bytes of rows that are in memory from now on."""
        self.used += size


class _KeyTexts(NamedTuple):
    """A key and the texts of its values, as a statement has them."""

    key: QueryKey
    texts: tuple[str, ...]


class CurrentRows:
    """The answers to what a plan needs, all read in one snapshot; TooMuch where there is no room for them."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: Mapping[Table, ReadableTable],
        thorough: bool,
        allowance: Allowance,
        *,
        last: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self._last = last  # nothing is read in the snapshot after them
        self._thorough = thorough
        self._allowance = allowance
        self._tables = tables
        self._answers: dict[Table, dict[QueryKey, CurrentOrError]] = {table: {} for table in tables}
        self.refused = False  # whether the database refused a statement
        self.seconds = 0.0  # that reading took

    def read(self, needs: Iterable[Need]) -> None:
        """Read the current rows that are needed."""
        begun = time.monotonic() - self.seconds
        waiting = [
            (table, queries[start : start + CHUNK])
            for table, queries in self._queries(needs).items()
            for start in range(0, len(queries), CHUNK)
        ]
        while waiting:
            table, queries = waiting.pop()
            source, keys = self._tables[table], [query.texts for query in queries]
            room, last = self._allowance.remaining, self._last and not waiting
            try:
                with self.snapshot.attempt():
                    rows = list(self.snapshot.current_rows(source, keys, room, last=last))
            except DatabaseFailed as fault:
                self.refused = True
                if self._thorough and len(queries) > 1:
                    middle = len(queries) // 2
                    waiting += [(table, queries[:middle]), (table, queries[middle:])]
                else:
                    wrong = WrongRow(f"key of {table}: {fault}")
                    self._answers[table].update({query.key: wrong for query in queries})
            else:
                self._keep(table, queries, rows)
        self.seconds = time.monotonic() - begun

    def read_columns(self, needs: Needs) -> CurrentAnswer:
        """Return the current rows that are needed, by column.

        Where the statement of several tables is refused, each of them is read alone. Where that of one is
        refused, or its texts do not come by column, its keys are read one by one.
        """
        import numpy as np  # takes a while to load, as Arrow does

        from eventlog.fold.by_column import CurrentAnswer, CurrentColumns
        from eventlog.publisher.asked_keys import bind, groups_of
        from eventlog.sql.columns import OddBytes

        begun, keys = time.monotonic() - self.seconds, needs.keys
        columns_read: list[CurrentColumns] = []
        single_keys = [np.empty(0, np.int64)]
        waiting = groups_of(keys)
        while waiting:
            group = waiting.pop()
            table_keys, numbers, unbound = bind(self._tables, group)
            try:
                with self.snapshot.attempt():
                    of_key, columns = self.snapshot.current_columns(table_keys, self._allowance.remaining)
            except (DatabaseFailed, OddBytes) as fault:
                if len(group) > 1:
                    waiting += [[of_table] for of_table in group]
                    continue
                self.refused = self.refused or isinstance(fault, DatabaseFailed)
                single_keys.append(group[0].numbers)
                continue
            self._allowance.use(sum(column.nbytes for column in columns))
            columns_read.append(CurrentColumns(numbers[of_key], columns))
            single_keys.append(unbound)
        alone = np.concatenate(single_keys)
        self.read([*keys.needs(alone), *needs.alone])
        self.seconds = time.monotonic() - begun
        return CurrentAnswer(columns_read, alone, self.lookup)

    def lookup(self, table: Table, key: QueryKey) -> CurrentOrError:
        """Return the current rows of one object."""
        return self._answers[table].get(key, ())

    def _queries(self, needs: Iterable[Need]) -> dict[Table, list[_KeyTexts]]:
        """Return the keys of each table; the answer to a key that is no value of its column is an error."""
        queries: dict[Table, list[_KeyTexts]] = {}
        for need in needs:
            try:
                texts = self._tables[need.table].load_values(list(map(_text, need.key)))
            except WrongRow as fault:
                self._answers[need.table][need.key] = fault
            else:
                queries.setdefault(need.table, []).append(_KeyTexts(need.key, texts))
        return queries

    def _keep(self, table: Table, queries: Sequence[_KeyTexts], rows: Sequence[Current]) -> None:
        """Keep the rows of these keys."""
        self._allowance.use(sum(byte_count(row.texts) for row in rows))
        rows_of: dict[QueryKey, list[CurrentRow]] = {}
        for row in rows:
            rows_of.setdefault(queries[row.place].key, []).append(row.texts)
        self._answers[table].update(rows_of)


def _text(value: Value) -> str:
    """Return the text of a key's value, as table_key has it."""
    assert value is not None
    assert not isinstance(value, tuple)
    return values.plain_text(value)
