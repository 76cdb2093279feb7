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
    if target is None or (column.referred or target.key[0]) not in target.key or len(target.key) > 1:
        return replace(column, reference=None, referred=None)
    return replace(column, referred=None)


def among(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with the references that they have to each other, and no others."""
    return [
        replace(
            table, columns={name: refer(one, table, tables, meta=True) for name, one in table.columns.items()}
        )
        for table in tables
    ]


def _in_view(column: Column, table: Table, targets: Sequence[Table]) -> Column:
    """Return a column fk__idg__name as a reference to what has the key idg: a view, if there is one, else a
    table. Where several could be meant none is, and columns of one group are plain values.
    """
    own = read_name(column.name)
    group = [name for name in table.columns if _together(own, read_name(name))]
    if not own.is_foreign or own.column is None or len(group) > 1:
        return replace(column, reference=None, referred=None)
    found = [target for target in targets if _key_of(target) == [own.column.lower()]]
    meant = [target for target in found if target.view] or found
    return replace(column, reference=str(meant[0]) if len(meant) == 1 else None, referred=None)


def _together(own: MetaName, other: MetaName) -> bool:
    return other.is_foreign and other.group is not None and other.group == own.group


def _key_of(table: Table) -> list[str]:
    """Return the effective names of the key's columns."""
    return [(read_name(name).name if table.view else name).lower() for name in table.key]
