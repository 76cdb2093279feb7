"""Which session leads, and up to which record_id rows went out."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0003"
down_revision = "0002"


def upgrade(run: RunStatement) -> None:
    run("0003_leader")


def downgrade(run: RunStatement) -> None:
    """The columns go with their table."""
