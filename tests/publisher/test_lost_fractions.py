"""`track` and `check` name the columns whose fractions of a second documents lose."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import Engine

from eventlog.sql.connect import connect
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

LOSES = (
    "seen may have fractions of a second, which documents with time-syntax = 1 lose;"
    " time-syntax = 3 of the publisher keeps them"
)


@pytest.fixture
def engine(postgres: Database) -> Engine:
    engine = connect(postgres.url)
    run_statements(
        engine,
        "create table usr (idu integer primary key, seen timestamp, born date, left_at timestamp(0))",
    )
    return engine


def test_columns_that_lose_fractions_are_named(shell: Shell, postgres: Database, engine: Engine) -> None:
    """Report it when a table gets its triggers, and at each check, until another time-syntax is set."""
    address = ("--url", postgres.address)
    assert shell.run("install", *address).code == 0
    done = shell.run("track", *address, "usr")
    assert (done.code, LOSES in done.stderr) == (0, True), done
    done = shell.run("track", *address, "usr")
    assert "fractions" not in done.stderr, done
    done = shell.run("check", *address)
    assert "documents lose the fractions of a second of usr.seen" in " ".join(
        (done.stdout + done.stderr).split()
    ), done
    assert "left_at" not in done.stdout + done.stderr
    done = shell.run("check", *address, "--time-syntax", "3")
    assert "fractions" not in done.stdout + done.stderr
    done = shell.run("track", *address, "--without", "seen", "usr")
    assert (done.code, "fractions" in done.stderr) == (0, False), done
