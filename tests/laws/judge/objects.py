"""The judge of one object of a log: the laws, with all that the log has on record next to its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.audit.state import is_spelled_as_read
from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from tests.laws.judge.contents import PublishedThen, is_silent, why_wrong
from tests.laws.judge.event_steps import ValueStep, read_event
from tests.laws.judge.laws import (
    Arrival,
    AuditedRow,
    Breach,
    Present,
    RecordedRows,
    Run,
    breaches,
    replay,
)

FOREVER = 1 << 62
_PRESENT = "present:0"


@dataclass
class Facts:
    """The facts that an audit has next to rows and documents."""

    reasons: Mapping[int, str] | None = None  # why rows failed or were skipped; None if it is not known
    remembered: frozenset[int] = frozenset()  # rows of events on their way, or waiting
    redriven: frozenset[int] = frozenset()  # rows that an operator made new again
    is_purged: bool = False
    holes_are_purged: bool = False  # rows that failed or were skipped were among them
    loopback_is_purged: bool = False  # rows of the driver itself may have been among them
    is_compared: bool = False  # tables were compared, so an object may go and come back without a row
    log_name: str = "eventlog"  # in event-ids
    published: Sequence[PublishedThen] = ()  # what was published and how, oldest first
    is_dated: bool = False  # the log has on record from when on
    now: Tables = field(default_factory=Tables)  # as they are published now
    has_contents: bool = False  # that are judged
    compared: Mapping[str, Table] | None = None  # tables whose present rows are compared
    _silent: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def published_between(self, recorded: RecordedRows | None) -> Sequence[PublishedThen]:
        """Return what was published, at some time between an event was put on record and it was finished.

        Nothing is returned if that is not known.
        """
        if recorded is None or not self.published:
            return self.published[:1] if not self.is_dated else ()
        begun = [moment.since <= recorded.since for moment in self.published]
        if not begun[0]:
            return ()
        first = sum(begun) - 1
        return [
            moment for moment in self.published[first:] if moment.since <= max(recorded.since, recorded.until)
        ]

    def reason(self, record_id: int, letter: str) -> str | None:
        """Return why a row failed or was skipped."""
        if self.reasons is not None:
            return self.reasons.get(record_id)
        return "the reasons are not in these files" if letter in ("E", "F") else None

    def with_record(self, row: AuditedRow, table: str, key: Sequence[str]) -> AuditedRow:
        """Return a row of a table with what the log has on record of it."""
        is_silent = row.is_silent or (row.event_type not in (4, 5, 6) and self._is_silent(row, table, key))
        reason = self.reason(row.record_id, row.letter)
        is_remembered, is_redriven = (row.record_id in ids for ids in (self.remembered, self.redriven))
        if not (is_silent or reason or is_remembered or is_redriven):
            return row
        return row._replace(
            is_silent=is_silent, reason=reason, is_remembered=is_remembered, is_redriven=is_redriven
        )

    def _is_silent(self, row: AuditedRow, table: str, key: Sequence[str]) -> bool:
        """Return whether the value of a row never leaves; one without an event may have had other columns."""
        if row.column is None:
            return False
        at = (row.column, table, key, row.has_no_event)
        if at not in self._silent:
            times = [self.now, *(then.tables for then in self.published if row.has_no_event)]
            self._silent[at] = any(is_silent(row.column, tables.find(table), key) for tables in times)
        return self._silent[at]


class AuditedObject(NamedTuple):
    """An object with all that is known of it."""

    table: str
    table_key: str
    rows: Sequence[AuditedRow]
    deliveries: Sequence[Arrival]
    recorded: Mapping[str, RecordedRows]  # by the names of events
    present: bytes | None  # the present row as a document has it, if states are compared

    @property
    def name(self) -> str:
        """Return its name for people."""
        return f"{self.table} {self.table_key}"


class JudgedObject(NamedTuple):
    """The breaches of an object, and whether it is known what was published at its time."""

    breaches: list[Breach]
    is_known: bool = True


def breaches_of(audited: AuditedObject, facts: Facts) -> JudgedObject:
    """Return the breaches of one object, by all that is known of it."""
    present, deliveries, table = None, audited.deliveries, audited.table
    if facts.has_contents or facts.compared is not None:
        read = [_read(delivery.text or b"") for delivery in deliveries]
        pairs = zip(deliveries, read, strict=True)
        deliveries = [d._replace(steps=steps, class_name=name) for d, (name, steps) in pairs]
    if facts.compared is not None:
        present = present_of(facts.compared.get(table), audited.table_key, audited.present)
    try:
        key = tuple(name for name, _ in tablekey.read(audited.table_key))
    except EventlogError:
        key = ()
    contents = ContentJudge(audited, key, facts) if facts.has_contents else None
    object_breaches = breaches(
        *(audited.name, [facts.with_record(row, table, key) for row in audited.rows], deliveries),
        present=present,
        is_purged=facts.is_purged,
        is_compared=facts.is_compared,
        recorded=audited.recorded,
        redriven_rows=facts.redriven,
        log=facts.log_name,
        why_wrong=None if contents is None else contents.why_wrong,
    )
    return JudgedObject([*object_breaches], contents is None or contents.is_known)


class ContentJudge:
    """A judge of the events of an object, by the columns that were published at their time."""

    def __init__(self, audited: AuditedObject, key: Sequence[str], facts: Facts) -> None:
        self._audited = audited
        self._key = key
        self._facts = facts
        self._last_delete = max((row.record_id for row in audited.rows if row.event_type == 4), default=0)
        self.is_known = True

    def why_wrong(self, run: Run, rows: Sequence[AuditedRow]) -> str:
        """Return what is wrong with an event, empty if nothing is, or if it is not known."""
        record = self._audited.recorded.get(run.name)
        published = self._facts.published_between(record)
        if not published:
            self.is_known = False
            return ""
        parts = {run.part_of(delivery): delivery for delivery in run.deliveries}
        is_read = any(row.event_type > 4 for row in rows)
        is_open = any(row.letter not in ("S", "W") or row.reason or row.is_redriven for row in rows)
        may_be_gone = self._last_delete > run.last or self._facts.is_compared or self._facts.is_purged
        if len(parts) == 1 and 1 in parts and not (record.has_more_parts if record else is_open):
            choices = [[delivery] for delivery in {d.content: d for d in run.deliveries}.values()]
            is_whole = True
        else:
            choices, is_whole = [[parts[number] for number in sorted(parts)]], not (is_read or is_open)
        for choice in choices:
            words = ""
            for moment in published:
                words = self._fault(choice, rows, moment, is_whole=is_whole, may_be_gone=may_be_gone)
                if not words:
                    break
            if words:
                return f"{choice[0].where}: {choice[0].event_id}: {words}"
        return ""

    def _fault(
        self,
        parts: Sequence[Arrival],
        rows: Sequence[AuditedRow],
        published: PublishedThen,
        *,
        is_whole: bool,
        may_be_gone: bool,
    ) -> str:
        """Return what is wrong with the parts of an event, if this was published."""
        table = published.tables.find(self._audited.table)
        name = self._audited.table.rpartition(".")[2] if table is None else table.name
        class_name = parts[0].class_name
        if class_name.lower() != name.lower():
            return f"its class is {class_name!r}, and its table {name}"
        steps = [step for part in parts for step in part.steps]
        operations = [part.operation for part in parts[1:]]
        if any(operation != "modify" for operation in operations):
            return f"a later part of it is {operations[0]}"
        facts = {"is_whole": is_whole, "may_be_gone": may_be_gone}
        return why_wrong(rows, parts[0].operation, steps, table, published, key=self._key, **facts)


def present_of(table: Table | None, table_key: str, text: bytes | None) -> Present | None:
    """Return what the table has of an object; None if that is not sure.

    No document can carry it, or the key is spelled in another way than the row's.
    """
    if text == b"":
        return None
    if text is not None:
        replayed = replay([Arrival(0, "", _PRESENT, "add", None, steps=_read(text)[1])])
        attributes = frozenset(column.name for column in table.data) if table else frozenset()
        is_all_key = table is not None and not table.beside_key
        return None if replayed is None else Present(replayed[0], attributes, is_all_key)
    return Present(None) if table is not None and is_spelled_as_read(table, table_key) else None


def _read(event: bytes) -> tuple[str, list[ValueStep]]:
    """Return the class of an event, and what it does to the attributes of its object."""
    class_name, _, steps = read_event(event)
    return class_name, [ValueStep(*step) for step in steps]
