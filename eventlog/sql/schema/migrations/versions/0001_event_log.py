"""The event log and its further tables."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0001"
down_revision = None


def upgrade(run: RunStatement) -> None:
    run("0001_companions")
    run("0001_log", own_log=True)
    run("0001_pending")


def downgrade(run: RunStatement) -> None:
    run("0001_drop_log", own_log=True)
    run("0001_drop_companions")
