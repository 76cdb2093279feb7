"""The effects of a batch on one table: staged in a table of the session, then written by a few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import psycopg
from sqlalchemy import TextClause, text
from sqlalchemy.engine import Connection

from eventlog.apply.cells import Cells
from eventlog.apply.goal import Goal
from eventlog.apply.reduction import ASKED, UNASKED, Effect
from eventlog.core.change import ABSENT
from eventlog.sql.connect import ConnectionLost, DatabaseFailed
from eventlog.sql.dialect.dialects import Dialect
from eventlog.sql.queries import unbound
from eventlog.sql.statements import templates

_OWN = ("n", "expected", "gone", "act", "lacks", "mask")
_NOTHING = "-"  # an empty text is null in Oracle, and equals nothing
_FRESH = 16  # batches for which a table whose rows were there already is not taken for an empty one


class Collision(Exception):
    """Rows of one batch that have different keys here are one row of the target."""


class Stage:
    """Stages the effects on one table and writes them."""

    def __init__(self, connection: Connection, dialect: Dialect, goal: Goal, number: int) -> None:
        self.goal = goal
        self._connection = connection
        self._dialect = dialect
        self._used = False
        self._crowded = 0
        self._cells = tuple(f"c{place}" for place in range(len(goal.columns)))
        self._holes = {
            "table": goal.name,
            "stage": dialect.quote(f"{dialect.stage_prefix}eventlog_stage_{number}"),
            "same": " and ".join(f"t.{self._name(place)} = s.c{place}" for place in goal.key),
            "keys": ", ".join(f"s.c{place}" for place in goal.key),
        }
        columns = {f"c{place}": name for place, name in enumerate(goal.columns)} | self._more()
        made = ", ".join(f"t.{dialect.quote(column)} as {name}" for name, column in columns.items())
        connection.execute(self._statement("stage_make", columns=made))

    def _more(self) -> dict[str, str]:
        """Further columns of the stage, and those of the target whose type they have."""
        return {}

    def begin(self) -> None:
        """A transaction of the target begins, and the stage is empty."""
        self._used = False

    def fill(self, effects: Sequence[Effect]) -> None:
        """Stage the effects; Collision where several of them are of one row."""
        width = len(self.goal.columns)
        rows = [self._row(n, effect, width) for n, effect in enumerate(effects)]
        self._load((*_OWN, *self._cells), rows)
        self._check_keys(len(effects))

    def missing(self) -> list[int]:
        """The staged effects whose row must be there and is not."""
        return [int(row[0]) for row in self._run("stage_missing")]

    def delete(self, effects: Sequence[Effect]) -> int:
        """Take the rows that leave; how many of those that were to be there were not."""
        asked = sum(effect.gone == ASKED for effect in effects)
        taken = int(self._run("apply_delete", gone=ASKED).rowcount) if asked else 0
        if any(effect.gone == UNASKED for effect in effects):
            self._run("apply_delete", gone=UNASKED)
        return asked - taken

    def write(self, effects: Sequence[Effect]) -> None:
        """Change the rows that are there, and insert those that are not."""
        for act in ("u", "w"):
            told = [effect.cells for effect in effects if effect.write == act]
            if settings := self._settings(told):
                self._run("apply_update", {"settings": settings}, act=act)
        written = [effect.cells for effect in effects if effect.write == "w"]
        for lacks in dict.fromkeys(map(self._lacks, written)):
            self._insert_written(lacks)

    def copy_fresh(self, effects: Sequence[Effect]) -> bool:
        """Copy rows that are all new straight into the table, if they may be new and it takes them so."""
        if self._crowded or not self._dialect.copies:
            self._crowded = max(0, self._crowded - 1)
            return False
        if any(ABSENT in effect.cells for effect in effects):
            return False
        copy = self._statement(
            "stage_copy", stage=self.goal.name, names=self._names(range(len(self._cells)))
        ).text
        point = self._connection.begin_nested()
        try:
            copy_rows(self._connection, copy, [effect.cells for effect in effects])
        except DatabaseFailed:
            point.rollback()
            self._crowded = _FRESH
            return False
        point.commit()
        return True

    def _check_keys(self, different: int) -> None:
        """Collision if staged rows are of less rows of the target than there are different keys."""
        if not self._exact and self._run("stage_keys").scalar_one() < different:
            raise Collision

    @cached_property
    def _exact(self) -> bool:
        """Whether keys are the same row exactly where they are the same cells."""
        return all(column.kind.name == "INT" for column in self.goal.table.key_columns)

    def _load(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Stage these rows, in place of those before."""
        if self._used or not self._dialect.copies:
            self._run("stage_empty")
        self._used = True
        if not rows:
            return
        if self._dialect.copies:
            copy_rows(self._connection, self._statement("stage_copy", names=", ".join(names)).text, rows)
            return
        fill = self._statement(
            "stage_fill", names=", ".join(names), values=", ".join(f":{name}" for name in names)
        )
        self._connection.execute(fill, [dict(zip(names, row, strict=True)) for row in rows])

    def _row(self, number: int, effect: Effect, width: int) -> list[Any]:
        cells = effect.cells
        if not cells:
            known = dict(zip(self.goal.key, effect.key, strict=True))
            cells = [known.get(place) for place in range(width)]
        mask = None if ABSENT not in cells else "".join("0" if cell is ABSENT else "1" for cell in cells)
        lacks = self._lacks(cells) if effect.write == "w" else ""
        own = (number, int(effect.expected), effect.gone, effect.write, lacks, mask)
        return [*own, *(None if cell is ABSENT else cell for cell in cells)]

    def _lacks(self, cells: Cells) -> str:
        """The columns without a value that take their default, as the stage tells them."""
        if not self.goal.defaults or ABSENT not in cells:
            return _NOTHING
        return (
            " ".join(str(place) for place in sorted(self.goal.defaults) if cells[place] is ABSENT) or _NOTHING
        )

    def _settings(self, told: Sequence[Cells]) -> str:
        """The assignments that give existing rows what is supplied."""
        if not told:
            return ""
        made = []
        for place in range(len(self.goal.columns)):
            lacking = sum(cells[place] is ABSENT for cells in told)
            if place in self.goal.key or lacking == len(told):
                continue
            name, new = self._name(place), f"s.c{place}"
            if lacking:
                supplied = f"s.mask is null or substr(s.mask, {place + 1}, 1) = '1'"
                new = f"case when {supplied} then {new} else t.{name} end"
            made.append(templates.statement(self._dialect, "apply_setting", column=name, value=new))
        return ",\n  ".join(made)

    def _insert_written(self, lacks: str) -> None:
        left_out = set() if lacks == _NOTHING else set(map(int, lacks.split()))
        places = [place for place in range(len(self.goal.columns)) if place not in left_out]
        cells = ", ".join(f"s.c{place}" for place in places)
        self._run("apply_insert", {"names": self._names(places), "cells": cells}, lacks=lacks)

    def _name(self, place: int) -> str:
        return self._dialect.quote(self.goal.columns[place])

    def _names(self, places: Iterable[int]) -> str:
        return ", ".join(self._name(place) for place in places)

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: object) -> Any:
        return self._connection.execute(self._statement(name, **(holes or {})), values)

    def _statement(self, name: str, **holes: str) -> TextClause:
        filled = {hole: unbound(words) for hole, words in (self._holes | holes).items() if hole != "values"}
        return text(templates.statement(self._dialect, name, **filled, **_bound(holes)))


def _bound(holes: dict[str, str]) -> dict[str, str]:
    return {"values": holes["values"]} if "values" in holes else {}


def copy_rows(connection: Connection, statement: str, rows: Sequence[Cells]) -> None:
    """Send rows to PostgreSQL by `copy`; DatabaseFailed where it does not take them."""
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for data in copy_text(rows):
                copy.write(data)
    except psycopg.Error as fault:
        kind = ConnectionLost if driver.closed else DatabaseFailed
        raise kind(" ".join(str(fault.diag.message_primary or fault).split())) from fault


_PIECE = 10_000  # rows that are put together
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_text(rows: Sequence[Cells]) -> Iterator[bytes]:
    """Rows as `copy` reads them."""
    for start in range(0, len(rows), _PIECE):
        columns = [_column(cells) for cells in zip(*rows[start : start + _PIECE], strict=True)]
        yield ("\n".join(map("\t".join, zip(*columns, strict=True))) + "\n").encode()


def _column(cells: Sequence[Any]) -> Iterable[str]:
    """The texts of one column."""
    kinds = set(map(type, cells))
    if kinds == {int}:
        return map(str, cells)
    if kinds == {str} and not _special("".join(cells)):
        return cells
    return [_TEXTS[type(cell)](cell) for cell in cells]


def _special(text: str) -> bool:
    return "\\" in text or "\n" in text or "\t" in text or "\r" in text


_TEXTS: dict[type, Callable[[Any], str]] = {
    type(None): lambda cell: "\\N",
    str: lambda cell: cell.translate(_ESCAPED) if _special(cell) else cell,
    int: str,
    bool: lambda cell: "t" if cell else "f",
    float: repr,
    bytes: lambda cell: "\\\\x" + cell.hex(),
}
