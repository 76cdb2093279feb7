"""The tables that a replication slot is read for, and what of them it cannot be read for."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.opening.config import Config
from eventlog.opening.published import with_places
from eventlog.opening.tables import keyed_tables, read_tables
from eventlog.sql.capture.slot import Published, feeds_of, publishable
from eventlog.sql.catalogue import NoSuchTable, open_catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.log.slot_state import Feed, Member, SlotFacts, SlotState
from eventlog.sql.log.store import Store
from eventlog.sql.relation import Place

_OUTSIDE = "{0} is not in publication {1}: `eventlog install --mode slot` adds it"
_UNNAMED = "it is in the publication, and it is gone, or the settings do not name it any more"
_TAKEN_OUT = "{0} was taken out of publication {1}, or could not be read, for a while: changes may be lost"
NOT_READ = 0  # instead of its number in the publication


class NoSlots(Misuse):
    """{0} has no replication slots that a log could be filled from: publication-mode is trigger or compare"""


@dataclass(frozen=True)
class SlotTables:
    """The tables of a slot."""

    tables: Tables  # that are to be published
    published: Sequence[Published]
    unread: dict[str, str]
    members: Mapping[int, Member]  # of the publication
    gaps: Mapping[str, str] = field(default_factory=dict)  # tables whose log may lack changes, and why

    @property
    def feeds(self) -> dict[int, Sequence[Feed]]:
        """Return how the changes of each table name objects."""
        return {published.number: published.feeds for published in self.published}

    @property
    def readable(self) -> set[str]:
        """Return the names of the tables whose changes can be read."""
        return {feed.table for feed in chain.from_iterable(self.feeds.values())}

    @property
    def outside(self) -> list[Published]:
        """Return the tables that the publication lacks."""
        return [published for published in self.published if published.number not in self.members]

    @property
    def recorded(self) -> dict[str, int]:
        """Return the number of each table in the publication, as it is put on record."""
        inside = (published for published in self.published if published.number in self.members)
        return {published.name: self.members[published.number].number for published in inside}

    @property
    def names(self) -> list[str]:
        """Return the names of the tables."""
        return [*map(str, self.tables)]


class FilledBySlot(Misuse):
    """the slot {0} fills this log: publication-mode = slot reads it, and `eventlog install --mode trigger` \
drops it and lets triggers fill the log again; rows that are in the log stay"""


def recorded_slot(store: Store) -> SlotFacts | None:
    """Return what is on record of the slot, None if something else fills the log."""
    if not store.log.dialect.has_slots:
        return None
    with store.upkeep() as upkeep:
        return upkeep.slot().facts()


def refuse_slot(store: Store) -> None:
    """Raise FilledBySlot if a slot fills the log."""
    if (facts := recorded_slot(store)) is not None:
        raise FilledBySlot(facts.slot)


def demand_slots(dialect: Dialect) -> None:
    """Raise NoSlots for a database that has none."""
    if not dialect.has_slots:
        raise NoSlots(dialect.title)


def read_slot_tables(config: Config, store: Store, slot: str) -> SlotTables:
    """Return the tables that settings name and `track` recorded, as their slot sees them."""
    for _ in range(2):  # the publication may be changed between two looks
        chosen, facts = choose_tables(config, store, slot), recorded_slot(store)
        members = {} if facts is None else facts.members
        read = {**dict.fromkeys(members, NOT_READ), **chosen.recorded}
        if read == members:
            break
    with store.upkeep() as upkeep:
        state = upkeep.slot()
        returned = {name for name, number in chosen.recorded.items() if number != members.get(name)}
        note_taken_out(state, chosen, slot, returned)
        if read != members and (facts := state.facts()) is not None:
            state.record(replace(facts, members=read))
        gaps = {table: gap.why for table, gap in state.gaps().items()}
    unread = chosen.unread | {f.table: _OUTSIDE.format(p.name, slot) for p in chosen.outside for f in p.feeds}
    unnamed = sorted(members.keys() - {published.name for published in chosen.published} - unread.keys())
    return replace(chosen, unread=unread | dict.fromkeys(unnamed, _UNNAMED), gaps=gaps)


def note_taken_out(state: SlotState, chosen: SlotTables, slot: str, names: Container[str]) -> None:
    """Note that the log may lack changes of tables that were not read for a while."""
    for published in chosen.published:
        for table in {feed.table for feed in published.feeds} - state.gaps().keys():
            if published.name in names:
                state.note_gap(table, _TAKEN_OUT.format(published.name, slot))


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
        published, why_not = publishable(catalogue.connection, store.queries, feeds)
        members = store.slot_state(catalogue.connection).members(slot)
    return SlotTables(catalogued, published, unread | why_not, members)
