"""The highest record_id that went out has a table of its own, so that the state row seldom changes."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0010"
down_revision = "0009"


def upgrade(run: RunStatement) -> None:
    run("0010_sent")


def downgrade(run: RunStatement) -> None:
    run("0010_drop_sent")
