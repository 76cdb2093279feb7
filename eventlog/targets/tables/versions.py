"""What changes do to tables with history: each makes a version, and ends the one before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from eventlog.core.change import ABSENT, Change
from eventlog.sql.common.dialect import Dialect
from eventlog.targets.tables import history
from eventlog.targets.tables.blocks import Block
from eventlog.targets.tables.history import Named, Version
from eventlog.targets.tables.reduction import ASKED, UNASKED
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.staging import Stage
from eventlog.targets.tables.table_target import Act, Emptied, Moved, RowKey, Step, TableTarget
from eventlog.targets.tables.tally import StepsResult, Tally, unmet
from eventlog.targets.tables.validity import FROM_SEQ, FROM_TIME, OP, TO_SEQ, TO_TIME, sequence_of, time_of

_COLUMNS = {"from_seq": FROM_SEQ, "to_seq": TO_SEQ, "from_time": FROM_TIME, "to_time": TO_TIME, "op": OP}
_NAMES = ("n", "expected", "gone", "act", "mask", *_COLUMNS, "base_seq")


class VersionStage(Stage):
    """A stage for the versions of one table."""

    def _more(self) -> dict[str, str]:
        fold = self._dialect.fold
        columns = {name: fold(column) for name, column in _COLUMNS.items()}
        base = {f"b{place}": self.goal.columns[place] for place in self.goal.key}
        self._holes |= {name: self._dialect.quote(column) for name, column in columns.items()}
        self._holes["same_base"] = " and ".join(f"t.{self._name(p)} = s.b{p}" for p in self.goal.key)
        return columns | {"base_seq": fold(TO_SEQ)} | base

    def stage_result(self, result: history.HistoryResult) -> None:
        """Stage the versions that end and those that begin."""
        names = (*_NAMES, *self._cells, *(f"b{place}" for place in self.goal.key))
        rows = [self._version(n, version, result) for n, version in enumerate(result.versions)]
        rows += [self._closing(key, closing) for key, closing in result.closings.items()]
        self._load(names, list(zip(*rows, strict=True)))
        self._check_keys(len({version.key for version in result.versions} | result.closings.keys()))

    def missing_bases(self) -> list[int]:
        """Return the staged versions for which the target has no row."""
        return [int(row[0]) for row in self._run("history_missing")]

    def write_result(self, result: history.HistoryResult) -> int:
        """End and begin what is staged; how many rows that were to be deleted were not there."""
        asked = sum(closing.asked for closing in result.closings.values())
        taken = int(self._run("history_close", gone=ASKED).rowcount) if asked else 0
        if asked < len(result.closings):
            self._run("history_close", gone=UNASKED)
        if result.versions:
            places = range(len(self.goal.columns))
            cells = ", ".join(self._carried(place, result.versions) for place in places)
            self._run("history_insert", {"names": self._names(places), "cells": cells})
        return asked - taken

    def empty(self, ended: Named) -> None:
        """End every version."""
        self._run("history_empty", to_seq=ended[0], to_time=ended[1])

    def _carried(self, place: int, made: Sequence[Version]) -> str:
        """Return a column of versions: what was supplied, else what the version before has."""
        if place in self.goal.key or not any(version.cells[place] is ABSENT for version in made):
            return f"s.c{place}"
        return (
            f"case when substr(s.mask, {place + 1}, 1) = '1' then s.c{place} else t.{self._name(place)} end"
        )

    def _version(self, number: int, version: Version, result: history.HistoryResult) -> list[Any]:
        mask = "".join("0" if cell is ABSENT else "1" for cell in version.cells)
        ended = version.ended or (None, None)
        base_seq = None if version.base is None else result.closings[version.base].ended[0]
        span = (version.begun[0], ended[0], version.begun[1], ended[1], version.op, base_seq)
        cells = (None if cell is ABSENT else cell for cell in version.cells)
        base = version.base or [None] * len(self.goal.key)
        return [number, int(version.expected), "", "v", mask, *span, *cells, *base]

    def _closing(self, key: RowKey, closing: history.Closing) -> list[Any]:
        known = dict(zip(self.goal.key, key, strict=True))
        cells = (known.get(place) for place in range(len(self.goal.columns)))
        gone = ASKED if closing.asked else UNASKED
        span = (None, closing.ended[0], None, closing.ended[1], None, None)
        return [0, 0, gone, "c", "", *span, *cells, *[None] * len(self.goal.key)]


class VersionSteps:
    """A writer of steps to tables with history."""

    def __init__(self, connection: Connection, dialect: Dialect, settings: ApplySettings) -> None:
        self._connection = connection
        self._dialect = dialect
        self._insert = settings.missing_rows == "insert"
        self._settings = settings
        self._stages: dict[TableTarget, VersionStage] = {}
        self._places: dict[int, Named] = {}

    def open(self, goals: Iterable[TableTarget]) -> None:
        """Make the stages of tables, which is done alone."""
        for goal in goals:
            if goal not in self._stages:
                self._stages[goal] = VersionStage(self._connection, self._dialect, goal, len(self._stages))

    def begin(self, changes: Iterable[Change], rounds: int) -> None:
        """A transaction of the target begins, in which these changes are applied."""
        for stage in self._stages.values():
            stage.begin()
        self._places = {
            id(change): (sequence_of(change, rounds, number), time_of(change))
            for number, change in enumerate(changes)
        }

    def copy(self, new: Sequence[tuple[TableTarget, Block]]) -> bool:
        """Return False: a new row may end an existing version."""
        return False

    def do(self, steps: Sequence[Step]) -> StepsResult:
        """Return the steps in their order, as many together as can be."""
        result = StepsResult(Tally(), [])
        by_goal: dict[TableTarget, list[Act | Moved]] = {}
        for step in steps:
            if isinstance(step, Emptied):
                self._do_table(step.goal, by_goal.pop(step.goal, []), result)
                self._stages[step.goal].empty(self._place(step.change))
                result.tally.count(step.change)
            else:
                by_goal.setdefault(step.goal, []).append(step)
        for goal, own in by_goal.items():
            self._do_table(goal, own, result)
        return result

    def _do_table(self, goal: TableTarget, steps: Sequence[Act | Moved], result: StepsResult) -> None:
        if not steps:
            return
        stage = self._stages[goal]
        missing: set[RowKey] = set()
        made = self._versions(goal, steps)
        stage.stage_result(made)
        # after a refused change of a key, later changes may meet a missing row too
        while any(version.expected for version in made.versions) and (found := stage.missing_bases()):
            missing |= {base for n in found if (base := made.versions[n].base) is not None}
            made = self._versions(goal, steps, missing)
            stage.stage_result(made)
        result.tally.absent(made.absent + stage.write_result(made))
        left_out = set(map(id, made.unmet))
        for change in {id(step.change): step.change for step in steps}.values():
            if id(change) not in left_out:
                result.tally.count(change)
        unmet(made.unmet, self._settings, result)

    def _versions(
        self, goal: TableTarget, steps: Iterable[Act | Moved], missing: Collection[RowKey] = ()
    ) -> history.HistoryResult:
        placed = ((step, self._place(step.change)) for step in steps)
        return history.versions(goal, placed, missing, insert=self._insert)

    def _place(self, change: Change) -> Named:
        return self._places[id(change)]
