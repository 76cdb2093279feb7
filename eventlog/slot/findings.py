"""The checks of a publisher that reads a slot: the server, the slot, its tables, and what may be lost."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.core.remedies import Remedy
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.slot.publication import FAILOVER, why_lost
from eventlog.slot.slot_tables import SlotTables, choose_tables, publication_faults
from eventlog.sql.capture.findings import Finding
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.slot_state import ServerSlot
from eventlog.sql.log.store import Store

_INSTALL = (Remedy.INSTALL_SLOT,)


def slot_findings(store: Store, config: Config) -> Iterator[Finding]:
    """Yield the findings about the slot of a log; none where something else fills the log, as the settings
    have it.
    """
    mode = config.build(ComparingSettings).publication_mode
    if not store.log.dialect.sessions.has_slots:
        return
    with store.admin() as admin:
        state = admin.slot()
        if (facts := state.facts()) is None:
            if mode == "slot":
                yield from _no_slot(state.slot_name(), state.on_server(state.slot_name()))
            return
        slot, position, gaps = facts.slot, state.position(), state.gaps()
        now = state.on_server(slot)
    if mode != "slot":
        words, remedy = f"it fills the log, and publication-mode is {mode}", "set it to slot, or change back:"
        yield Finding(slot, words, remedy, commands=(Remedy.INSTALL_TRIGGER,))
    if lost := why_lost(facts, now, position):
        yield Finding(
            slot, f"{lost}: changes may be lost", "make it again, and log what differs:", commands=_INSTALL
        )
    chosen = choose_tables(config, store, slot)
    for where, what in publication_faults(now, chosen):
        if not (lost and where == slot):
            yield Finding(where, what, "put it right:", commands=_INSTALL)
    yield from _of_tables(store, chosen)
    for table, gap in gaps.items():
        if lost or table in chosen.lossy_tables:  # a comparison comes with the remedy
            continue
        commands = (Remedy.RESYNC_COMPARE.command(TABLE=table),)
        yield Finding(table, f"changes of it may be lost: {gap.why}", "log what differs:", commands=commands)
    yield from _notes(slot, now)
    yield from _without_baseline(store, chosen)


def _no_slot(slot: str, now: ServerSlot) -> Iterator[Finding]:
    start_again = ", and start the server again"
    if now.wal_level != "logical":
        words = f"wal_level of the server is {now.wal_level}"
        yield Finding(slot, words, f"set it to logical{start_again}")
    if not now.is_there and now.free_slots < 1:
        yield Finding(slot, "the server has no free slot", f"raise max_replication_slots{start_again}")
    yield Finding(slot, "no slot fills the log", "make one:", commands=_INSTALL)


def _of_tables(store: Store, chosen: SlotTables) -> Iterator[Finding]:
    """Yield the tables that are not read, and those that triggers log, too."""
    for table, why in chosen.unread.items():
        yield Finding(table, f"it is not published: {why}", "the others are published; mend it")
    with store.engine.connect() as connection:
        catalogue = Catalogue(connection)
        marked = catalogue.marked(catalogue.located(store.log))
    for place in sorted(marked.keys() & {published.place for published in chosen.published}):
        name, words = ".".join(place), "its triggers fill this log, too: each change is published twice"
        yield Finding(name, words, "drop them:", commands=(Remedy.UNTRACK.command(TABLE=name),))


def _notes(slot: str, now: ServerSlot) -> Iterator[Finding]:
    if now.keeps == "-1":
        words = "the server keeps its log for it without a limit, while no publisher runs"
        remedy = "set max_slot_wal_keep_size to what the disk can hold"
        yield Finding(slot, words, remedy, fault=False, shown=True)
    if now.is_there and now.version >= FAILOVER and not now.fails_over:
        words = "standbys do not keep it, so a failover loses changes"
        yield Finding(
            slot, words, "make it with failover, and set sync_replication_slots", fault=False, shown=True
        )


def _without_baseline(store: Store, chosen: SlotTables) -> Iterator[Finding]:
    """Yield the tables without a state with which they could be compared if changes were lost."""
    with store.admin() as admin:
        state = admin.receiver_state()
        states, mark = state.table_states(), state.mark()
    for table in chosen.names:
        mark_kept = states[table].mark if table in states else None
        if table not in chosen.unread and (mark_kept is None or mark_kept.purged != mark.purged):
            words = "no state is kept of it: if the slot were lost, its deletes could not be found"
            commands = (Remedy.RESYNC_COMPARE.command(TABLE=table),)
            yield Finding(table, words, "keep one:", fault=False, shown=True, commands=commands)
