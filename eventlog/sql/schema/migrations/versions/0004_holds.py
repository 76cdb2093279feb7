"""Holds by object, with every spelling that rows have of it; and how associations are written."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import RunStatement

revision = "0004"
down_revision = "0003"


def upgrade(run: RunStatement) -> None:
    run("0004_association")
    run("0004_holds")


def downgrade(run: RunStatement) -> None:
    run("0004_drop_holds")
