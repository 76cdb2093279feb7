"""The object of a failed row, and whether it was overtaken by rows that are gone."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0008"
down_revision = "0007"


def upgrade(run: RunStatement) -> None:
    run("0008_overtaken")


def downgrade(run: RunStatement) -> None:
    """The columns go with their table."""
