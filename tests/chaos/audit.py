"""Every row that was committed to the log, kept by a trigger of the test's own where no purge reaches it."""

from __future__ import annotations

import time
from collections.abc import Set

from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError
from eventlog.sql.names import Log

COLUMNS = "record_id, table_key, event_type"
NEAR = 60  # rows of an object that are shown with a contradiction
KEEP = "insert into {0}audit values (new.record_id, new.table_key, new.event_type)"
FUNCTION = (
    "create function keep_audit() returns trigger language plpgsql as 'begin " + KEEP + "; return null; end'"
)
TRIGGER = "create trigger audit after insert on eventlog for each row "
CREATE_TRIGGER = {
    "postgresql": (FUNCTION.format("public."), f"{TRIGGER} execute function keep_audit()"),
    "mariadb": (TRIGGER + KEEP.format(""),),
}


class Audit:
    """The rows of the log as they were committed."""

    def __init__(self, engine: Engine, log: Log) -> None:
        self._engine, self._log = engine, log
        with engine.begin() as connection:
            connection.execute(
                text(
                    "create table audit"
                    " (record_id bigint primary key, table_key varchar(200), event_type integer)"
                )
            )
            for statement in CREATE_TRIGGER[engine.dialect.name]:
                connection.execute(text(statement))

    def rows(self) -> dict[int, str]:
        """Return the object of each row."""
        return {row: key for row, key, _ in self._all()}

    def objects(self, letters: str) -> dict[int, str]:
        """Return the object of each row with one of these letters, once the database is there."""
        names = self._log.names()
        among = ", ".join(f"'{letter}'" for letter in letters)
        query = f"select {names['record_id']} from {names['log']} where {names['status']} in ({among})"
        while True:
            try:
                with self._engine.connect() as connection:
                    rows = connection.execute(text(query)).scalars().all()
                objects = self.rows()
                return {int(row): objects[int(row)] for row in rows}
            except EventlogError:
                time.sleep(0.2)

    def near(self, key: str, row: int, skipped: Set[int]) -> str:
        """Return the rows of an object around one, each with its type, and whether it was skipped."""
        object_rows = [(number, kind) for number, name, kind in self._all() if name == key]
        before = [entry for entry in object_rows if entry[0] < row][-NEAR:]
        following = [entry for entry in object_rows if entry[0] >= row][: NEAR // 2]
        reported = (
            (number, f"type {kind}{', skipped' * (number in skipped)}") for number, kind in before + following
        )
        return ", ".join(f"{number} ({words})" for number, words in reported)

    def _all(self) -> list[tuple[int, str, int]]:
        """Return each row, its object and its type, in their order."""
        with self._engine.connect() as connection:
            rows = connection.execute(text(f"select {COLUMNS} from audit order by record_id")).all()
        return [(row, key.partition("=")[2], kind) for row, key, kind in rows]
