"""A database whose tables take changes: groups of transactions in one of its own, with what was applied."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.change import Change
from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.tables import Tables
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed, dialect_at
from eventlog.sql.error_causes import blames_other_transaction
from eventlog.sql.queries import unbound
from eventlog.sql.relation import qualified
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceSchema
from eventlog.transfer.targets.tables.outcomes import OtherApply, RefusedChange, StepsResult, Tally, refuse
from eventlog.transfer.targets.tables.row_steps import DeletedRows, StepWriter
from eventlog.transfer.targets.tables.schema import OWN_TABLES, TargetTables
from eventlog.transfer.targets.tables.table import Block, BlockReading, Step, TableTarget, blocks_of

LOGGER = logging.getLogger(__name__)
# seconds before a group that collided with another transaction is done again
PAUSES = (0.01, 0.1, 0.5, 2.0, 5.0)
_MOST_IN_GROUP = 10**9  # changes: a place is the number of the group and the number in it
_REFUSED, _OVERTAKEN = "refused", "overtaken"  # states of an event that was refused


class EarlierRefusal(NamedTuple):
    """A note about an event that was refused."""

    place: int  # its place among all events of the source
    is_overtaken: bool  # a later event of its object was applied
    in_this_run: bool  # it was tried last in this run


class Group(NamedTuple):
    """A group of whole transactions of the source that become one of the target, and the state after them."""

    changes: Sequence[Change]
    state: str | None
    marks: Sequence[str] = ()  # of each change, noted one by one, if the source has no states
    refusals: Mapping[str, EarlierRefusal] = MappingProxyType(
        {}
    )  # by the marks of changes that are tried again
    starts_round: bool = False  # it is the first group of a round of the source


class _MarkedEvent(NamedTuple):
    """An event with its mark, and its place among all events of the source."""

    mark: str
    change: Change
    place: int


class SourceRecord:
    """The target's own tables: what of a source was applied."""

    begun_changes = 0  # a group is applied as a whole or not at all

    def __init__(self, connection: Connection, dialect: Dialect, source: str) -> None:
        self._connection = connection
        self._dialect = dialect
        self._source = source
        self._home = Catalogue(connection).home()
        self._make_tables()
        self.state, self._rounds = self._read()
        self._first_round = self._rounds  # of this run
        states = {str(row[0]) for row in self._run("applied_refused_states", source=source)}
        self.has_refused = _REFUSED in states  # events that are tried again
        self._has_refusals = bool(states)
        self._connection.commit()

    def marked(self, marks: Sequence[str]) -> set[str]:
        """Return those of some marks under which something was applied."""
        rows = self._run("applied_marked", source=self._source, marks=json.dumps(marks))
        applied = {str(row[0]) for row in rows}
        self._connection.rollback()
        return applied

    def refused(self, marks: Sequence[str]) -> dict[str, EarlierRefusal]:
        """Return what is noted of those of some marks whose events were refused and not applied since."""
        refusals: dict[str, EarlierRefusal] = {}
        if not self._has_refusals:
            return refusals
        for mark, place, tried, state in self._run(
            "applied_refused", source=self._source, marks=json.dumps(marks)
        ):
            is_overtaken = state == _OVERTAKEN or (mark in refusals and refusals[mark].is_overtaken)
            refusals[mark] = EarlierRefusal(int(place), is_overtaken, int(tried) >= self._first_round)
        self._connection.rollback()
        return refusals

    def note_statement(self, statement: str) -> None:
        """Note a statement that changed the target's tables."""
        self._run("applied_ddl", source=self._source, statement=statement)
        self._connection.commit()

    def lock(self) -> None:
        """Begin a transaction; OtherApply where somebody else has applied something of the source."""
        for statement in templates.statements(self._dialect, "apply_session", {}):
            self._connection.execute(text(statement))
        if int(self._run("applied_lock", source=self._source).scalar_one()) != self._rounds:
            raise OtherApply(self._source)

    def save(self, group: Group, refused: Collection[int] = ()) -> None:
        """Note what was applied and which changes, by their ids, were refused, in the same transaction."""
        if group.marks:
            events = list(self._events(group))
            self._run_each(
                "applied_mark", [{"mark": event.mark} for event in events if id(event.change) not in refused]
            )
            if self._has_refusals or refused:
                self._note_refusals(group, events, refused)
        self._run("applied_keep", source=self._source, state=group.state or self.state)

    def note_commit(self, group: Group) -> None:
        """Go on from what was noted, once it is committed."""
        self._rounds += 1
        self.state = group.state or self.state

    def _events(self, group: Group) -> Iterator[_MarkedEvent]:
        """Yield the events of a group; one that is tried again has its first place."""
        for number, (mark, change) in enumerate(zip(group.marks, group.changes, strict=True)):
            refusal = group.refusals.get(mark)
            place = self._rounds * _MOST_IN_GROUP + number if refusal is None else refusal.place
            yield _MarkedEvent(mark, change, place)

    def _note_refusals(self, group: Group, events: Iterable[_MarkedEvent], refused: Collection[int]) -> None:
        """Note which events were refused, and which refused ones a later event of their object overtook."""
        rows: list[dict[str, object]] = []
        last_applied: dict[str, int] = {}
        for mark, change, place in events:
            for digest in _digests(change):
                if id(change) in refused:
                    rows.append({"mark": mark, "object": digest, "place": place, "tried": self._rounds})
                else:
                    last_applied[digest] = max(place, last_applied.get(digest, 0))
        self._run_each("applied_refused_forget", [{"mark": mark} for mark in group.refusals])
        self._run_each("applied_refuse", rows)
        self._has_refusals = self._has_refusals or bool(rows)
        objects = self._run(
            "applied_refused_objects", source=self._source, objects=json.dumps([*last_applied])
        )
        overtaken = [{"object": digest, "place": last_applied[digest]} for (digest,) in objects.all()]
        self._run_each("applied_overtake", overtaken)

    def _make_tables(self) -> None:
        existing_names = {name.lower() for _, name, _ in Catalogue(self._connection).names(self._home)}
        statements = ("applied_make", "applied_marks_make", "applied_refused_make", "applied_ddl_make")
        for name, statement in zip(OWN_TABLES, statements, strict=True):
            if name not in existing_names:
                self._run(statement)
        self._connection.commit()

    def _read(self) -> tuple[str | None, int]:
        row = self._run("applied", source=self._source).first()
        if row is None:
            self._run("applied_begin", source=self._source)
        self._connection.commit()
        position, count = row or (None, 0)
        return position, int(count)

    def _run(self, name: str, **values: object) -> Any:
        return self._connection.execute(self._clause(name), values)

    def _run_each(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            self._connection.execute(self._clause(name), [{"source": self._source, **row} for row in rows])

    def _clause(self, name: str) -> Any:
        return text(templates.statement(self._dialect, name, **self._names()))

    def _names(self) -> dict[str, str]:
        fold, quote = self._dialect.fold, self._dialect.quote
        names = {
            name.removeprefix("eventlog_"): qualified(self._dialect, self._home, fold(name))
            for name in OWN_TABLES
        }
        keys = {
            f"{name}_key": quote(fold(f"eventlog_{name}_key")) for name in (*names, "applied_refused_objects")
        }
        return {
            **{name: unbound(quoted) for name, quoted in (names | keys).items()},
            "long_text": self._dialect.schema.words["type_long"],
            "table_options": self._dialect.schema.table_options,
            "utc_now": self._dialect.values.utc_now,
        }


class Database:
    """The target of `--to-url`."""

    def __init__(
        self,
        engine: Engine,
        source: str,
        tables: Tables,
        settings: ApplySettings,
        refuse: Callable[[Refused], None],
        schema: SourceSchema | None = None,
        flush: Callable[[], None] = lambda: None,
        inform: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        self._refuse = refuse
        self._flush = flush  # brings what was refused safely to where it is kept
        self._dialect = dialect_at(engine)
        self._connection: Connection = engine.connect()
        self.record = SourceRecord(self._connection, self._dialect, source)
        self._targets = TargetTables(
            self._connection,
            self._dialect,
            tables,
            settings,
            schema or SourceSchema(),
            self.record.note_statement,
            inform,
        )
        self._rows = StepWriter(self._connection, self._dialect, settings)
        self._deleted = DeletedRows(DeleteLimit.read(settings.max_deletes), self._count_rows)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def apply(self, group: Group) -> Tally:
        """Make rows of a group, in one transaction with what is then applied; the statements that the tables
        need before run alone. One that met another's transaction is done again.
        """
        blocks = blocks_of(group.changes)
        if group.starts_round:
            self._deleted.start_round()
        self._targets.prepare(blocks)
        self._connection.commit()
        pauses = iter(PAUSES)
        reported = set[int]()
        while True:
            try:
                return self._write(group, blocks, reported)
            except DatabaseFailed as fault:
                pause = next(pauses, None)
                if pause is None or not blames_other_transaction(fault, self._dialect):
                    raise
                self._connection.rollback()
                time.sleep(pause)

    def _write(self, group: Group, blocks: Sequence[Block], reported: set[int]) -> Tally:
        """Make rows of a group in one transaction: new rows by a copy, else step by step.

        Changes whose ids are in `reported` were reported before by a transaction that failed.
        """
        readings, impossible = self._read(blocks)
        self._rows.open(dict.fromkeys(reading.target for reading in readings if reading.is_possible))
        self._connection.commit()
        self.record.lock()
        result = self._rows.copy(readings) if readings else None
        deleted: Mapping[TableTarget, int] = {}
        if result is None:
            steps = _steps_of(readings, len(group.changes))
            deleted = self._deleted.count(steps)
            result = self._rows.write(steps)
        result = impossible.add(result)
        self._report(group, result, reported)
        self.record.save(group, {id(item.change) for item in result.refused})
        self._flush()  # what is passed over is never reported again
        self._connection.commit()
        self.record.note_commit(group)
        self._deleted.add(deleted)
        return result.tally + Tally(refused=len(result.refused))

    def _report(self, group: Group, result: StepsResult, reported: set[int]) -> None:
        """Report each refused change, with its record unless this run has kept that record."""
        marks = dict(zip(map(id, group.changes), group.marks, strict=False))
        for change, fault in result.refused:
            if id(change) not in reported:
                reported.add(id(change))
                refusal = group.refusals.get(marks.get(id(change), ""))
                refused = refuse(change, fault)
                self._refuse(refused._replace(raw=None) if refusal and refusal.in_this_run else refused)

    def _read(self, blocks: Iterable[Block]) -> tuple[list[BlockReading], StepsResult]:
        """Read changes for their tables; the result has those that are impossible or left out."""
        readings: list[BlockReading] = []
        refused: dict[int, RefusedChange] = {}
        ignored = 0
        for block in blocks:
            faults: Mapping[int, EventlogError] = {}
            try:
                target = self._targets.get(block)
            except EventlogError as fault:
                faults = dict.fromkeys(range(len(block.changes)), fault)
            else:
                if target is None:
                    ignored += len(block.changes)
                    continue
                readings.append(BlockReading(target, block))
                faults = readings[-1].faults
            refused |= {
                block.numbers[n]: RefusedChange(block.changes[n], fault) for n, fault in faults.items()
            }
        return readings, StepsResult(Tally(ignored=ignored), [refused[at] for at in sorted(refused)])

    def _count_rows(self, target: TableTarget) -> int:
        statement = templates.statement(self._dialect, "apply_count", table=unbound(target.name))
        return int(self._connection.execute(text(statement)).scalar_one())


def _steps_of(readings: Iterable[BlockReading], count: int) -> list[Step]:
    """Return what so many changes do, in their order."""
    steps: list[Sequence[Step]] = [()] * count
    for reading in readings:
        for at, steps_of_change in zip(reading.block.numbers, reading.steps(), strict=True):
            steps[at] = steps_of_change
    return list(chain.from_iterable(steps))


def _digests(change: Change) -> set[str]:
    """Return digests of the objects of a change, which are the same whatever type its key is read as."""
    names = (
        [change.schema, change.table, *([column, str(value)] for column, value in key)]
        for key in (change.key, change.key_before)
    )
    return {hashlib.sha256(json.dumps(name).encode()).hexdigest()[:32] for name in names}
