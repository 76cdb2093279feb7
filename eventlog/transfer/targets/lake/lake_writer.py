"""A lake whose tables take changes: a group of whole transactions is a round, exactly once in each table."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.transfer.targets.lake.lake_history import HistoryEffect
from eventlog.transfer.targets.lake.lake_merge import TableEffect
from eventlog.transfer.targets.lake.lake_place import AnotherCommit, LakeCommit, LakePlace
from eventlog.transfer.targets.lake.lake_settings import LakeSettings
from eventlog.transfer.targets.lake.lake_tables import LakeTable, LakeTables
from eventlog.transfer.targets.lake.rounds import NoEnd, Round, Rounds, digest_of
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceSchema, SourceTable
from eventlog.transfer.targets.tables.database import PAUSES, EarlierRefusal, Group
from eventlog.transfer.targets.tables.definitions import SourceColumns
from eventlog.transfer.targets.tables.outcomes import (
    NoKnownKey,
    NoTable,
    NotMade,
    OtherApply,
    OwnTable,
    RefusedChange,
    Tally,
    TwoSchemas,
    refuse,
    unmet,
)
from eventlog.transfer.targets.tables.row_steps import DeletedRows
from eventlog.transfer.targets.tables.table import Block, BlockReading, Step, TableTarget, blocks_of


class _TablePlan(NamedTuple):
    """A plan of what a round does to one table, in one version of it."""

    changes: int
    table: LakeTable | None = None  # None: there is none, and its changes are refused or left out
    version: int | None = None  # that the round made of it before
    history: LakeTable | None = None  # if both are kept
    steps: Mapping[int, Sequence[Step]] = {}  # by the place of the change in the round
    effect: TableEffect | HistoryEffect | None = None
    tally: Tally = Tally()
    refused: Sequence[RefusedChange] = ()


class Lake:
    """The target of `--to-lake`."""

    has_refused = False  # what was refused is not tried again

    def __init__(
        self,
        place: LakePlace,
        source: str,
        tables: Tables,
        settings: ApplySettings,
        lake_settings: LakeSettings,
        schema: SourceSchema,
        refuse: Callable[[Refused], None],
        flush: Callable[[], None],
        inform: Callable[[str], None],
    ) -> None:
        self._source = source
        self._settings = settings
        self._refuse = refuse
        self._flush = flush  # brings what was refused safely to where it is kept
        self._run = uuid.uuid4().hex
        self._rounds = Rounds(place, source, self._run)
        self._keep = lake_settings.keep
        columns = SourceColumns(tables, schema, settings)
        self._tables = LakeTables(place, columns, tables, settings, lake_settings, inform)
        self._deleted = DeletedRows(DeleteLimit.read(settings.max_deletes), self._count_rows)
        self._opened: dict[str, LakeTable] = {}  # by name, as they were read last
        last = self._rounds.last
        self._begun = last if last is not None and not last.is_done else None
        self.state = None if last is None else last.start if self._begun else last.end

    @property
    def record(self) -> Lake:
        """Return what was applied."""
        return self

    @property
    def begun_changes(self) -> int:
        """Return how many changes a round has that was begun and not ended; 0 without one."""
        return self._begun.changes if self._begun else 0

    def marked(self, marks: Sequence[str]) -> set[str]:
        """Return no marks, because a lake keeps none."""
        return set()

    def refused(self, marks: Sequence[str]) -> dict[str, EarlierRefusal]:
        """Return none, because no event has a mark."""
        return {}

    def apply(self, group: Group) -> Tally:
        """Make a group a round of the lake; a group without changes makes none."""
        if group.starts_round:
            self._deleted.start_round()
        if not group.changes and self._begun is None:
            return Tally()
        this, is_begun = self._round_of(group)
        if not group.changes:
            return Tally()
        blocks = _by_table(blocks_of(group.changes))
        plans = {table: self._planned(table, of_table, this) for table, of_table in blocks.items()}
        if not is_begun:
            this = this._replace(tables=self._free(chain.from_iterable(plans.values())))
        deleted = self._deleted.count(
            step
            for *_, plan in plans.values()
            for steps in plan.steps.values()
            for step in steps
            if not isinstance(plan.effect, HistoryEffect)
        )
        if not is_begun:
            self._rounds.begin(this)
        self._begun = this
        tally = self._write(blocks, plans, this)
        self._deleted.add(deleted)
        return tally

    def _round_of(self, group: Group) -> tuple[Round, bool]:
        """Return the round of a group, and whether an earlier run began it.

        Raise NoEnd if the group is not what that run began, and a table has the round already.
        """
        changes, digest, begun = len(group.changes), digest_of(group.changes), self._begun
        if begun is not None and (begun.changes, begun.digest) == (changes, digest):
            return begun, True
        number = 1 if self._rounds.last is None else self._rounds.last.number + (begun is None)
        if begun is not None and (having := self._having(begun)):
            raise NoEnd(number, self._source, begun.changes, ", ".join(having), number - 1)
        return Round(number, self.state, group.state, changes, digest, ()), False

    def _having(self, begun: Round) -> list[str]:
        """Return the tables that have a round."""
        opened = ((name, self._tables.open(name)) for name in begun.tables)
        return [
            name
            for name, snapshot in opened
            if snapshot is not None and snapshot.number(self._rounds.application) >= begun.number
        ]

    def _free(self, plans: Iterable[_TablePlan]) -> tuple[str, ...]:
        """Return the tables of a new round; raise OtherApply if one of them has it."""
        concerned = [plan for plan in plans if plan.table is not None]
        if any(plan.version is not None for plan in concerned):
            raise OtherApply(self._source)
        return tuple(plan.table.target.name for plan in concerned if plan.table is not None)

    def _write(
        self,
        blocks: Mapping[SourceTable, Sequence[Block]],
        plans: Mapping[SourceTable, Sequence[_TablePlan]],
        this: Round,
    ) -> Tally:
        """Commit each table of a round, and the end of the round."""
        tally, versions, reported = Tally(), dict[str, int](), set[int]()
        for source_table, first_plans in plans.items():
            for at in range(-len(first_plans), 0):
                of_table = blocks[source_table]
                plan, version = self._committed(source_table, of_table, first_plans, at, this, reported)
                tally += plan.tally
                if plan.table is not None:
                    versions[plan.table.target.name] = version
        self._rounds.end(this, self._kept_versions(versions) | versions)
        self._begun, self.state = None, this.end
        return tally

    def _kept_versions(self, changed: Container[str]) -> dict[str, int]:
        """Return newer versions of tables without changes, because those before a tidying may be gone.

        Look at these tables in the first round of a run, and now and then.
        """
        if not self._rounds.is_time_to_look:
            return {}
        unchanged = {name: version for name, version in self._rounds.versions.items() if name not in changed}
        opened = ((name, version, self._tables.open(name)) for name, version in unchanged.items())
        return {name: of.kept_since(version) for name, version, of in opened if of is not None}

    def _committed(
        self,
        source_table: SourceTable,
        blocks: Sequence[Block],
        plans: Sequence[_TablePlan],
        at: int,
        this: Round,
        reported: set[int],
    ) -> tuple[_TablePlan, int]:
        """Commit one of the plans, and return that which was carried out, and the version."""
        plan, pauses = plans[at], iter(PAUSES)
        facts = {"eventlog.changes": str(this.changes), "eventlog.digest": this.digest}
        commit = LakeCommit(self._rounds.application, this.number, this.end or "", self._run, facts)
        while True:
            self._report(plan.refused, reported)
            if plan.table is None or plan.version is not None:
                return plan, plan.version or 0
            if plan.effect is None or plan.effect.is_nothing:
                return plan, plan.table.snapshot.version
            try:
                return plan, plan.effect.commit(commit)
            except AnotherCommit:
                pause = next(pauses, None)
                if pause is None:
                    raise
                time.sleep(pause)
            replanned = self._planned(source_table, blocks, this)[at]
            if replanned.version is not None:
                return plan, self._own_version(replanned, this)
            plan = replanned

    def _own_version(self, plan: _TablePlan, this: Round) -> int:
        """Return the version of a commit whose reply was lost; OtherApply if it is not ours."""
        assert plan.table is not None
        assert plan.version is not None
        if plan.table.snapshot.run_of(self._rounds.application, this.number) != self._run:
            raise OtherApply(self._source)
        return plan.version

    def _planned(
        self, source_table: SourceTable, blocks: Sequence[Block], this: Round
    ) -> Sequence[_TablePlan]:
        """Return what a round does to a table, in its newest version; before it, what to its history.

        Which changes find no row is read from the table, and its own commit changes that.
        """
        plan = self._plan(source_table, blocks, this)
        return [self._history_plan(plan, this), plan] if self._keep == "both" else [plan]

    def _history_plan(self, plan: _TablePlan, this: Round) -> _TablePlan:
        """Return what a round does to the history of a table; nothing if the table has the round already."""
        history, version, effect = plan.history, None, None
        if history is not None:
            version = self._version_in(history, this)
        if history is not None and plan.effect is not None:
            effect = HistoryEffect(history, plan.steps, plan.effect.unmet)
        return _TablePlan(0, history, version, effect=effect, refused=plan.refused)

    def _version_in(self, table: LakeTable, this: Round) -> int | None:
        """Return the version that a round has made of a table; None if the table lacks the round."""
        application = self._rounds.application
        if table.snapshot.number(application) < this.number:
            return None
        return table.snapshot.kept_since(table.snapshot.version_of(application, this.number))

    def _plan(self, source_table: SourceTable, blocks: Sequence[Block], this: Round) -> _TablePlan:
        changes = sum(len(block.changes) for block in blocks)
        try:
            table, faults = self._tables.prepared(source_table, blocks)
            history = self._tables.history_of(table) if table and self._keep == "both" else None
        except (NoKnownKey, NoTable, NotMade, OwnTable, TwoSchemas) as fault:
            return _refusing(blocks, dict.fromkeys(range(len(blocks)), fault))
        if table is None:
            left_out = _refusing(blocks, faults)
            ignored = changes - len(left_out.refused)
            return left_out._replace(tally=left_out.tally + Tally(ignored=ignored))
        self._opened[table.target.name] = table
        if (version := self._version_in(table, this)) is not None:
            return _TablePlan(changes, table, version, history, tally=Tally(skipped=changes))
        return self._read(table, blocks, faults)._replace(history=history)

    def _read(
        self, table: LakeTable, blocks: Sequence[Block], faults: Mapping[int, EventlogError]
    ) -> _TablePlan:
        plan = _refusing(blocks, faults)
        possible = [block for number, block in enumerate(blocks) if number not in faults]
        readings = [BlockReading(table.target, block) for block in possible]
        refused = {
            reading.block.numbers[n]: RefusedChange(reading.block.changes[n], fault)
            for reading in readings
            for n, fault in reading.faults.items()
        }
        steps = _steps_of(readings)
        effect = self._effect(table, steps)
        left_out = unmet(effect.unmet, self._settings)
        not_done = {id(item.change) for item in refused.values()} | set(map(id, effect.unmet))
        changes = chain.from_iterable(block.changes for block in possible)
        tally = Tally.of(change.op for change in changes if id(change) not in not_done)
        tally += Tally(deleted=-effect.absent, missing=effect.absent) + left_out.tally
        all_refused = [*plan.refused, *(refused[at] for at in sorted(refused)), *left_out.refused]
        tally += Tally(refused=len(all_refused))
        return _TablePlan(plan.changes, table, None, None, steps, effect, tally, all_refused)

    def _effect(self, table: LakeTable, steps: Mapping[int, Sequence[Step]]) -> TableEffect | HistoryEffect:
        if self._keep == "history":
            return HistoryEffect(table, steps)
        all_steps = list(chain.from_iterable(steps.values()))
        return TableEffect(table, all_steps, insert=self._settings.missing_rows == "insert")

    def _report(self, refused: Iterable[RefusedChange], reported: set[int]) -> None:
        """Report each refused change once, before the commit that passes it over."""
        for change, fault in refused:
            if id(change) not in reported:
                reported.add(id(change))
                self._refuse(refuse(change, fault))
        self._flush()

    def _count_rows(self, target: TableTarget) -> int:
        return self._opened[target.name].snapshot.count_rows()


def _by_table(blocks: Iterable[Block]) -> dict[SourceTable, list[Block]]:
    """Return the blocks of each table."""
    by_table: dict[SourceTable, list[Block]] = {}
    for block in blocks:
        by_table.setdefault((block.changes[0].schema, block.changes[0].table), []).append(block)
    return by_table


def _refusing(blocks: Sequence[Block], faults: Mapping[int, EventlogError]) -> _TablePlan:
    """Return the plan for blocks whose changes are impossible."""
    refused = [RefusedChange(change, fault) for at, fault in faults.items() for change in blocks[at].changes]
    count = sum(len(block.changes) for block in blocks)
    return _TablePlan(count, tally=Tally(refused=len(refused)), refused=refused)


def _steps_of(readings: Iterable[BlockReading]) -> dict[int, Sequence[Step]]:
    """Return what each change of a table does, in their order."""
    steps: dict[int, Sequence[Step]] = {}
    for reading in readings:
        steps.update(zip(reading.block.numbers, reading.steps(), strict=True))
    return dict(sorted(steps.items()))
