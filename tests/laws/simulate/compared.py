"""Publishing without triggers on the simulated server, in place of the catalogue and of the poll's SQL.

The comparison itself, the state of the receiver and the log rows that a poll writes are the real code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from eventlog.compare import polling, rows
from eventlog.compare.table_snapshot import TableSnapshot
from eventlog.core.tables import Table, Tables
from eventlog.publisher import comparison
from eventlog.sql.readable import ReadableTable
from eventlog.sql.tables_read import TablesRead
from tests.laws.simulate.server import LOG, Connection, Engine, Named


@contextmanager
def comparing(tables: Tables) -> Iterator[None]:
    """Let publishers compare these tables inside the block."""
    readable = {table: ReadableTable(table, LOG.dialect) for table in tables}
    ports: list[tuple[Any, str, Any]] = [
        (comparison, "snapshot", _snapshot),
        (comparison, "read_tables", lambda engine, *words: _catalogued(engine, tables)),
        (comparison, "read_readable", lambda *words: readable),
        (comparison, "gone_tables", lambda *words: []),
        (comparison, "has_companion", lambda *words: True),
        (comparison, "can_sum", lambda *words: False),
        (polling, "why_here", lambda *words: "the database is simulated"),
        (polling, "read_table", _read_table),
    ]
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(patch.object(*port))
        yield


def _catalogued(engine: Engine, tables: Tables) -> Tables:
    """Return the tables, after a look at the server."""
    engine.connect().close()
    return tables


@contextmanager
def _snapshot(engine: Engine) -> Iterator[TableSnapshot]:
    with engine.execution_options().connect() as connection:
        connection.execute(Named("snapshot", {}))
        moment = TableSnapshot(connection, TablesRead(LOG.dialect))  # type: ignore[arg-type]
        yield moment
        moment.end()


def _read_table(connection: Connection, table: Table, readable: ReadableTable) -> Iterator[pa.RecordBatch]:
    texts = list(connection.execute(Named("compare_rows", {"table": str(table)})))
    return rows.in_batches(table, ((str(table), row[:1], row[1:]) for row in texts))
