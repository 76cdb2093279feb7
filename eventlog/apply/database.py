"""A database whose tables take changes: groups of transactions in one of its own, with what was applied."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.apply.catalogue import OWN, Goals
from eventlog.apply.errors import NoRow, OtherApply
from eventlog.apply.goal import Act, Deed, Emptied, Goal, Moved, RowKey, Step
from eventlog.apply.reduction import Effect, Reduced, by_goal, reduce
from eventlog.apply.settings import ApplySettings
from eventlog.apply.staging import Collision, Stage
from eventlog.apply.tally import Tally
from eventlog.apply.target import Group
from eventlog.core.change import ABSENT, Change, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.neutral import refuse
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import DatabaseFailed, dialect_at
from eventlog.sql.queries import unbound
from eventlog.sql.relation import qualified
from eventlog.sql.statements import templates


class Told(NamedTuple):
    """What a batch came to, before it counts: a batch that fails is cut, and told anew."""

    tally: Tally
    refused: list[Refused]


class Database:
    """The target of `--to-url`."""

    def __init__(
        self,
        engine: Engine,
        source: str,
        tables: Tables,
        settings: ApplySettings,
        refused: Callable[[Refused], None],
    ) -> None:
        self._source = source
        self._settings = settings
        self._refused = refused
        self._dialect = dialect_at(engine)
        self._connection: Connection = engine.connect()
        self._home = Catalogue(self._connection).home()
        self._prepare_own()
        self._goals = Goals(self._connection, self._dialect, tables, settings.schema_changes)
        self._stages: dict[Goal, Stage] = {}
        self.state, self._rounds = self._begin()

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def marked(self, marks: Sequence[str]) -> set[str]:
        """Those of some marks under which something was applied."""
        found = self._run("applied_marked", source=self._source, marks=json.dumps(marks))
        applied = {str(row[0]) for row in found}
        self._connection.rollback()
        return applied

    def apply(self, group: Group) -> Tally:
        """Make rows of a group, in one transaction with what is then applied; the statements that the tables
        need before run alone."""
        self._prepare(group.changes)
        told = Told(Tally(), [])
        steps = [step for part in (self._emptying(group), self._steps(group.changes, told)) for step in part]
        self._open_stages(steps)
        self._lock()
        for stage in self._stages.values():
            stage.begin()
        self._settle(steps, told)
        self._keep(group)
        self._connection.commit()
        self.state = group.state if group.state is not None else self.state
        for refused in told.refused:
            self._refused(refused)
        told.tally.refused = len(told.refused)
        return told.tally

    # --- what the target remembers

    def _prepare_own(self) -> None:
        """Make our tables, where they are not there yet."""
        standing = {name.lower() for _, name, _ in Catalogue(self._connection).names(self._home)}
        for name, statement in zip(
            OWN, ("applied_make", "applied_marks_make", "applied_ddl_make"), strict=True
        ):
            if name not in standing:
                self._run(statement)
        self._connection.commit()

    def _begin(self) -> tuple[str | None, int]:
        found = self._run("applied", source=self._source).first()
        if found is None:
            self._run("applied_begin", source=self._source)
            found = (None, 0)
        self._connection.commit()
        return found[0], int(found[1])

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
        self._rounds += 1

    # --- tables

    def _prepare(self, changes: Sequence[Change]) -> None:
        """Make what the tables of changes lack; each statement is noted when it is done."""
        for statement in self._goals.prepare(changes):
            self._run("applied_ddl", source=self._source, statement=statement)
            self._connection.commit()
        self._connection.commit()

    def _open_stages(self, steps: Iterable[Step]) -> None:
        for goal in {step.goal: None for step in steps}:
            if goal not in self._stages:
                self._stages[goal] = Stage(self._connection, self._dialect, goal, len(self._stages))
        self._connection.commit()

    def _emptying(self, group: Group) -> Iterable[Step]:
        for schema, table in group.emptied:
            change = Change(Op.TRUNCATE, schema, table)
            if (goal := self._goals.get(change)) is not None:
                yield Emptied(goal, change)

    def _steps(self, changes: Iterable[Change], told: Told) -> Iterable[Step]:
        """What changes do; those that cannot be done are refused, each for itself."""
        for change in changes:
            try:
                goal = self._goals.get(change)
                if goal is None:
                    told.tally.ignored += 1
                else:
                    yield from goal.steps(change)
            except EventlogError as fault:
                told.refused.append(refuse(change, fault))

    # --- rows

    def _settle(self, steps: Sequence[Step], told: Told) -> None:
        """Do the steps. Where the database refuses some, halve them until the change is found that is to
        blame, and refuse that one; what stands before it is done by then."""
        if not steps:
            return
        point = self._connection.begin_nested()
        try:
            done = self._do(steps)
            for statement in templates.statements(self._dialect, "apply_check", {}):
                self._connection.execute(text(statement))
        except (DatabaseFailed, Collision) as fault:
            point.rollback()
            if isinstance(fault, DatabaseFailed) and not self._blames_row(fault):
                raise
            self._halve(steps, fault, told)
            return
        point.commit()
        told.tally.add(done.tally)
        told.refused.extend(done.refused)

    def _halve(self, steps: Sequence[Step], fault: DatabaseFailed | Collision, told: Told) -> None:
        middle = len(steps) // 2
        while middle and steps[middle].change is steps[middle - 1].change:
            middle -= 1
        if middle:
            self._settle(steps[:middle], told)
            self._settle(steps[middle:], told)
        elif len(steps) > 1:
            self._one_by_one(steps, told)
        else:
            told.refused.append(refuse(steps[0].change, _as_error(fault)))

    def _one_by_one(self, steps: Sequence[Step], told: Told) -> None:
        """The steps of the first change, and then the others: all of its steps are done, or none."""
        own = [step for step in steps if step.change is steps[0].change]
        tally, refused = Tally(), list[Refused]()
        point = self._connection.begin_nested()
        try:
            for step in own:
                done = self._do([step])
                tally.add(done.tally)
                refused += done.refused
        except DatabaseFailed as fault:
            point.rollback()
            if not self._blames_row(fault):
                raise
            told.refused.append(refuse(own[0].change, fault))
        else:
            point.commit()
            told.tally.add(tally)
            told.refused.extend(refused)
        self._settle(steps[len(own) :], told)

    def _blames_row(self, fault: DatabaseFailed) -> bool:
        """Whether a row is to blame for what the database said, and not the database or its settings."""
        driver: Any = self._connection.dialect.loaded_dbapi
        cause = fault.__cause__
        if isinstance(cause, driver.DataError | driver.IntegrityError):
            return True
        told = cause.args[0] if cause is not None and cause.args else None
        numbers = {getattr(cause, "sqlstate", None), getattr(told, "code", None), str(told)}
        return not self._dialect.refusals.isdisjoint(map(str, numbers))

    def _do(self, steps: Sequence[Step]) -> Told:
        """The steps in their order, as many together as can be."""
        told = Told(Tally(), [])
        batch: list[Act] = []
        for step in steps:
            if isinstance(step, Act):
                batch.append(step)
                continue
            self._do_batch(batch, told)
            batch = []
            if isinstance(step, Emptied):
                self._run("apply_empty", {"table": step.goal.name})
                told.tally.count(step.change)
            else:
                self._move(step, told)
        self._do_batch(batch, told)
        return told

    def _do_batch(self, acts: Sequence[Act], told: Told) -> None:
        """Acts on rows: in each table first the deletes, then what is written."""
        filled: list[tuple[Stage, list[Effect]]] = []
        for goal, own in by_goal(acts).items():
            stage = self._stages[goal]
            reduced = self._reduced(own)
            effects = list(reduced.effects.values())
            if len(effects) != len(own) or not _all_new(own) or not stage.copy_fresh(effects):
                reduced, effects = self._stage(stage, own, reduced)
                filled.append((stage, effects))
                told.tally.absent(reduced.absent + stage.delete(effects))
            self._count(own, reduced, told)
        for stage, effects in filled:
            stage.write(effects)

    def _stage(self, stage: Stage, acts: Sequence[Act], reduced: Reduced) -> tuple[Reduced, list[Effect]]:
        """Stage the effects; once more, without the changes that need a row which is not there."""
        effects = list(reduced.effects.values())
        stage.fill(effects)
        if any(effect.expected for effect in effects) and (missing := stage.missing()):
            reduced = self._reduced(acts, {effects[number].key for number in missing})
            effects = list(reduced.effects.values())
            if effects:
                stage.fill(effects)
        return reduced, effects

    def _reduced(self, acts: Sequence[Act], missing: Iterable[RowKey] = ()) -> Reduced:
        return reduce(acts, set(missing), insert=self._settings.missing_rows == "insert")

    def _count(self, acts: Sequence[Act], reduced: Reduced, told: Told) -> None:
        """Count the changes of acts; one that moves a complete row is counted where it is inserted."""
        unmet = {id(act) for act in reduced.unmet}
        last = None
        for act in acts:
            if id(act) not in unmet and act.change is not last:
                told.tally.count(act.change)
            last = act.change
        self._unmet([act.change for act in reduced.unmet], told)

    def _unmet(self, changes: Sequence[Change], told: Told) -> None:
        if self._settings.missing_rows == "ignore":
            told.tally.ignored += len(changes)
        else:
            told.refused.extend(refuse(change, NoRow()) for change in changes)

    def _move(self, step: Moved, told: Told) -> None:
        """Give a row another key: what stands under that one makes way."""
        goal = step.goal
        supplied = {place: cell for place, cell in enumerate(step.cells) if cell is not ABSENT}
        old = {f"k{place}": cell for place, cell in zip(goal.key, step.old, strict=True)}
        new = {f"c{place}": cell for place, cell in supplied.items()}
        at_new = {f"k{place}": cell for place, cell in zip(goal.key, step.key, strict=True)}
        found = " and ".join(f"{self._name(goal, place)} = :k{place}" for place in goal.key)
        settings = ", ".join(f"{self._name(goal, place)} = :c{place}" for place in supplied)
        holes = {"table": unbound(goal.name), "found": found, "settings": settings}
        if self._run("apply_exists", holes, **old).first() is None:
            self._unmoved(step, told)
            return
        self._run("apply_forget", holes, **at_new)
        self._run("apply_move", holes, **old, **new)
        told.tally.count(step.change)

    def _unmoved(self, step: Moved, told: Told) -> None:
        """What becomes of a change of a key whose row is not there."""
        if self._settings.missing_rows == "insert":
            self._do_batch([Act(Deed.WRITE, step.goal, step.key, step.cells, step.change)], told)
        else:
            self._unmet([step.change], told)

    def _name(self, goal: Goal, place: int) -> str:
        return unbound(self._dialect.quote(goal.columns[place]))

    # --- statements

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: object) -> Any:
        return self._connection.execute(self._clause(name, holes), values)

    def _clause(self, name: str, holes: dict[str, str] | None = None) -> Any:
        return text(templates.statement(self._dialect, name, **self._names(), **(holes or {})))

    def _names(self) -> dict[str, str]:
        """What fills the holes of statements on our own tables."""
        fold, quote = self._dialect.fold, self._dialect.quote
        names = {
            name.removeprefix("eventlog_"): qualified(self._dialect, self._home, fold(name)) for name in OWN
        }
        keys = {f"{name}_key": quote(fold(f"eventlog_{name}_key")) for name in names}
        return {
            **{name: unbound(quoted) for name, quoted in (names | keys).items()},
            "long_text": self._dialect.long_text,
            "table_options": self._dialect.table_options,
            "utc_now": self._dialect.utc_now,
        }


def _all_new(acts: Sequence[Act]) -> bool:
    """Whether every act is of a row that comes into being."""
    return all(act.change.op in (Op.INSERT, Op.SNAPSHOT) for act in acts)


def _as_error(fault: DatabaseFailed | Collision) -> EventlogError:
    return fault if isinstance(fault, EventlogError) else EventlogError("its keys are one row of the target")
