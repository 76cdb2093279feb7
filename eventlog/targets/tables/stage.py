"""The effects of a batch on one table: staged in a table of the session, then written by a few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress, repeat
from types import NoneType
from typing import Any

import psycopg
from sqlalchemy import TextClause, text
from sqlalchemy.engine import Connection

from eventlog.core.change import ABSENT, Absent
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import ConnectionLost, DatabaseFailed
from eventlog.sql.queries import unbound
from eventlog.targets.tables.cells import Cells
from eventlog.targets.tables.reduce import COUNTED, SILENT, Effect
from eventlog.targets.tables.table import TableTarget

_STAGE_COLUMNS = ("n", "required", "deletion", "inserts", "shape")
_NO_SHAPE = -1  # of a row that is only deleted
_COPY_PAUSE = 16  # batches for which a table whose rows were there already is not taken for an empty one


class Collision(Exception):
    """An error: rows of one batch with different keys are one row of the target."""


class Stage:
    """A stage for the effects on one table, from which they are written.

    Rows that supply the same columns have one shape, and are written together.
    """

    def __init__(self, connection: Connection, dialect: Dialect, target: TableTarget, number: int) -> None:
        self.target = target
        self._connection = connection
        self._dialect = dialect
        self._used = False
        self._paused_batches = 0
        self._shapes: Sequence[Sequence[int]] = ()  # the columns that the rows of each supply
        self._inserted_shapes: Iterable[int] = ()
        self._cells = tuple(f"c{place}" for place in range(len(target.columns)))
        self._holes = {
            "table": target.name,
            "stage": dialect.quote(f"{dialect.stage_prefix}eventlog_stage_{number}"),
            "same": " and ".join(f"t.{self._name(place)} = s.c{place}" for place in target.key),
            "keys": ", ".join(f"s.c{place}" for place in target.key),
        }
        columns = (f"t.{self._name(place)} as {cell}" for place, cell in enumerate(self._cells))
        connection.execute(self._statement("stage_make", columns=", ".join(columns)))

    def begin(self) -> None:
        """A transaction of the target begins, and the stage is empty."""
        self._used = False

    def fill(self, effects: Sequence[Effect]) -> None:
        """Stage the effects; raise Collision if two of them are of one row."""
        columns = list(zip(*(effect.cells or self._key_row(effect) for effect in effects), strict=True))
        shapes = dict[tuple[bool, ...], int]()
        shape_numbers = [
            shapes.setdefault(gaps, len(shapes)) if effect.write else _NO_SHAPE
            for effect, gaps in zip(effects, _gaps(columns, len(effects)), strict=True)
        ]
        self._shapes = [[place for place, is_gap in enumerate(gaps) if not is_gap] for gaps in shapes]
        inserts = [int(effect.write == "w") for effect in effects]
        self._inserted_shapes = sorted(set(compress(shape_numbers, inserts)))
        stage_cells: Sequence[Sequence[Any]] = (
            range(len(effects)),
            [int(effect.requires_row) for effect in effects],
            [effect.deletion for effect in effects],
            inserts,
            shape_numbers,
        )
        self._load((*_STAGE_COLUMNS, *self._cells), (*stage_cells, *map(_without_gaps, columns)))
        if not self._exact and self._run("stage_keys").scalar_one() < len(effects):
            raise Collision

    def missing(self) -> list[int]:
        """Return the staged effects whose row must be there and is not."""
        return [int(row[0]) for row in self._run("stage_missing")]

    def delete(self, deletions: Sequence[str]) -> int:
        """Delete rows, and return how many of those that are counted were not there."""
        counted = deletions.count(COUNTED)
        deleted = int(self._run("apply_delete", deletion=COUNTED).rowcount) if counted else 0
        if SILENT in deletions:
            self._run("apply_delete", deletion=SILENT)
        return counted - deleted

    def write(self) -> None:
        """Change the staged rows that are there, and insert those that are not."""
        for shape, places in enumerate(self._shapes):
            if settings := self._settings(places):
                self._run("apply_update", {"settings": settings}, shape=shape)
        for shape in self._inserted_shapes:
            places = self._shapes[shape]
            cells = ", ".join(f"s.c{place}" for place in places)
            self._run("apply_insert", {"names": self._names(places), "cells": cells}, shape=shape)

    def may_copy(self) -> bool:
        """Return whether new rows may go straight into the table: not if some existed lately."""
        if self._paused_batches or not self._dialect.copies:
            self._paused_batches = max(0, self._paused_batches - 1)
            return False
        return True

    def pause_copy(self) -> None:
        """Note that rows that should be new were not."""
        self._paused_batches = _COPY_PAUSE

    def copy(self, columns: Sequence[Sequence[Any]]) -> None:
        """Copy whole rows into the table; DatabaseFailed if it does not take them."""
        names = self._names(range(len(self._cells)))
        copy = self._statement("stage_copy", stage=self.target.name, names=names)
        copy_columns(self._connection, copy.text, columns)

    @cached_property
    def _exact(self) -> bool:
        """Return whether two keys are the same row exactly if their cells are equal."""
        return all(column.kind.name == "INT" for column in self.target.table.key_columns)

    def _load(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        """Stage rows, given by column, in place of the earlier ones."""
        if self._used or not self._dialect.copies:
            self._run("stage_empty")
        self._used = True
        if not columns or not columns[0]:
            return
        if self._dialect.copies:
            copy_columns(
                self._connection, self._statement("stage_copy", names=", ".join(names)).text, columns
            )
            return
        fill = self._statement(
            "stage_fill", names=", ".join(names), values=", ".join(f":{name}" for name in names)
        )
        rows = zip(*columns, strict=True)
        self._connection.execute(fill, [dict(zip(names, row, strict=True)) for row in rows])

    def _key_row(self, effect: Effect) -> Cells:
        """Return the cells of a row that only has its key."""
        key_cells = dict(zip(self.target.key, effect.key, strict=True))
        return [key_cells.get(place) for place in range(len(self.target.columns))]

    def _settings(self, places: Iterable[int]) -> str:
        """Return the assignments that give existing rows the cells of these columns."""
        return ",\n  ".join(
            templates.statement(self._dialect, "apply_setting", column=self._name(place), value=f"s.c{place}")
            for place in places
            if place not in self.target.key
        )

    def _name(self, place: int) -> str:
        return self._dialect.quote(self.target.columns[place])

    def _names(self, places: Iterable[int]) -> str:
        return ", ".join(self._name(place) for place in places)

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: object) -> Any:
        return self._connection.execute(self._statement(name, **(holes or {})), values)

    def _statement(self, name: str, **holes: str) -> TextClause:
        filled = {hole: unbound(words) for hole, words in (self._holes | holes).items() if hole != "values"}
        return text(templates.statement(self._dialect, name, **filled, **_bound(holes)))


def _bound(holes: dict[str, str]) -> dict[str, str]:
    return {"values": holes["values"]} if "values" in holes else {}


def _gaps(columns: Sequence[Sequence[Any]], count: int) -> Iterable[tuple[bool, ...]]:
    """Return for each of so many rows which of its columns nothing supplies."""
    complete = (False,) * count
    gaps = [[cell is ABSENT for cell in cells] if _has_gaps(cells) else complete for cells in columns]
    if all(column is complete for column in gaps):
        return repeat((False,) * len(columns), count)
    return zip(*gaps, strict=True)


def _has_gaps(cells: Sequence[Any]) -> bool:
    return Absent in set(map(type, cells))


def _without_gaps(cells: Sequence[Any]) -> Sequence[Any]:
    """Return a column as it is staged: null where nothing is supplied."""
    return [None if cell is ABSENT else cell for cell in cells] if _has_gaps(cells) else cells


_PIECE = 2_000  # rows that are put together: the server works on one while the next is made
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_NULL = "\\N"


def copy_columns(connection: Connection, statement: str, columns: Sequence[Sequence[Any]]) -> None:
    """Send rows, given by column, by `copy`; raise DatabaseFailed if the server refuses them."""
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for data in copy_text(columns):
                copy.write(data)
    except psycopg.Error as fault:
        kind = ConnectionLost if driver.closed else DatabaseFailed
        raise kind(" ".join(str(fault.diag.message_primary or fault).split())) from fault


def copy_text(columns: Sequence[Sequence[Any]]) -> Iterator[bytes]:
    """Return rows in the text form that `copy` reads."""
    for start in range(0, len(columns[0]), _PIECE):
        texts = [_column(cells[start : start + _PIECE]) for cells in columns]
        yield ("\n".join(map("\t".join, zip(*texts, strict=True))) + "\n").encode()


def _column(cells: Sequence[Any]) -> Iterable[str]:
    """Return the texts of one column."""
    kinds = set(map(type, cells))
    if kinds == {int}:
        return map(str, cells)
    if kinds == {str} and not _special("".join(cells)):
        return cells
    if kinds <= {str, NoneType} and not _special("".join(filter(None, cells))):
        return [_NULL if cell is None else cell for cell in cells]
    return [_TEXTS[type(cell)](cell) for cell in cells]


def _special(text: str) -> bool:
    return "\\" in text or "\n" in text or "\t" in text or "\r" in text


_TEXTS: dict[type, Callable[[Any], str]] = {
    NoneType: lambda cell: _NULL,
    str: lambda cell: cell.translate(_ESCAPED) if _special(cell) else cell,
    int: str,
    bool: lambda cell: "t" if cell else "f",
    float: repr,
    bytes: lambda cell: "\\\\x" + cell.hex(),
}
