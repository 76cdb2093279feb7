"""The revisions of the schema. Each names .sql files; Alembic keeps which of them have run."""
