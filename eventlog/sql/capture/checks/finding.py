"""A finding, and what the findings are looked for in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.tables import Tables
from eventlog.sql.capture.record import TrackRecord
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.choice import Choice
from eventlog.sql.common.expression import literal
from eventlog.sql.log.upkeep import Unpublished, Upkeep
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Installed, Relation


class Finding(NamedTuple):
    """A fault, and its remedy."""

    where: str
    what: str
    remedy: str
    fault: bool = True
    shown: bool = False  # always, though it is no fault
    commands: tuple[str, ...] = ()  # that do it: of a shell, or of SQL with ; at the end


class Watched(NamedTuple):
    """A tracked table with the choice that its triggers remember."""

    relation: Relation
    ours: tuple[Installed, ...]
    choice: Choice


@dataclass(frozen=True)
class Checked:
    """The log, tables and triggers that are checked."""

    connection: Connection
    log: Log
    catalogue: Catalogue
    record: TrackRecord
    tables: Tables
    driver_user: str | None = None
    patience: timedelta = timedelta(days=1)
    named: str = ""  # the log, as commands must name it; empty where they find it

    def command(self, words: str) -> str:
        """Return a command of ours about this log, as a shell takes it."""
        return f"eventlog {words}" + (f" --log-table {quote(self.named)}" if self.named else "")

    def track(self, table: object, choice: Choice | None = None) -> str:
        """Return the command that tracks a table with that choice."""
        return self.command(f"track {quote(str(table))}{choice.flags() if choice else ''}")

    def untrack(self, table: object) -> str:
        """Return the command that tracks it no longer."""
        return self.command(f"untrack {quote(str(table))}")

    def ask(self, name: str, **values: Any) -> list[Any]:
        names = {
            "status_text": literal(self.log.column("status")),
        }
        rows: list[Any] = Queries(self.log).run(self.connection, name, names, **values).all()
        return rows

    def backlog(self) -> Unpublished:
        """Return how much is pending, and since when."""
        return Upkeep(self.connection, Queries(self.log)).backlog()

    def of_log(self, what: str, remedy: str, *commands: str) -> Finding:
        """Return a finding about the log as a whole."""
        return Finding(self.log.table, what, remedy, commands=commands)
