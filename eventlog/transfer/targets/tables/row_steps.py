"""The steps of changes, done in their order, as many together as possible; and the rows that they delete."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.change import Op
from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.error_causes import blames_other_transaction, blames_row
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.net_effect import NetEffect
from eventlog.transfer.targets.tables.outcomes import RefusedChange, StepsResult, Tally, TooManyDeletes, unmet
from eventlog.transfer.targets.tables.stage import Collision, Stage
from eventlog.transfer.targets.tables.table import (
    BlockReading,
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
        """Write the net effect of steps: of all tables first the deletes, then the writes."""
        result = StepsResult()
        steps_of = defaultdict[Stage, list[Step]](list)
        for step in steps:
            steps_of[self._stages[step.target]].append(step)
        nets = {stage: self._stage(stage, table_steps) for stage, table_steps in steps_of.items()}
        for stage, net in nets.items():
            result.add(self._outcome(steps_of[stage], net, net.absent + stage.delete()))
            if net.is_emptied:
                stage.empty_table()
        for stage in nets:
            stage.write()
        return result

    def _stage(self, stage: Stage, steps: Sequence[Step]) -> NetEffect:
        """Stage the net effect of the steps of one table, which may lack some of its rows."""
        insert = self._settings.missing_rows == "insert"
        net = NetEffect(steps, insert=insert)
        stage.fill(net.effects.values(), check_keys=len(steps) > 1)
        missing = stage.missing()
        if not net.is_settled(missing):
            net = NetEffect(steps, set(missing), insert=insert)
            stage.fill(net.effects.values(), check_keys=False)
        stage.read_moved_rows()
        return net

    def _outcome(self, steps: Iterable[Step], net: NetEffect, absent: int) -> StepsResult:
        """Return the counts of steps; a change that moves a complete row is counted where it writes it."""
        tally = Tally.of(step.change.op for step in steps if not _is_half_a_move(step))
        tally += Tally(updated=-len(net.unmet), deleted=-absent, missing=absent)
        return StepsResult(tally).add(unmet(net.unmet, self._settings))


def _is_half_a_move(step: Step) -> bool:
    return isinstance(step, RowChange) and step.action is RowAction.DELETE and step.change.op is Op.UPDATE


def _as_error(fault: Blaming) -> EventlogError:
    return fault if isinstance(fault, EventlogError) else EventlogError("its keys are one row of the target")
