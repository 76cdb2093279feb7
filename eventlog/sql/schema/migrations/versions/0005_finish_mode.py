"""How rows are finished, on record; and no leader of a version that does not read it."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0005"
down_revision = "0004"


def upgrade(run: RunStatement) -> None:
    run("0005_finish")


def downgrade(run: RunStatement) -> None:
    """The columns go with their table."""
