"""A live capture as a source of apply and of Kafka: one command, with its state in the target."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from eventlog.sql.connect import connect
from tests.formats.gbase.live import ADDRESS, Live
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows

pytestmark = pytest.mark.quick


def to(database: Database) -> tuple[str, ...]:
    target = database.address
    return ("apply", "--to-url", target, "--url", ADDRESS)


def test_a_capture_goes_into_tables_and_goes_on_from_the_targets_state(
    live: Live, postgres: Database
) -> None:
    live.insert(1, 2)
    command = (*to(postgres), "own.t1", "own.t2", "--key", "k")
    assert live.run(*command) == (0, "", "eventlog: 2 inserted, 0 updated, 0 deleted\n")
    live.insert(3)
    live.insert(4, table="shop:own.t2")
    assert live.run(*command) == (0, "", "eventlog: 2 inserted, 0 updated, 0 deleted\n")
    engine = connect(postgres.url)
    assert [key for (key,) in select_rows(engine, "select k from t1 order by k")] == [1, 2, 3]
    assert dict(select_rows(engine, "select k, v from t1")) == live.world.tables["shop:own.t1"]
    assert dict(select_rows(engine, "select k, v from t2")) == live.world.tables["shop:own.t2"]
    run_statements(engine, "update t1 set v = 'ours'")  # which a run that applied again would overwrite
    assert live.run(*command) == (0, "", "eventlog: 0 inserted, 0 updated, 0 deleted\n")
    assert {v for (v,) in select_rows(engine, "select v from t1")} == {"ours"}
    types = (
        "select data_type from information_schema.columns where table_name = 't1' order by ordinal_position"
    )
    assert select_rows(engine, types) == [("integer",), ("character varying",)]


def test_a_capture_that_is_followed_applies_what_comes_and_ends_by_a_signal(
    live: Live, postgres: Database
) -> None:
    engine = connect(postgres.url)
    run_statements(engine, "create table t1 (k integer primary key, v varchar(20))")
    live.insert(1)
    read, coming = live.world.server.read, [2, 3]

    def answer(session: int, size: int) -> bytes:
        """Insert the next row once all before it are in the target; at last end the command."""
        left = len(select_rows(engine, "select k from t1")) - (3 - len(coming))
        if left == 0 and coming:
            live.insert(coming.pop(0))
        elif left == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return read(session, size)

    live.world.server.read = answer  # type: ignore[method-assign]
    command = (*to(postgres), "own.t1", "--follow", "--follow-interval", "0.1")
    assert live.run(*command) == (0, "", "eventlog: 3 inserted, 0 updated, 0 deleted\n")
    assert dict(select_rows(engine, "select k, v from t1")) == live.world.tables["shop:own.t1"]
    assert live.world.server.session is None


def test_a_capture_without_tables_or_of_another_server_is_misuse(live: Live, postgres: Database) -> None:
    code, _, err = live.run(*to(postgres))
    assert (code, "name the tables that are captured" in err) == (2, True), err
    code, _, err = live.run(*to(postgres)[:3], "--snapshot-lock", "none", "x.jsonl")
    assert (code, "takes no part here" in err) == (2, True), err


def test_a_capture_goes_into_numbered_parts_with_a_state(live: Live, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    words = ("convert", "--url", ADDRESS, "--to", "changes", "--state", str(tmp_path / "state"))
    live.insert(1)
    for key in (2, 3):
        assert live.run(*words, "-o", f"{folder}/", "own.t1") == (0, "", "eventlog: 1 change was converted\n")
        live.insert(key)
    parts = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")
    assert [path.read_text().count("\n") for path in parts] == [1, 1]
