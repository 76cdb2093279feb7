"""The steps of changes, done in their order, as many together as possible; and the rows that they delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.change import ABSENT, Op
from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.error_causes import blames_other_transaction, blames_row
from eventlog.sql.queries import unbound
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.outcomes import RefusedChange, StepsResult, Tally, TooManyDeletes, unmet
from eventlog.transfer.targets.tables.reduce import Effect, Reduced, changes_by_table, reduce
from eventlog.transfer.targets.tables.stage import Collision, Stage
from eventlog.transfer.targets.tables.table import (
    BlockReading,
    KeyChange,
    RowAction,
    RowChange,
    RowKey,
    Step,
    TableTarget,
    Truncation,
)


class DeletedRows:
    """The rows that one round of the source deletes, table by table."""

    def __init__(self, limit: DeleteLimit, count_rows: Callable[[TableTarget], int]) -> None:
        self._limit = limit
        self._count_rows = count_rows
        self.start_round()

    def start_round(self) -> None:
        """Begin a round of the source."""
        self._deleted = Counter[str]()  # by the table's name
        self._rows: dict[str, int] = {}  # before these deletes, as far as they were counted

    def count(self, steps: Iterable[Step]) -> Mapping[TableTarget, int]:
        """Return how many rows of each table some steps delete; raise TooManyDeletes beyond the limit."""
        if self._limit.is_unlimited:
            return {}
        numbers = self._numbers(steps)
        for target, number in numbers.items():
            deletes = self._deleted[target.name] + number
            if deletes <= self._limit.max_deletes(0):
                continue
            if deletes > self._limit.max_deletes(self._rows_of(target)):
                raise TooManyDeletes(target, deletes, self._limit)
        return numbers

    def add(self, numbers: Mapping[TableTarget, int]) -> None:
        """Add the counts of steps that are done."""
        for target, number in numbers.items():
            self._deleted[target.name] += number

    def _numbers(self, steps: Iterable[Step]) -> dict[TableTarget, int]:
        """Return how many rows of each table are gone after steps; a row that is written again is not."""
        deleted_keys: dict[TableTarget, set[RowKey]] = {}
        emptied: dict[TableTarget, int] = {}
        for step in steps:
            if isinstance(step, Truncation):
                emptied[step.target] = self._count_rows(step.target)
            elif not isinstance(step, RowChange) or step.action is RowAction.WRITE:
                deleted_keys.get(step.target, set()).discard(step.key)
            elif step.action is RowAction.DELETE and step.change.op is Op.DELETE:
                deleted_keys.setdefault(step.target, set()).add(step.key)
        return {target: len(keys) for target, keys in deleted_keys.items()} | emptied

    def _rows_of(self, target: TableTarget) -> int:
        if target.name not in self._rows:
            self._rows[target.name] = self._count_rows(target) + self._deleted[target.name]
        return self._rows[target.name]


Blaming = DatabaseFailed | Collision  # an error for which a row, or several, may be to blame


class StepWriter:
    """A writer of steps to the rows of tables; what the database refuses is left out."""

    def __init__(self, connection: Connection, dialect: Dialect, settings: ApplySettings) -> None:
        self._connection = connection
        self._dialect = dialect
        self._settings = settings
        self._stages: dict[TableTarget, Stage] = {}

    def open(self, targets: Iterable[TableTarget]) -> None:
        """Make the stages of tables, which is done alone."""
        for target in targets:
            if target not in self._stages:
                self._stages[target] = Stage(self._connection, self._dialect, target, len(self._stages))

    def copy(self, readings: Sequence[BlockReading]) -> StepsResult | None:
        """Copy new rows straight into their tables; None unless that was done with all of them."""
        columns = [reading.new_rows() for reading in readings]
        if any(cells is None for cells in columns):
            return None
        stages = [self._stages[reading.target] for reading in readings]
        if not all(stage.may_copy() for stage in stages):
            return None
        point = self._connection.begin_nested()
        try:
            for stage, cells in zip(stages, columns, strict=True):
                stage.copy(cells or ())
            self._check_constraints()
        except DatabaseFailed:
            point.rollback()
            for stage in stages:
                stage.pause_copy()
            return None
        point.commit()
        return StepsResult(Tally.of(change.op for reading in readings for change in reading.block.changes))

    def write(self, steps: Sequence[Step]) -> StepsResult:
        """Do the steps except those that the database refuses.

        Deferred constraints are checked after all steps; only if they fail, after each piece.
        """
        for stage in self._stages.values():
            stage.begin()
        outcome = self._attempt(lambda: self._bisect(steps, check=False), check=True)
        return outcome if isinstance(outcome, StepsResult) else self._bisect(steps, check=True)

    def _bisect(self, steps: Sequence[Step], *, check: bool) -> StepsResult:
        """Do the steps. If the database refuses some, halve them until the change at fault is found, and
        refuse it.

        The steps before that change are done by then.
        """
        if not steps:
            return StepsResult()
        outcome = self._attempt(lambda: self._write_steps(steps), check=check)
        if isinstance(outcome, StepsResult):
            return outcome
        middle = len(steps) // 2
        while middle and steps[middle].change is steps[middle - 1].change:
            middle -= 1
        if middle:
            return self._bisect(steps[:middle], check=check).add(self._bisect(steps[middle:], check=check))
        first = [step for step in steps if step.change is steps[0].change]
        if len(steps) > 1:  # all steps of the first change, one by one, or none
            outcome = self._attempt(lambda: self._write_singly(first), check=check)
        if not isinstance(outcome, StepsResult):
            outcome = StepsResult(refused=[RefusedChange(first[0].change, _as_error(outcome))])
        return outcome.add(self._bisect(steps[len(first) :], check=check))

    def _attempt(self, work: Callable[[], StepsResult], *, check: bool) -> StepsResult | Blaming:
        """Do some work as a whole, or nothing of it. Return the error of the database about its rows."""
        point = self._connection.begin_nested()
        try:
            result = work()
            if check:
                self._check_constraints()
        except Collision as fault:
            point.rollback()
            return fault
        except DatabaseFailed as fault:
            if blames_other_transaction(fault, self._dialect):
                raise  # it may have taken the savepoint with it
            point.rollback()
            if not blames_row(fault, self._connection, self._dialect):
                raise
            return fault
        point.commit()
        return result

    def _check_constraints(self) -> None:
        for statement in templates.statements(self._dialect, "apply_check", {}):
            self._connection.execute(text(statement))

    def _write_singly(self, steps: Iterable[Step]) -> StepsResult:
        result = StepsResult()
        for step in steps:
            result.add(self._write_steps([step]))
        return result

    def _write_steps(self, steps: Iterable[Step]) -> StepsResult:
        """Do the steps in their order, as many together as can be."""
        result = StepsResult()
        batch: list[RowChange] = []
        for step in steps:
            if isinstance(step, RowChange):
                batch.append(step)
                continue
            self._write_batch(batch, result)
            batch = []
            if isinstance(step, Truncation):
                self._run("apply_empty", {"table": unbound(step.target.name)})
                result.add(StepsResult(Tally.of([step.change.op])))
            else:
                self._move(step, result)
        self._write_batch(batch, result)
        return result

    def _write_batch(self, row_changes: Sequence[RowChange], result: StepsResult) -> None:
        """Do changes of rows: in each table first the deletes, then the writes."""
        filled: list[Stage] = []
        for target, table_changes in changes_by_table(row_changes).items():
            stage = self._stages[target]
            reduced, effects = self._stage(stage, table_changes)
            filled.append(stage)
            absent = reduced.absent + stage.delete([effect.deletion for effect in effects])
            if absent:  # they are counted as deleted below
                result.add(StepsResult(Tally(deleted=-absent, missing=absent)))
            self._count(table_changes, reduced, result)
        for stage in filled:
            stage.write()

    def _stage(self, stage: Stage, row_changes: Sequence[RowChange]) -> tuple[Reduced, list[Effect]]:
        """Stage the effects. If some changes need a missing row, stage again without them."""
        reduced = self._reduced(row_changes)
        effects = list(reduced.effects.values())
        stage.fill(effects)
        if any(effect.requires_row for effect in effects) and (missing := stage.missing()):
            reduced = self._reduced(row_changes, {effects[number].key for number in missing})
            effects = list(reduced.effects.values())
            stage.fill(effects)
        return reduced, effects

    def _reduced(self, row_changes: Sequence[RowChange], missing: Iterable[RowKey] = ()) -> Reduced:
        return reduce(row_changes, set(missing), insert=self._settings.missing_rows == "insert")

    def _count(self, row_changes: Sequence[RowChange], reduced: Reduced, result: StepsResult) -> None:
        """Count the changes of row_changes; one that moves a complete row is counted where it is inserted."""
        left_out = {id(row_change) for row_change in reduced.unmet}
        applied = (
            row_change.change.op
            for row_change in row_changes
            if not (row_change.action is RowAction.DELETE and row_change.change.op is Op.UPDATE)
            and id(row_change) not in left_out
        )
        result.add(StepsResult(Tally.of(applied)))
        if reduced.unmet:
            result.add(unmet([row_change.change for row_change in reduced.unmet], self._settings))

    def _move(self, step: KeyChange, result: StepsResult) -> None:
        """Give a row another key; a row that has this key is deleted first."""
        target = step.target
        supplied = {place: cell for place, cell in enumerate(step.cells) if cell is not ABSENT}
        key_before = {f"k{place}": cell for place, cell in zip(target.key, step.key_before, strict=True)}
        after_cells = {f"c{place}": cell for place, cell in supplied.items()}
        new_key_values = {f"k{place}": cell for place, cell in zip(target.key, step.key, strict=True)}
        condition = " and ".join(f"{self._name(target, place)} = :k{place}" for place in target.key)
        settings = ", ".join(f"{self._name(target, place)} = :c{place}" for place in supplied)
        holes = {"table": unbound(target.name), "found": condition, "settings": settings}
        if self._run("apply_exists", holes, **key_before).first() is None:
            self._unmoved(step, result)
            return
        self._run("apply_forget", holes, **new_key_values)
        self._run("apply_move", holes, **key_before, **after_cells)
        result.add(StepsResult(Tally.of([step.change.op])))

    def _unmoved(self, step: KeyChange, result: StepsResult) -> None:
        """Handle a change of a key whose row is missing."""
        if self._settings.missing_rows == "insert":
            self._write_batch(
                [RowChange(RowAction.WRITE, step.target, step.key, step.cells, step.change)], result
            )
        else:
            result.add(unmet([step.change], self._settings))

    def _name(self, target: TableTarget, place: int) -> str:
        return unbound(self._dialect.quote(target.columns[place]))

    def _run(self, name: str, holes: dict[str, str], **values: object) -> Any:
        statement = templates.statement(self._dialect, name, **holes)
        return self._connection.execute(text(statement), values)


def _as_error(fault: Blaming) -> EventlogError:
    return fault if isinstance(fault, EventlogError) else EventlogError("its keys are one row of the target")
