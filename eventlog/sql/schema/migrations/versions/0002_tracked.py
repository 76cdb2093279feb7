"""What is tracked, on record."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0002"
down_revision = "0001"


def upgrade(run: RunStatement) -> None:
    run("0002_tracked")


def downgrade(run: RunStatement) -> None:
    run("0002_drop_tracked")
