"""The table of a run: how its changes come into the log, its writers, and what goes wrong in its database."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Tables
from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_readable
from eventlog.operate.changing import fill_by_slot
from eventlog.publisher.fold import PickUpFold
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import INSERTS, UPDATES, Choice
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.databases import Database
from tests.world.rig import COLUMNS, Rig, value_by_column

COMPARE = "compare"
SLOT = "slot"
CALM = 1_000_000  # the first key of the rows that hardly change
REWRITES = {
    "postgresql": (
        ("alter table usr alter c8 type varchar(40) using c8 || ''",),
        ("alter table usr add more float default random()", "alter table usr drop more"),
        ("alter table usr set unlogged", "alter table usr set logged"),  # unlogged would not survive a kill
    ),
    "mariadb": (
        ("alter table usr force, algorithm = copy",),
        (
            "alter table usr add if not exists more varchar(9), algorithm = copy",
            "alter table usr drop if exists more",
        ),
    ),
}

CUTTING = {  # what asks for the other sessions of the database, and what ends one
    "postgresql": (
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
        "select pg_terminate_backend({})",
    ),
    "mariadb": (
        "select id from information_schema.processlist where db = database() and id <> connection_id()",
        "kill {}",
    ),
}


class LogRow(NamedTuple):
    """A row of the log."""

    record_id: int
    letter: str
    event_type: int
    table_key: str

    @property
    def key(self) -> str:
        return self.table_key.partition("=")[2]


class TrackedTable:
    """The way in which the changes of a run's table come into the log."""

    def __init__(self, mode: str, seed: int) -> None:
        dice = random.Random(seed)
        self.is_compared, self.has_slot = mode == COMPARE, mode == SLOT
        types = (5, 6) if self.has_slot else (dice.choice(INSERTS), dice.choice(UPDATES))
        self.choice = None if self.is_compared or self.has_slot else Choice(*types)
        self.has_query_back = not self.is_compared and max(types) >= 5
        self.errors = 15 if self.is_compared else 3  # percent of the documents; an error may make a hole
        self.batches = ("1", "3") if self.is_compared else ("1", "3", "50")  # events of a document
        self.interval = "3" if self.is_compared else "1"  # seconds, in which failed events are redriven
        self._settings = ("sync-tables", "usr"), ("max-deletes", "100%"), ("publication-mode", mode)

    def __str__(self) -> str:
        if self.choice is None:
            return SLOT if self.has_slot else "compared"
        return f"types {self.choice.insert} and {self.choice.update}"

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of publishers and operators, as an environment has them."""
        if self.choice is not None:
            return {}
        return {f"EVENTLOG_{name.replace('-', '_').upper()}": value for name, value in self._settings}


class Writers(Rig):
    """The writers, on so many objects that most of them have no hole, and on calm rows.

    A calm row is never deleted, and nothing but its own few changes makes up for one that is lost.
    """

    keys = 60

    def __init__(self, database: Database, folder: Path, table: TrackedTable) -> None:
        self.choice = table.choice
        self._calm_key = CALM
        super().__init__(database, folder)
        if table.has_slot:
            values = {"url": self.url, "sync_tables": "usr", "publication_mode": SLOT}
            list(fill_by_slot(Config(values), Store(self.engine, self.log), "chaos"))

    def transaction(self, connection: Any, dice: random.Random) -> None:
        if dice.random() < 0.4:
            self._write_calm_row(connection, dice)
        super().transaction(connection, dice)

    def _write_calm_row(self, connection: Any, dice: random.Random) -> None:
        """Insert a row, or change one to and fro."""
        marks = ", ".join(f":{column}" for column in COLUMNS)
        if dice.random() < 0.4:
            self._calm_key += 1
            row = value_by_column(dice) | {"idu": self._calm_key}
            connection.execute(text(f"insert into usr values (:idu, {marks})"), row)
        else:
            change = "update usr set c1 = case c1 when 'to' then 'fro' else 'to' end where idu = :idu"
            connection.execute(text(change), {"idu": dice.randint(CALM, self._calm_key)})
        connection.commit()


def log_rows(engine: Engine, log: Log, letters: str) -> list[LogRow]:
    """Return the rows with one of these letters in their order, once the database is there."""
    names = log.names()
    columns = ", ".join(names[name] for name in ("record_id", "status", "event_type", "table_key"))
    among = ", ".join(f"'{letter}'" for letter in letters)
    query = f"select {columns} from {names['log']} where {names['status']} in ({among}) order by 1"
    while True:
        try:
            with engine.connect() as connection:
                return [LogRow(*row) for row in connection.execute(text(query))]
        except EventlogError:
            time.sleep(0.2)


def current_reader(store: Store) -> PickUpFold:
    """Return what reads the rows of the table as they are now."""
    with store.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find("usr").table])
    return PickUpFold(tables, read_readable(store.engine, store.log, tables), Rules(), XdsSettings())


def rewrite(engine: Engine, dice: random.Random, ways: int) -> None:
    """Rewrite the table, while writers and publishers wait for it."""
    with engine.begin() as connection:
        for statement in dice.choice(REWRITES[engine.dialect.name][:ways]):
            connection.execute(text(statement))
        time.sleep(dice.uniform(0, 0.4))


def restore(engine: Engine) -> None:
    """Drop the column that a server which was killed between two statements has left."""
    with engine.begin() as connection:
        connection.execute(text("alter table usr drop column if exists more"))


def cut_connections(engine: Engine) -> None:
    """End all other sessions of the database."""
    with engine.connect() as connection:
        other_sessions, cut = CUTTING[engine.dialect.name]
        for (number,) in connection.execute(text(other_sessions)).all():
            with suppress(EventlogError):  # it has ended meanwhile
                connection.execute(text(cut.format(number)))
