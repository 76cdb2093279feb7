"""Changes applied to a database through the public door, and what its tables hold then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.apply.database import Database
from eventlog.apply.run import Run
from eventlog.apply.settings import ApplySettings
from eventlog.apply.tally import Tally
from eventlog.core import tablesfile
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.streams.delivery import by_transaction

TABLES = tablesfile.read("""\
[tables.usr]
schema = "indirect"
key = ["idu"]
columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", n = "integer" }
""")


def apply(
    engine: Engine,
    changes: Iterable[Change | Refused],
    *,
    tables: Tables = TABLES,
    source: str = "test",
    format_name: str = "changes",
    **given: Any,
) -> tuple[Tally, list[Refused]]:
    """What became of the changes, and what was refused."""
    refused: list[Refused] = []
    settings = ApplySettings(**given)
    with closing(Database(engine, source, tables, settings, refused.append)) as target:
        tally = Run(target, source, format_name, settings, refused.append).apply(by_transaction(changes))
    return tally, refused


def rows(engine: Engine, select: str) -> list[Any]:
    """The rows of a query."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(select))]


def run(engine: Engine, *statements: str) -> None:
    """Run statements, each whole."""
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def places(refused: Sequence[Refused]) -> list[str]:
    return [one.where for one in refused]
