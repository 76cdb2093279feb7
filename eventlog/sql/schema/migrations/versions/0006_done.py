"""The finished rows outside a log that is never updated, and a view of its rows with their letters."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0006"
down_revision = "0005"


def upgrade(run: RunStatement) -> None:
    run("0006_done")
    run("0006_rows", own_log=True)


def downgrade(run: RunStatement) -> None:
    run("0006_drop_rows", own_log=True)
    run("0006_drop_done")
