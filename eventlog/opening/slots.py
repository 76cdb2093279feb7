"""The tables that a replication slot is read for, and what of them it cannot be read for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.opening.config import Config
from eventlog.opening.published import with_places
from eventlog.opening.tables import keyed_tables, read_tables
from eventlog.sql.capture.slot import Published, feeds_of, publishable
from eventlog.sql.catalogue import NoSuchTable, open_catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.log.slot_state import Feed
from eventlog.sql.log.store import Store
from eventlog.sql.relation import Place

_OUTSIDE = "{0} is not in publication {1}: `eventlog install --mode slot` adds it"
_UNNAMED = "it is in the publication, and it is gone, or the settings do not name it any more"
_TAKEN_OUT = "{0} was taken out of publication {1} for a while: changes may be lost"


class NoSlots(Misuse):
    """{0} has no replication slots that a log could be filled from: publication-mode is trigger or compare"""


@dataclass(frozen=True)
class SlotTables:
    """The tables of a slot."""

    tables: Tables  # that are to be published
    published: Sequence[Published]
    unread: dict[str, str]
    gaps: dict[str, str]  # tables whose log may lack changes, and why

    @property
    def names(self) -> list[str]:
        """Return the names of the tables."""
        return [*map(str, self.tables)]


class FilledBySlot(Misuse):
    """the slot {0} fills this log: publication-mode = slot reads it, and `eventlog install --mode trigger` \
drops it and lets triggers fill the log again; rows that are in the log stay"""


def refuse_slot(store: Store) -> None:
    """Raise FilledBySlot if a slot fills the log."""
    if store.log.dialect.has_slots:
        with store.upkeep() as upkeep:
            facts = upkeep.slot().facts()
        if facts is not None:
            raise FilledBySlot(facts.slot)


def demand_slots(dialect: Dialect) -> None:
    """Raise NoSlots for a database that has none."""
    if not dialect.has_slots:
        raise NoSlots(dialect.title)


def read_slot_tables(config: Config, store: Store, slot: str) -> SlotTables:
    """Return the tables that settings name and `track` recorded, as their slot sees them."""
    for _ in range(2):  # the publication may be changed between two looks
        chosen = choose_tables(config, store, slot)
        with store.upkeep() as upkeep:
            facts = upkeep.slot().facts()
        members = {} if facts is None else facts.members
        changed = [p for p in chosen.published if p.member is not None and p.member != members.get(p.name)]
        if not changed:
            break
    with store.upkeep() as upkeep:
        state = upkeep.slot()
        for table, why in ((f.table, _TAKEN_OUT.format(p.name, slot)) for p in changed for f in p.feeds):
            if table not in state.gaps():
                state.note_gap(table, why)
        gaps = {table: why for table, (_, why) in state.gaps().items()}
    outside = [published for published in chosen.published if published.member is None]
    unread = chosen.unread | {f.table: _OUTSIDE.format(p.name, slot) for p in outside for f in p.feeds}
    there = {published.name for published in chosen.published}
    unnamed = sorted(members.keys() - there - unread.keys())
    return replace(chosen, unread=unread | dict.fromkeys(unnamed, _UNNAMED), gaps=gaps)


def choose_tables(config: Config, store: Store, slot: str) -> SlotTables:
    """Return the tables that a slot can be read for, and why it cannot be read for others."""
    unread: dict[str, str] = {}

    def leave_out(name: str, fault: NoSuchTable) -> None:
        unread[name] = str(fault)

    catalogued = read_tables(store.engine, store.log, config, leave_out, {})
    tables = keyed_tables(catalogued, unread)
    feeds: dict[Place, list[Feed]] = {}
    with open_catalogue(store.engine) as catalogue:
        for table in tables:
            placed, children = with_places(catalogue, table)
            for place, own_feeds in feeds_of(placed, children, table.log_name).items():
                feeds.setdefault(place, []).extend(own_feeds)
        published, why_not = publishable(catalogue.connection, store.queries, slot, feeds)
    return SlotTables(catalogued, published, unread | why_not, {})
