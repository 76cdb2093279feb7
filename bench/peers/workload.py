"""One table and its changes, the same for all who capture them, on PostgreSQL and MariaDB."""

from __future__ import annotations

import time

from sqlalchemy import text
from sqlalchemy.engine import Engine

TABLE, SOURCE = "peer_usr", "peer_source"
OF_ONE = 100  # rows that a transaction changes
COLUMNS = "id integer primary key, fname varchar(40), lname varchar(40), age integer, mail varchar(60)"
STEPS = (
    f"insert into {TABLE} select * from {SOURCE} where id between :low and :high",
    f"update {TABLE} set lname = concat(lname, 'x'), age = age + 1 where id between :low and :high",
    f"delete from {TABLE} where id between :low and :high and id % 10 = 0",
)


def prepare(engine: Engine, rows: int) -> None:
    """The table, empty, and what its changes are made of."""
    source_rows = [
        {"id": n, "fname": f"Jack{n}", "lname": f"Frost{n}", "age": n % 90, "mail": f"jack{n}@example.org"}
        for n in range(1, rows + 1)
    ]
    with engine.begin() as connection:
        for table in (TABLE, SOURCE):
            connection.execute(text(f"create table {table} ({COLUMNS})"))
        if source_rows:
            connection.execute(
                text(f"insert into {SOURCE} values (:id, :fname, :lname, :age, :mail)"), source_rows
            )


def change(engine: Engine, rows: int) -> float:
    """Return the seconds that one session takes for all changes."""
    with engine.connect() as connection:
        begun = time.perf_counter()
        for step in map(text, STEPS):
            for low in range(1, rows + 1, OF_ONE):
                connection.execute(step, {"low": low, "high": min(low + OF_ONE - 1, rows)})
                connection.commit()
        return time.perf_counter() - begun


def changes(rows: int) -> int:
    """Return how many changes of rows that is."""
    return 2 * rows + rows // 10
