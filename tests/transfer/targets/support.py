"""Changes applied to a database through the public door, and what its tables hold then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy.engine import Engine

from eventlog.core import tablesfile
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.transactions.delivery import by_transaction
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.outcomes import Tally
from eventlog.transfer.targets.tables.writer import TableWriter
from tests.kit.statements import select_rows

rows = select_rows  # its name in tests/spark
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
    **options: Any,
) -> tuple[Tally, list[Refused]]:
    """Return what became of the changes, and what was refused."""
    refused: list[Refused] = []
    settings = ApplySettings(**options)
    with closing(Database(engine, source, tables, settings, refused.append)) as target:
        rows = TableWriter(target, source, format_name, settings, refused.append)
        rows.write(Report(refused.append).accepted(by_transaction(changes)), lambda: None)
    return rows.tally, refused


def places(refused: Sequence[Refused]) -> list[str]:
    return [refusal.where for refusal in refused]
