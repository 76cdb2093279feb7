"""The steps of changes, done in their order, as many together as possible; and the rows that they delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.change import ABSENT, Op
from eventlog.core.delete_limit import DeleteLimit
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.queries import unbound
from eventlog.targets.tables.apply_settings import ApplySettings
from eventlog.targets.tables.cells import Cells
from eventlog.targets.tables.outcomes import StepsResult, Tally, TooManyDeletes, unmet
from eventlog.targets.tables.reduce import Effect, Reduced, changes_by_table, reduce
from eventlog.targets.tables.stage import Collision, Stage
from eventlog.targets.tables.table import (
    Block,
    KeyChange,
    RowAction,
    RowChange,
    RowKey,
    Step,
    TableTarget,
    Truncation,
    new_rows,
)


class DeletedRows:
    """The rows that one look at the source deletes, table by table."""

    def __init__(self, limit: DeleteLimit, count_rows: Callable[[TableTarget], int]) -> None:
        self._limit = limit
        self._count_rows = count_rows
        self.begin()

    def begin(self) -> None:
        """Begin a look at the source."""
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


class RowSteps:
    """A writer of steps to the rows of tables."""

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

    def begin(self) -> None:
        """A transaction of the target begins."""
        for stage in self._stages.values():
            stage.begin()

    def copy(self, new: Sequence[tuple[TableTarget, Block]]) -> bool:
        """Copy new rows straight into their tables; whether that was done, with all of them."""
        if not all(self._stages[target].may_copy() for target, _ in new):
            return False
        stages: list[tuple[Stage, Sequence[Cells]]] = []
        for target, block in new:
            columns = new_rows(target, block)
            if columns is None:
                return False
            stages.append((self._stages[target], columns))

        def copy() -> None:
            for stage, columns in stages:
                stage.copy(columns)

        if self._succeeds(copy):
            return True
        for stage, _ in stages:
            stage.pause_copy()
        return False

    def _succeeds(self, work: Callable[[], None]) -> bool:
        """Do some work, or nothing of it if the database refuses a part; return whether it was done."""
        point = self._connection.begin_nested()
        try:
            work()
            for statement in templates.statements(self._dialect, "apply_check", {}):
                self._connection.execute(text(statement))
        except (DatabaseFailed, Collision):
            point.rollback()
            return False
        point.commit()
        return True

    def do(self, steps: Sequence[Step]) -> StepsResult:
        """Return the steps in their order, as many together as can be."""
        result = StepsResult(Tally(), [])
        batch: list[RowChange] = []
        for step in steps:
            if isinstance(step, RowChange):
                batch.append(step)
                continue
            self._do_batch(batch, result)
            batch = []
            if isinstance(step, Truncation):
                self._run("apply_empty", {"table": unbound(step.target.name)})
                result.tally.count(step.change)
            else:
                self._move(step, result)
        self._do_batch(batch, result)
        return result

    def _do_batch(self, row_changes: Sequence[RowChange], result: StepsResult) -> None:
        """Do row_changes on rows: in each table first the deletes, then the writes."""
        filled: list[Stage] = []
        for target, table_acts in changes_by_table(row_changes).items():
            stage = self._stages[target]
            reduced, effects = self._stage(stage, table_acts)
            filled.append(stage)
            result.tally.absent(reduced.absent + stage.delete([effect.deletion for effect in effects]))
            self._count(table_acts, reduced, result)
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
        result.tally.count_all(
            row_change.change.op
            for row_change in row_changes
            if not (row_change.action is RowAction.DELETE and row_change.change.op is Op.UPDATE)
            and id(row_change) not in left_out
        )
        unmet([row_change.change for row_change in reduced.unmet], self._settings, result)

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
        result.tally.count(step.change)

    def _unmoved(self, step: KeyChange, result: StepsResult) -> None:
        """Handle a change of a key whose row is missing."""
        if self._settings.missing_rows == "insert":
            self._do_batch(
                [RowChange(RowAction.WRITE, step.target, step.key, step.cells, step.change)], result
            )
        else:
            unmet([step.change], self._settings, result)

    def _name(self, target: TableTarget, place: int) -> str:
        return unbound(self._dialect.quote(target.columns[place]))

    def _run(self, name: str, holes: dict[str, str], **values: object) -> Any:
        statement = templates.statement(self._dialect, name, **holes)
        return self._connection.execute(text(statement), values)
