"""The columns that refer to rows of published tables: by foreign keys, and in views by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eventlog.core.meta_identifiers import MetaName, read_name
from eventlog.core.tables import Column, Table


def refer(column: Column, table: Table, targets: Sequence[Table], *, meta: bool) -> Column:
    """Return the column of a table as a reference to one of the targets, by exactly that one's key; or as
    none.
    """
    if table.view and meta and column.of_child is None:
        return _in_view(column, table, targets)
    target = next((target for target in targets if str(target) == column.reference), None)
    if target is None or (column.by and {theirs for _, theirs in column.by} != set(target.key)):
        return replace(column, reference=None, by=())
    return replace(column, by=column.by if len(column.by) > 1 else ())


def among(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with the references that they have to each other, and no others."""
    return [
        replace(
            table, columns={name: refer(one, table, tables, meta=True) for name, one in table.columns.items()}
        )
        for table in tables
    ]


def _in_view(column: Column, table: Table, targets: Sequence[Table]) -> Column:
    """Return a column fk__idg__name refers to whatever has the key idg: to a view, if there is one, else to a
    table. Columns of one group refer together; where several could be meant none is.
    """
    own = read_name(column.name)
    if not own.is_foreign or own.column is None:
        return replace(column, reference=None, by=())
    group = [(c.name, read_name(c.name)) for c in table.columns.values() if _together(own, read_name(c.name))]
    named = {name: meta.column.lower() for name, meta in group if meta.column is not None}
    if own.group is None:
        named = {column.name: own.column.lower()}
    found = [target for target in targets if _key_of(target).keys() == set(named.values())]
    views = [target for target in found if target.view]
    meant = views or found
    if len(meant) != 1 or len(set(named.values())) != len(named):
        return replace(column, reference=None, by=())
    key = _key_of(meant[0])
    by = tuple((name, key[theirs]) for name, theirs in named.items())
    return replace(column, reference=str(meant[0]), by=by if len(by) > 1 else ())


def _together(own: MetaName, other: MetaName) -> bool:
    return other.is_foreign and other.group is not None and other.group == own.group


def _key_of(table: Table) -> dict[str, str]:
    """Return the key's columns by their effective names."""
    return {(read_name(name).name if table.view else name).lower(): name for name in table.key}
