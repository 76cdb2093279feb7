"""A batch of changes: the rows of one table by column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import pyarrow as pa

from eventlog.core.change import ABSENT, Change, Facts, Field, Key, Op
from eventlog.core.values import non_finite


class ChangeBatch(NamedTuple):
    """A batch of changes of one table that follow each other.

    `rows` has a row for each change: its op, position, transaction, time and user, facts of its source, and
    the row `before` and `after`. A side that was not captured is null. Where single columns may not be
    captured, `captured_before` and `captured_after` have a boolean for each.
    """

    schema: str | None
    table: str
    key: tuple[str, ...]  # columns; empty if no source describes it
    facts: Facts  # of all changes
    rows: pa.RecordBatch

    @property
    def last_position(self) -> str | None:
        """The position of the last change."""
        found: str | None = self.rows.column("position")[-1].as_py()
        return found

    def changes(self) -> Iterator[Change]:
        """Yield the same changes one by one."""
        for start in range(0, len(self.rows), _PIECE):
            yield from self._replace(rows=self.rows.slice(start, _PIECE))._changes()

    def _changes(self) -> Iterator[Change]:
        names = [field.name for field in self.rows.schema.field("after").type]
        before, after = self._side("before"), self._side("after")
        heads = zip(*map(self._texts, HEADS), strict=True)
        sides = zip(self._field_rows(names, before, after), self._keys(names, before, after), strict=True)
        for (op, position, transaction, time, user), (fields, key), extra in zip(
            heads, sides, self._extra(), strict=True
        ):
            image = _OPS[op], self.schema, self.table, key, fields
            yield Change(*image, position, transaction, time, user, False, extra)

    def _texts(self, name: str) -> list[Any]:
        column = self.rows.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        values: list[Any] = column.to_pylist()
        return values

    def _side(self, side: str) -> list[list[Any]]:
        """Return the values of each column, ABSENT where they were not captured."""
        struct = self.rows.column(side)
        columns = list(map(_values, struct.flatten()))
        captured = [struct.is_valid()] * len(columns)
        if f"captured_{side}" in self.rows.schema.names:
            captured = self.rows.column(f"captured_{side}").flatten()
        return [_captured(column, flags) for column, flags in zip(columns, captured, strict=True)]

    def _field_rows(
        self, names: Sequence[str], before: list[list[Any]], after: list[list[Any]]
    ) -> Iterator[tuple[Field, ...]]:
        """Yield the fields of each change, one for each column with a captured side."""
        columns = [
            list(map(_field, zip(repeat(name), *sides, strict=False)))
            for name, *sides in zip(names, before, after, strict=True)
        ]
        rows: Iterator[tuple[Field, ...]] = zip(*columns, strict=True)
        if not any(f"captured_{side}" in self.rows.schema.names for side in ("before", "after")):
            return rows
        return (tuple(field for field in row if field[1:] != _NEITHER) for row in rows)

    def _keys(self, names: Sequence[str], before: list[list[Any]], after: list[list[Any]]) -> Iterable[Key]:
        """Return the key of each change; an empty one where a column of it was not captured."""
        if not self.key:
            return repeat((), len(self.rows))
        columns = []
        for name in self.key:
            sides = zip(before[names.index(name)], after[names.index(name)], strict=True)
            columns.append([(name, old if new is ABSENT else new) for old, new in sides])
        keys: Iterator[tuple[tuple[str, Any], ...]] = zip(*columns, strict=True)
        return (() if any(value is ABSENT for _, value in key) else key for key in keys)

    def _extra(self) -> Iterable[Facts]:
        """Return the facts of each change."""
        named = [name for name in self.rows.schema.names if name not in _NO_FACTS]
        facts = zip(*(zip(repeat(name), self._texts(name), strict=False) for name in named), strict=True)
        if not named:
            return repeat(self.facts, len(self.rows))
        return ((*self.facts, *(fact for fact in own if fact[1] is not None)) for own in facts)


HEADS: Final = ("op", "position", "transaction", "time", "user")
_NO_FACTS: Final = {*HEADS, "before", "after", "captured_before", "captured_after"}
_NEITHER: Final = (ABSENT, ABSENT)
_OPS: Final = {op.value: op for op in Op}
_PIECE: Final = 500  # changes that are made at once: more of them cost the collector of garbage more
_field = partial(tuple.__new__, Field)  # a named tuple's own constructor is written in Python


def _captured(values: list[Any], captured: pa.Array) -> list[Any]:
    """Return values, ABSENT where they were not captured."""
    if captured.true_count == len(captured):
        return values
    return [value if flag else ABSENT for value, flag in zip(values, captured.to_pylist(), strict=True)]


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column as changes have them."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [value if value is None or math.isfinite(value) else non_finite(value) for value in values]
