"""Which columns may leave at all: the publish and withhold of each table.

A list holds for a column under each of its names: those of a view's column, and of a child's column both
`child.column` in the parent's list and `column` in the child's own. What is withheld in one is withheld.

A list that names no column of its table halts the table, because the column may have a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from eventlog.core.change import Change, Op
from eventlog.core.errors import Misuse
from eventlog.core.tables import GONE, Column, Table, Tables


class InvalidList(Misuse):
    """[tables.{0}] {1}"""


class PublishLists(NamedTuple):
    """The part of a settings section about a table's columns."""

    section: str
    publish: tuple[str, ...] | None = None  # only these may leave
    withhold: tuple[str, ...] | None = None  # these may not
    own: Table | None = None  # the table, where the section describes it itself


class _Place(NamedTuple):
    """A table that a section concerns; of a parent, only the columns of one child."""

    at: int
    table: Table
    prefix: str = ""

    def called(self, entry: str) -> list[Column]:
        """Return the columns that an entry means, under each of their names; exactly, where one is written
        so.
        """
        name = self.prefix + entry
        if name in self.table.columns:
            return [c for c in self.table.columns.values() if name in (c.name, *c.aliases)]
        return [c for c in self.table.columns.values() if c.answers_to(name)]

    def concerns(self, column: Column) -> bool:
        """Return whether the section mentions the column."""
        prefix = self.prefix.lower()
        return any(name.lower().startswith(prefix) for name in (column.name, *column.aliases))

    def restrict(self, table: Table, lists: PublishLists) -> Table:
        """Return the table from which no more leaves than the lists let."""
        withheld = {column.name for entry in lists.withhold or () for column in self.called(entry)}
        published = {column.name for entry in lists.publish or () for column in self.called(entry)}

        def adapt(column: Column) -> Column:
            named = column.name in published or column.name in table.key or not self.concerns(column)
            listed = lists.publish is None or named
            return replace(column, leaves=column.leaves and listed and column.name not in withheld)

        columns = {name: adapt(column) for name, column in table.columns.items()}
        return replace(table, columns=columns, closed=True)


def read_lists(section: str, entries: Mapping[str, Any], own: Table | None = None) -> PublishLists:
    """Return the lists of a section."""

    def names(option: str) -> tuple[str, ...] | None:
        return tuple(map(str, entries[option])) if option in entries else None

    return PublishLists(section, names("publish"), names("withhold"), own)


def restrict(
    tables: Iterable[Table],
    lists: Iterable[PublishLists],
    dialect: str | None = None,
    others: Iterable[Table] = (),
    gone: Container[str] = (),
) -> Tables:
    """Return the tables from which no more leaves than the lists let; InvalidList where a list cannot be
    meant so. A table that lacks a column of its lists is halted.

    `others` are tables that are there and not published: lists may name them. `gone` are sections whose
    tables may come back: meanwhile nothing of these leaves.
    """
    known = [*tables]
    published = len(known)
    known += others
    shut: list[str] = []
    warnings: list[str] = []
    for one in lists:
        places = list(_places(known, one))
        if not places and one.section in gone:
            shut.append(one.section)
            continue
        _check(one, places)
        if not places:
            warnings += _without_table(one)
            shut.append(one.section)
        elif one.publish is not None or one.withhold is not None:
            reason = _why_halted(one, places)
            for place in places:
                table = place.restrict(known[place.at], one)
                known[place.at] = replace(table, halted=table.halted or reason)
    shut += [table.name for table in known[published:] if table.closed]
    return Tables(known[:published], dialect, shut=shut, warnings=warnings)


def _as_it_is(table: Table) -> Table:
    """Return the table without the columns that it had and lacks now."""
    return replace(table, columns={name: c for name, c in table.columns.items() if c.unread != GONE})


def column_filter(tables: Tables) -> Callable[[Change], Change | None]:
    """Return a filter that removes from a change what may not leave; it returns None if nothing remains."""

    def leaving(change: Change) -> Change | None:
        table = tables.of(change.schema, change.table)
        if not (table.closed if table else tables.shuts(change.table)):
            return change
        kept = tuple(field for field in change.fields if _leaves(table, field.column))
        published = change._replace(fields=kept, raw=None)
        silenced = published != change and change.op is Op.UPDATE
        return None if silenced and all(field.before == field.after for field in kept) else published

    return leaving if tables.shut else lambda change: change


def _leaves(table: Table | None, name: str) -> bool:
    column = table.column(name) if table else None
    return column is not None and table is not None and (column.leaves or column.name in table.key)


def _places(tables: Sequence[Table], lists: PublishLists) -> Iterator[_Place]:
    """Yield the tables of a section: its own, and their child tables."""
    own = lists.own or Tables(tables).find(lists.section)
    names = {lists.section} if own is None else {lists.section, own.name, str(own)}
    for at, table in enumerate(tables):
        if table is own:
            yield _Place(at, table)
            continue
        for place in (_Place(at, table, f"{name}.") for name in sorted(names)):
            if any(map(place.concerns, table.columns.values())):
                yield place


def _check(lists: PublishLists, places: Sequence[_Place]) -> None:
    """Raise InvalidList if nothing can be meant so: no table to publish, or a key column to withhold."""
    if not places and (lists.publish is not None or lists.withhold is None):
        raise InvalidList(lists.section, "there is no such table or view")
    for entry in lists.withhold or ():
        if any(column.name in place.table.key for place in places for column in place.called(entry)):
            raise InvalidList(lists.section, f"withhold: {entry!r} is of the key, which every event names")


def _without_table(lists: PublishLists) -> Iterator[str]:
    """Yield a warning for each entry that withholds a column of a table that is not there."""
    for entry in lists.withhold or ():
        yield (
            f"[tables.{lists.section}] withhold: a column {entry!r}, and there is no such table or view; it"
            " stays in force"
        )


def _why_halted(lists: PublishLists, places: Sequence[_Place]) -> str:
    """Return the first entry that names no column of its tables as a reason; empty if there is none."""
    present = [place._replace(table=_as_it_is(place.table)) for place in places]
    for name, entries in (("publish", lists.publish), ("withhold", lists.withhold)):
        for entry in entries or ():
            if not any(place.called(entry) for place in present):
                tables = " and ".join(str(place.table) for place in places)
                return f"[tables.{lists.section}] {name}: a column {entry!r}, which {tables} lacks"
    return ""
