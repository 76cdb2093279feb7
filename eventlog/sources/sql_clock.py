"""The time of a database, also of those that hold no log: its clock in UTC, and one moment for many reads."""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from eventlog.sql.dialects import DIALECTS

# what the SQL standard has no word for, or a database another one
_NOW_EXPRESSIONS = {name: dialect.utc_now for name, dialect in DIALECTS.items()} | {
    "mssql": "sysutcdatetime()",
    "sqlite": "current_timestamp",
}
_STANDARD = "current_timestamp at time zone 'UTC'"
_ONE_MOMENT = frozenset(("postgresql", "mysql", "mariadb"))


def at_one_moment(engine: sa.Engine) -> sa.Connection:
    """Return a connection whose reads all see one moment, in databases that know how to do that by
    a level.
    """
    connection = engine.connect()
    if engine.dialect.name in _ONE_MOMENT:
        return connection.execution_options(isolation_level="REPEATABLE READ")
    return connection


class UtcNow(FunctionElement[dt.datetime]):
    """The time now in UTC, without a zone."""

    type = sa.DateTime()
    inherit_cache = True


@compiles(UtcNow)
def _compile_utc_now(element: UtcNow, compiler: Any, **options: Any) -> str:
    return _NOW_EXPRESSIONS.get(compiler.dialect.name, _STANDARD)
