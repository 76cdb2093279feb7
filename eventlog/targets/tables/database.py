"""A database whose tables take changes: groups of transactions in one of its own, with what was applied."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.change import Change
from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.connect import DatabaseFailed, dialect_at
from eventlog.sql.error_causes import blames_other_transaction, blames_row
from eventlog.sql.queries import unbound
from eventlog.sql.relation import qualified
from eventlog.targets.tables.apply_settings import ApplySettings, SourceSchema
from eventlog.targets.tables.outcomes import OtherApply, StepsResult, Tally, refuse
from eventlog.targets.tables.row_steps import DeletedRows, RowSteps
from eventlog.targets.tables.schema import OWN_TABLES, TargetTables
from eventlog.targets.tables.stage import Collision
from eventlog.targets.tables.table import NEW, Block, RowChange, Step, TableTarget, blocks_of, row_changes_of

LOGGER = logging.getLogger(__name__)
PAUSES = (0.01, 0.1, 0.5, 2.0, 5.0)  # seconds before a group that met another transaction is done again


class Group(NamedTuple):
    """A group of whole transactions of the source that become one of the target, and the state after them."""

    changes: Sequence[Change]
    state: str | None
    marks: Sequence[str] = ()  # noted one by one, if the source has no states
    begins: bool = False  # it is the first of one look at the source


class Database:
    """The target of `--to-url`."""

    def __init__(
        self,
        engine: Engine,
        source: str,
        tables: Tables,
        settings: ApplySettings,
        refused: Callable[[Refused], None],
        described: SourceSchema | None = None,
        flush: Callable[[], None] = lambda: None,
        inform: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        self._source = source
        self._settings = settings
        self._refused = refused
        self._flush = flush  # brings what was refused safely to where it is kept
        self._dialect = dialect_at(engine)
        self._connection: Connection = engine.connect()
        self._home = Catalogue(self._connection).home()
        self._make_own_tables()
        self._targets = TargetTables(
            self._connection, self._dialect, tables, settings, described or SourceSchema(), inform
        )
        self._row_writer = RowSteps(self._connection, self._dialect, settings)
        self._deleted = DeletedRows(DeleteLimit.read(settings.max_deletes), self._count_rows)
        self.state, self._rounds = self._begin()

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def marked(self, marks: Sequence[str]) -> set[str]:
        """Return those of some marks under which something was applied."""
        rows = self._run("applied_marked", source=self._source, marks=json.dumps(marks))
        applied = {str(row[0]) for row in rows}
        self._connection.rollback()
        return applied

    def apply(self, group: Group) -> Tally:
        """Make rows of a group, in one transaction with what is then applied; the statements that the tables
        need before run alone. One that met another's transaction is done again."""
        blocks = blocks_of(group.changes)
        if group.begins:
            self._deleted.begin()
        self._prepare(blocks)
        pauses = iter(PAUSES)
        while True:
            try:
                result, deleted = self._write(group, blocks)
                break
            except DatabaseFailed as fault:
                pause = next(pauses, None)
                if pause is None or not blames_other_transaction(fault, self._dialect):
                    raise
                self._connection.rollback()
                time.sleep(pause)
        self._deleted.add(deleted)
        self._rounds += 1
        self.state = group.state if group.state is not None else self.state
        return result.tally

    def _write(self, group: Group, blocks: Sequence[Block]) -> tuple[StepsResult, Mapping[TableTarget, int]]:
        """Make rows of a group in one transaction. Return what came of it, and the deletes of each table."""
        result = StepsResult(Tally(), [])
        deleted: Mapping[TableTarget, int] = {}
        new_row_blocks = self._new_row_blocks(blocks)
        steps = None if new_row_blocks else list(self._steps(blocks, result))
        self._row_writer.open(
            dict.fromkeys([*(target for target, _ in new_row_blocks), *(step.target for step in steps or ())])
        )
        self._connection.commit()
        self._lock()
        if new_row_blocks and self._row_writer.copy(new_row_blocks):
            result.tally.count_all(change.op for block in blocks for change in block.changes)
        else:
            steps = list(self._steps(blocks, result)) if steps is None else steps
            deleted = self._deleted.count(steps)
            self._row_writer.begin()
            self._settle(steps, result)
        for refused in result.refused:
            self._refused(refused)
        result.tally.refused = len(result.refused)
        self._keep(group)
        self._flush()  # what is passed over is never reported again
        self._connection.commit()
        return result, deleted

    # --- what the target remembers

    def _make_own_tables(self) -> None:
        """Make our tables, where they are not there yet."""
        existing_names = {name.lower() for _, name, _ in Catalogue(self._connection).names(self._home)}
        for name, statement in zip(
            OWN_TABLES, ("applied_make", "applied_marks_make", "applied_ddl_make"), strict=True
        ):
            if name not in existing_names:
                self._run(statement)
        self._connection.commit()

    def _begin(self) -> tuple[str | None, int]:
        row = self._run("applied", source=self._source).first()
        if row is None:
            self._run("applied_begin", source=self._source)
            row = (None, 0)
        self._connection.commit()
        return row[0], int(row[1])

    def _lock(self) -> None:
        """Begin the transaction; OtherApply where somebody else has applied something of the source."""
        for statement in templates.statements(self._dialect, "apply_session", {}):
            self._connection.execute(text(statement))
        if int(self._run("applied_lock", source=self._source).scalar_one()) != self._rounds:
            raise OtherApply(self._source)

    def _keep(self, group: Group) -> None:
        """Note what was applied, in the same transaction."""
        if group.marks:
            rows = [{"source": self._source, "mark": mark} for mark in group.marks]
            self._connection.execute(self._clause("applied_mark"), rows)
        state = group.state if group.state is not None else self.state
        self._run("applied_keep", source=self._source, state=state)

    # --- tables

    def _prepare(self, blocks: Iterable[Block]) -> None:
        """Make what the tables of changes lack; each statement is noted when it is done."""
        for statement in self._targets.prepare(blocks):
            self._run("applied_ddl", source=self._source, statement=statement)
            self._connection.commit()
        self._connection.commit()

    def _new_row_blocks(self, blocks: Iterable[Block]) -> Sequence[tuple[TableTarget, Block]]:
        """Return the blocks with their tables, if all their changes make rows; else none."""
        try:
            block_tables = [(self._targets.get(block), block) for block in blocks]
        except EventlogError:
            return ()
        new_row_blocks = [
            (target, block) for target, block in block_tables if target is not None and block.op in NEW
        ]
        return new_row_blocks if len(new_row_blocks) == len(block_tables) else ()

    def _steps(self, blocks: Sequence[Block], result: StepsResult) -> Iterator[Step]:
        """Yield what changes do, in their order; refuse each change that is impossible by itself."""
        change_steps: list[RowChange | tuple[Step, ...]] = [()] * sum(len(block.changes) for block in blocks)
        refused: dict[int, Refused] = {}
        for block in blocks:
            try:
                target = self._targets.get(block)
            except EventlogError as fault:
                refused |= {at: refuse(c, fault) for at, c in zip(block.numbers, block.changes, strict=True)}
                continue
            if target is None:
                result.tally.ignored += len(block.changes)
                continue
            for at, change, row_change in zip(
                block.numbers, block.changes, row_changes_of(target, block), strict=True
            ):
                try:
                    change_steps[at] = target.steps(change) if row_change is None else row_change
                except EventlogError as fault:
                    refused[at] = refuse(change, fault)
        result.refused.extend(refused[at] for at in sorted(refused))
        for change_step in change_steps:
            if isinstance(change_step, RowChange):
                yield change_step
            else:
                yield from change_step

    # --- rows

    def _settle(self, steps: Sequence[Step], result: StepsResult) -> None:
        """Do the steps except those that the database refuses.

        Deferred constraints are checked after all steps; only if they fail, after each piece.
        """
        if self._tried(lambda: self._settled(steps), result) is not None:
            self._do(steps, result, checked=True)

    def _settled(self, steps: Sequence[Step]) -> StepsResult:
        result = StepsResult(Tally(), [])
        self._do(steps, result, checked=False)
        self._check()
        return result

    def _check(self) -> None:
        for statement in templates.statements(self._dialect, "apply_check", {}):
            self._connection.execute(text(statement))

    def _do(self, steps: Sequence[Step], result: StepsResult, *, checked: bool) -> None:
        """Do the steps. If the database refuses some, halve them until the change at fault is found, and
        refuse it.

        The steps before that change are done by then.
        """
        if not steps:
            return

        def done() -> StepsResult:
            outcome = self._row_writer.do(steps)
            if checked:
                self._check()
            return outcome

        fault = self._tried(done, result)
        if fault is not None:
            self._halve(steps, fault, result, checked=checked)

    def _tried(self, work: Callable[[], StepsResult], result: StepsResult) -> Blaming | None:
        """Do some work as a whole, or nothing of it. Return the error of the database about its rows."""
        point = self._connection.begin_nested()
        try:
            done = work()
        except (DatabaseFailed, Collision) as fault:
            if isinstance(fault, DatabaseFailed) and blames_other_transaction(fault, self._dialect):
                raise  # it may have taken the savepoint with it
            point.rollback()
            if isinstance(fault, DatabaseFailed) and not blames_row(fault, self._connection, self._dialect):
                raise
            return fault
        point.commit()
        result.tally.add(done.tally)
        result.refused.extend(done.refused)
        return None

    def _halve(self, steps: Sequence[Step], fault: Blaming, result: StepsResult, *, checked: bool) -> None:
        middle = len(steps) // 2
        while middle and steps[middle].change is steps[middle - 1].change:
            middle -= 1
        if middle:
            self._do(steps[:middle], result, checked=checked)
            self._do(steps[middle:], result, checked=checked)
        elif len(steps) > 1:
            self._one_by_one(steps, result, checked=checked)
        else:
            result.refused.append(refuse(steps[0].change, _as_error(fault)))

    def _one_by_one(self, steps: Sequence[Step], result: StepsResult, *, checked: bool) -> None:
        """The steps of the first change, and then the others: all of its steps are done, or none."""
        change_steps = [step for step in steps if step.change is steps[0].change]

        def done() -> StepsResult:
            outcome = StepsResult(Tally(), [])
            for step in change_steps:
                step_outcome = self._row_writer.do([step])
                outcome.tally.add(step_outcome.tally)
                outcome.refused.extend(step_outcome.refused)
            if checked:
                self._check()
            return outcome

        fault = self._tried(done, result)
        if fault is not None:
            result.refused.append(refuse(change_steps[0].change, _as_error(fault)))
        self._do(steps[len(change_steps) :], result, checked=checked)

    def _count_rows(self, target: TableTarget) -> int:
        return int(self._run("apply_count", {"table": unbound(target.name)}).scalar_one())

    # --- statements

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: object) -> Any:
        return self._connection.execute(self._clause(name, holes), values)

    def _clause(self, name: str, holes: dict[str, str] | None = None) -> Any:
        return text(templates.statement(self._dialect, name, **self._names(), **(holes or {})))

    def _names(self) -> dict[str, str]:
        """Return the texts for the placeholders of statements on our own tables."""
        fold, quote = self._dialect.fold, self._dialect.quote
        names = {
            name.removeprefix("eventlog_"): qualified(self._dialect, self._home, fold(name))
            for name in OWN_TABLES
        }
        keys = {f"{name}_key": quote(fold(f"eventlog_{name}_key")) for name in names}
        return {
            **{name: unbound(quoted) for name, quoted in (names | keys).items()},
            "long_text": self._dialect.long_text,
            "table_options": self._dialect.table_options,
            "utc_now": self._dialect.utc_now,
        }


Blaming = DatabaseFailed | Collision  # what a row, or several, may be to blame for


def _as_error(fault: Blaming) -> EventlogError:
    return fault if isinstance(fault, EventlogError) else EventlogError("its keys are one row of the target")
