"""Differences from the kept state that no row of the log explains, although there are triggers.

Replicas, restores and truncates write without triggers. Their changes are logged as rows that are read back,
so that the receiver gets each row as it is, whatever a trigger logs meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import partial

from eventlog.compare.events import current_row_step, dump_nothing, in_chunks
from eventlog.compare.ordering import Order, Phase
from eventlog.compare.polling import PolledChange, PolledTable, poll
from eventlog.compare.tables import snapshot
from eventlog.core.errors import EventlogError
from eventlog.core.identity import hash_of_key, object_of
from eventlog.core.plurals import quantity
from eventlog.core.tables import Table, Tables
from eventlog.opening.config import Config, statements
from eventlog.opening.post_poll import naming_log
from eventlog.opening.settings import PublisherSettings, SessionSettings
from eventlog.opening.tables import read_readable
from eventlog.slot.publication import why_lost
from eventlog.slot.tables import read_slot_tables, recorded_slot
from eventlog.sql.log.object_states import LogRow, ObjectState, StateStep, TableState
from eventlog.sql.log.receiver_state import ReceiverState
from eventlog.sql.log.record import Notice, NoticeKind
from eventlog.sql.log.store import Store
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


def log_unexplained(store: Store, config: Config, tables: Tables, who: str) -> Iterator[str]:
    """Compare tables with the kept states, log what differs, and keep the present states. Yield a sentence
    about each table.
    """
    post_poll_statements = statements(config.build(SessionSettings).post_poll_stmt)
    if any(naming_log(post_poll_statements, store.log)) or config.build(PublisherSettings).delete_from_log:
        raise Unexplained
    _demand_whole(store, config, tables)
    readable = read_readable(store.engine, store.log, tables)
    for table in tables:
        name = str(table)
        with naming(table), snapshot(store.engine) as moment:
            connection = moment.connection
            receiver_state = ReceiverState(connection, store.queries)
            table_states, present_mark = receiver_state.checked_states(), receiver_state.mark()
            mark = table_states[name].mark if name in table_states else None
            slot = store.slot_state(connection) if store.log.dialect.sessions.has_slots else None
            gap = slot.gaps().get(name) if slot else None
            is_compared = name in table_states and mark is None  # by a publisher
            if is_compared and gap is None:
                raise OthersState(name)
            is_first = not is_compared and (mark is None or mark.purged != present_mark.purged)
            is_silent = is_first and gap is None
            newest = 0 if is_first or mark is None else mark.newest
            of_log = partial(_named, tables, table)
            after = newest if gap is None else max(newest, gap.last_id)
            explained = set() if is_silent else of_log(receiver_state.objects_after(after))
            undeleted_keys, earlier_keys = set[str](), set[str]()  # objects, by their last row and by any row
            if slot and not (is_silent or is_compared) and (gap is not None or slot.facts()):
                undeleted_keys = of_log(slot.objects_left_after(newest))
            if gap is not None and not is_compared:
                earlier_keys = of_log(receiver_state.objects_after(newest)) - explained
            equal_keys = undeleted_keys | earlier_keys
            logged, missed = (Order[StateStep]([table], _MEMORY // 2) for _ in range(2))
            table_state = TableState() if is_first else table_states[name]
            source = readable[table]
            moment.add(source)
            state_name = "" if is_first else name
            polled = PolledTable(connection, store.queries, state_name, source, table_state.objects)
            polled_changes = poll(polled)
            missed_count = _separate(
                logged, missed, table, polled_changes, explained, equal_keys, is_silent=is_silent
            )
            states = receiver_state.states_of(state_name, equal_keys)
            missed_count += _add_named(missed, table, equal_keys, undeleted_keys, earlier_keys, states)
        before = present_mark._replace(purged=_UNFINISHED) if is_first else mark or present_mark
        table_state = table_state._replace(mark=before)
        if is_first:
            with store.upkeep() as upkeep:
                upkeep.receiver_state().begin_table(name, table_state)
        # if the process is killed in between, the mark fits what the state holds by then
        table_state = _log_steps(store, logged, name, table_state)
        table_state = _log_steps(store, missed, name, table_state._replace(mark=present_mark))
        with store.upkeep() as upkeep:
            upkeep.receiver_state().put_table(name, table_state)
            if missed_count and not is_silent:
                words = "differed and were logged"
                upkeep.note(Notice(NoticeKind.RESYNC, name, row_count=missed_count, who=who, words=words))
            if gap is not None:
                upkeep.slot().close_gap(name, gap, who)
        if is_silent:
            yield f"{table}: its state is kept; the next --compare logs what was missed since"
        else:
            yield f"{table}: {quantity(missed_count, 'object')} differed and were logged"


def _demand_whole(store: Store, config: Config, tables: Iterable[Table]) -> None:
    """Raise StillLost if a slot fills the log and changes of a table do not come into it."""
    if (facts := recorded_slot(store)) is None:
        return
    lossy_tables = read_slot_tables(config, store, facts.slot).lossy_tables
    with store.upkeep() as upkeep:
        state = upkeep.slot()
        lost = why_lost(facts, state.on_server(facts.slot), state.position())
    for table in map(str, tables):
        if (why := lost or lossy_tables.get(table)) is not None:
            raise StillLost(table, why)


def _named(tables: Tables, table: Table, named: Iterable[tuple[str, str]]) -> set[str]:
    """Return the keys of the table's objects among those that rows of the log name."""
    table_name = tables.name_of(table)
    return {key for name, key in (object_of(tables, *row) for row in named) if name == table_name}


def _separate(
    steps: Order[StateStep],
    missed: Order[StateStep],
    table: Table,
    polled_changes: Iterable[PolledChange],
    explained: set[str],
    equal_keys: set[str],
    *,
    is_silent: bool,
) -> int:
    """Divide differences into those that the log explains and those that were missed. Take the objects that
    differ out of those that are equal. Return the number of the missed ones.
    """
    missed_count = 0
    for change in polled_changes:
        equal_keys.discard(change.key)
        phase = Phase.DELETED if change.texts is None else Phase.CHANGED if change.is_known else Phase.NEW
        step = current_row_step(str(table), table, change, keep=dump_nothing)
        if is_silent or change.key in explained:
            steps.add(phase, table, change.key, step)
            continue
        missed_count += 1
        missed.add(phase, table, change.key, step._replace(rows=_ROWS[phase]))
    return missed_count


def _add_named(
    missed: Order[StateStep],
    table: Table,
    equal_keys: Collection[str],
    undeleted_keys: Container[str],
    earlier_keys: Container[str],
    states: Mapping[str, ObjectState],
) -> int:
    """Add the objects that do not differ, and that the log names from before changes were lost. Some are
    neither in the table nor in the state, others are again as the state has them. Return how many there are.
    """
    added = 0
    for key in equal_keys:
        state = states.get(hashed := hash_of_key(key))
        if state is None and key in undeleted_keys:
            phase = Phase.DELETED
        elif state is not None and key in earlier_keys:
            phase = Phase.CHANGED if key in undeleted_keys else Phase.NEW  # it was deleted at the receiver
        else:
            continue
        digest, existed = (None, False) if state is None else (state.digest, True)
        step = StateStep(str(table), hashed, key, digest, None, rows=_ROWS[phase], existed=existed)
        missed.add(phase, table, key, step)
        added += 1
    return added


def _log_steps(store: Store, order: Order[StateStep], name: str, table_state: TableState) -> TableState:
    """Log what was missed and keep the present state, in chunks. Return the state of the table."""
    table_states = {name: table_state}
    for chunk in in_chunks(step for *_, step in order):
        with store.upkeep() as upkeep:
            upkeep.receiver_state().log_steps(chunk, table_states)
    return table_states[name]
