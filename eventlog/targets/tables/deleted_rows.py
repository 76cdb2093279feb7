"""The brake of `apply`: a run that would delete too many rows of a table ends before it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from eventlog.core.change import Op
from eventlog.core.delete_limit import DeleteLimit
from eventlog.targets.tables.errors import TooManyDeletes
from eventlog.targets.tables.table_target import Act, Emptied, RowAction, RowKey, Step, TableTarget


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
        for goal, number in numbers.items():
            deletes = self._deleted[goal.name] + number
            if deletes > self._limit.most(0) and deletes > self._limit.most(self._rows_of(goal)):
                raise TooManyDeletes(goal, deletes, self._limit)
        return numbers

    def add(self, numbers: Mapping[TableTarget, int]) -> None:
        """Add the counts of steps that are done."""
        for goal, number in numbers.items():
            self._deleted[goal.name] += number

    def _numbers(self, steps: Iterable[Step]) -> dict[TableTarget, int]:
        """Return how many rows of each table are gone after steps; a row that is written again is not."""
        gone: dict[TableTarget, set[RowKey]] = {}
        emptied: dict[TableTarget, int] = {}
        for step in steps:
            if isinstance(step, Emptied):
                emptied[step.goal] = self._count_rows(step.goal)
            elif not isinstance(step, Act) or step.deed is RowAction.WRITE:
                gone.get(step.goal, set()).discard(step.key)
            elif step.deed is RowAction.DELETE and step.change.op is Op.DELETE:
                gone.setdefault(step.goal, set()).add(step.key)
        return {goal: len(keys) for goal, keys in gone.items()} | emptied

    def _rows_of(self, goal: TableTarget) -> int:
        if goal.name not in self._rows:
            self._rows[goal.name] = self._count_rows(goal) + self._deleted[goal.name]
        return self._rows[goal.name]
