"""Several statements in one round trip, by the pipeline mode of psycopg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, Pipeline


def send(driver: Any, statements: Sequence[tuple[str, Mapping[str, Any]]], *, commit: bool) -> list[Any]:
    """Run statements with their values, and commit after them if that is asked for. Return the rows of each.

    Nothing after a statement that fails is run.
    """
    connection: Connection[Any] = driver
    if not Pipeline.is_supported():  # with a client library from before version 14
        return _one_by_one(connection, statements, commit=commit)
    with connection.pipeline():
        cursors = [connection.execute(statement, values) for statement, values in statements]
        if commit:
            connection.commit()
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _one_by_one(
    connection: Connection[Any], statements: Sequence[tuple[str, Mapping[str, Any]]], *, commit: bool
) -> list[Any]:
    """Do the same with a round trip for each statement."""
    cursors = [connection.execute(statement, values) for statement, values in statements]
    if commit:
        connection.commit()
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
