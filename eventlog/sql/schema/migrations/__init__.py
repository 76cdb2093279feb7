"""The revisions of the schema. Each runs named statements; Alembic keeps which revisions have run."""
