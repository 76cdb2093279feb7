"""Statements on a database, sent as they are written, with all their colons and percent signs."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Engine

_AS_WRITTEN = {"no_parameters": True}


def run_statements(engine: Engine, *statements: str, autocommit: bool = False) -> int:
    """Run statements in one session; return how many rows the last one changed.

    They are one transaction, or each is one of its own with `autocommit`.
    """
    place = engine.execution_options(isolation_level="AUTOCOMMIT") if autocommit else engine
    count = 0
    with place.begin() as connection:
        for statement in statements:
            count = connection.exec_driver_sql(statement, execution_options=_AS_WRITTEN).rowcount
    return count


def select_rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query, execution_options=_AS_WRITTEN)]
