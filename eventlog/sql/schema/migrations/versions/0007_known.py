"""What the receiver is known to have, for logs that are filled by comparing states."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0007"
down_revision = "0006"


def upgrade(run: RunStatement) -> None:
    run("0007_known")


def downgrade(run: RunStatement) -> None:
    run("0007_drop_known")
