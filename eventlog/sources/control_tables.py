"""Replicate's control tables in a database, which are read before the change tables next to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import Refused
from eventlog.core.formats import Row, Source
from eventlog.qlik import partitions
from eventlog.qlik.control import USED, control_table
from eventlog.sql.connect import DatabaseFailed

_WHOSE = ("server_name", "task_name", "table_owner", "table_name")
_LAST = 10  # partitions of a table that are looked at: one of them is closed


def control_sources(connection: sa.Connection, schemas: Iterable[str | None]) -> Iterator[Source[Row]]:
    """Yield the control tables of these schemas that describe change tables; None is the connection's own
    schema.
    """
    for schema in dict.fromkeys(schemas):
        for name in sorted(sa.inspect(connection).get_table_names(schema)):
            if control_table(name) in USED:
                try:
                    with connection.begin_nested():
                        found = _source(connection, name, schema)
                except (SQLAlchemyError, DatabaseFailed) as fault:
                    said = f"cannot be read, so its entries about the change tables are missing: {fault}"
                    found = Source(name, name, (), [Refused(name, said, fault=False)])
                yield found


def _source(connection: sa.Connection, name: str, schema: str | None) -> Source[Row]:
    table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)
    query = _last_partitions(table) if name.lower() == partitions.TABLE else sa.select(table)
    columns = tuple(column.name for column in query.selected_columns)
    rows = [Row(number, tuple(row)) for number, row in enumerate(connection.execute(query), 1)]
    return Source(table.fullname, table.name, columns, rows)


def _last_partitions(table: sa.Table) -> sa.Select[Any]:
    """Select the last partitions of each table, because their number grows without end."""
    found = {column.name.lower(): column for column in table.columns}
    whose = [found[name] for name in _WHOSE if name in found]
    name = found.get("partition_name")
    if name is None or len(whose) < len(_WHOSE):
        return sa.select(table)
    ranked = sa.select(
        *whose,
        name,
        sa.func.row_number().over(partition_by=whose, order_by=name.desc()).label("place"),
    ).subquery()
    kept = [ranked.c[column.name] for column in (*whose, name)]
    return sa.select(*kept).where(ranked.c.place <= _LAST)
