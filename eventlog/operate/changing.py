"""Change what fills the log: to a replication slot, and from it; no event is lost or doubled.

To a slot: publication, slot; then one transaction locks the tables, drops the triggers and notes the position
that the server's log has by then. What was committed before is in the log already. Back: one transaction
makes the triggers under locks and notes the position; what is before it is read from the slot, which is
dropped then. To a comparison: once everything is out, the present rows are kept as what the receiver has.
Then the slot is read to its end again. If it names a row, the command must be given again. Changes that a
slot did not have are logged first, because a comparison takes the present rows for what the receiver has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import TypeVar

from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.operate.unexplained import OthersState, Unexplained, log_unexplained
from eventlog.publisher.comparison import Comparison
from eventlog.slot.filler import SlotFiller
from eventlog.slot.publication import (
    MAKE_AGAIN,
    LockMode,
    Published,
    demand_decoding,
    drop_publication,
    lock_tables,
    make_publication,
    publication_statements,
    slot_statement,
    why_lost,
)
from eventlog.slot.slot_tables import (
    SlotTables,
    choose_tables,
    demand_slots,
    publication_faults,
    record_returned,
    recorded_slot,
)
from eventlog.sql.capture import track
from eventlog.sql.capture.refusals import CannotTrack, NotAllowed
from eventlog.sql.capture.track_record import read_record
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.error_causes import blames_other_transaction
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.object_states import TableState, kept_by_publisher
from eventlog.sql.log.receiver_state import ReceiverState
from eventlog.sql.log.slot_state import Loss, LossKind, ServerSlot, SlotFacts, SlotState
from eventlog.sql.log.store import Store
from eventlog.sql.relation import Choice, place_of

Result = TypeVar("Result")
_AS_IT_IS = {"publication_mode": "compare", "startup_option": "future"}
_MOMENT = 0.1  # seconds between two looks
_NOT_OURS = (
    "slot {0} belongs to {1}, so this log's slot is {2}; if nothing reads it any more, drop it there:"
    " select pg_drop_replication_slot('{0}')"
)
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # seconds before a transaction is done again
_PATIENCE = 600.0  # seconds until what is before the change is in the log


class StillPublishing(EventlogError):
    """a publisher runs ({0}): stop it, and give the command again"""


class StillOnTheWay(EventlogError):
    """{0} pending: publish them with `eventlog run --once --mode {1}`, and give the command again"""


class ChangesLost(EventlogError):
    """changes of {0} may be lost: {1}. `eventlog install --mode slot` logs them; then repeat the command"""


class StillInUse(EventlogError):
    """other transactions use the tables all the time: {0}. Give the command again when they have ended"""


class NotTracked(EventlogError):
    """{0}. Nothing is changed: the slot fills the log as before"""


class NotDrained(EventlogError):
    """the slot could not be read to its end: {0}; give the command again"""


def fill_by_slot(config: Config, store: Store, who: str) -> Iterator[str]:
    """Let a slot fill the log from now on. Yield a line about each step."""
    demand_slots(store.log.dialect)
    with store.admin() as admin:
        state = admin.slot()
        (slot, owners), facts = state.choose_name(), state.facts()
        now, position = state.on_server(slot), state.position()
        lost = None if facts is None else why_lost(facts, state.on_server(facts.slot), position)
    demand_decoding(now)
    chosen = choose_tables(config, store, slot)
    with _settled(store, chosen):
        if is_new := facts is None or lost is not None:
            _make(store, slot, now, chosen, lost)
            _begin(store, slot, chosen, lost)
        else:
            _transact(store, partial(_adapt, store, facts, now, chosen))
    for name, owner in owners.items():
        yield _NOT_OURS.format(name, owner, slot)
    yield f"slot {slot} fills the log" + (f" again: {lost}" if lost else "" if is_new else " already")
    if now.publication is not None:
        yield from (f"{where}: {what}; this is put right" for where, what in publication_faults(now, chosen))
    yield from chosen.unread_lines
    yield from _baseline(config, store, chosen, who)
    if facts is not None and facts.slot != slot:
        with store.engine.begin() as connection:
            drop_publication(connection, store.queries, facts.slot)
    chosen.demand_all("published")


@contextmanager
def _settled(store: Store, chosen: SlotTables) -> Iterator[None]:
    """Keep publishers out if one compared the tables; StillOnTheWay until its events are out."""
    with store.admin() as admin:
        states = admin.receiver_state().table_states()
    if not _compared(states, chosen):
        yield
        return
    _demand_all_out(store, "compare" if recorded_slot(store) is None else "slot")
    with _leading(store):
        with store.admin() as admin:
            admin.receiver_state().settle_events()
        yield


def _demand_all_out(store: Store, mode: str) -> None:
    """Raise StillOnTheWay if rows are pending, which a publisher with this mode publishes."""
    with store.admin() as admin:
        pending = admin.backlog().pending
    if pending:
        raise StillOnTheWay(quantity(pending, "row is", "rows are"), mode)


def _compared(states: Mapping[str, TableState], chosen: SlotTables) -> set[str]:
    """Return the published tables whose states a publisher kept that compared them."""
    return kept_by_publisher(states).keys() & chosen.readable


def _leading(store: Store) -> Leader:
    """Return the leader of the log, so that no publisher runs."""
    leader = store.lead("eventlog install")
    if leader is None:
        raise StillPublishing(store.holder() or "by whom is not ours to see")
    return leader


def slot_script(config: Config, store: Store) -> tuple[str, SlotTables]:
    """Return what makes the publication and the slot, for a DBA, and its tables; only read the catalogue."""
    demand_slots(store.log.dialect)
    with store.admin() as admin:
        slot = admin.slot().slot_name()
        now = admin.slot().on_server(slot)
    chosen = choose_tables(config, store, slot)
    statements = publication_statements(store.queries, slot, now, chosen.published)
    lines = (f"{statement};\n" for statement in (*statements, slot_statement(store.queries, slot, now)))
    return "".join(lines), chosen


def _make(store: Store, slot: str, now: ServerSlot, chosen: SlotTables, lost: str | None) -> None:
    """Make the publication, then the slot, which cannot be read where there was no publication. A slot that
    lost changes is made anew.
    """
    _transact(
        store, lambda connection: make_publication(connection, store.queries, slot, now, chosen.published)
    )
    if lost is not None and now.is_there:
        with store.admin() as admin:
            admin.slot().drop_slot(slot)
    if lost is not None or not now.is_there:
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            execute_plain(connection, slot_statement(store.queries, slot, now))


def _begin(store: Store, slot: str, chosen: SlotTables, lost: str | None) -> None:
    """Drop the triggers and note the position in one transaction."""

    def begin(connection: Connection) -> None:
        plans = [plan for plan in track.plan_silence(connection, store.log) if plan.statements]
        if plans:
            places = {p.place for p in chosen.published} | {place_of(plan.table) for plan in plans}
            lock_tables(connection, store.queries, places, LockMode.ALL)
        for plan in plans:
            plan.run(connection)
        state = store.slot_state(connection)
        state.record(_facts(state, slot, chosen, {}))
        state.note(state.on_server(slot).end)
        for table in chosen.readable if lost is not None else ():
            state.note_gap(table, Loss(LossKind.SLOT_LOST, (str(lost),)))

    _transact(store, begin)


def _adapt(
    store: Store, facts: SlotFacts, now: ServerSlot, chosen: SlotTables, connection: Connection
) -> None:
    """Put the publication right, and note the tables that were not read, in one transaction."""
    state, members = store.slot_state(connection), facts.members
    missed = {name for name in members if members[name] != chosen.recorded.get(name)}
    states = ReceiverState(connection, store.queries).table_states().keys()
    incomplete = [published for published, _ in chosen.incomplete]
    missed |= {p.name for p in incomplete if not states.isdisjoint(f.table for f in p.feeds)}
    make_publication(connection, store.queries, facts.slot, now, chosen.published)
    # a comparison sees what writers did who came before, because they have ended
    lock_tables(connection, store.queries, {published.place for published in incomplete})
    record_returned(state, _facts(state, facts.slot, chosen, facts.since), chosen, missed)


def _transact(store: Store, change: Callable[[Connection], Result]) -> Result:
    """Run a change in a transaction, again if others were in the way; raise StillInUse if they always are."""
    pauses = iter(_PAUSES)
    while True:
        try:
            with store.engine.begin() as connection:
                return change(connection)
        except DatabaseFailed as fault:
            if not blames_other_transaction(fault, store.log.dialect):
                raise
            pause = next(pauses, None)
            if pause is None:
                raise StillInUse(fault) from fault
        time.sleep(pause)


def _facts(state: SlotState, slot: str, chosen: SlotTables, since: Mapping[str, int]) -> SlotFacts:
    """Return what is to be on record of the slot, as this transaction sees its publication."""
    now, members = state.on_server(slot), state.members(slot)
    assert now.publication is not None
    recorded = replace(chosen, members=members).recorded
    return SlotFacts(slot, now.system, now.publication, recorded, altered_by=now.altered_by, since=since)


def _baseline(config: Config, store: Store, chosen: SlotTables, who: str) -> Iterator[str]:
    """Keep the state of each table, or log what differs from it where the log may lack changes."""
    with store.admin() as admin:
        states, slot = admin.receiver_state().table_states(), admin.slot()
        for name in _compared(states, chosen) - slot.gaps().keys():
            slot.note_gap(name, Loss(LossKind.COMPARED))
        names = chosen.readable & ((chosen.readable - states.keys()) | slot.gaps().keys())
    tables = [table for table in chosen.tables if str(table) in names]
    try:
        yield from log_unexplained(store, config, Tables(tables, chosen.tables.dialect), who)
    except (Unexplained, OthersState) as fault:
        yield f"no state is kept, so deletes of a gap could not be found: {fault}"


def fill_by_triggers(config: Config, store: Store) -> Iterator[str]:
    """Let triggers fill the log again. Yield a line about each step."""
    facts = recorded_slot(store)
    if facts is None:
        return
    with _leading(store) as leader:
        if facts.until is None:
            facts = _end(config, store, facts)
        assert facts.until is not None
        fault = _drain(config, store, leader.epoch, facts.until)
        chosen = choose_tables(config, store, facts.slot)
        with store.admin() as admin:
            slot = admin.slot()
            if fault is None:
                losses = {t: Loss(LossKind.LEFT_OUT, (why,)) for t, why in chosen.lossy_tables.items()}
            else:
                losses = dict.fromkeys(chosen.readable, Loss(LossKind.SLOT_LOST, (fault,)))
            for table, loss in losses.items():
                slot.note_gap(table, loss)
            gaps = slot.gaps()
        yield _drop(store, facts)
    for table, gap in gaps.items():
        yield f"{table}: {gap.why}: `eventlog resync {quote(table)} --compare` logs what was lost"


def fill_by_comparison(config: Config, store: Store) -> Iterator[str]:
    """Let a publisher that compares fill the log. Yield a line about each step."""
    facts = recorded_slot(store)
    if facts is None:
        return
    with _leading(store) as leader:
        _read_to_end(config, store, leader.epoch, facts)
        now = replace(config, values={**config.values, **_AS_IT_IS})
        comparison = Comparison(now, store, leader.epoch, now.build(ComparingSettings))
        comparison.poll()
        _read_to_end(config, store, leader.epoch, facts)
        yield _drop(store, facts)
    chosen = replace(choose_tables(config, store, facts.slot), unread=dict(comparison.unread))
    yield from chosen.unread_lines
    chosen.demand_all("published")


def _drop(store: Store, facts: SlotFacts) -> str:
    """Drop the slot, which fills the log no more. Return a line about it."""
    with store.admin() as admin:
        admin.slot().drop()
        admin.slot().record(None)
    return f"slot {facts.slot} is dropped; what it had is in the log"


def _end(config: Config, store: Store, facts: SlotFacts) -> SlotFacts:
    """Make the triggers and note the position in one transaction."""
    chosen = choose_tables(config, store, facts.slot)

    def end(connection: Connection) -> SlotFacts:
        lock_tables(connection, store.queries, {p.place for p in chosen.published})
        _track(connection, store, chosen.published)
        state = store.slot_state(connection)
        ending = replace(facts, until=state.on_server(facts.slot).end)
        state.record(ending)
        return ending

    return _transact(store, end)


def _track(connection: Connection, store: Store, published: Iterable[Published]) -> None:
    """Track the tables as they are on record, or as `track` does by default.

    Raise NotTracked with the reasons of all tables that cannot be tracked.
    """
    log = Catalogue(connection).located(store.log)
    record = read_record(connection, log)
    faults = list[EventlogError]()
    names = {feed.table for each in published for feed in each.feeds if not feed.is_child}
    for name in sorted(names):
        entry = record.get(place_of(Catalogue(connection).find(name).table))
        choice = Choice() if entry is None else record.choice(entry)
        try:
            with connection.begin_nested():
                track.plan_track(connection, log, name, choice).run(connection)
        except (CannotTrack, NotAllowed) as fault:
            faults.append(fault)
    if faults:
        raise NotTracked("; ".join(map(str, faults))) from faults[0]


def _read_to_end(config: Config, store: Store, epoch: int, facts: SlotFacts) -> None:
    """Log what the slot has by now.

    Raise NotDrained or ChangesLost if changes are lost, and StillOnTheWay if rows are pending.
    """
    with store.admin() as admin:
        end = admin.slot().on_server(facts.slot).end
    fault = _drain(config, store, epoch, end)
    if fault is not None:
        raise NotDrained(f"{fault}. {MAKE_AGAIN}")
    with store.admin() as admin:
        reasons = {table: gap.why for table, gap in admin.slot().gaps().items()}
    reasons |= choose_tables(config, store, facts.slot).lossy_tables
    for table, why in reasons.items():
        raise ChangesLost(table, why)
    _demand_all_out(store, "slot")


def _drain(config: Config, store: Store, epoch: int, until: int) -> str | None:
    """Read the slot up to a position. Return why that cannot be, if changes are lost."""
    filler, ends = SlotFiller(config, store, epoch), time.monotonic() + _PATIENCE
    try:
        while True:
            filler.drain()
            if filler.lost is not None or filler.has_read(until):
                return filler.lost
            if time.monotonic() > ends:
                raise NotDrained("it took too long")
            filler.wait(_MOMENT)
    finally:
        filler.close()
