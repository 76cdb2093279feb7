"""The tables that a replication slot is read for, and what of them it cannot be read for."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from shlex import quote
from typing import Final

from eventlog.core.each_table import demand_all
from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.opening.config import Config
from eventlog.opening.published import with_places
from eventlog.opening.publisher_tables import keyed_tables, read_tables
from eventlog.slot.publication import Published, feeds_of, publishable
from eventlog.sql.catalogue import NoSuchTable, open_catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.log.slot_state import (
    Feed,
    Loss,
    LossKind,
    Member,
    ServerSlot,
    SlotFacts,
    SlotState,
)
from eventlog.sql.log.store import Store
from eventlog.sql.relation import Place

_PUT_RIGHT = "`eventlog install --mode slot` puts it right"
_UNNAMED = "it is in the publication, and it is gone, or the settings do not name it any more"
_AGE: Final = 60.0  # seconds until the tables are read again
NOT_READ = 0  # instead of its number in the publication


class NoSlots(Misuse):
    """{0} has no replication slots that a log could be filled from: publication-mode is trigger or compare"""


@dataclass(frozen=True)
class SlotTables:
    """The tables of a slot."""

    slot: str
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
    def unread_lines(self) -> list[str]:
        """Return a line about each table that is not published."""
        return [f"{table} is not published: {why}" for table, why in self.unread.items()]

    def demand_all(self, done: str) -> None:
        """Raise TablesRefused if some of the tables are not published."""
        demand_all(self.names, self.unread, done)

    @property
    def incomplete(self) -> list[tuple[Published, str]]:
        """Return the tables whose changes the publication lacks, and why."""
        reasons = ((p, p.why_incomplete(self.slot, self.members.get(p.number))) for p in self.published)
        return [(published, why) for published, why in reasons if why is not None]

    @property
    def lossy_tables(self) -> dict[str, str]:
        """Return why the publication lacks changes of objects, by the tables of these."""
        return {
            feed.table: f"{published.name}: {why}" if feed.is_child else why
            for published, why in self.incomplete
            for feed in published.feeds
        }

    @property
    def strangers(self) -> list[str]:
        """Return the names of tables in the publication that are not to be published."""
        numbers = {published.number for published in self.published}
        return sorted(member.name for number, member in self.members.items() if number not in numbers)

    @property
    def recorded(self) -> dict[str, int]:
        """Return the number of each table in the publication, as it is put on record."""
        incomplete_names = {published.name for published, _ in self.incomplete}
        complete = (published for published in self.published if published.name not in incomplete_names)
        return {p.name: number for p in complete if (number := self.members[p.number].number) is not None}

    @property
    def names(self) -> list[str]:
        """Return the names of the tables."""
        return [*map(str, self.tables)]


class FilledBySlot(Misuse):
    """the slot {0} fills this log: publication-mode = slot reads it, and `eventlog install --mode trigger` \
drops it and lets triggers fill the log again; rows that are in the log stay"""


def recorded_slot(store: Store) -> SlotFacts | None:
    """Return what is on record of the slot, None if something else fills the log."""
    if not store.log.dialect.sessions.has_slots:
        return None
    with store.admin() as admin:
        return admin.slot().facts()


def refuse_slot(store: Store) -> None:
    """Raise FilledBySlot if a slot fills the log."""
    if (facts := recorded_slot(store)) is not None:
        raise FilledBySlot(facts.slot)


def demand_slots(dialect: Dialect) -> None:
    """Raise NoSlots for a database that has none."""
    if not dialect.sessions.has_slots:
        raise NoSlots(dialect.title)


def read_slot_tables(config: Config, store: Store, slot: str) -> SlotTables:
    """Return the tables that settings name and `track` recorded, as their slot sees them."""
    for _ in range(2):  # the publication may be changed between two looks
        chosen, facts = choose_tables(config, store, slot), recorded_slot(store)
        members = {} if facts is None else facts.members
        read = {**dict.fromkeys(members, NOT_READ), **chosen.recorded}
        if read == members:
            break
    with store.admin() as admin:
        state = admin.slot()
        returned = {name for name, number in chosen.recorded.items() if number != members.get(name)}
        if read != members and (facts := state.facts()) is not None:
            record_returned(state, replace(facts, members=read), chosen, returned)
        gaps = {table: gap.why for table, gap in state.gaps().items()}
    unread = chosen.unread | {table: f"{why}. {_PUT_RIGHT}" for table, why in chosen.lossy_tables.items()}
    unnamed = sorted(members.keys() - {published.name for published in chosen.published} - unread.keys())
    return replace(chosen, unread=unread | dict.fromkeys(unnamed, _UNNAMED), gaps=gaps)


def record_returned(state: SlotState, facts: SlotFacts, chosen: SlotTables, names: Container[str]) -> None:
    """Put on record what is read, and that the log may lack changes of tables that were not for a while. What
    the server's log has of them by now is left to a comparison.
    """
    returned = {f.table: p.name for p in chosen.published if p.name in names for f in p.feeds}
    since = dict.fromkeys(returned, state.on_server(facts.slot).end)
    state.record(replace(facts, since={**facts.since, **since}))  # from here on no publisher logs
    for table, name in returned.items():
        state.note_gap(table, Loss(LossKind.TAKEN_OUT, (name, facts.slot)))


def publication_faults(now: ServerSlot, chosen: SlotTables) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a publication: the table, or the publication, and the words."""
    if now.has_all_tables:
        yield chosen.slot, "the publication has all tables of the database"
        return
    if now.missing_options:
        yield chosen.slot, f"the publication lacks {', '.join(now.missing_options)}"
    if now.hides_generated:
        yield chosen.slot, "the publication lacks generated columns"
    yield from ((published.name, why) for published, why in chosen.incomplete)
    if chosen.strangers:
        names = ", ".join(chosen.strangers)
        yield chosen.slot, f"the publication has tables that are not published here ({names})"


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
    return SlotTables(slot, catalogued, published, unread | why_not, members)


class FedTables:
    """The tables of a slot as they were last read, and the gaps of their log."""

    def __init__(self, config: Config, store: Store) -> None:
        self._config = config
        self._store = store
        self._tables: SlotTables | None = None
        self._read_at = -inf
        self.gaps: Mapping[str, str] = {}  # tables whose changes may be lost, and why
        self.needs_refresh = False  # cycles have the tables as they were before

    @property
    def is_reading_due(self) -> bool:
        """Return whether the tables are to be read again."""
        return time.monotonic() > self._read_at + _AGE

    def read(self, slot: str) -> Mapping[int, Sequence[Feed]]:
        """Read the tables. Return how the changes of each name objects."""
        before, self._tables = self._tables, read_slot_tables(self._config, self._store, slot)
        self.needs_refresh |= before is not None and before.names != self._tables.names
        self.gaps = self._tables.gaps
        self._read_at = time.monotonic()
        return self._tables.feeds

    def unread(self, slot: str, fault: str | None) -> dict[str, str]:
        """Return the tables that are not published, and why; all of them if the slot has a fault."""
        assert self._tables is not None
        unread = {
            table: f"changes of it may be lost: {why}. `eventlog resync {quote(table)} --compare` logs them"
            for table, why in self.gaps.items()
        }
        unread |= self._tables.unread
        if fault is not None:
            unread |= dict.fromkeys(self._tables.names or (slot,), fault)
        return unread
