"""A live log on each database at hand: frozen, delivered, finished, while writers go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.job import Backlog, Result
from eventlog_spark.live import Led, Live, run_live
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.convert import Job
from eventlog.sql import migrate
from eventlog.sql.log import Log
from eventlog.sql.snapshot import Choice
from eventlog.sql.store import Store
from tests.databases import Database
from tests.spark.helpers import CLOCK, by_object, converted

ROWS = [
    (2, "idu=1", "fname", "a", "b"),
    (6, "idu=2", None, None, None),
    (5, "idu=3", None, None, None),
    (8, "idu= 2", "lname", None, None),
    (2, "idu=1", "lname", None, "x"),
    (6, "idu=x", None, None, None),
    (4, "idu=4", None, None, None),
    (1, "idu=5", "nothing", None, "\u0001"),
]


@pytest.fixture
def store(engine: Engine, database: Database) -> Store:
    log = Log(database.dialect)
    migrate.install(engine, log)
    made = Store(engine, log)
    fill = "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))"
    with engine.begin() as connection:
        connection.execute(text(fill))
        connection.execute(text("insert into usr values (1, 'John', 'Doe'), (2, 'Ann', null)"))
    write(made, ROWS)
    return made


def write(store: Store, rows: list[tuple[Any, ...]]) -> None:
    names = store.log.names()
    columns = ("table_name", "event_type", "table_key", "column_name", "old_value", "new_value")
    listed = ", ".join(names[column] for column in columns)
    marks = ", ".join(f":{column}" for column in columns)
    with store.engine.begin() as connection:
        for row in rows:
            given = dict(zip(columns, ("usr", *row), strict=True))
            connection.execute(text(f"insert into {names['log']} ({listed}) values ({marks})"), given)


def pending(store: Store) -> int:
    with store.snapshot() as snapshot:
        return len(snapshot.pick_up(Choice()))


def backlog(spark: Any, store: Store, folder: Path, meanwhile: Any = None, **how: Any) -> Result:
    from eventlog.sql.catalogue import Catalogue
    from eventlog.tables import Tables

    with store.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find("usr").table], store.log.dialect.name)
    job = Job("log", "xds", (), str(folder), tables=tables)

    def stage(name: str) -> None:
        if name == "fold" and meanwhile is not None:
            meanwhile()

    wanted = Backlog(job, CLOCK, partitions=2)
    return run_live(spark, wanted, Live(store, "test", **how), stage)


def documents(folder: Path) -> list[str]:
    return [line for path in sorted(folder.glob("part-*")) for line in path.read_text("utf-8").splitlines()]


def test_a_live_log_is_delivered_and_finished(spark: Any, store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = backlog(spark, store, out, lambda: write(store, ROWS[:3]), finish=True)
    assert result.finished == len(ROWS)
    assert result.manifest["counts"]["refused"] == 2
    assert pending(store) == 3
    names = store.log.names()
    with store.engine.connect() as connection:
        letters = connection.execute(
            text(f"select {names['record_id']}, {names['status']} from {names['log']} order by 1")
        ).all()
        failed = connection.execute(text(f"select record_id, reason from {names['failed']}")).all()
    assert "".join(letter for _, letter in letters) == "SSSSSESENNN"
    assert [row for row, _ in failed] == [letters[5][0], letters[7][0]]
    frozen = out / "_frozen"
    catalogue = [("usr", str(path)) for path in frozen.glob("current-*")]
    expected, _ = converted(
        Job(
            "log",
            "xds",
            tuple(map(str, sorted(frozen.glob("log-*")))),
            str(tmp_path / "expected"),
            tables=_tables(store),
            current=tuple(catalogue),
        )
    )
    rows = [(n, 0, 0, 0, 0, "usr", key) for (n, _), (_, key, *_) in zip(letters, ROWS, strict=False)]
    assert by_object(documents(out), rows) == by_object(expected, rows)
    again = backlog(spark, store, out, finish=True)
    assert again.before
    assert again.finished == 0
    assert pending(store) == 3


def _tables(store: Store) -> Any:
    from eventlog.sql.catalogue import Catalogue
    from eventlog.tables import Tables

    with store.engine.connect() as connection:
        return Tables([Catalogue(connection).find("usr").table], store.log.dialect.name)


def test_a_job_that_died_reads_the_same_again(spark: Any, store: Store, tmp_path: Path) -> None:
    class Died(Exception):
        pass

    def die() -> None:
        write(store, ROWS)
        raise Died

    with pytest.raises(Died):
        backlog(spark, store, tmp_path / "out", die)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert pending(store) == 2 * len(ROWS)
    result = backlog(spark, store, tmp_path / "out", finish=True)
    assert result.manifest["counts"]["rows"] == len(ROWS)
    assert pending(store) == len(ROWS)


def test_a_publisher_stands_by(spark: Any, store: Store, tmp_path: Path) -> None:
    leader = store.lead("publisher")
    assert leader is not None
    with leader, pytest.raises(Led):
        backlog(spark, store, tmp_path / "out")
