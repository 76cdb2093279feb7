"""The slot that fills a log, its publication, and which tables it can be read for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.error_causes import blames_other_transaction
from eventlog.sql.log.slot_state import Feed, Member, ServerSlot, SlotFacts, SlotPosition, SlotState
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Child, Place, place_of, qualified

COLUMN_LISTS: Final = 15  # the first version whose publications list columns
FAILOVER: Final = 17  # the first version whose standbys keep slots
GENERATED: Final = 18  # the first version whose publications may have generated columns
_OPTIONS: Final = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"
MAKE_AGAIN: Final = (
    "`eventlog install --mode slot` makes it again, and logs what differs from the kept states"
)


class LockMode(StrEnum):
    """The users of a table that a lock keeps out."""

    WRITERS = "share row exclusive"
    ALL = "access exclusive"  # as a dropped trigger needs it


class NoDecoding(EventlogError):
    """wal_level of the server is {0}: set it to logical, and start the server again"""


class CannotPublish(EventlogError):
    """this user may not change publication {0}: {1}. Let the owner of the tables run:\n{2}"""


class CannotDrop(EventlogError):
    """this user may not drop publication {0}, which no slot has any more: {1}. Let its owner run:\n{2}"""


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

    def why_incomplete(self, slot: str, member: Member | None) -> str | None:
        """Return why a publication does not have all changes of the table; None if it has."""
        if member is None or member.number is None:
            return f"it is not in publication {slot}"
        if member.is_filtered:
            return f"publication {slot} has only rows of it that pass a filter"
        listed = self.key_columns if member.columns is None else member.columns
        missing_names = sorted(self.key_columns.difference(listed))
        return f"publication {slot} lacks its columns {', '.join(missing_names)}" if missing_names else None

    @property
    def key_columns(self) -> set[str]:
        """Return the columns by which changes name objects."""
        return {name for feed in self.feeds for name in feed.names}


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The way in which old rows are named: what all partitions of a table have in common."""

    number: int
    is_table: bool
    is_logged: bool
    has_heirs: bool
    is_full: bool  # at least in one of them
    columns: frozenset[str]
    unsent: frozenset[str]  # generated columns that the server does not send
    rejects: bool  # updates of it fail once it is published
    partitions: frozenset[int]

    def why_not(self, feeds: Iterable[Feed]) -> str | None:
        """Return why changes of the table cannot be read."""
        names = {name for feed in feeds for name in feed.names}
        missing_names, unsent_names = sorted(names - self.columns), sorted(names & self.unsent)
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
        if unsent_names:
            return (
                f"its key has generated columns ({', '.join(unsent_names)}), which PostgreSQL publishes from"
                " version 18 on"
            )
        if self.rejects:
            return (
                "its replica identity has virtual generated columns, and an update would fail if it were"
                " published: `alter table … replica identity default`, or `using index`"
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
    roots = {n: ".".join(places[i]) for i, identity in identities.items() for n in identity.partitions}
    for number, place in enumerate(places):
        identity, own_feeds = identities.get(number), feeds[place]
        why = "there is no such table" if identity is None else identity.why_not(own_feeds)
        if identity is not None and identity.number in roots:
            why = f"it is a partition of {roots[identity.number]}, as which its changes are published"
        if identity is None or why is not None:
            name = ".".join(place)
            unread |= {f.table: f"{name}: {why}" if f.is_child else str(why) for f in own_feeds}
            continue
        names = identity.columns | {name for feed in own_feeds for name in feed.names}
        columns = None if identity.is_full or names & identity.unsent else tuple(sorted(names))
        published.append(Published(place, identity.number, columns, tuple(own_feeds)))
    return [each for each in published if not all(f.table in unread for f in each.feeds)], unread


def _identities(
    connection: Connection, queries: Queries, places: Sequence[Place]
) -> dict[int, ReplicaIdentity]:
    named = [{"place": n, "schema_name": p[0], "table_name": p[1]} for n, p in enumerate(places)]
    identities: dict[int, ReplicaIdentity] = {}
    rows = queries.run(connection, "slot_tables", tables=json.dumps(named))
    for place, root, number, is_table, is_logged, has_heirs, is_full, columns, unsent, rejects in rows:
        identity = ReplicaIdentity(
            root,
            is_table,
            is_logged,
            has_heirs,
            is_full,
            frozenset(columns),
            frozenset(unsent),
            rejects,
            frozenset({number} - {root}),
        )
        before = identities.get(place, identity)
        identities[place] = replace(
            before,
            is_logged=before.is_logged and identity.is_logged,
            is_full=before.is_full or identity.is_full,
            columns=before.columns & identity.columns,
            unsent=before.unsent | identity.unsent,
            rejects=before.rejects or identity.rejects,
            partitions=before.partitions | identity.partitions,
        )
    return identities


def why_lost(facts: SlotFacts, now: ServerSlot, position: SlotPosition | None) -> str | None:
    """Return why changes may be lost between the position and what a slot still has; None if none are."""
    name = facts.slot
    if facts.system != now.system:
        return f"this is another server than the one on which slot {name} was read"
    if not now.is_there:
        return f"there is no slot {name} any more"
    if now.owner is not None:
        return f"slot {name} belongs to {now.owner}"
    if now.wal_status == "lost" or now.confirmed is None or now.restart is None:
        return f"the server dropped what slot {name} still needed (max_slot_wal_keep_size)"
    if now.publication != facts.publication:
        return f"publication {name} was dropped, or made anew by somebody else"
    if now.missing_options:
        return f"publication {name} was altered by somebody else, and lacks {', '.join(now.missing_options)}"
    if facts.altered_by not in (None, now.altered_by):
        return f"publication {name} was altered by somebody else, and may have lacked changes"
    if position is None or position.lsn > now.end:
        return "the position in the log is not one of this server"
    if now.confirmed > position.lsn:
        return f"somebody else read slot {name}, or made it anew, after the position that the log has"
    return None


def make_publication(
    connection: Connection, queries: Queries, slot: str, now: ServerSlot, published: Sequence[Published]
) -> None:
    """Make the publication, if there is none, and give it its options and exactly these tables."""
    members = SlotState(connection, queries).members(slot).items()
    has = {table: (m.number is not None, m.columns, m.is_filtered) for table, m in members}
    has_options = not (now.missing_options or now.hides_generated or now.has_all_tables)
    is_there = now.publication is not None and has_options
    if is_there and has == {each.number: (True, each.columns, False) for each in published}:
        return
    statements = publication_statements(queries, slot, now, published)
    try:
        for statement in statements:
            execute_plain(connection, statement)
    except DatabaseFailed as fault:
        if blames_other_transaction(fault, queries.log.dialect):
            raise
        script = "\n".join(f"  {statement};" for statement in statements)
        raise CannotPublish(slot, fault, script) from fault


def drop_publication(connection: Connection, queries: Queries, slot: str) -> None:
    """Drop a publication that no slot has any more, if it exists."""
    dialect = queries.log.dialect
    statement = templates.statement(dialect, "publication_drop", publication=dialect.quote(slot))
    try:
        execute_plain(connection, statement)
    except DatabaseFailed as fault:
        raise CannotDrop(slot, fault, f"  {statement};") from fault


def publication_statements(
    queries: Queries, slot: str, now: ServerSlot, published: Sequence[Published]
) -> list[str]:
    """Return what makes the publication, if there is none, and gives it its options and these tables."""
    members = ", ".join(_member(queries, each, now.version) for each in published)
    names = ["publication_drop"] if now.has_all_tables else []  # which is for ever
    if now.publication is None or now.has_all_tables:
        names.append("publication_create")
    elif now.missing_options or now.hides_generated:
        names.append("publication_options")
    names += ["publication_tables"] if published else []
    options = _OPTIONS if now.version < GENERATED else f"{_OPTIONS}, publish_generated_columns = stored"
    holes = {"publication": queries.log.dialect.quote(slot), "options": options, "members": members}
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


def lock_tables(
    connection: Connection, queries: Queries, places: Iterable[Place], mode: LockMode = LockMode.WRITERS
) -> None:
    """Keep others out of tables until the transaction ends.

    The error is one after which the transaction is to be done again if they are in use for too long.
    """
    dialect = queries.log.dialect
    if tables := ", ".join(literal(qualified(dialect, *place)) for place in sorted(places)):
        body = templates.statement(dialect, "lock_users_out", tables=tables, mode=mode)
        execute_plain(connection, f"do {literal(body)}")


def demand_decoding(now: ServerSlot) -> None:
    """Raise NoDecoding if the server's log cannot be decoded."""
    if now.wal_level != "logical":
        raise NoDecoding(now.wal_level)
