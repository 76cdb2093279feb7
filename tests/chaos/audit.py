"""Every row that was committed to the log, kept by a trigger of the test's own where no purge reaches it."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.engine import Engine

COLUMNS = "record_id, table_key"
KEEP = "insert into {0}audit values (new.record_id, new.table_key)"
FUNCTION = (
    "create function keep_audit() returns trigger language plpgsql as 'begin " + KEEP + "; return null; end'"
)
TRIGGER = "create trigger audit after insert on eventlog for each row "
MADE = {
    "postgresql": (FUNCTION.format("public."), f"{TRIGGER} execute function keep_audit()"),
    "mariadb": (TRIGGER + KEEP.format(""),),
}


class Audit:
    """The rows of the log as they were committed."""

    def __init__(self, engine: Engine, dialect: str) -> None:
        self._engine = engine
        with engine.begin() as connection:
            connection.execute(
                text("create table audit (record_id bigint primary key, table_key varchar(200))")
            )
            for statement in MADE[dialect]:
                connection.execute(text(statement))

    def rows(self) -> dict[int, str]:
        """The object that each row tells of."""
        with self._engine.connect() as connection:
            found = connection.execute(text(f"select {COLUMNS} from audit")).all()
        return {row: key.partition("=")[2] for row, key in found}
