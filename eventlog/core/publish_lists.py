"""The columns that are published: the settings publish and withhold of each table.

A list holds for a column under each of its names: those of a view's column, and of a child's column both
`child.column` in the parent's list and `column` in the child's list. One list that withholds a column is
enough.

A list that names no column of its table halts the table, because the column may have a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from eventlog.core.change import Change, Op
from eventlog.core.errors import Misuse
from eventlog.core.tables import LOST, Column, Table, Tables


class InvalidList(Misuse):
    """[tables.{0}] {1}"""


class PublishLists(NamedTuple):
    """The part of a settings section about a table's columns."""

    section: str
    publish: tuple[str, ...] | None = None  # only these may leave
    withhold: tuple[str, ...] | None = None  # these may not
    described: Table | None = None  # the table, if the section describes it


class _Place(NamedTuple):
    """A table that a section concerns; of a parent, only the columns of one child."""

    at: int
    table: Table
    prefix: str = ""

    def columns_of(self, entry: str) -> list[Column]:
        """Return the columns that an entry names: by an exact name, else by any name without case."""
        name = self.prefix + entry
        if name in self.table.columns:
            return [c for c in self.table.columns.values() if name in (c.name, *c.aliases)]
        return [c for c in self.table.columns.values() if c.answers_to(name)]

    def has_column(self, column: Column) -> bool:
        """Return whether the section mentions the column."""
        prefix = self.prefix.lower()
        return any(name.lower().startswith(prefix) for name in (column.name, *column.aliases))

    def restrict(self, table: Table, lists: PublishLists) -> Table:
        """Return the table with the columns that the lists publish."""
        withheld = {column.name for entry in lists.withhold or () for column in self.columns_of(entry)}
        published = {column.name for entry in lists.publish or () for column in self.columns_of(entry)}

        def adapt(column: Column) -> Column:
            named = column.name in published or column.name in table.key or not self.has_column(column)
            listed = lists.publish is None or named
            return replace(column, leaves=column.leaves and listed and column.name not in withheld)

        columns = {name: adapt(column) for name, column in table.columns.items()}
        return replace(table, columns=columns, closed=True)


def read_lists(section: str, entries: Mapping[str, Any], described: Table | None = None) -> PublishLists:
    """Return the lists of a section."""

    def names(option: str) -> tuple[str, ...] | None:
        return tuple(map(str, entries[option])) if option in entries else None

    return PublishLists(section, names("publish"), names("withhold"), described)


def restrict(
    tables: Iterable[Table],
    lists: Iterable[PublishLists],
    dialect: str | None = None,
    unpublished: Iterable[Table] = (),
    absent_sections: Container[str] = (),
) -> Tables:
    """Return the tables with the columns that the lists publish; raise InvalidList for a contradictory list.

    A table without a column that its lists name is halted. Lists may also name the `unpublished` tables. The
    tables of `absent_sections` may come back; until then nothing of them is published.
    """
    all_tables = [*tables]
    published = len(all_tables)
    all_tables += unpublished
    shut_names: list[str] = []
    warnings: list[str] = []
    for section_lists in lists:
        places = list(_places(all_tables, section_lists))
        if not places and section_lists.section in absent_sections:
            shut_names.append(section_lists.section)
            continue
        _check(section_lists, places)
        if not places:
            warnings += _without_table(section_lists)
            shut_names.append(section_lists.section)
        elif section_lists.publish is not None or section_lists.withhold is not None:
            reason = _why_halted(section_lists, places)
            for place in places:
                table = place.restrict(all_tables[place.at], section_lists)
                all_tables[place.at] = replace(table, halted=table.halted or reason)
    shut_names += [table.name for table in all_tables[published:] if table.closed]
    return Tables(all_tables[:published], dialect, shut=shut_names, warnings=warnings)


def _without_lost_columns(table: Table) -> Table:
    return replace(table, columns={name: c for name, c in table.columns.items() if c.unread != LOST})


def column_filter(tables: Tables) -> Callable[[Change], Change | None]:
    """Return a filter that removes from a change what may not leave; it returns None if nothing remains."""

    def filter_change(change: Change) -> Change | None:
        table = tables.of(change.schema, change.table)
        if not (table.closed if table else tables.shuts(change.table)):
            return change
        fields = tuple(field for field in change.fields if _leaves(table, field.column))
        published = change._replace(fields=fields, raw=None)
        silenced = published != change and change.op is Op.UPDATE
        return None if silenced and all(field.before == field.after for field in fields) else published

    return filter_change if tables.shut else lambda change: change


def _leaves(table: Table | None, name: str) -> bool:
    column = table.column(name) if table else None
    return column is not None and table is not None and (column.leaves or column.name in table.key)


def _places(tables: Sequence[Table], lists: PublishLists) -> Iterator[_Place]:
    """Yield the table of a section, and the parents that have its columns."""
    described = lists.described or Tables(tables).find(lists.section)
    names = {lists.section} if described is None else {lists.section, described.name, str(described)}
    for at, table in enumerate(tables):
        if table is described:
            yield _Place(at, table)
            continue
        for place in (_Place(at, table, f"{name}.") for name in sorted(names)):
            if any(map(place.has_column, table.columns.values())):
                yield place


def _check(lists: PublishLists, places: Sequence[_Place]) -> None:
    """Raise InvalidList for a list without a table to publish, or with a key column to withhold."""
    if not places and (lists.publish is not None or lists.withhold is None):
        raise InvalidList(lists.section, "there is no such table or view")
    for entry in lists.withhold or ():
        if any(column.name in place.table.key for place in places for column in place.columns_of(entry)):
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
    present = [place._replace(table=_without_lost_columns(place.table)) for place in places]
    for name, entries in (("publish", lists.publish), ("withhold", lists.withhold)):
        for entry in entries or ():
            if not any(place.columns_of(entry) for place in present):
                tables = " and ".join(str(place.table) for place in places)
                return f"[tables.{lists.section}] {name}: a column {entry!r}, which {tables} lacks"
    return ""
