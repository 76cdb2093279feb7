"""A table is found by its name while DDL replaces it."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.sql.catalogue import Catalogue, Directory
from tests.databases import Database

pytestmark = pytest.mark.quick

LOOKS = 60


@pytest.mark.slow("a thread alters a table all the while")
def test_a_table_that_is_altered_meanwhile_is_found(engine: Engine, database: Database) -> None:
    """Find it also on MariaDB, which does not list a table while a copy takes its place."""
    is_postgres = database.dialect.transactional_ddl
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
