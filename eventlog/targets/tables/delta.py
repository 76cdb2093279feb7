"""A folder of Delta tables that take changes: each table's commit carries how far the source was applied.

A group of transactions is one commit in each table that it changes, so a reader of several tables may see
them at different transactions. Where a run ends between two of these commits, the next one does the group
again, and passes over the tables that have it. Events that are noted by name are noted in their table's
commit: the next run has those that lack.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from eventlog.core.change import Change
from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.tables import Table, Tables
from eventlog.qlik.types import Spec
from eventlog.targets.tables import delta_history, delta_marks
from eventlog.targets.tables.delta_marks import Marks
from eventlog.targets.tables.delta_names import folder_of, nameable
from eventlog.targets.tables.delta_rows import Rewriting, existing, merge, predicate_of
from eventlog.targets.tables.delta_types import fields_for, goal_of
from eventlog.targets.tables.errors import ForgottenState, NoKnownKey, NoTable, refuse
from eventlog.targets.tables.reduction import ASKED, Reduced, reduce
from eventlog.targets.tables.settings import ApplySettings, Named
from eventlog.targets.tables.source_schema import SourceSchema
from eventlog.targets.tables.table_store import Group
from eventlog.targets.tables.table_target import Act, Emptied, RowKey, Step, TableTarget
from eventlog.targets.tables.tally import StepsResult, Tally, unmet
from eventlog.targets.tables.type_guesses import guessed_types
from eventlog.targets.tables.validity import SPAN, check_position, sequence_of, time_of

LOGGER = logging.getLogger(__name__)
_MANY = "multiple source rows"  # of errors of merge that it raises wrongly, or for bad keys


class LastCommit(NamedTuple):
    """The facts of a table's last commit by us."""

    rounds: int
    before: str | None
    state: str | None
    parts: int | None = None  # files of marks; None if the source's state is enough


class Delta:
    """The target of `--to-delta`."""

    def __init__(
        self,
        folder: Path,
        source: str,
        tables: Tables,
        settings: ApplySettings,
        refused: Callable[[Refused], None],
        described: SourceSchema | None = None,
        flush: Callable[[], None] = lambda: None,
        inform: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        if not DeleteLimit.read(settings.max_deletes).is_unlimited:
            raise Misuse("max-deletes needs a database: --to-url")
        self._folder = folder
        self._source = source
        self._tables = tables
        self._described = described or SourceSchema()
        self._settings = settings
        self._refused = refused
        self._flush = flush  # brings what was refused safely to where it is kept
        self._inform = inform
        self._goals: dict[Named, TableTarget] = {}
        kept = {path: self._kept(path) for path in self._standing()}
        known = [found for found in kept.values() if found is not None]
        last = max(known, key=lambda found: found.rounds, default=LastCommit(0, None, None))
        self._rounds = last.rounds
        self._done = {
            path for path, found in kept.items() if found is not None and found.rounds == last.rounds
        }
        self.state, self.until = last.before, last.state
        self._marks = Marks()
        self._parts: dict[Path, int] = {}
        self._numbers: dict[int, int] = {}  # of the changes of a group
        if last.parts is not None:  # each table knows its own state, so no group is done again
            self.state, self.until = last.state, None
            self._read_marks(kept)

    def close(self) -> None:
        """Let the list of marks go."""
        self._marks.close()

    def settle(self) -> None:
        """The source knows that all tables have the last group: it is not to be done again."""
        if self.until is not None:
            self.state, self.until = self.until, None

    def marked(self, marks: Sequence[str]) -> set[str]:
        """Return those of some marks under which something was applied."""
        return self._marks.known(marks)

    def apply(self, group: Group) -> Tally:
        """Make rows of a group, in a commit of each of its tables; one that fails keeps no other from it."""
        result = StepsResult(Tally(), [])
        by_table: dict[Path, list[Change]] = {}
        marks: dict[Path, list[str]] = {}
        self._numbers = {id(change): number for number, change in enumerate(group.changes)}
        for number, change in enumerate(group.changes):
            try:
                path = folder_of(self._folder, change)
                if self._settings.history:
                    check_position(change)
            except EventlogError as fault:
                self._refuse([refuse(change, fault)], result)
                continue
            by_table.setdefault(path, []).append(change)
            if group.marks:
                marks.setdefault(path, []).append(group.marks[number])
        again = self.until is not None
        if not again:
            self._rounds += 1
        faults: list[EventlogError] = []
        for path, changes in by_table.items():
            if again and path in self._done:
                result.tally.skipped += len(changes)
                continue
            try:
                with _faults_of(path):
                    self._apply_table(path, changes, group.state, marks.get(path, ()), result)
            except EventlogError as fault:
                faults.append(fault)
        if not faults:
            self.state, self.until = group.state, None
        if faults:
            raise faults[0]
        result.tally.refused = len(result.refused)
        return result.tally

    # --- what a table remembers

    def _standing(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        logs = (*self._folder.glob("*/_delta_log"), *self._folder.glob("*/*/_delta_log"))
        found = (log.parent for log in logs if any(map(Path.is_file, log.parent.rglob("*"))))
        return sorted(found)

    def _kept(self, path: Path) -> LastCommit | None:
        """Return the record of our source in a table; None if it has none."""
        table = DeltaTable(path)
        rounds = table.transaction_version(self._name(path))
        if rounds is None:
            return None
        for entry in table.history():
            if entry.get("eventlog.source") == self._source and "eventlog.rounds" in entry:
                record = json.loads(entry["eventlog.rounds"])
                if record["rounds"] == rounds:
                    return LastCommit(rounds, record["before"], record["state"], record.get("parts"))
        raise ForgottenState(str(path))

    def _name(self, path: Path) -> str:
        return f"eventlog/{self._source}/{path.relative_to(self._folder)}"

    def _read_marks(self, kept: Mapping[Path, LastCommit | None]) -> None:
        """Take in the marks of each table; ForgottenState where files of them are gone."""
        for path, found in kept.items():
            if found is None or found.parts is None:
                continue
            committed = partial(_committed, DeltaTable(path), self._name(path))
            self._parts[path] = self._marks.read(path, self._source, committed)
            if self._parts[path] < found.parts:
                raise ForgottenState(str(path))

    def _commit(self, path: Path, state: str | None, marks: Sequence[str]) -> CommitProperties:
        facts = {"rounds": self._rounds, "before": self.state, "state": state}
        names = [self._name(path)]
        if marks:
            facts["parts"] = self._parts.get(path, 0) + 1
            names.append(f"{names[0]}/{delta_marks.write(path, self._source, marks)}")
        return CommitProperties(
            custom_metadata={"eventlog.source": self._source, "eventlog.rounds": json.dumps(facts)},
            app_transactions=[Transaction(name, self._rounds) for name in names],
        )

    def _note(self, path: Path, commit: CommitProperties, marks: Sequence[str]) -> None:
        """Note a group that changed no row as applied, because merge makes no commit of it."""
        table = DeltaTable(path)
        if table.transaction_version(self._name(path)) != self._rounds:
            nothing = pa.schema(table.schema().to_arrow()).empty_table()
            write_deltalake(table, nothing, mode="append", commit_properties=commit)
        if marks:
            self._marks.add(marks)
            self._parts[path] = self._parts.get(path, 0) + 1

    # --- tables

    def _goal(self, path: Path, changes: Sequence[Change]) -> TableTarget | None:
        """Return the table for changes, made or extended if it lacks something and that is wanted."""
        named = changes[0].schema, changes[0].table
        source = self._tables.of(*named)
        key = tuple(self._settings.key_of(named)) or (source.key if source is not None else ())
        key = key or tuple(self._described.key(named))
        described = self._described.columns(named)
        key = key or next((tuple(name for name, _ in change.key) for change in changes if change.key), ())
        goal = self._goals.get(named)
        if goal is None:
            if not DeltaTable.is_deltatable(str(path)):
                if self._settings.schema_changes != "apply":
                    return None
                if not key:
                    raise NoKnownKey(named[1])
                fields = list(fields_for(changes, source, key, described))
                DeltaTable.create(path, self._schema(fields))
                self._tell_guesses(named[1], fields, source, described)
            goal = goal_of(DeltaTable(path), named, source, key, self._settings)
        lacking = dict.fromkeys(name for change in changes for name in goal.lacks(change) if name not in SPAN)
        if lacking and self._settings.schema_changes == "apply":
            fields = [f for f in fields_for(changes, source, goal.table.key, described) if f.name in lacking]
            DeltaTable(path).alter.add_columns([_delta_field(f) for f in fields])
            self._tell_guesses(named[1], fields, source, described)
            goal = goal_of(DeltaTable(path), named, source, key, self._settings)
        self._goals[named] = goal
        return goal

    def _tell_guesses(
        self, name: str, fields: Iterable[pa.Field], source: Table | None, described: Mapping[str, Spec]
    ) -> None:
        """Report the columns whose types follow their values."""
        known = source.columns if source is not None and source.columns else described
        if guesses := ", ".join(f"{f.name} {f.type}" for f in fields if f.name not in known):
            self._inform(guessed_types(name, guesses))

    def _schema(self, fields: Iterable[pa.Field]) -> pa.Schema:
        """Return the columns of a table that is made."""
        if not self._settings.history:
            return pa.schema(fields)
        return pa.schema([*(f for f in fields if f.name not in SPAN), *delta_history.FIELDS])

    # --- rows

    def _apply_table(
        self,
        path: Path,
        changes: Sequence[Change],
        state: str | None,
        marks: Sequence[str],
        result: StepsResult,
    ) -> None:
        changes, poisonous = nameable(changes)
        self._refuse(poisonous, result)
        try:
            goal = self._goal(path, changes) if changes else None
        except NoKnownKey as fault:
            self._refuse([refuse(change, fault) for change in changes], result)
            return
        if goal is None:
            self._no_table(changes, result)
            return
        steps: list[Step] = []
        refused: list[Refused] = []
        for change in changes:
            try:
                steps += goal.steps(change)
            except EventlogError as fault:
                refused.append(refuse(change, fault))
        self._refuse(refused, result)
        commit = self._commit(path, state, marks)
        if self._settings.history:
            self._keep_versions(path, goal, steps, commit, result)
        elif all(isinstance(step, Act) for step in steps):
            self._merge(path, goal, [step for step in steps if isinstance(step, Act)], commit, result)
        else:
            self._rewrite(path, goal, steps, commit, result)
        self._note(path, commit, marks)

    def _no_table(self, changes: Sequence[Change], result: StepsResult) -> None:
        if self._settings.schema_changes == "ignore":
            result.tally.ignored += len(changes)
        else:
            self._refuse([refuse(change, NoTable(change.table)) for change in changes], result)

    def _merge(
        self,
        path: Path,
        goal: TableTarget,
        acts: Sequence[Act],
        commit: CommitProperties,
        result: StepsResult,
    ) -> None:
        """Merge acts as one row for each key; if merge fails, write the rows anew."""
        table = DeltaTable(path)
        reduced = self._reduced(acts)
        asked = [e.key for e in reduced.effects.values() if e.expected or e.gone == ASKED]
        there = existing(table, goal, asked) if asked else set()
        missing = {e.key for e in reduced.effects.values() if e.expected and e.key not in there}
        if missing:
            reduced = self._reduced(acts, missing)
        effects = list(reduced.effects.values())
        absent = sum(effect.gone == ASKED and effect.key not in there for effect in effects)
        counted = self._counted(acts, [act.change for act in reduced.unmet], reduced.absent + absent)
        self._tell(counted.refused)
        if effects:
            try:
                merge(table, goal, effects, commit)
            except DeltaError as fault:
                if _MANY not in str(fault):
                    raise
                self._rewrite(path, goal, acts, commit, result, counted.refused)
                return
        _add(result, counted)

    def _reduced(self, acts: Sequence[Act], missing: Iterable[RowKey] = ()) -> Reduced:
        return reduce(acts, set(missing), insert=self._settings.missing_rows == "insert")

    def _rewrite(
        self,
        path: Path,
        goal: TableTarget,
        steps: Sequence[Step],
        commit: CommitProperties,
        result: StepsResult,
        known: Sequence[Refused] = (),
    ) -> None:
        """Replace the rows of some steps by their new versions, in one commit.

        Refused changes are reported, except those that are reported already.
        """
        table = DeltaTable(path)
        rewriting = Rewriting(table, goal, steps, insert=self._settings.missing_rows == "insert")
        for step in steps:
            rewriting.take(step)
        counted = self._counted(steps, rewriting.unmet, rewriting.absent)
        again = set(known)
        self._tell([one for one in counted.refused if one not in again])
        whole = any(isinstance(step, Emptied) for step in steps)
        write_deltalake(
            table,
            rewriting.table(),
            mode="overwrite",
            predicate=None if whole else predicate_of(goal, rewriting.first_keys),
            commit_properties=commit,
        )
        _add(result, counted)

    def _keep_versions(
        self,
        path: Path,
        goal: TableTarget,
        steps: Sequence[Step],
        commit: CommitProperties,
        result: StepsResult,
    ) -> None:
        """Put the versions that steps make and end in place of those that their rows have, in one commit."""
        table = DeltaTable(path)
        made = delta_history.Versions(table, goal, steps, insert=self._settings.missing_rows == "insert")
        refused: list[Refused] = []
        taken = made.take(steps, self._place, refused)
        counted = self._counted(taken, made.unmet, made.absent)
        counted.refused.extend(refused)
        self._tell(counted.refused)
        if taken:
            predicate = None if made.whole else predicate_of(goal, made.first_keys)
            write_deltalake(
                table, made.table(), mode="overwrite", predicate=predicate, commit_properties=commit
            )
        _add(result, counted)

    def _place(self, change: Change) -> tuple[str, str | None]:
        return sequence_of(change, self._rounds, self._numbers[id(change)]), time_of(change)

    def _counted(self, steps: Sequence[Step], left_out: Sequence[Change], absent: int) -> StepsResult:
        """Count what steps do, without some changes that are left out."""
        result = StepsResult(Tally(), [])
        result.tally.absent(absent)
        without = set(map(id, left_out))
        for change in {id(step.change): step.change for step in steps}.values():
            if id(change) not in without:
                result.tally.count(change)
        unmet(left_out, self._settings, result)
        return result

    def _refuse(self, refused: Sequence[Refused], result: StepsResult) -> None:
        self._tell(refused)
        result.refused.extend(refused)

    def _tell(self, refused: Sequence[Refused]) -> None:
        """Report changes that are refused, because what a commit has passed over is never reported again."""
        for one in refused:
            self._refused(one)
        self._flush()


def _add(result: StepsResult, more: StepsResult) -> None:
    result.tally.add(more.tally)
    result.refused.extend(more.refused)


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Add the folder to errors of the library and the file system."""
    try:
        yield
    except (DeltaError, OSError) as fault:
        raise EventlogError(f"{path}: {fault}") from fault


def _committed(table: DeltaTable, name: str, part: str) -> bool:
    """Return whether a commit of a table names a file of marks."""
    return table.transaction_version(f"{name}/{part}") is not None


def _delta_field(field: pa.Field) -> Any:
    from deltalake import Schema

    return Schema.from_arrow(pa.schema([field])).fields[0]
