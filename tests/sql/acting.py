"""Sessions that change three tables in every way that a statement has, at random and at once."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError
from eventlog.sql.connect import execute_plain

TABLES = ("usr", "phone", "part")
KEYS = 12
CREATE_TABLES = (
    "create table usr (k int primary key, a text, b int)",
    "create table phone (k int primary key, a text, b int)",
    "alter table phone add foreign key (b) references usr on update cascade on delete cascade",
    "create table part (k int primary key, a text, b int) partition by range (k)",
    f"create table part1 partition of part for values from (minvalue) to ({KEYS // 2})",
    f"create table part2 partition of part for values from ({KEYS // 2}) to (maxvalue)",
)
STATEMENTS = (
    (6, "insert into {t} values ({k}, {a}, {b}) on conflict do nothing"),
    (3, "insert into {t} values ({k}, {a}, {b}), ({l}, {a}, {b}) on conflict (k) do update set a = {a}"),
    (2, "insert into {t} values ({k}, {a}, {b}) on conflict (k) do update set k = {l}, b = {b}"),
    (6, "update {t} set a = {a} where k = {k}"),
    (2, "update {t} set a = {a}, b = {b} where k between {k} and {l}"),
    (2, "update {t} set k = {l}, a = {a} where k = {k}"),
    (1, "update {t} set k = k + 20, b = {b} where k >= {k} and k < 20"),
    (1, "update {t} set k = k - 20 where k >= 20"),
    (1, "update {t} set a = a"),
    (3, "delete from {t} where k = {k}"),
    (1, "delete from {t} where k between {k} and {l}"),
    (
        1,
        "with d as (delete from {t} where k = {k} returning *) insert into {t} select {l}, a, b from d",
    ),
    (0.3, "truncate {t} cascade"),
    (1, "copy"),
)
MERGE = (
    2,
    (
        "merge into {t} using (values ({k}), ({l})) s (k) on s.k = {t}.k"
        " when matched and {t}.k % 2 = 0 then delete when matched then update set a = {a}"
        " when not matched then insert values (s.k, {a}, {b})"
    ),
)


class Sessions:
    """The sessions, each with as many transactions, and the number of their statements."""

    def __init__(self, engine: Engine, seed: int, sessions: int, transactions: int) -> None:
        self.engine = engine
        self.transactions = transactions
        self.statements = 0
        with engine.connect() as connection:
            version = connection.execute(text("show server_version_num")).scalar_one()
        self._choice = (*STATEMENTS, MERGE) if int(version) >= 150_000 else STATEMENTS
        dice = random.Random(seed)
        self._threads = [
            threading.Thread(target=self._work, args=(random.Random(dice.random()),)) for _ in range(sessions)
        ]

    def run(self) -> None:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()

    def _work(self, dice: random.Random) -> None:
        with self.engine.connect() as connection:
            for _ in range(self.transactions):
                try:
                    self._transaction(connection, dice)
                except (EventlogError, psycopg.Error):  # a deadlock, a key that is there: it is gone
                    connection.rollback()

    def _transaction(self, connection: Any, dice: random.Random) -> None:
        for _ in range(dice.randint(1, 4)):
            if dice.random() < 0.25:
                undone = connection.begin_nested()
                self._statement(connection, dice)
                undone.rollback() if dice.random() < 0.6 else undone.commit()
            else:
                self._statement(connection, dice)
        connection.rollback() if dice.random() < 0.15 else connection.commit()

    def _statement(self, connection: Any, dice: random.Random) -> None:
        weights = [weight for weight, _ in self._choice]
        ((_, statement),) = dice.choices(self._choice, weights)
        # a merge of a partitioned table may show wrong new rows: capture.cases has it
        table = dice.choice(TABLES[:2] if statement.startswith("merge") else TABLES)
        values = {"t": table, "k": dice.randrange(KEYS), "l": dice.randrange(KEYS)}
        values |= {"a": dice.choice(("null", "''", "'x y'", "'é=&%'", f"'{dice.random()}'"))}
        values |= {"b": "null" if table == "phone" and dice.random() < 0.7 else dice.randrange(KEYS)}
        self.statements += 1
        if statement == "copy":
            numbers = dice.sample(range(100, 1100), 2)
            _copy(connection, table, dict(zip(numbers, ("copied", None), strict=True)))
        else:
            execute_plain(connection, statement.format(**values))


def _copy(connection: Any, table: str, rows: dict[int, str | None]) -> None:
    """Write rows by COPY, except existing ones."""
    there = set(connection.execute(text(f"select k from {table}")).scalars())
    cursor = connection.connection.cursor()
    with cursor.copy(f"copy {table} (k, a) from stdin") as copy:
        for row in rows.items():
            if row[0] not in there:
                copy.write_row(row)
    cursor.close()
