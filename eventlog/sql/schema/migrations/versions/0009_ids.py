"""The log takes no record ids from writers, where the database can refuse them."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0009"
down_revision = "0008"


def upgrade(run: RunStatement) -> None:
    run("0009_ids", own_log=True)


def downgrade(run: RunStatement) -> None:
    """The column goes with its table."""
