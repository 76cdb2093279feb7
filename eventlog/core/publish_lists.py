"""Which columns may leave at all: the publish and withhold of each table.

A list holds for a column under each of its names: those of a view's column, and of a child's column both
`child.column` in the parent's list and `column` in the child's own. What is withheld in one is withheld.

A withheld column that is renamed has a new name that no list withholds. A table that had a withheld column,
lacks it now and has a new column is therefore halted until `publish` or `withhold` names the new one.
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
    before: Mapping[str, Table] | None = None,
) -> Tables:
    """Return the tables from which no more leaves than the lists let; InvalidList where a list cannot be
    meant so.

    `others` are tables that are there and not published: lists may name them. `gone` are sections whose
    tables may come back: meanwhile nothing of these leaves. `before` are the tables with the columns that
    they had when all their withheld columns were last seen.
    """
    known = [*tables]
    published = len(known)
    known += others
    shut: list[str] = []
    warnings: list[str] = []
    renamed = _Renamed(before or {})
    for one in lists:
        places = list(_places(known, one))
        if not places and one.section in gone:
            shut.append(one.section)
            continue
        warnings += _vain(one, places)
        if not places:
            shut.append(one.section)
        elif one.publish is not None or one.withhold is not None:
            for place in places:
                renamed.heed(place, one)
                known[place.at] = place.restrict(known[place.at], one)
    shut += [table.name for table in known[published:] if table.closed]
    known = [renamed.halt(table) for table in known[:published]]
    sure = [str(table) for table in known if str(table) in renamed.withholding - renamed.lost.keys()]
    return Tables(known, dialect, shut=shut, warnings=warnings, sure=sure)


class _Renamed:
    """A search for tables that lost a withheld column and have a new one that no list names."""

    def __init__(self, before: Mapping[str, Table]) -> None:
        self._before = before  # the tables as they were when all their withheld columns were last seen
        self._named: dict[str, set[str]] = {}
        self.withholding: set[str] = set()  # tables with a column that is withheld by name
        self.lost: dict[str, list[str]] = {}  # the entries whose columns are gone, by table

    def heed(self, place: _Place, lists: PublishLists) -> None:
        """Note which columns a section names, and which of those that it withholds are gone."""
        table = str(place.table)
        entries = (*(lists.publish or ()), *(lists.withhold or ()))
        named = {column.name for entry in entries for column in place.called(entry)}
        self._named.setdefault(table, set()).update(named)
        if lists.withhold is not None:
            self.withholding.add(table)
        if (known := self._before.get(table)) is not None:
            then, now = place._replace(table=known), place._replace(table=_as_it_is(place.table))
            lost = [e for e in lists.withhold or () if then.called(e) and not now.called(e)]
            self.lost.setdefault(table, []).extend(lost)
        if not self.lost.get(table):
            self.lost.pop(table, None)

    def halt(self, table: Table) -> Table:
        """Return the table, halted and without the new columns if it has some that may be withheld ones."""
        name = str(table)
        if name not in self.lost:
            return table
        then, named = self._before[name].columns, self._named[name]
        came = _as_it_is(table).columns.keys() - {*then, *named}
        new = [c.name for c in table.columns.values() if c.leaves and c.name in came]
        if not new:
            return table
        columns = {c.name: replace(c, leaves=c.leaves and c.name not in new) for c in table.columns.values()}
        return replace(table, columns=columns, halted=_why_halted(self.lost[name], new))


def _as_it_is(table: Table) -> Table:
    """Return the table without the columns that it had and lacks now."""
    return replace(table, columns={name: c for name, c in table.columns.items() if c.unread != GONE})


def _why_halted(lost: Sequence[str], new: Sequence[str]) -> str:
    gone, came = (", ".join(map(repr, names)) for names in (lost, new))
    return (
        f"its withheld column {gone} is gone and column {came} is new: it may have been renamed. Nothing of "
        f"the table is sent until publish or withhold in its [tables] section names {came}"
    )


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


def _vain(lists: PublishLists, places: Sequence[_Place]) -> Iterator[str]:
    """Yield a warning for each entry that withholds what is not there; to publish that is an error."""
    if not places and (lists.publish is not None or lists.withhold is None):
        raise InvalidList(lists.section, "there is no such table or view")
    known = " and ".join(str(place.table) for place in places)
    lacks = f"which {known} lacks" if known else "and there is no such table or view"
    for entry in lists.publish or ():
        if not any(place.called(entry) for place in places):
            raise InvalidList(lists.section, f"publish: a column {entry!r}, {lacks}")
    for entry in lists.withhold or ():
        found = {(place, column.name) for place in places for column in place.called(entry)}
        if any(name in place.table.key for place, name in found):
            raise InvalidList(lists.section, f"withhold: {entry!r} is of the key, which every event names")
        if not found:
            yield f"[tables.{lists.section}] withhold: a column {entry!r}, {lacks}; it stays in force"
