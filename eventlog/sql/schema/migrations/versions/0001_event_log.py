"""The event log and its further tables. Until 0.1.0 is released, each change of the schema edits this."""

from __future__ import annotations

from collections.abc import Callable

revision = "0001"
down_revision = None


def upgrade(run: Callable[..., None]) -> None:
    run("create_companions")
    run("create_known")
    run("create_log", own_log=True)
    run("create_pending")


def downgrade(run: Callable[..., None]) -> None:
    run("drop_log", own_log=True)
    run("drop_companions")
