"""The slot that fills a log, its publication, and which tables it can be read for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.log.slot_state import Feed, ServerSlot, SlotFacts, SlotPosition, SlotState
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Child, Place, place_of, qualified

COLUMN_LISTS: Final = 15  # the first version whose publications list columns
FAILOVER: Final = 17  # the first version whose standbys keep slots
MAKE_AGAIN: Final = (
    "`eventlog install --mode slot` makes it again, and logs what differs from the kept states"
)


class NoDecoding(EventlogError):
    """wal_level of the server is {0}: set it to logical, and start the server again"""


class CannotPublish(EventlogError):
    """this user may not change publication {0}: {1}. Let the owner of the tables run:\n{2}"""


class Published(NamedTuple):
    """A table whose changes the server's log is read for, or a child of one."""

    place: Place
    number: int
    columns: tuple[str, ...] | None  # those by which changes name objects; None: all
    feeds: tuple[Feed, ...]

    @property
    def name(self) -> str:
        """Return its name with the schema."""
        return ".".join(self.place)


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The way in which old rows are named: what all partitions of a table have in common."""

    number: int
    is_table: bool
    is_logged: bool
    has_heirs: bool
    is_full: bool  # at least in one of them
    columns: frozenset[str]

    def why_not(self, feeds: Iterable[Feed]) -> str | None:
        """Return why changes of the table cannot be read."""
        missing_names = sorted({name for feed in feeds for name in feed.names} - self.columns)
        if not self.is_table:
            return "it is no table, so the server's log has no changes of it: name its tables"
        if not self.is_logged:
            return "it is unlogged: `alter table … set logged`"
        if self.has_heirs:
            return "tables inherit from it: make them partitions"
        if not self.columns:
            return (
                "it has no replica identity, and an update would fail if it were published: give it a primary"
                " key, or `alter table … replica identity full`"
            )
        if missing_names:
            return (
                f"its replica identity lacks {', '.join(missing_names)}, so its old rows name no object: "
                "`alter table … replica identity full`, or `using index` of a unique one with these columns"
            )
        return None


def feeds_of(table: Table, children: Sequence[Child], log_name: str) -> dict[Place, list[Feed]]:
    """Return how the changes of a table and its children name its objects."""
    key = tuple((column.name, column) for column in table.key_columns)
    feeds = {place_of(table): [Feed(str(table), log_name, key)]}
    for child in children:
        feed = Feed(str(table), log_name, child.key(table.key), is_child=True)
        feeds.setdefault(child.relation.place, []).append(feed)
    return feeds


def publishable(
    connection: Connection, queries: Queries, feeds: Mapping[Place, Sequence[Feed]]
) -> tuple[list[Published], dict[str, str]]:
    """Return the tables whose changes can be read, and why those of others cannot."""
    published: list[Published] = []
    unread: dict[str, str] = {}
    places = list(feeds)
    identities = _identities(connection, queries, places)
    for number, place in enumerate(places):
        identity, own_feeds = identities.get(number), feeds[place]
        why = "there is no such table" if identity is None else identity.why_not(own_feeds)
        if identity is None or why is not None:
            name = ".".join(place)
            unread |= {f.table: f"{name}: {why}" if f.is_child else str(why) for f in own_feeds}
            continue
        names = identity.columns | {name for feed in own_feeds for name in feed.names}
        columns = None if identity.is_full else tuple(sorted(names))
        published.append(Published(place, identity.number, columns, tuple(own_feeds)))
    return [each for each in published if not all(f.table in unread for f in each.feeds)], unread


def _identities(
    connection: Connection, queries: Queries, places: Sequence[Place]
) -> dict[int, ReplicaIdentity]:
    named = [{"place": n, "schema_name": p[0], "table_name": p[1]} for n, p in enumerate(places)]
    identities: dict[int, ReplicaIdentity] = {}
    rows = queries.run(connection, "slot_tables", tables=json.dumps(named))
    for place, number, is_table, is_logged, has_heirs, is_full, columns in rows:
        identity = ReplicaIdentity(number, is_table, is_logged, has_heirs, is_full, frozenset(columns))
        before = identities.get(place, identity)
        identities[place] = replace(
            before,
            is_logged=before.is_logged and identity.is_logged,
            is_full=before.is_full or identity.is_full,
            columns=before.columns & identity.columns,
        )
    return identities


def why_lost(facts: SlotFacts, now: ServerSlot, position: SlotPosition | None) -> str | None:
    """Return why changes may be lost between the position and what a slot still has; None if none are."""
    name = facts.slot
    if facts.system != now.system:
        return f"this is another server than the one on which slot {name} was read"
    if now.plugin is None:
        return f"there is no slot {name} any more"
    if not now.here or now.plugin != "pgoutput":
        return f"the slot {name} is not of this database, or not of the plugin pgoutput"
    if now.wal_status == "lost" or now.confirmed is None or now.restart is None:
        return f"the server dropped what slot {name} still needed (max_slot_wal_keep_size)"
    if now.publication != facts.publication:
        return f"publication {name} was dropped, or made anew by somebody else"
    if position is None or position.lsn > now.end:
        return "the position in the log is not one of this server"
    if now.confirmed > position.lsn:
        return f"somebody else read slot {name}, or made it anew, after the position that the log has"
    return None


def make_publication(
    connection: Connection, queries: Queries, slot: str, now: ServerSlot, published: Sequence[Published]
) -> None:
    """Make the publication, if there is none, and give it exactly these tables."""
    members = SlotState(connection, queries).members(slot)
    has = {number: member.columns for number, member in members.items()}
    if now.publication is not None and has == {each.number: each.columns for each in published}:
        return
    statements = publication_statements(queries, slot, now, published)
    try:
        for statement in statements:
            execute_plain(connection, statement)
    except DatabaseFailed as fault:
        script = "\n".join(f"  {statement};" for statement in statements)
        raise CannotPublish(slot, fault, script) from fault


def publication_statements(
    queries: Queries, slot: str, now: ServerSlot, published: Sequence[Published]
) -> list[str]:
    """Return what makes the publication, if there is none, and gives it these tables."""
    members = ", ".join(_member(queries, each, now.version) for each in published)
    names = [] if now.publication is not None else ["publication_create"]
    names += ["publication_tables"] if published else []
    holes = {"publication": queries.log.dialect.quote(slot), "members": members}
    return [templates.statement(queries.log.dialect, name, **holes) for name in names]


def _member(queries: Queries, published: Published, version: int) -> str:
    """Return a table as a publication names it, with its columns if they are not all."""
    dialect = queries.log.dialect
    name = qualified(dialect, *published.place)
    if published.columns is None or version < COLUMN_LISTS:
        return name
    return f"{name} ({', '.join(map(dialect.quote, published.columns))})"


def slot_statement(queries: Queries, slot: str, now: ServerSlot) -> str:
    """Return what makes the slot."""
    failover = ", failover => true" if now.version >= FAILOVER else ""
    return templates.statement(queries.log.dialect, "slot_create", slot_text=literal(slot), failover=failover)


def lock_tables(connection: Connection, queries: Queries, places: Iterable[Place]) -> None:
    """Keep writers out of tables until the transaction ends."""
    dialect = queries.log.dialect
    if tables := ", ".join(qualified(dialect, *place) for place in sorted(places)):
        execute_plain(connection, templates.statement(dialect, "lock_writers_out", tables=tables))


def demand_decoding(now: ServerSlot) -> None:
    """Raise NoDecoding if the server's log cannot be decoded."""
    if now.wal_level != "logical":
        raise NoDecoding(now.wal_level)
