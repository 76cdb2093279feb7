"""The effects of a batch on one table: staged in a table of the session, then written by a few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
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
from eventlog.transfer.targets.tables.cells import Cells
from eventlog.transfer.targets.tables.net_effect import COUNTED, SILENT, RowEffect
from eventlog.transfer.targets.tables.table import RowKey, TableTarget

_STAGE_COLUMNS = ("n", "required", "deletion", "row_write", "missing_defaults", "mask")
_NOTHING = "-"  # that a written row lacks; an empty text is null in Oracle, and equals nothing
_COPY_PAUSE = 16  # batches for which a table whose rows were there already is not taken for an empty one


class Collision(Exception):
    """An error: rows of one batch with different keys are one row of the target."""


class Stage:
    """A stage for the effects on one table, from which they are written.

    The mask of a row has a digit for each column: whether the row supplies it. One statement for each set of
    columns would take time with the square of the rows, because each reads the whole stage.
    """

    def __init__(self, connection: Connection, dialect: Dialect, target: TableTarget, number: int) -> None:
        self.target = target
        self._connection = connection
        self._dialect = dialect
        self._used = False
        self._paused_batches = 0
        self._effects: Sequence[RowEffect] = ()
        self._moves = False  # some staged rows are still under another key in the table
        self._masks: dict[str, dict[str | None, str]] = {}  # those of "u" and "w", with what each lacks
        self._cells = tuple(f"c{place}" for place in range(len(target.columns)))
        self._befores = tuple(f"b{place}" for place in target.key)
        self._holes = {
            "table": target.name,
            "stage": dialect.quote(f"{dialect.statements.stage_prefix}eventlog_stage_{number}"),
            "same": " and ".join(f"t.{self._name(place)} = s.c{place}" for place in target.key),
            "same_before": " and ".join(f"t.{self._name(place)} = s.b{place}" for place in target.key),
            "keys": ", ".join(f"s.c{place}" for place in target.key),
        }
        columns = [*enumerate(self._cells), *zip(target.key, self._befores, strict=True)]
        column_list = ", ".join(f"t.{self._name(place)} as {name}" for place, name in columns)
        connection.execute(self._statement("stage_make", columns=column_list))

    def begin(self) -> None:
        """A transaction of the target begins, and the stage is empty."""
        self._used = False

    def fill(self, effects: Iterable[RowEffect], *, check_keys: bool) -> None:
        """Stage the effects; with `check_keys`, raise Collision if two of them are of one row."""
        self._effects = list(effects)
        cells = [effect.cells or self._key_row(effect) for effect in self._effects]
        columns = list(zip(*cells, strict=True))
        masks = _masks(columns, len(cells))
        befores = [effect.before for effect in self._effects]
        self._moves = any(befores)
        no_key = (None,) * len(self._befores)
        stage_cells: Sequence[Sequence[Any]] = (
            range(len(cells)),
            [int(effect.is_checked) for effect in self._effects],
            [effect.deletion for effect in self._effects],
            [effect.write for effect in self._effects],
            self._missing_defaults(masks, befores),
            masks,
            *map(_supplied, columns),
            *zip(*(before or no_key for before in befores), strict=True),
        )
        self._load((*_STAGE_COLUMNS, *self._cells, *self._befores), stage_cells)
        if check_keys and not self._exact and self._run("stage_keys").scalar_one() < len(cells):
            raise Collision

    def missing(self) -> list[RowKey]:
        """Return the keys of staged rows that the table lacks, if that matters; lock rows that move."""
        if self._moves:
            self._run("stage_lock", deletion=SILENT).close()
        if not any(effect.requires_row for effect in self._effects):
            return []
        return [self._effects[int(row[0])].key for row in self._run("stage_missing")]

    def read_moved_rows(self) -> None:
        """Give staged rows that had another key what they keep of the table's rows."""
        if self._moves:
            places = [place for place in range(len(self._cells)) if place not in self.target.key]
            settings = [self._setting("s", f"c{place}", self._new_or_old(place)) for place in places]
            self._run("stage_read", {"settings": ",\n  ".join(settings)})

    def delete(self) -> int:
        """Delete rows, and return how many of those that are counted were not there."""
        deletions = [effect.deletion for effect in self._effects]
        counted = deletions.count(COUNTED)
        deleted = int(self._run("apply_delete", deletion=COUNTED).rowcount) if counted else 0
        if SILENT in deletions:
            self._run("apply_delete", deletion=SILENT)
        return counted - deleted

    def empty_table(self) -> None:
        """Delete every row of the table."""
        self._run("apply_empty")

    def write(self) -> None:
        """Change the staged rows that are there, and insert those that are not."""
        for write, masks in self._masks.items():
            if settings := self._settings(masks):
                self._run("apply_update", {"settings": settings}, row_write=write)
        for missing_defaults in dict.fromkeys(self._masks["w"].values()):
            self._insert_written(missing_defaults)

    def may_copy(self) -> bool:
        """Return whether new rows may go straight into the table: not if some existed lately."""
        if self._paused_batches or not self._dialect.statements.copies:
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
        if self._used or not self._dialect.statements.copies:
            self._run("stage_empty")
        self._used = True
        if not columns or not columns[0]:
            return
        if self._dialect.statements.copies:
            copy_columns(
                self._connection, self._statement("stage_copy", names=", ".join(names)).text, columns
            )
            return
        fill = self._statement(
            "stage_fill", names=", ".join(names), values=", ".join(f":{name}" for name in names)
        )
        rows = zip(*columns, strict=True)
        self._connection.execute(fill, [dict(zip(names, row, strict=True)) for row in rows])

    def _key_row(self, effect: RowEffect) -> Cells:
        row: list[Any] = [None] * len(self.target.columns)
        for place, cell in zip(self.target.key, effect.key, strict=True):
            row[place] = cell
        return row

    def _missing_defaults(
        self, masks: Iterable[str | None], befores: Iterable[RowKey | None]
    ) -> Sequence[str]:
        """Return the columns that each written row leaves to their defaults; note what rows are written.

        A row that had another key is whole once it was read.
        """
        writes = [effect.write for effect in self._effects]
        whole_masks = [None if before else mask for mask, before in zip(masks, befores, strict=True)]
        self._masks = {"u": {}, "w": {}}
        for write, mask in dict.fromkeys(zip(writes, whole_masks, strict=True)):
            if write:
                self._masks[write][mask] = self._defaults(mask)
        pairs = zip(writes, whole_masks, strict=True)
        return [self._masks["w"][mask] if write == "w" else "" for write, mask in pairs]

    def _defaults(self, mask: str | None) -> str:
        """Return the columns without a value, which take their default."""
        places = [str(place) for place in sorted(self.target.defaults) if mask and mask[place] == "0"]
        return " ".join(places) or _NOTHING

    def _settings(self, masks: Iterable[str | None]) -> str:
        """Return the assignments that give existing rows what is supplied."""
        full_mask = "1" * len(self.target.columns)
        masks_of_columns = [mask or full_mask for mask in masks]
        assignments = []
        for place in range(len(self.target.columns)):
            supplied = {mask[place] for mask in masks_of_columns}
            if place in self.target.key or "1" not in supplied:
                continue
            new = self._new_or_old(place) if "0" in supplied else f"s.c{place}"
            assignments.append(self._setting("t", self._name(place), new))
        return ",\n  ".join(assignments)

    def _new_or_old(self, place: int) -> str:
        """Return what a column has afterwards: what is supplied, else what it had."""
        is_supplied = f"s.mask is null or substr(s.mask, {place + 1}, 1) = '1'"
        return f"case when {is_supplied} then s.c{place} else t.{self._name(place)} end"

    def _setting(self, alias: str, column: str, value: str) -> str:
        return templates.statement(self._dialect, "apply_setting", alias=alias, column=column, value=value)

    def _insert_written(self, missing_defaults: str) -> None:
        left_out = set() if missing_defaults == _NOTHING else set(map(int, missing_defaults.split()))
        places = [place for place in range(len(self.target.columns)) if place not in left_out]
        cells = ", ".join(f"s.c{place}" for place in places)
        self._run(
            "apply_insert", {"names": self._names(places), "cells": cells}, missing_defaults=missing_defaults
        )

    def _name(self, place: int) -> str:
        return self._dialect.quote(self.target.columns[place])

    def _names(self, places: Iterable[int]) -> str:
        return ", ".join(self._name(place) for place in places)

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: object) -> Any:
        return self._connection.execute(self._statement(name, **(holes or {})), values)

    def _statement(self, name: str, **holes: str) -> TextClause:
        filled = {
            hole: words if hole == "values" else unbound(words)  # values are bound
            for hole, words in (self._holes | holes).items()
        }
        return text(templates.statement(self._dialect, name, **filled))


def _masks(columns: Iterable[Sequence[Any]], number: int) -> Sequence[str | None]:
    """Return which columns each of so many rows supplies, a digit for each; None if it supplies all."""
    bits = [_bits(cells) for cells in columns]
    if all(isinstance(column, repeat) for column in bits):
        return [None] * number
    masks = map("".join, zip(*bits))  # noqa: B905 - a column without gaps repeats for ever
    return [mask if "0" in mask else None for mask in masks]


def _bits(cells: Sequence[Any]) -> Iterable[str]:
    if Absent not in set(map(type, cells)):
        return repeat("1")
    return ["0" if cell is ABSENT else "1" for cell in cells]


def _supplied(cells: Sequence[Any]) -> Sequence[Any]:
    """Return a column as it is staged: null where nothing is supplied."""
    if Absent not in set(map(type, cells)):
        return cells
    return [None if cell is ABSENT else cell for cell in cells]


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
