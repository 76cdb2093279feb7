"""Holds by object, with every spelling that rows have of it; and how associations are written."""

from __future__ import annotations

from eventlog.sql.schema.migrations.run import Run

revision = "0004"
down_revision = "0003"


def upgrade(run: Run) -> None:
    run("0004_association")
    run("0004_holds")


def downgrade(run: Run) -> None:
    run("0004_drop_holds")
