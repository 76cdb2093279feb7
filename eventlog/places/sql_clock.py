"""The clock of a database in UTC, also of those that hold no log."""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from eventlog.sql.dialect.dialects import DIALECTS

# what the SQL standard has no word for, or a database another one
_SPOKEN = {name: dialect.utc_now for name, dialect in DIALECTS.items()} | {
    "mssql": "sysutcdatetime()",
    "sqlite": "current_timestamp",
}
_STANDARD = "current_timestamp at time zone 'UTC'"


class UtcNow(FunctionElement[dt.datetime]):
    """The time now in UTC, without a zone."""

    type = sa.DateTime()
    inherit_cache = True


@compiles(UtcNow)
def _spoken(element: UtcNow, compiler: Any, **more: Any) -> str:
    return _SPOKEN.get(compiler.dialect.name, _STANDARD)
