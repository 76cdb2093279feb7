"""Findings, and the checks of the log itself: its lock, its index, its sequence, its record of tables.

A fault needs someone to act. A note is a way around the triggers that the database leaves open, so that users
learn of it before they lose a change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.tables import Tables
from eventlog.sql.capture.record import Recorded, TrackRecord
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.log.leader import holder_of
from eventlog.sql.log.position import advancing, read_position
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Choice, Identity, Installed, Relation, place_of
from eventlog.sql.trigger_rows import routine_names, routines


class Finding(NamedTuple):
    """A fault, and its remedy."""

    where: str
    what: str
    remedy: str
    fault: bool = True
    shown: bool = False  # always, though it is no fault
    commands: tuple[str, ...] = ()  # that do it: of a shell, or of SQL with ; at the end


class Watched(NamedTuple):
    """A tracked table with the choice that its triggers remember."""

    relation: Relation
    our_triggers: tuple[Installed, ...]
    choice: Choice


@dataclass(frozen=True)
class Checked:
    """The log, tables and triggers that are checked."""

    connection: Connection
    log: Log
    catalogue: Catalogue
    record: TrackRecord
    tables: Tables
    driver_user: str | None = None
    patience: timedelta = timedelta(days=1)
    log_name: str = ""  # the log, as commands must name it; empty where they find it

    def command(self, words: str) -> str:
        """Return a command of ours about this log, as a shell takes it."""
        return f"eventlog {words}" + (f" --log-table {quote(self.log_name)}" if self.log_name else "")

    def track(self, table: object, choice: Choice | None = None) -> str:
        """Return the command that tracks a table with that choice."""
        return self.command(f"track {quote(str(table))}{choice.flags() if choice else ''}")

    def untrack(self, table: object) -> str:
        """Return the command that tracks it no longer."""
        return self.command(f"untrack {quote(str(table))}")

    def ask(self, name: str, **values: Any) -> list[Any]:
        names = {"status_text": literal(self.log.column("status"))}
        rows: list[Any] = Queries(self.log).run(self.connection, name, names, **values).all()
        return rows

    def of_log(self, what: str, remedy: str, *commands: str) -> Finding:
        """Return a finding about the log as a whole."""
        return Finding(self.log.table, what, remedy, commands=commands)


def _lock(checked: Checked) -> Iterator[Finding]:
    holder = holder_of(checked.connection, Queries(checked.log))
    if holder is not None and not holder.publisher:
        yield checked.of_log(
            f"the lock of its publisher is held by {holder}: nothing is published until it is released",
            "end that session, and take from its role the right to connect",
        )


def _index(checked: Checked) -> Iterator[Finding]:
    for (count,) in checked.ask("check_index"):
        if not count:
            yield checked.of_log(
                "no index finds its pending rows: each pick-up reads the whole log",
                "make it again:",
                *_one_line(templates.statements(checked.log.dialect, "create_pending", checked.log.names())),
            )


def _one_line(statements: Iterable[str]) -> Iterator[str]:
    """Return statements in printable form, without their comments."""
    for statement in statements:
        lines = (line.partition(" -- ")[0].strip() for line in statement.splitlines())
        yield " ".join(lines).removesuffix(";") + ";"


def _unguarded(checked: Checked) -> Iterator[Finding]:
    """Yield the tables in which an object that is not found need not be gone, as a note."""
    tables = {table.name: table for table in checked.tables}
    places = [place_of(table) for table in checked.tables]
    log_name = [{"schema_name": schema, "table_name": name} for schema, name in places]
    for name, reason in checked.ask("check_unguarded", places=json.dumps(log_name, ensure_ascii=False)):
        yield Finding(
            str(tables[name]),
            f"{reason}: DDL there can hide rows from a running publisher, which takes them for gone",
            "pause the publisher while such a table is rewritten or emptied",
            fault=False,
            shown=True,
        )


def _composite(checked: Checked) -> Iterator[Finding]:
    """Yield the references of several columns to published tables, as a note."""
    published = {place_of(table): table for table in checked.tables}
    for place, table in published.items():
        relation = checked.catalogue.at(place)
        for foreign in relation.foreign_keys if relation is not None else ():
            target = published.get((foreign.target_schema or "", foreign.target))
            if len(foreign.columns) > 1 and target is not None:
                yield Finding(
                    str(table),
                    f"{', '.join(foreign.columns)} refer together to {target}: they are published as plain"
                    " values, without an association",
                    "let the receiver put them together, or refer by one column",
                    fault=False,
                    shown=True,
                )


def _sequence(checked: Checked) -> Iterator[Finding]:
    for name, cached, *mended in checked.ask("check_sequence"):
        yield checked.of_log(
            f"sequence {name} hands out numbers from a cache ({cached}): the order of record_id is not the"
            " order of the changes",
            "have it hand out one at a time, in order:" if mended else "alter it to order",
            *mended,
        )


def _position(checked: Checked) -> Iterator[Finding]:
    position = read_position(checked.connection, Queries(checked.log))
    if position.last is not None and position.last < position.highest:
        yield checked.of_log(
            f"record ids come again: the next one is {position.last + 1}, and rows up to {position.highest}"
            " went out before; no publisher starts",
            "set its sequence past them:",
            *_one_line([advancing(checked.log, position.highest)]),
        )


def _routines(checked: Checked) -> Iterator[Finding]:
    """Report routines of the log that are missing or not those that `install` makes."""
    if not checked.catalogue.sees_routines(checked.log):
        return
    statements = [*routines(checked.log)]
    written = "\n".join(statements).replace("'", "")
    bodies = checked.catalogue.routines(checked.log)
    for name in routine_names(checked.log, statements):
        if name not in bodies:
            yield checked.of_log(f"routine {name} is missing", "make it again:", checked.command("install"))
        elif (bodies[name] or "").strip() not in written:
            words = f"routine {name} differs from the one that install makes"
            yield checked.of_log(words, "make it again:", checked.command("install"))


def _made_anew(checked: Checked) -> Iterator[Finding]:
    for entry in checked.record:
        relation = checked.catalogue.at(entry.place)
        if relation is None:
            yield Finding(
                str(entry),
                "it is tracked, and there is no such table any more",
                checked.untrack(entry),
            )
        elif not entry.is_still(relation.identity):
            yield _changed(checked, entry, relation.identity)


def _changed(checked: Checked, entry: Recorded, now: Identity) -> Finding:
    """Report a tracked table that is something else by now."""
    if not now.is_table:
        return Finding(str(entry), f"it is not read: it is a {now.kind} now", checked.untrack(entry))
    return Finding(
        str(entry),
        f"it is not read: it is another table than the one that was tracked, or belongs to {now.owner} now",
        f"{checked.track(entry, checked.record.choice(entry))}, or {checked.untrack(entry)}",
    )


def _not_on_record(checked: Checked) -> Iterator[Finding]:
    for place, is_ours in sorted(checked.catalogue.marked(checked.log).items()):
        name = ".".join(place)
        if checked.record.get(place) is None and not checked.record.parents(place):
            yield Finding(
                name,
                "it is not read: its triggers write to this log, but it is not on record"
                + ("" if is_ours else "; another user owns them"),
                f"{checked.track(name)}, or drop the triggers",
                fault=is_ours,
            )


LOG_CHECKS: tuple[Callable[[Checked], Iterator[Finding]], ...] = (
    _lock,
    _index,
    _unguarded,
    _composite,
    _sequence,
    _position,
    _routines,
    _made_anew,
    _not_on_record,
)
