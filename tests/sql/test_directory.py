"""A table is found by its name while DDL replaces it."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.sql.catalogue import Catalogue, Directory, open_catalogue
from tests.kit.databases import Database

pytestmark = pytest.mark.quick

LOOKS = 60


@pytest.mark.slow("a thread alters a table all the while")
@pytest.mark.long
def test_a_table_that_is_altered_meanwhile_is_found(engine: Engine, database: Database) -> None:
    """Find it also on MariaDB, which does not list a table while a copy takes its place."""
    is_postgres = database.dialect.schema.transactional
    change = (
        "alter table usr alter idu type integer" if is_postgres else "alter table usr force, algorithm = copy"
    )
    is_over = threading.Event()
    with engine.begin() as connection:
        connection.execute(text("create table usr (idu integer primary key)"))

    def alter() -> None:
        while not is_over.is_set():
            with engine.begin() as connection:
                connection.execute(text(change))

    thread = threading.Thread(target=alter)
    thread.start()
    try:
        for _ in range(LOOKS):
            with engine.connect() as connection:
                assert Directory(Catalogue(connection)).find("usr").table.name == "usr"
    finally:
        is_over.set()
        thread.join()


def test_a_look_waits_for_ddl_though_the_session_has_read_another_table(
    engine: Engine, database: Database
) -> None:
    """Find it on MariaDB, which passes over it if the session holds a lock on another table."""
    if database.dialect.name != "mariadb":
        pytest.skip("only MariaDB replaces a table by one statement that takes a while")
    with engine.begin() as connection:
        connection.execute(text("create table usr (idu integer primary key)"))
        connection.execute(text("create table record (name varchar(10))"))
    replacing = "create or replace table usr (idu integer primary key) as select sleep(1) as idu"

    def replace_table() -> None:
        with engine.begin() as connection:
            connection.execute(text(replacing))

    thread = threading.Thread(target=replace_table)
    with open_catalogue(engine) as catalogue:
        thread.start()
        while not is_running(engine, "create or replace"):
            assert thread.is_alive()
        catalogue.connection.execute(text("select name from record")).all()
        assert Directory(catalogue).find("usr").table.key == ("idu",)
    thread.join()


def is_running(engine: Engine, words: str) -> bool:
    """Return whether a session executes a statement that begins so."""
    running = text("select count(*) from information_schema.processlist where info like :words")
    with engine.connect() as connection:
        return bool(connection.execute(running, {"words": f"{words}%"}).scalar())
