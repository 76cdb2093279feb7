"""Run the revisions on the connection that the command was given."""

from __future__ import annotations

from alembic import context

context.configure(**context.config.attributes["configured"])
with context.begin_transaction():
    context.run_migrations(run=context.config.attributes["run"])
