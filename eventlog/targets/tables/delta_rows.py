"""Rows of a Delta table, read by their keys and written anew."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from eventlog.core.change import ABSENT, Change, Op
from eventlog.sql.common.expression import literal
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.targets.tables.reduction import Effect
from eventlog.targets.tables.table_target import Act, Emptied, Moved, RowAction, RowKey, Step, TableTarget

# As they are, Arrow compares values of these types with the statistics of files, which are views, and fails.
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def existing(table: Any, goal: TableTarget, keys: Collection[RowKey]) -> set[RowKey]:
    """Return those of some keys that a table has rows for."""
    names = [goal.columns[place] for place in goal.key]
    found = set(map(tuple, rows_of(table, goal, {key[0] for key in keys}, names)))
    return found & set(keys)


def rows_of(
    table: Any, goal: TableTarget, first: Collection[Any] | None, names: Sequence[str]
) -> Iterable[list[Any]]:
    """Return these columns of the rows whose key begins with one of some values; None accepts every row."""
    name = goal.columns[goal.key[0]]
    kind = pa.schema(table.schema().to_arrow()).field(name).type
    of = _LARGE.get(kind, kind)
    wanted = None if first is None else ds.field(name).cast(of).isin(pa.array(list(first), of))
    read = table.to_pyarrow_dataset().to_table(columns=list(names), filter=wanted)
    return (list(row) for row in zip(*(column.to_pylist() for column in read.columns), strict=True))


class Rewriting:
    """The rows that steps are about, as each step leaves them."""

    def __init__(self, table: Any, goal: TableTarget, steps: Sequence[Step], *, insert: bool) -> None:
        self.unmet: list[Change] = []
        self.absent = 0
        self._insert = insert
        self._goal = goal
        self._schema = pa.schema(table.schema().to_arrow())
        keys = [step.key for step in steps if not isinstance(step, Emptied)]
        keys += [step.old for step in steps if isinstance(step, Moved)]
        self.first_keys = {key[0] for key in keys}
        found = rows_of(table, goal, self.first_keys, goal.columns) if keys else ()
        self._rows = {tuple(row[place] for place in goal.key): row for row in found}

    def take(self, step: Step) -> None:
        """One step."""
        if isinstance(step, Emptied):
            self._rows.clear()
        elif isinstance(step, Moved):
            self._change(step, step.old)
        elif step.deed is RowAction.DELETE:
            if self._rows.pop(step.key, None) is None:
                self.absent += step.change.op is Op.DELETE
        elif step.deed is RowAction.UPDATE:
            self._change(step, step.key)
        else:
            self._write(step, self._rows.get(step.key))

    def table(self) -> pa.Table:
        """Return the rows as they are now."""
        columns = zip(*self._rows.values(), strict=True) if self._rows else [()] * len(self._schema)
        arrays = [pa.array(list(cells), f.type) for cells, f in zip(columns, self._schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _change(self, step: Act | Moved, old: RowKey) -> None:
        row = self._rows.pop(old, None)
        if row is not None:
            self._write(step, row)
        elif self._insert:
            self._write(step, self._rows.get(step.key))
        else:
            self.unmet.append(step.change)

    def _write(self, step: Act | Moved, before: list[Any] | None) -> None:
        row = before or [None] * len(self._goal.columns)
        self._rows[step.key] = [
            old if new is ABSENT else new for old, new in zip(row, step.cells, strict=True)
        ]


def predicate_of(goal: TableTarget, first_keys: Iterable[Any]) -> str:
    """Return the condition of rows whose key begins with one of some values."""
    values = ", ".join(sorted(_literal(value) for value in first_keys))
    return f"{POSTGRESQL.quote(goal.columns[goal.key[0]])} in ({values})"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, decimal.Decimal):
        digits, places = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
        return f"cast('{value}' as decimal({max(digits, places)}, {max(places, 0)}))"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat()}'"
    return f"date '{value.isoformat()}'" if isinstance(value, dt.date) else str(value)


def merge(table: Any, goal: TableTarget, effects: Sequence[Effect], commit: Any) -> None:
    """Merge one row for each key into a table."""
    schema = pa.schema(table.schema().to_arrow())
    rows = [_row(effect, goal) for effect in effects]
    columns: dict[str, pa.Array] = {"act": pa.array([row[0] for row in rows], pa.string())}
    updates: dict[str, str] = {}
    inserts: dict[str, str] = {}
    for place, name in enumerate(goal.columns):
        cells = [row[1][place] for row in rows]
        quoted, new = _quoted(name), f"s.c{place}"
        columns[f"c{place}"] = pa.array(
            [None if cell is ABSENT else cell for cell in cells], schema.field(name).type
        )
        inserts[quoted] = new
        if ABSENT in cells:
            columns[f"m{place}"] = pa.array([cell is not ABSENT for cell in cells])
            updates[quoted] = f"case when s.m{place} then {new} else t.{quoted} end"
        elif place not in goal.key:
            updates[quoted] = new
    same = " and ".join(f"t.{_quoted(goal.columns[place])} = s.c{place}" for place in goal.key)
    merging = table.merge(pa.table(columns), same, "s", "t", commit_properties=commit)
    merging = merging.when_matched_delete("s.act = 'd'")
    if updates:
        merging = merging.when_matched_update(updates, "s.act <> 'd'")
    merging.when_not_matched_insert(inserts, "s.act = 'w'").execute()


def _row(effect: Effect, goal: TableTarget) -> tuple[str, Sequence[Any]]:
    """Return the fate of a row, and its cells; a replaced row has null where nothing is supplied."""
    if not effect.write:
        known = dict(zip(goal.key, effect.key, strict=True))
        return "d", [known.get(place) for place in range(len(goal.columns))]
    if effect.gone:
        return "w", [None if cell is ABSENT else cell for cell in effect.cells]
    return effect.write, effect.cells


def _quoted(name: str) -> str:
    return POSTGRESQL.quote(name)
