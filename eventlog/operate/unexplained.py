"""Differences from the kept state that no row of the log explains, although there are triggers.

Replicas, restores and truncates write without triggers. Their changes are logged as rows that are read back,
so that the receiver gets each row as it is, whatever a trigger logs meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sqlalchemy import Connection

from eventlog.compare.events import current_row_step, dump_nothing, in_chunks
from eventlog.compare.ordering import Order, Phase
from eventlog.compare.polling import PolledChange, PolledTable, poll
from eventlog.compare.table_snapshot import snapshot
from eventlog.core.errors import EventlogError
from eventlog.core.identity import hash_of_key, object_of
from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table, Tables
from eventlog.opening.config import Config, statements
from eventlog.opening.post_poll import naming_log
from eventlog.opening.publisher_settings import PublisherSettings, SessionSettings
from eventlog.opening.publisher_tables import read_readable
from eventlog.slot.publication import why_lost
from eventlog.slot.slot_tables import read_slot_tables, recorded_slot
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.sql.log.object_states import LogRow, Mark, ObjectState, StateStep, TableState
from eventlog.sql.log.receiver_state import ReceiverState
from eventlog.sql.log.slot_state import Gap, SlotState
from eventlog.sql.log.store import Store
from eventlog.sql.readable import ReadableTable
from eventlog.sql.tables_read import naming

_MEMORY = 256 << 20
_UNFINISHED = -1  # no notice: a state that is not whole yet explains nothing
_ROWS = {
    Phase.DELETED: (LogRow(4), LogRow(5)),  # a row that is there again by then is read back
    Phase.NEW: (LogRow(5),),
    Phase.CHANGED: (LogRow(6),),
}


class Unexplained(EventlogError):
    """handled rows of this log are deleted, so the differences that they explained cannot be found: \
leave out delete-from-log and every post-poll-stmt that names the log"""


class OthersState(EventlogError):
    """the state of {0} is kept by a publisher with publication-mode compare, which reports its differences"""


class StillLost(EventlogError):
    """changes of {0} are lost as long as this is so: {1}. `eventlog install --mode slot` puts it right, and \
compares the table"""


class _TableRecord(NamedTuple):
    """The record of a table at the moment at which it is compared."""

    state: TableState | None  # at the receiver; None if nothing explains how the table differs from it
    present: Mark  # of the log
    gap: Gap | None  # why a slot did not bring all changes
    explained_keys: frozenset[str] = frozenset()  # objects whose differences are due to rows of the log
    undeleted_keys: frozenset[str] = frozenset()  # objects that are at the receiver by rows of the log
    earlier_keys: frozenset[str] = frozenset()  # objects of rows from before the gap, and of none after it

    @property
    def is_of_publisher(self) -> bool:
        """Return whether a publisher that compares keeps the state, and reports all that differs."""
        return self.state is not None and self.state.mark is None and self.gap is None

    @property
    def is_silent(self) -> bool:
        """Return whether nothing is logged: without a state, what was missed is not known."""
        return self.state is None and self.gap is None


def log_unexplained(store: Store, config: Config, tables: Tables, who: str) -> Iterator[str]:
    """Compare tables with the kept states, log what differs, and keep the present states. Yield a sentence
    about each table.
    """
    demand_comparable(store, config, tables)
    readable = read_readable(store.engine, store.log, tables)
    for table in tables:
        with naming(table), snapshot(store.engine) as moment:
            record = _read_record(store, moment.connection, tables, table)
            moment.add(readable[table])
            differences = _compare(store, moment.connection, readable[table], record)
        _log(store, differences, record, str(table), who)
        if record.is_silent:
            command = Remedy.RESYNC.command(TABLE=tables.name_of(table))
            yield (
                f"{table}: nothing was logged, because no state was kept to compare with; it is from now on,"
                f" and the next --compare logs what was missed since. `{command}` logs all that the table has"
            )
        else:
            yield f"{table}: {quantity(differences.missed_count, 'object')} differed and were logged"


def demand_comparable(store: Store, config: Config, tables: Iterable[Table]) -> None:
    """Raise Unexplained or StillLost if differences of tables from kept states cannot be explained."""
    post_poll_statements = statements(config.build(SessionSettings).post_poll_stmt)
    if any(naming_log(post_poll_statements, store.log)) or config.build(PublisherSettings).delete_from_log:
        raise Unexplained
    _demand_whole(store, config, tables)


class KeptState(NamedTuple):
    """The kept state of a table, as far as it decides what a comparison would log."""

    is_baseline: bool  # `resync --compare` logs what differs from it
    is_of_publisher: bool
    has_object: bool  # the object may be at the receiver by the state, or by rows of the log


def read_kept_state(store: Store, table: Table, key: str) -> KeptState:
    """Return what is kept of a table and of the object with this key."""
    with store.engine.connect() as connection:
        record = _read_state(store, connection, str(table))
        states = ReceiverState(connection, store.queries).states_of(str(table), [key])
    has_object = hash_of_key(key) in states or record.gap is not None
    return KeptState(not (record.is_silent or record.is_of_publisher), record.is_of_publisher, has_object)


def _demand_whole(store: Store, config: Config, tables: Iterable[Table]) -> None:
    """Raise StillLost if a slot fills the log and changes of a table do not come into it."""
    if (facts := recorded_slot(store)) is None:
        return
    lossy_tables = read_slot_tables(config, store, facts.slot).lossy_tables
    with store.admin() as admin:
        state = admin.slot()
        lost = why_lost(facts, state.on_server(facts.slot), state.position())
    for table in map(str, tables):
        if (why := lost or lossy_tables.get(table)) is not None:
            raise StillLost(table, why)


def _read_record(store: Store, connection: Connection, tables: Tables, table: Table) -> _TableRecord:
    """Return what is on record of a table. Raise OthersState if a publisher compares it, and all is well."""
    record = _read_state(store, connection, str(table))
    state, _, gap, *_ = record
    if record.is_of_publisher:
        raise OthersState(str(table))
    if record.is_silent:
        return record
    receiver_state = ReceiverState(connection, store.queries)
    slot = _slot_state(store, connection)

    def named(rows: Iterable[tuple[str, str]]) -> frozenset[str]:
        return _keys_of(tables, table, rows)

    last_id = state.mark.newest if state and state.mark else 0
    after_gap = last_id if gap is None else max(last_id, gap.last_id)
    explained_keys = named(receiver_state.objects_after(after_gap))
    record = record._replace(explained_keys=explained_keys)
    if slot is None or (state and state.mark is None) or not (gap or slot.facts()):
        return record
    earlier_keys = named(receiver_state.objects_after(last_id)) - explained_keys if gap else frozenset[str]()
    return record._replace(undeleted_keys=named(slot.objects_left_after(last_id)), earlier_keys=earlier_keys)


def _read_state(store: Store, connection: Connection, name: str) -> _TableRecord:
    """Return the kept state of a table, the present mark of the log, and the table's gap."""
    receiver_state = ReceiverState(connection, store.queries)
    state, present = receiver_state.checked_states().get(name), receiver_state.mark()
    slot = _slot_state(store, connection)
    gap = slot.gaps().get(name) if slot else None
    if state and state.mark and state.mark.purged != present.purged:
        state = None  # rows that led from it to the table are gone
    return _TableRecord(state, present, gap)


def _slot_state(store: Store, connection: Connection) -> SlotState | None:
    return store.slot_state(connection) if store.log.dialect.sessions.has_slots else None


def _keys_of(tables: Tables, table: Table, rows: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the keys of the table's objects among those that rows of the log name."""
    table_name = tables.name_of(table)
    return frozenset(key for name, key in (object_of(tables, *row) for row in rows) if name == table_name)


class _Differences:
    """The steps to the present state of a table: those that the log explains, and those to be logged."""

    def __init__(self, table: Table, record: _TableRecord) -> None:
        self.explained, self.missed = (Order[StateStep]([table], _MEMORY // 2) for _ in range(2))
        self.missed_count = 0
        self._table = table
        self._record = record

    def add_changes(self, changes: Iterable[PolledChange]) -> frozenset[str]:
        """Add what differs. Return the objects of the log that do not."""
        differing = set[str]()
        for change in changes:
            differing.add(change.key)
            phase = Phase.DELETED if change.texts is None else Phase.CHANGED if change.is_known else Phase.NEW
            step = current_row_step(str(self._table), self._table, change, keep=dump_nothing)
            if self._record.is_silent or change.key in self._record.explained_keys:
                self.explained.add(phase, self._table, change.key, step)
            else:
                self._add_missed(phase, step)
        return (self._record.undeleted_keys | self._record.earlier_keys) - differing

    def add_equal(self, keys: Iterable[str], states: Mapping[str, ObjectState]) -> None:
        """Add the objects that are as the state has them, but not as the receiver has them by the log."""
        for key in keys:
            state = states.get(hashed := hash_of_key(key))
            if state is None and key in self._record.undeleted_keys:
                phase = Phase.DELETED
            elif state is not None and key in self._record.earlier_keys:
                is_deleted = key not in self._record.undeleted_keys  # at the receiver
                phase = Phase.NEW if is_deleted else Phase.CHANGED
            else:
                continue
            digest, existed = (None, False) if state is None else (state.digest, True)
            self._add_missed(phase, StateStep(str(self._table), hashed, key, digest, None, existed=existed))

    def _add_missed(self, phase: Phase, step: StateStep) -> None:
        self.missed_count += 1
        self.missed.add(phase, self._table, step.object_key, step._replace(rows=_ROWS[phase]))


def _compare(
    store: Store, connection: Connection, source: ReadableTable, record: _TableRecord
) -> _Differences:
    """Return how a table differs from what is on record of it."""
    differences = _Differences(source.table, record)
    name, count = ("", 0) if record.state is None else (str(source.table), record.state.objects)
    equal_keys = differences.add_changes(poll(PolledTable(connection, store.queries, name, source, count)))
    states = ReceiverState(connection, store.queries).states_of(name, equal_keys)
    differences.add_equal(equal_keys, states)
    return differences


def _log(store: Store, differences: _Differences, record: _TableRecord, name: str, who: str) -> None:
    """Log what was missed, and keep the present state.

    If the process is killed in between, the mark fits what the state holds by then.
    """
    if record.state is None:
        table_state = TableState(mark=record.present._replace(purged=_UNFINISHED))
        with store.admin() as admin:
            admin.receiver_state().begin_table(name, table_state)
    else:
        table_state = record.state._replace(mark=record.state.mark or record.present)
    table_state = _log_steps(store, differences.explained, name, table_state)
    table_state = _log_steps(store, differences.missed, name, table_state._replace(mark=record.present))
    with store.admin() as admin:
        admin.receiver_state().put_table(name, table_state)
        if (count := differences.missed_count) and not record.is_silent:
            words = "differed and were logged"
            admin.note(Notice(NoticeKind.RESYNC, name, row_count=count, who=who, words=words))
        if record.gap is not None:
            admin.slot().close_gap(name, record.gap, who)


def _log_steps(store: Store, order: Order[StateStep], name: str, table_state: TableState) -> TableState:
    """Log what was missed and keep the present state, in chunks. Return the state of the table."""
    table_states = {name: table_state}
    for chunk in in_chunks(step for *_, step in order):
        with store.admin() as admin:
            admin.receiver_state().log_steps(chunk, table_states)
    return table_states[name]
