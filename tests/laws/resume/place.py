"""A database that trials use one after the other."""

from __future__ import annotations

import sqlalchemy as sa

from tests.kit.databases import Database
from tests.kit.statements import run_statements


class Place:
    """A database that is empty for each trial."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.url = database.url.render_as_string(hide_password=False)
        self.engine = sa.create_engine(database.url, poolclass=sa.NullPool)

    def empty(self) -> None:
        """Drop everything that an earlier trial made."""
        self.run("drop schema public cascade", "create schema public")

    def run(self, *statements: str) -> None:
        """Run statements in one transaction."""
        run_statements(self.engine, *statements)
